package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// Incidents lists, shows, acknowledges and closes incidents. The records answer. Only Close uses Temporal, to inform
// chains.
type Incidents struct{ *backend }

// Incident is an incident with its secrets masked.
type Incident struct {
	escalation.Incident

	// Handler is the ID of the chain that handles the incident; empty if no chain does.
	Handler string `json:"handler,omitempty"`
}

// IncidentFilter selects incidents. If all fields are empty, it selects the open ones.
type IncidentFilter struct {
	// All selects resolved incidents, too.
	All     bool
	Service string
	// State selects the incidents in one state. The state resolved needs no All.
	State string
	// Limit is the maximum number of incidents in a list; 0 means all.
	Limit int
}

// Check returns an error of KindInvalid if no incident can match the filter.
func (f IncidentFilter) Check() error {
	var states []string
	for _, state := range escalation.IncidentStates() {
		states = append(states, string(state))
	}
	if f.State != "" && !slices.Contains(states, f.State) {
		return invalidField("state", "is %q; it must be %s", line(f.State, 60), plaintext.Or(states))
	}
	return nil
}

// resolved reports whether the filter selects resolved incidents.
func (f IncidentFilter) resolved() bool {
	return f.All || f.State == string(escalation.IncidentResolved)
}

// open reports whether the filter selects incidents that are not resolved.
func (f IncidentFilter) open() bool { return f.State != string(escalation.IncidentResolved) }

// List returns the incidents that the filter selects: first the most severe open ones, and of those the one seen last;
// then the resolved ones, the one resolved last first.
func (i Incidents) List(ctx context.Context, f IncidentFilter) ([]Incident, error) {
	page, err := i.Page(ctx, f, "")
	return page.Incidents, err
}

// IncidentPage is a part of a list of incidents, and the key of the next part; empty if this is the last.
type IncidentPage struct {
	Incidents []Incident `json:"incidents"`
	Next      string     `json:"next,omitempty"`
}

// Page returns the part of a list after the given key, with at most f.Limit incidents. If after is empty, the part is
// the first.
func (i Incidents) Page(ctx context.Context, f IncidentFilter, after string) (page IncidentPage, err error) {
	page.Incidents = []Incident{} // an empty list is [] in JSON
	from, err := readIncidentKey(after)
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		return page, err
	}
	records, cfg, err := i.openRecords(ctx)
	if err != nil {
		return page, err
	}
	var services []string
	if service := cfg.Services.Catalog.Canonical(f.Service); service != "" {
		services = []string{service}
	}
	var open store.OpenPage
	if f.open() && from.resolved.ID == "" {
		open, err = records.OpenIncidents(ctx, store.OpenFilter{
			Services: services, State: escalation.IncidentState(f.State), After: from.open, Limit: f.Limit,
		})
		if err != nil {
			return page, err
		}
	}
	found, more := open.Incidents, open.More
	if f.resolved() && !more {
		query := store.IncidentFilter{
			Services: services, Since: time.Unix(0, 0), After: from.resolved,
			OnlyResolved: true,
		}
		if f.Limit > 0 {
			query.Limit = f.Limit + 1 - len(found) // one more shows that another page follows
		}
		resolved, err := records.Incidents(ctx, query)
		if err != nil {
			return page, err
		}
		slices.SortStableFunc(resolved, latestFirst)
		found = append(found, resolved...)
		more = f.Limit > 0 && len(found) > f.Limit
	}
	if more {
		found = found[:f.Limit]
		page.Next = nextIncidentKey(found, open.Last)
	}
	now := i.Clock()
	for _, incident := range found {
		page.Incidents = append(page.Incidents, i.view(incident, now))
	}
	return page, nil
}

// incidentKey is where a page begins: after the last incident of the page before, which is open or resolved.
type incidentKey struct {
	open     store.ListPlace
	resolved store.IncidentPlace
}

// nextIncidentKey returns the key of the page after found, whose last open incident has the given place.
func nextIncidentKey(found []escalation.Incident, open store.ListPlace) string {
	last := found[len(found)-1]
	if last.ResolvedAt.IsZero() {
		return listKey(open)
	}
	return fmt.Sprintf("resolved-%d-%s", last.ResolvedAt.UnixMilli(), last.ID)
}

func readIncidentKey(after string) (key incidentKey, err error) {
	rest, resolved := strings.CutPrefix(after, "resolved-")
	if key.open, err = readListKey(rest, escalation.CheckIncidentID); err == nil && resolved {
		if key.open.ID == "" {
			return key, errListKey
		}
		return incidentKey{resolved: store.IncidentPlace{
			ResolvedAt: time.UnixMilli(int64(key.open.Place)),
			ID:         key.open.ID,
		}}, nil
	}
	return key, err
}

// listKey returns the key of the page after a place.
func listKey(last store.ListPlace) string { return fmt.Sprintf("%d-%s", last.Place, last.ID) }

var errListKey = Invalid(errors.New("after is not a key that a page before has returned"))

// readListKey returns the place that a key names; the first one if the key is empty. The ID in it must pass check.
func readListKey(after string, check func(id string) error) (store.ListPlace, error) {
	if after == "" {
		return store.ListPlace{}, nil
	}
	digits, id, found := strings.Cut(after, "-")
	position, err := strconv.Atoi(digits)
	if err != nil || !found || position < 0 || check(id) != nil {
		return store.ListPlace{}, errListKey
	}
	return store.ListPlace{Place: position, ID: id}, nil
}

// latestFirst compares two resolved incidents for sorting: the one that was resolved later comes first, or else the
// newer one.
func latestFirst(a, b escalation.Incident) int {
	return cmp.Or(b.ResolvedAt.Compare(a.ResolvedAt), cmp.Compare(len(b.ID), len(a.ID)), cmp.Compare(b.ID, a.ID))
}

// Get returns one incident, named by its ID or its number.
func (i Incidents) Get(ctx context.Context, given string) (Incident, error) {
	id, err := incidentID(given)
	if err != nil {
		return Incident{}, err
	}
	records, _, err := i.openRecords(ctx)
	if err != nil {
		return Incident{}, err
	}
	incident, err := records.Incident(ctx, id)
	if err != nil {
		return Incident{}, unknownIncident(id, err)
	}
	return i.view(incident, i.Clock()), nil
}

// incidentID returns the ID of an incident. A person has typed this ID or only its number.
func incidentID(given string) (string, error) {
	id := given
	if _, err := strconv.ParseUint(given, 10, 64); err == nil {
		id = "incident-" + given
	}
	if escalation.CheckIncidentID(id) != nil {
		return "", Invalid(fmt.Errorf("%q is no incident: write its ID, such as incident-7, or its number",
			line(given, 60)))
	}
	return id, nil
}

// unknownIncident converts an error of the store about an incident to an error for people.
func unknownIncident(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return withKind(KindNotFound, fmt.Errorf("there is no %s; `claudeops incidents --all` lists those that are",
			id))
	}
	return err
}

// ClosedIncident is an incident that a person has closed.
type ClosedIncident struct {
	Incident

	// Told holds the IDs of the chains that were told that the incident is closed.
	Told []string `json:"told,omitempty"`
	// Untold says of each other chain at work on the incident why it could not be told.
	Untold []Untold `json:"untold,omitempty"`
}

// Untold is a chain that could not be told.
type Untold struct {
	// ChainID is empty if no chain could be told, because Temporal could not be reached.
	ChainID string `json:"chain_id,omitempty"`
	Problem string `json:"problem"`
}

// IncidentClosing names the person who closes an incident, and the reason.
type IncidentClosing = store.IncidentClosing

// Close resolves an open incident, named by its ID or its number, and tells the chains at work on it. The time of
// closing is set by Close, by the clock of the records: this host's may be wrong. If the incident is resolved already,
// Close returns it unchanged, with an error of KindConflict.
func (i Incidents) Close(ctx context.Context, given string, closing IncidentClosing) (ClosedIncident, error) {
	id, err := incidentID(given)
	if err == nil {
		err = checkClosing(closing)
	}
	if err != nil {
		return ClosedIncident{}, err
	}
	records, _, err := i.openRecords(ctx)
	if err != nil {
		return ClosedIncident{}, err
	}
	closing.Actor, closing.Reason = i.maskInput(closing.Actor), i.maskInput(closing.Reason)
	if closing.At, err = records.Now(ctx, i.Clock()); err != nil {
		return ClosedIncident{}, err
	}
	closing.At = closing.At.UTC().Truncate(time.Millisecond)
	incident, err := records.CloseIncident(ctx, id, closing)
	closed := ClosedIncident{Incident: i.view(incident, i.Clock())}
	if errors.Is(err, store.ErrConflict) {
		return closed, withKind(KindConflict, fmt.Errorf("%s is resolved already", id))
	}
	if err != nil {
		return closed, unknownIncident(id, err)
	}
	closed.Told, closed.Untold = i.tell(ctx, incident, closing)
	return closed, nil
}

func checkClosing(closing IncidentClosing) error {
	if length := utf8.RuneCountInString(closing.Reason); length > escalation.MaxClosingReason {
		return invalidField("reason", "has %d characters, and at most %d are allowed", length,
			escalation.MaxClosingReason)
	}
	return Invalid(escalation.CheckActor(closing.Actor))
}

// IncidentAcknowledging names the person who knows of an incident.
type IncidentAcknowledging struct {
	Actor string
	// Verified reports that the person has logged in under this name.
	Verified bool
	// Note may be empty.
	Note string
	// Snooze is the time after which people are told of the incident again; 0 for no such time.
	Snooze time.Duration
	// Withdrawn withdraws what is recorded, whoever acknowledged it.
	Withdrawn bool
}

func (a IncidentAcknowledging) check() error {
	switch length := utf8.RuneCountInString(a.Note); {
	case length > escalation.MaxClosingReason:
		return invalidField("note", "has %d characters, and at most %d are allowed", length,
			escalation.MaxClosingReason)
	case a.Snooze != 0 && (a.Snooze < escalation.MinSnooze || a.Snooze > escalation.MaxSnooze):
		return invalidField("for", "must be between %s and %s", escalation.ShortDuration(escalation.MinSnooze),
			escalation.ShortDuration(escalation.MaxSnooze))
	}
	return Invalid(escalation.CheckActor(a.Actor))
}

// Acknowledge records that a person knows of an open incident, named by its ID or its number, in place of what was
// recorded before. If the incident is resolved, the error is of KindConflict.
func (i Incidents) Acknowledge(ctx context.Context, given string, act IncidentAcknowledging) (Incident, error) {
	id, err := incidentID(given)
	if err == nil {
		err = act.check()
	}
	if err != nil {
		return Incident{}, err
	}
	records, _, err := i.openRecords(ctx)
	if err != nil {
		return Incident{}, err
	}
	var known *escalation.Acknowledgement
	if !act.Withdrawn {
		now, err := records.Now(ctx, i.Clock())
		if err != nil {
			return Incident{}, err
		}
		known = &escalation.Acknowledgement{
			Actor: i.maskInput(act.Actor), Verified: act.Verified, At: now.UTC().Truncate(time.Millisecond),
			Note: i.maskInput(act.Note),
		}
		if act.Snooze > 0 {
			known.Until = known.At.Add(act.Snooze)
		}
	}
	incident, err := records.Acknowledge(ctx, id, known)
	if errors.Is(err, store.ErrConflict) {
		err = withKind(KindConflict, fmt.Errorf("%s is resolved already", id))
	}
	return i.view(incident, i.Clock()), unknownIncident(id, err)
}

// tell informs chains that the incident is closed: those that wait because of the incident, and those that repair it.
func (i Incidents) tell(
	ctx context.Context, incident escalation.Incident, closing IncidentClosing,
) (told []string, untold []Untold) {
	chains := slices.DeleteFunc(slices.Clone(incident.Chains), func(chain escalation.IncidentChain) bool {
		return !chain.AtWork()
	})
	if len(chains) == 0 {
		return nil, nil
	}
	connection, _, err := i.connect(ctx)
	if err != nil {
		return nil, []Untold{{Problem: printable(err).Error()}}
	}
	news := workflows.IncidentSignal{
		IncidentID: incident.ID, Status: escalation.IncidentGone, Note: closing.Reason, Actor: closing.Actor,
	}
	for _, chain := range chains {
		if err := signalIncident(ctx, connection, chain.ChainID, news); err != nil {
			untold = append(untold, Untold{chain.ChainID, printable(err).Error()})
			continue
		}
		told = append(told, chain.ChainID)
	}
	return told, untold
}

// signalTimeout limits how long Temporal has to accept the signal about an incident. The command that closes an
// incident informs several chains, and needs no result from them.
const signalTimeout = 10 * time.Second

// signalIncident informs a running chain about an incident.
func signalIncident(ctx context.Context, c client.Client, chainID string, news workflows.IncidentSignal) error {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	err := c.SignalWorkflow(ctx, chainID, "", workflows.IncidentSignalName, news)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return ErrNoSuchChain
	}
	return err
}

// view returns an incident with its secrets masked, and with the chain that handles it.
func (b *backend) view(incident escalation.Incident, now time.Time) Incident {
	view := Incident{Incident: b.masked(incident)}
	handler, found := incident.Handler(escalation.ChainRun{}, now)
	if found && (handler.Status != escalation.ChainEnded || incident.State != escalation.IncidentResolved) {
		view.Handler = handler.ChainID
	}
	return view
}

// masked returns the incident with the secrets in its texts masked.
func (b *backend) masked(incident escalation.Incident) escalation.Incident {
	services := make([]string, len(incident.Services)) // an empty list is [] in JSON
	for n, service := range incident.Services {
		services[n] = b.mask.Text(service)
	}
	chains := make([]escalation.IncidentChain, len(incident.Chains))
	for n, chain := range incident.Chains {
		chain.Reason, chain.Did = b.mask.Text(chain.Reason), b.mask.Text(chain.Did)
		chains[n] = chain
	}
	incident.Services, incident.Chains = services, chains
	incident.Kind, incident.Summary = b.mask.Text(incident.Kind), b.mask.Text(incident.Summary)
	if known := incident.Acknowledged; known != nil {
		masked := *known
		masked.Actor, masked.Note = b.mask.Text(known.Actor), b.mask.Text(known.Note)
		incident.Acknowledged = &masked
	}
	incident.ResolvedBy, incident.ResolvedReason = b.mask.Text(incident.ResolvedBy),
		b.mask.Text(incident.ResolvedReason)
	return incident
}
