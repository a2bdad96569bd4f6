package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Services lists and shows services: those of the services file, and those that the records name. The records answer.
type Services struct{ *backend }

// Service is a service in a list.
type Service struct {
	Name string `json:"name"`
	// Listed reports whether the services file has the service. If not, only the records name it.
	Listed bool `json:"listed"`
	// Criticality, Owner and DependsOn are those of the services file. NeededBy lists the services that depend on this
	// one.
	Criticality escalation.Criticality `json:"criticality,omitempty"`
	Owner       string                 `json:"owner,omitempty"`
	DependsOn   []string               `json:"depends_on"`
	NeededBy    []string               `json:"needed_by"`
	// Restarts and Redeployments say how much of the limits is used, and when the next repair is free. The limits are
	// those of this program's settings. Workers may have others.
	Restarts      escalation.Use `json:"restarts"`
	Redeployments escalation.Use `json:"redeployments"`
	// HeldBy is the chain that repairs the service now, or holds all services; nil if none does.
	HeldBy *ServiceHolder `json:"held_by,omitempty"`
	// OpenIncidents counts the open incidents of the service. Severity is that of the most severe one; empty if there
	// is none.
	OpenIncidents int                 `json:"open_incidents"`
	Severity      escalation.Severity `json:"severity,omitempty"`
	// LastAction is the latest restart or redeployment; nil if the records have none.
	LastAction *ServiceAction `json:"last_action,omitempty"`
	// Looks lists the latest looks of 30 days that checked the service, latest first, at most 30. Only pages show them.
	Looks []ServiceLook `json:"-"`
}

// ServiceHolder is a chain that has locked a service, because it repairs it.
type ServiceHolder struct {
	// Service is the locked service; empty if the chain has locked all services, because it repairs without naming one.
	Service string    `json:"service,omitempty"`
	ChainID string    `json:"chain_id"`
	Since   time.Time `json:"since"`
}

// ServiceAction is a restart or a redeployment of a service.
type ServiceAction struct {
	Service string                `json:"service"`
	Kind    escalation.ActionKind `json:"kind"`
	At      time.Time             `json:"at"`
	ChainID string                `json:"chain_id"`
	// Session is the number of the session that did it.
	Session   int64           `json:"session,omitempty"`
	SessionID string          `json:"session_id"`
	Tier      escalation.Tier `json:"tier"`
	Model     string          `json:"model"`
	// Call is the tool call that was charged; empty if only a verdict reports the action, or if it is presumed.
	Call string `json:"call,omitempty"`
	// Succeeded reports whether the session's verdict says that the action succeeded; false before there is a verdict.
	Succeeded bool `json:"succeeded"`
}

// ServiceDetail is a service, with what was done to it.
type ServiceDetail struct {
	Service

	Aliases []string `json:"aliases"`
	// Look and LookFile tell how to look at the service. Runbook and RunbookFile tell how to repair it, or where that
	// is written. The files are paths on the workers' hosts.
	Look        string `json:"look,omitempty"`
	LookFile    string `json:"look_file,omitempty"`
	Runbook     string `json:"runbook,omitempty"`
	RunbookFile string `json:"runbook_file,omitempty"`
	// Actions lists the latest actions, latest first, at most 100. More reports whether there are others.
	Actions []ServiceAction `json:"actions"`
	More    bool            `json:"more,omitempty"`
	// Incidents lists the open incidents, and those that were resolved in the last 30 days, the most urgent first, at
	// most 200.
	Incidents []Incident `json:"incidents"`
}

// ServiceList is a list of services.
type ServiceList struct {
	// Services lists those of the services file in its order, then the others by name, at most 1,000 of these.
	Services []Service `json:"services"`
	// HeldBy is the chain that holds all services; nil if none does.
	HeldBy *ServiceHolder `json:"held_by,omitempty"`
}

const (
	// servicesSince is how far back the records are searched for services and their latest actions.
	servicesSince = 30 * day
	// maxServiceActions limits the actions of a ServiceDetail.
	maxServiceActions = 100
	// maxOtherServices limits the services that only the records name. Agents name them.
	maxOtherServices = 1_000
	// maxServiceIncidents limits the resolved incidents of a ServiceDetail.
	maxServiceIncidents = 20
)

// List returns all services: those of the services file, and those that the records of the last 30 days name.
func (s Services) List(ctx context.Context) (ServiceList, error) {
	known, err := s.read(ctx)
	if err != nil {
		return ServiceList{}, err
	}
	return known.list(), nil
}

// Get returns the service with this name or alias. The error is KindNotFound if neither the services file nor the
// records know it.
func (s Services) Get(ctx context.Context, name string) (ServiceDetail, error) {
	known, err := s.read(ctx)
	if err != nil {
		return ServiceDetail{}, err
	}
	list := known.list()
	canonical := known.catalog.Canonical(name)
	at := slices.IndexFunc(known.names(), func(one string) bool { return escalation.SameService(one, canonical) })
	if at < 0 {
		return ServiceDetail{}, withKind(KindNotFound,
			fmt.Errorf("there is no service %q in the services file or in the records of "+
				"the last 30 days", line(name, escalation.MaxServiceName)))
	}
	detail := ServiceDetail{
		Service: list.Services[at], Aliases: []string{}, Actions: []ServiceAction{},
		Incidents: []Incident{},
	}
	detail.describe(known.described[escalation.ServiceKey(canonical)])
	if err := s.addActions(ctx, known.records, canonical, &detail); err != nil {
		return ServiceDetail{}, err
	}
	err = s.addServiceIncidents(ctx, known.records, append([]string{canonical}, detail.Aliases...), &detail)
	return detail, err
}

// TakeBack takes the latest restart or redeployment of a service out of all limits, because it reached nothing, and
// returns it. The error is KindNotFound if the records have none, and KindConflict if its session has not ended.
func (s Services) TakeBack(ctx context.Context, name, actor string) (ServiceAction, error) {
	records, cfg, err := s.openRecords(ctx)
	if err != nil {
		return ServiceAction{}, err
	}
	service := cfg.Services.Catalog.Canonical(name)
	taken, err := records.TakeBack(ctx, service, actor, s.Clock())
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = withKind(KindNotFound, fmt.Errorf("the records have no restart and no redeployment of %q",
			line(service, escalation.MaxServiceName)))
	case errors.Is(err, store.ErrConflict):
		err = withKind(KindConflict, fmt.Errorf("%w; take it back when it has", printable(err)))
	}
	return s.action(taken), err
}

// addServiceIncidents adds the open incidents of the service with these names, and those that were resolved last.
func (s Services) addServiceIncidents(
	ctx context.Context, records *store.Store, names []string, detail *ServiceDetail,
) error {
	open, err := records.OpenIncidents(ctx, store.OpenFilter{Services: names, Limit: maxNowIncidents})
	if err != nil {
		return err
	}
	resolved, err := records.Incidents(ctx, store.IncidentFilter{
		Since: s.Clock().Add(-servicesSince), Services: names, Limit: maxServiceIncidents, OnlyResolved: true,
	})
	slices.SortStableFunc(resolved, latestFirst)
	incidents := slices.Concat(open.Incidents, resolved)
	for _, incident := range incidents[:min(len(incidents), maxNowIncidents)] {
		detail.Incidents = append(detail.Incidents, s.view(incident, s.Clock()))
	}
	return err
}

// describe adds what the services file says.
func (d *ServiceDetail) describe(service escalation.Service) {
	if service.Aliases != nil {
		d.Aliases = service.Aliases
	}
	d.Look, d.LookFile, d.Runbook, d.RunbookFile = service.Look, service.LookFile, service.Runbook, service.RunbookFile
}

// addActions adds the latest actions on the service.
func (s Services) addActions(ctx context.Context, records *store.Store, name string, detail *ServiceDetail) error {
	actions, err := records.ActionsOf(ctx, name, maxServiceActions+1)
	detail.More = len(actions) > maxServiceActions
	for _, action := range actions[:min(len(actions), maxServiceActions)] {
		detail.Actions = append(detail.Actions, s.action(action))
	}
	return err
}

// action returns an action with its secrets masked.
func (b *backend) action(action store.ServiceAction) ServiceAction {
	return ServiceAction{
		Service: b.mask.Text(action.Service), Kind: action.Kind, At: action.At, ChainID: action.ChainID,
		Session: action.Session, SessionID: action.SessionID, Tier: action.Tier, Model: action.Model,
		Call: action.Call, Succeeded: action.Succeeded,
	}
}

// holder returns the holder of a lock.
func (b *backend) holder(lock store.ServiceLock) ServiceHolder {
	return ServiceHolder{Service: b.mask.Text(lock.Service), ChainID: lock.ChainID, Since: lock.Since}
}

// knownServices is what the services file and the records know of services. The keys of maps are those of canonical
// names.
type knownServices struct {
	*backend

	records *store.Store
	catalog *escalation.Catalog
	// described has the services of the services file, and neededBy the names of those that depend on a service.
	described map[string]escalation.Service
	neededBy  map[string][]string
	// others lists the names of the services that only the records know, by name.
	others []string
	states map[string]escalation.ServiceState
	// last has the latest action on each service, and incidents the counts of its open incidents.
	last      map[string]store.ServiceAction
	incidents map[string][]store.OpenCount
	holders   map[string]store.ServiceLock
	// looks has the latest looks at each service, latest first.
	looks map[string][]ServiceLook
}

// read reads what the services file and the records know.
func (s Services) read(ctx context.Context) (*knownServices, error) {
	records, cfg, err := s.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	known := &knownServices{backend: s.backend, records: records, catalog: cfg.Services.Catalog}
	known.describe()
	now, cooldowns := s.Clock(), cfg.Policy().Cooldowns
	named, err := records.NamedServices(ctx, now.Add(-servicesSince))
	if err != nil {
		return nil, err
	}
	actions, err := recentActions(ctx, records, now, cooldowns.Window())
	if err != nil {
		return nil, err
	}
	locks, err := records.ServiceLocks(ctx)
	if err != nil {
		return nil, err
	}
	incidents, err := records.OpenCounts(ctx)
	if err != nil {
		return nil, err
	}
	looks, err := records.LatestLooks(ctx, now.Add(-servicesSince), maxLooksRead)
	if err != nil {
		return nil, err
	}
	known.addLooks(looks) // a check alone makes no service: agents name checks freely
	seen := slices.Concat(named, known.addLocks(locks), known.addIncidents(incidents))
	entries := known.addActions(actions)
	for _, entry := range entries {
		seen = append(seen, entry.Service)
	}
	known.addOthers(seen)
	known.states = map[string]escalation.ServiceState{}
	for _, state := range cooldowns.States(entries, known.names(), now) {
		known.states[escalation.ServiceKey(state.Service)] = state
	}
	return known, nil
}

// recentActions returns the actions within the window of the limits, and the latest ones of each service before, the
// latest first.
func recentActions(
	ctx context.Context, records *store.Store, now time.Time, window time.Duration,
) ([]store.ServiceAction, error) {
	begin := now.Add(-window)
	actions, err := records.ActionsSince(ctx, begin)
	if err != nil {
		return nil, err
	}
	before, err := records.LatestActions(ctx, now.Add(-servicesSince))
	before = slices.DeleteFunc(before, func(action store.ServiceAction) bool { return action.At.After(begin) })
	return append(actions, before...), err
}

// describe takes over the services file.
func (k *knownServices) describe() {
	k.described, k.neededBy = map[string]escalation.Service{}, map[string][]string{}
	for _, service := range k.catalog.Services() {
		k.described[escalation.ServiceKey(service.Name)] = service
		for _, needed := range service.DependsOn {
			key := escalation.ServiceKey(needed)
			k.neededBy[key] = append(k.neededBy[key], service.Name)
		}
	}
}

// keyOf returns the key of a service's canonical name.
func (k *knownServices) keyOf(name string) string {
	return escalation.ServiceKey(k.catalog.Canonical(name))
}

// addLocks takes over the locks, and returns the locked services.
func (k *knownServices) addLocks(locks []store.ServiceLock) []string {
	k.holders = map[string]store.ServiceLock{}
	names := make([]string, len(locks))
	for i, lock := range locks {
		names[i] = lock.Service
		k.holders[k.keyOf(lock.Service)] = lock
	}
	return names
}

// addIncidents takes over the open incidents, and returns their services.
func (k *knownServices) addIncidents(counts []store.OpenCount) []string {
	k.incidents = map[string][]store.OpenCount{}
	var names []string
	for _, count := range counts {
		names = append(names, count.Services...)
		for _, service := range k.catalog.CanonicalAll(count.Services) {
			key := escalation.ServiceKey(service)
			k.incidents[key] = append(k.incidents[key], count)
		}
	}
	return names
}

// addActions takes over the latest action on each service, and returns all actions under canonical names. The latest
// action must come first.
func (k *knownServices) addActions(actions []store.ServiceAction) []escalation.LedgerEntry {
	k.last = map[string]store.ServiceAction{}
	entries := make([]escalation.LedgerEntry, len(actions))
	for i, action := range actions {
		action.Service = k.catalog.Canonical(action.Service)
		entries[i] = action.LedgerEntry
		key := escalation.ServiceKey(action.Service)
		if _, known := k.last[key]; !known {
			k.last[key] = action
		}
	}
	return entries
}

// addOthers takes over the names that the services file does not have.
func (k *knownServices) addOthers(names []string) {
	others := k.catalog.CanonicalAll(names)
	others = slices.DeleteFunc(others, func(name string) bool { return name == "" || k.catalog.Known(name) })
	slices.SortFunc(others, func(a, b string) int {
		return strings.Compare(escalation.ServiceKey(a),
			escalation.ServiceKey(b))
	})
	k.others = others[:min(len(others), maxOtherServices)]
}

// names returns the names of all services: those of the services file in its order, then the others by name.
func (k *knownServices) names() []string {
	var names []string
	for _, service := range k.catalog.Services() {
		names = append(names, service.Name)
	}
	return append(names, k.others...)
}

func (k *knownServices) list() ServiceList {
	list := ServiceList{Services: []Service{}, HeldBy: k.heldBy("")} // an empty list is [] in JSON
	for _, name := range k.names() {
		list.Services = append(list.Services, k.service(name))
	}
	return list
}

// heldBy returns the chain that has locked the service with this key; nil if none has.
func (k *knownServices) heldBy(key string) *ServiceHolder {
	lock, locked := k.holders[key]
	if !locked {
		return nil
	}
	holder := k.holder(lock)
	return &holder
}

// service returns the service with this canonical name.
func (k *knownServices) service(name string) Service {
	key := escalation.ServiceKey(name)
	described, listed := k.described[key]
	service := Service{
		Name: k.mask.Text(name), Listed: listed, Criticality: described.Criticality, Owner: described.Owner,
		// [] in JSON
		DependsOn: append([]string{}, described.DependsOn...), NeededBy: append([]string{}, k.neededBy[key]...),
		Restarts: k.states[key].Restarts, Redeployments: k.states[key].Redeployments,
		HeldBy: cmp.Or(k.heldBy(key), k.heldBy("")), Looks: k.looks[key],
	}
	for _, open := range k.incidents[key] {
		service.OpenIncidents += open.Count
		if service.Severity == "" || escalation.MoreSevere(open.Severity, service.Severity) {
			service.Severity = open.Severity
		}
	}
	if action, found := k.last[key]; found {
		last := k.action(action)
		service.LastAction = &last
	}
	return service
}
