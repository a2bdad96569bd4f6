package year

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// chances draws numbers. A number depends on the seed and on what it is drawn for, and not on what was drawn before.
type chances uint64

// draw returns a number from 0 to below n.
func (c chances) draw(n int, what ...any) int {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, uint64(c), what)
	mixed := hash.Sum64() * 0x9e3779b97f4a7c15
	return int((mixed >> 33) % uint64(n)) //nolint:gosec // n is small
}

// in reports whether something happens that happens in so many of 100 cases.
func (c chances) in(percent int, what ...any) bool { return c.draw(100, what...) < percent }

// between returns a time between two durations, to the millisecond, so that few things happen in the same moment.
func (c chances) between(least, most time.Duration, what ...any) time.Duration {
	return least + time.Duration(c.draw(int((most-least)/time.Millisecond)+1, what...))*time.Millisecond
}

// fault is a fault of one service. The times heals and worsens are zero if that never happens.
type fault struct {
	service, kind          string
	begins, heals, worsens time.Time
	// repairedBy is the tier that can repair the fault; 0 if only a person can.
	repairedBy escalation.Tier
	repairedAt time.Time
	// repairer is the chain that has repaired it; empty if a person has.
	repairer string
	// repairEnds is the end of the session that has repaired it.
	repairEnds time.Time
}

func (f *fault) worse(at time.Time) bool { return !f.worsens.IsZero() && !at.Before(f.worsens) }

func (f *fault) over(at time.Time) bool {
	return !f.heals.IsZero() && !at.Before(f.heals) || !f.repairedAt.IsZero() && !at.Before(f.repairedAt)
}

// span is a time from its first moment to before its last.
type span struct{ from, to time.Time }

// during returns the end of the span that holds a time; false if none does.
func during(spans []span, at time.Time) (to time.Time, is bool) {
	for _, one := range spans {
		if !at.Before(one.from) && at.Before(one.to) {
			return one.to, true
		}
	}
	return to, false
}

// world is what happens around the installation.
type world struct {
	chances

	from     time.Time
	faults   map[string][]*fault // by service, oldest first
	outages  []span              // of the database
	deaf     []span              // in which one target of notifications takes none
	refusals []refusalSpan       // of the provider
	restarts []time.Time         // of the worker
	losses   []time.Time         // of the host
	renames  []rename
	// What the tests of the invariants break: a service that all looks see broken, and that looks see nothing.
	imagines string
	blind    bool
}

// rename gives a service another name; its first name stays as an alias. If from is its new name, it gets the first one
// back.
type rename struct {
	at      time.Time
	service string
}

// refusalSpan is a time in which the provider refuses each call in one way, for the models with a word in their names;
// empty for all.
type refusalSpan struct {
	span

	way   refusal
	model string
}

// newName is added to the name of a service that is renamed.
const newName = "-renamed"

func services() []string { return []string{"db", "dns", "files", "mail", "web"} }

// firstNames returns services by the names that the world uses.
func firstNames(given []string) []string {
	var names []string
	for _, service := range given {
		names = append(names, strings.TrimSuffix(service, newName))
	}
	return names
}

// newWorld draws what happens in some days. In the last hours nothing new happens. In a hectic life services break
// several times a day.
func newWorld(of life, ways []refusal) *world {
	begin, days := of.begin, of.days
	w := &world{chances: chances(of.seed), from: begin, faults: map[string][]*fault{}}
	last := time.Duration(days)*24*time.Hour - quiet
	for _, service := range services() {
		kind := []string{"down", "slow", ""}[w.draw(3, service, "kind")]
		at := w.between(2*time.Hour, 40*time.Hour, service, "first")
		for n := 0; at < last; n++ {
			one := &fault{service: service, kind: kind, begins: begin.Add(at)}
			one.repairedBy = []escalation.Tier{0, 2, 2, 2, 3}[w.draw(5, service, n, "tier")]
			if w.in(25, service, n, "heals") {
				one.heals = one.begins.Add(w.between(20*time.Minute, 7*time.Hour, service, n, "heals after"))
			}
			if w.in(30, service, n, "worsens") {
				one.worsens = one.begins.Add(w.between(time.Hour, 15*time.Hour, service, n, "worsens after"))
			}
			w.faults[service] = append(w.faults[service], one)
			next := w.between(12*time.Hour, 12*24*time.Hour, service, n, "next")
			if of.hectic {
				next = w.between(4*time.Hour, 28*time.Hour, service, n, "next")
			}
			if w.in(20, service, n, "flaps") {
				next /= 12
			}
			at += next
		}
	}
	times := func(what string, each time.Duration, does func(n int, at time.Time)) {
		for n, at := 0, w.between(time.Hour, 2*each, what); at < last; n, at = n+1, at+w.between(each/2, 3*each/2, what, n, "next") {
			does(n, begin.Add(at))
		}
	}
	often := func(days int) time.Duration {
		if of.hectic {
			days = 1
		}
		return time.Duration(days) * 24 * time.Hour
	}
	times("outage", often(9), func(n int, at time.Time) {
		w.outages = append(w.outages, span{at, at.Add(w.between(time.Minute, 2*time.Hour, "outage for", n))})
	})
	times("refusal", often(6), func(n int, at time.Time) {
		way, model := ways[w.draw(len(ways), "way", n)], []string{"", "", "haiku", "sonnet", "opus"}[w.draw(5, "refused model", n)]
		if way.name == string(escalation.EndingLimited) {
			model = "" // of the account
		}
		until := at.Add(w.between(10*time.Minute, 6*time.Hour, "refuses for", n))
		w.refusals = append(w.refusals, refusalSpan{span{at, until}, way, model})
	})
	times("deaf", often(4), func(n int, at time.Time) {
		w.deaf = append(w.deaf, span{at, at.Add(w.between(time.Minute, 30*time.Hour, "deaf for", n))})
	})
	times("restart", often(3), func(n int, at time.Time) { // while a scheduled look runs
		w.restarts = append(w.restarts, at.Truncate(time.Hour).Add(w.between(15*time.Second, 45*time.Second, "restart in", n)))
	})
	times("loss", 25*24*time.Hour, func(_ int, at time.Time) { w.losses = append(w.losses, at) })
	times("rename", often(20), func(n int, at time.Time) {
		w.renames = append(w.renames, rename{at, services()[w.draw(len(services()), "rename what", n)]})
	})
	return w
}

// broken returns the fault of a service at a time; nil if the service is healthy.
func (w *world) broken(service string, at time.Time) *fault {
	for _, one := range w.faults[service] {
		if !at.Before(one.begins) && !one.over(at) {
			return one
		}
	}
	return nil
}

// mend repairs all faults that a service has at a time. The argument repairer is the chain that does so; empty for a
// person.
func (w *world) mend(service string, at time.Time, repairer string) {
	for one := w.broken(service, at); one != nil; one = w.broken(service, at) {
		one.repairedAt, one.repairer, one.repairEnds = at, repairer, time.Now()
	}
}

// look is the verdict of Tier 1. It sees what is broken at a time. Agents differ: some report several faults as one,
// some name no kinds or no known incidents.
func (w *world) look(input activities.RunTierInput, at time.Time) *escalation.Verdict {
	named := firstNames(input.Services)
	if len(named) == 0 {
		named = services()
	}
	verdict := &escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}
	for _, service := range named {
		check := escalation.CheckResult{Service: service, CheckType: "http", Status: escalation.CheckHealthy}
		one := w.broken(service, at)
		if w.blind {
			one = nil
		} else if one == nil && service == w.imagines {
			one = &fault{service: service}
		}
		if one != nil {
			check.Status = escalation.CheckDegraded
			issue := escalation.Issue{Summary: service + " is broken", Services: []string{service}, Severity: escalation.SeverityWarning, Kind: one.kind}
			if one.worse(at) {
				check.Status, issue.Severity = escalation.CheckDown, escalation.SeverityCritical
			}
			if w.in(15, input.SessionID, service, "no kind") {
				issue.Kind = ""
			}
			verdict.Issues, verdict.Services = append(verdict.Issues, issue), append(verdict.Services, service)
		}
		verdict.Checks = append(verdict.Checks, check)
	}
	if len(verdict.Issues) > 0 {
		verdict.Status, verdict.Summary = escalation.VerdictEscalate, verdict.Issues[0].Summary
	}
	if len(verdict.Issues) == 1 {
		verdict.Kind, verdict.Issues = verdict.Issues[0].Kind, nil
	} else if len(verdict.Issues) > 1 && w.in(10, input.SessionID, "merged") {
		verdict.Summary, verdict.Issues = "several services are broken", nil
	}
	if len(verdict.Services) == 0 || w.in(80, input.SessionID, "names") {
		w.nameKnown(verdict, input, at)
	}
	return verdict
}

// nameKnown adds the known incidents to a verdict.
func (w *world) nameKnown(verdict *escalation.Verdict, input activities.RunTierInput, at time.Time) {
	for _, incident := range input.Incidents {
		if w.blind {
			break
		}
		known := escalation.KnownIncident{ID: incident.ID, Status: escalation.IncidentGone}
		for _, service := range firstNames(incident.Services) {
			if one := w.broken(service, at); one != nil {
				known.Status = escalation.IncidentUnchanged
				if one.worse(at) && incident.WorseAt.IsZero() {
					known.Status, known.Note = escalation.IncidentWorse, "it does not answer at all now"
					break
				}
			}
		}
		if len(incident.Services) > 0 {
			verdict.Known = append(verdict.Known, known)
		}
	}
}

// affected returns the services that an agent of Tier 2 or 3 is told to repair, and repairs those that no other chain
// works on.
func affected(input activities.RunTierInput) []string {
	if named := firstNames(input.Services); len(named) > 0 {
		return named
	}
	return firstNames(input.Affected)
}

func (*world) repairs(input activities.RunTierInput) []string {
	return slices.DeleteFunc(affected(input), func(service string) bool {
		return slices.ContainsFunc(input.Leave, func(i escalation.ChainIncident) bool { return slices.Contains(firstNames(i.Services), service) })
	})
}

// repair is the verdict of Tier 2 or 3. With a person's guidance it repairs every fault. Agents that give up may name
// no service.
func (w *world) repair(input activities.RunTierInput, done time.Time) *escalation.Verdict {
	verdict := &escalation.Verdict{
		Status: escalation.VerdictResolved, Summary: "repaired", Services: affected(input), Remediation: "did what it could",
	}
	for _, service := range w.repairs(input) {
		verdict.Actions = append(verdict.Actions, escalation.Action{Kind: escalation.ActionRestart, Service: service, Succeeded: true})
		one := w.broken(service, done)
		if one == nil {
			continue
		}
		if input.Guidance != "" || one.repairedBy != 0 && input.Tier >= one.repairedBy {
			w.mend(service, done, input.ChainID)
			verdict.Memories = w.remember(verdict.Memories, input.SessionID, service)
			continue
		}
		if input.Tier == escalation.TierFullRepair {
			verdict.Status = escalation.VerdictNeedsHuman
		} else if verdict.Status == escalation.VerdictResolved {
			verdict.Status = escalation.VerdictEscalate
			if w.in(20, input.SessionID, "gives up") {
				verdict.Status = escalation.VerdictNeedsHuman
			}
		}
	}
	if verdict.Status == escalation.VerdictNeedsHuman && w.in(50, input.SessionID, "names nothing") {
		verdict.Services = nil
	}
	return verdict
}

// remember adds what an agent has learned about a service: now and then one of a few facts.
func (w *world) remember(memories []escalation.MemoryProposal, sessionID, service string) []escalation.MemoryProposal {
	if !w.in(30, sessionID, "learns") || len(memories) == escalation.MaxMemories {
		return memories
	}
	n := w.draw(6, sessionID, "what")
	return append(memories, escalation.MemoryProposal{
		Kind: escalation.MemoryRemediation, Service: service, Subject: fmt.Sprint("restart, case ", n),
		Text: fmt.Sprintf("In case %d a restart of %s helps.", n, service),
	})
}
