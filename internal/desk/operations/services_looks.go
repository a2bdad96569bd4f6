package operations

import (
	"cmp"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

const (
	// maxServiceLooks limits the looks of a Service.
	maxServiceLooks = 30
	// maxLooksRead limits the looks that are read for all services together.
	maxLooksRead = 300
)

// ServiceLook is the result of a look for one of the services that it checked.
type ServiceLook struct {
	Session int64
	At      time.Time
	// Status is the worst result of the look's checks of the service.
	Status escalation.CheckStatus
	// Error says what was wrong; empty if nothing was.
	Error string
	// ResponseTimeMS is the longest response time in milliseconds; 0 if it is unknown.
	ResponseTimeMS float64
}

// addLooks takes over the looks, latest first.
func (k *knownServices) addLooks(looks []store.Look) {
	k.looks = map[string][]ServiceLook{}
	for _, look := range looks {
		for key, one := range k.lookOf(look) {
			if len(k.looks[key]) < maxServiceLooks {
				k.looks[key] = append(k.looks[key], one)
			}
		}
	}
}

// lookOf returns what a look says about each service.
func (k *knownServices) lookOf(look store.Look) map[string]ServiceLook {
	found := map[string]ServiceLook{}
	for _, check := range look.Verdict.Checks {
		key := k.keyOf(check.Service)
		one := found[key]
		one.ResponseTimeMS = max(one.ResponseTimeMS, check.ResponseTimeMS)
		if one.Status == "" || worse(check.Status, one.Status) {
			one.Status, one.Error = check.Status, k.mask.Text(check.Error)
		}
		found[key] = one
	}
	if look.Verdict.FindsFault() {
		for _, service := range look.Verdict.Affected() {
			key := k.keyOf(service)
			if one := found[key]; one.Status == "" || one.Status == escalation.CheckHealthy {
				one.Status, one.Error = escalation.CheckDegraded, k.mask.Text(look.Verdict.Summary)
				found[key] = one
			}
		}
	}
	for key, one := range found {
		one.Session, one.At = look.Session, look.At
		found[key] = one
	}
	return found
}

// worse reports whether a check's result is worse than another one.
func worse(a, b escalation.CheckStatus) bool {
	order := []escalation.CheckStatus{escalation.CheckHealthy, escalation.CheckDegraded, escalation.CheckDown}
	return cmp.Compare(slices.Index(order, a), slices.Index(order, b)) > 0
}

// Last returns the latest look; nil if there is none.
func (s Service) Last() *ServiceLook {
	if len(s.Looks) == 0 {
		return nil
	}
	return &s.Looks[0]
}

// Well returns how many of the latest looks have found nothing wrong.
func (s Service) Well() int {
	well := 0
	for _, look := range s.Looks {
		if look.Status == escalation.CheckHealthy {
			well++
		}
	}
	return well
}

// Standing is the state of a service in one word or two, as far as the latest look and open incidents say.
type Standing string

// The standings.
const (
	StandingDown    Standing = "down"
	StandingUnwell  Standing = "not well"
	StandingAnswers Standing = "answers" // the latest look has found nothing wrong, and an incident is open
	StandingUp      Standing = "up"
	StandingUnseen  Standing = "not looked at"
)

// Standing returns the state of the service.
func (s Service) Standing() Standing {
	switch last := s.Last(); {
	case last != nil && last.Status == escalation.CheckDown:
		return StandingDown
	case last != nil && last.Status == escalation.CheckDegraded, last == nil && s.OpenIncidents > 0:
		return StandingUnwell
	case last == nil:
		return StandingUnseen
	case s.OpenIncidents > 0:
		return StandingAnswers
	}
	return StandingUp
}

// In returns the names of the services with a standing.
func (l ServiceList) In(standing Standing) (names []string) {
	for _, service := range l.Services {
		if service.Standing() == standing {
			names = append(names, service.Name)
		}
	}
	return names
}
