package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Limit is an escalation.Limit without the method UnmarshalText. If Limit had this method, the env package would call
// it instead of parseLimit, whose error messages are better.
type Limit escalation.Limit

// String formats l as text from which parseLimit returns l.
func (l Limit) String() string { return escalation.Limit(l).String() }

// Overrides maps the name of a service to the limits for this service. Its text form has items such as
// jellyfin:restart=4/4h. Semicolons or line breaks separate the items.
type Overrides map[string]escalation.ServiceCooldowns

// String formats o as text from which parseOverrides returns o.
func (o Overrides) String() string {
	var items []string
	add := func(service string, kind escalation.ActionKind, limit *escalation.Limit) {
		if limit != nil {
			items = append(items, fmt.Sprintf("%s:%s=%s", service, kind, limit))
		}
	}
	for _, service := range slices.Sorted(maps.Keys(o)) {
		add(service, escalation.ActionRestart, o[service].Restarts)
		add(service, escalation.ActionRedeployment, o[service].Redeployments)
	}
	return strings.Join(items, ";")
}

// parseOverrides parses Overrides. The text of its error lists all problems, and continues the phrase "it must ...".
func parseOverrides(text string) (Overrides, error) {
	overrides := Overrides{}
	var found []string
	items := strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' })
	for _, item := range items {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if err := overrides.add(item); err != nil {
			found = append(found, fmt.Sprintf("%q %s", item, err))
		}
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("be items such as jellyfin:restart=4/4h, separated by semicolons; %s",
			strings.Join(found, "; "))
	}
	return overrides, nil
}

// add parses an item such as jellyfin:restart=4/4h: the service, the kind of action, and the limit. The name of a
// service can contain colons and equals signs. So the limit begins after the last equals sign, and the kind after the
// last colon before that sign. The text of its error continues a sentence that begins with the item.
func (o Overrides) add(item string) error {
	equals := strings.LastIndex(item, "=")
	if equals < 0 {
		return errors.New("has no limit after an equals sign")
	}
	subject, value := item[:equals], strings.TrimSpace(item[equals+1:])
	colon := strings.LastIndex(subject, ":")
	if colon < 0 {
		return errors.New("has no colon between the service and restart or redeployment")
	}
	service, kind := strings.TrimSpace(subject[:colon]), strings.TrimSpace(subject[colon+1:])
	if err := escalation.CheckServices([]string{service}); err != nil {
		return fmt.Errorf("is about a service that cannot be: %w", err)
	}
	if value == "" {
		return errors.New("has no limit after the equals sign")
	}
	limit, err := escalation.ParseLimit(value)
	if err != nil {
		return fmt.Errorf("has a limit that is none: %w", err)
	}
	return o.set(service, escalation.ActionKind(kind), limit)
}

func (o Overrides) set(service string, kind escalation.ActionKind, limit escalation.Limit) error {
	service = o.spelled(service)
	own := o[service]
	var place **escalation.Limit
	switch kind {
	case escalation.ActionRestart:
		place = &own.Restarts
	case escalation.ActionRedeployment:
		place = &own.Redeployments
	case escalation.ActionOther:
		return errors.New("limits other actions, which have no cooldown")
	default:
		return fmt.Errorf("limits %q, which is neither restart nor redeployment", kind)
	}
	if *place != nil {
		return errors.New("comes twice for its service")
	}
	*place = &limit
	o[service] = own
	return nil
}

// spelled returns the name under which o holds the limits of a service. If o has the service in another spelling,
// spelled returns that spelling. If o does not have the service, spelled returns service.
func (o Overrides) spelled(service string) string {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if escalation.SameService(name, service) {
			return name
		}
	}
	return service
}

// parseLimit parses a limit. The text of its error continues the phrase "it must ...".
func parseLimit(value string) (any, error) {
	limit, err := escalation.ParseLimit(value)
	if err != nil {
		return nil, errors.New("be a number and a duration of at most 87600h, such as 3/1h (three within any hour) " +
			"or 0/1h (never), or be none")
	}
	return Limit(limit), nil
}

// validate records values that are out of range.
func (l Limits) validate(p *problems) {
	p.must("CHAIN_BUDGET_USD", isBudget(l.ChainBudgetUSD), noCap)
	p.must("DAY_BUDGET_USD", isBudget(l.DayBudgetUSD), noCap)
	p.must("COOLDOWN_MAX_WAIT", l.MaxWait >= 0, "be 0s (no waiting) or more")
	inReturns := l.Returns.Max >= 1 && l.Returns.Max <= escalation.MaxReturns &&
		l.Returns.Window.Std() <= escalation.IncidentMemory
	p.must("RETURNS", l.Returns == Limit{} || inReturns, "be 1 to %d returns within at most %s, or none",
		escalation.MaxReturns, escalation.ShortDuration(escalation.IncidentMemory))
	p.must("MAX_PARALLEL_ISSUES", l.MaxParallelIssues >= 1 && l.MaxParallelIssues <= escalation.MaxIssues,
		"be between 1 and %d", escalation.MaxIssues)
}

func (l Limits) cooldowns() escalation.Cooldowns {
	return escalation.Cooldowns{
		Restarts:      escalation.Limit(l.Restarts),
		Redeployments: escalation.Limit(l.Redeployments),
		Services:      l.Overrides,
		MaxWait:       escalation.Duration(l.MaxWait),
	}
}
