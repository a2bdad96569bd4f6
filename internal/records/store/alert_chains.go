package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
)

// AlertChain is a chain that was started for alerts, or that has taken one.
type AlertChain struct {
	ChainID string
	Service string // empty for none
	// MaxTier is the highest tier of the chain; 0 for that of the configuration.
	MaxTier escalation.Tier
	// Planned is the time at which it was planned; zero if something else has started it. Started is the time at which
	// Temporal had it; zero before that. Ended is the time at which it was seen to have ended.
	Planned, Started, Ended time.Time
	// Alerts are those that the chain was started for; only PendingAlertChains fills it in.
	Alerts []alert.Episode
}

func alertChainFields(c *AlertChain) []field {
	return []field{
		{"chain_id", &c.ChainID},
		{"service_key", serviceKey{&c.Service}},
		{"service", &c.Service},
		{"max_tier", &c.MaxTier},
		{"planned_at", millis{&c.Planned}},
		{"started_at", millis{&c.Started}},
		{"ended_at", millis{&c.Ended}},
	}
}

var selectAlertChains = "SELECT " + columns(alertChainFields(new(AlertChain))) + " FROM alert_chains"

// AlertPlan says how PlanAlertChains plans.
type AlertPlan struct {
	Rules alert.Rules
	Now   time.Time
	// NewID returns the ID of a new chain.
	NewID func() string
}

// AlertsPlanned is what PlanAlertChains has changed.
type AlertsPlanned struct {
	// Chains are the chains that were planned.
	Chains []AlertChain
	// Limited are the alerts that wait because of a limit on starts.
	Limited []alert.Episode
}

// PlanAlertChains decides on the alerts that are due: each joins a chain at work on its service, or a chain is planned
// for all that wait for the service. A plan is recorded before Temporal is asked, so nothing is lost or started twice:
// start what PendingAlertChains returns. Limits count the plans of all hosts.
func (s *Store) PlanAlertChains(ctx context.Context, plan AlertPlan) (planned AlertsPlanned, err error) {
	defer s.count(OpAlerts, &err)
	var due int
	err = s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM alerts WHERE due_at <= $1 OR check_due = $2",
		plan.Now.UnixMilli(), true).Scan(&due)
	if err == nil && due > 0 { // most of the time nobody has to wait for other writers
		err = s.write(ctx, func(tx *sql.Tx) error {
			p := planning{AlertPlan: plan, tx: tx}
			if err := p.run(ctx); err != nil {
				return err
			}
			planned = p.AlertsPlanned
			return nil
		})
	}
	if err != nil {
		return AlertsPlanned{}, fmt.Errorf("plan chains for alerts: %w", err)
	}
	return planned, nil
}

// planning is one run of PlanAlertChains.
type planning struct {
	AlertPlan
	AlertsPlanned

	tx *sql.Tx
	// hour and day count the plans of the last hour and day.
	hour, day int
}

const (
	// waitingAlertsQuery selects what waits for the services of which something is due: all of them gather in one chain.
	waitingAlertsQuery = ` WHERE due_at IS NOT NULL AND service_key IN (SELECT service_key FROM alerts WHERE due_at <= $1)
ORDER BY due_at, id`
	checkAlertsQuery   = " WHERE check_due = $1 ORDER BY id"
	recentAlertChains  = "SELECT COUNT(*) FROM alert_chains WHERE planned_at > $1"
	runningAlertChain  = " WHERE service_key = $1 AND ended_at IS NULL ORDER BY planned_at DESC, chain_id LIMIT 1"
	ofAlertChain       = " WHERE chain_id = $1"
	metBeforeQuery     = "SELECT COUNT(*) > 0 FROM alerts WHERE chain_id = $1 AND source = $2 AND name = $3"
	pendingAlertChains = " WHERE started_at IS NULL ORDER BY planned_at, chain_id"
	openAlertChains    = " WHERE started_at IS NOT NULL AND ended_at IS NULL ORDER BY started_at, chain_id"
	startAlertChain    = "UPDATE alert_chains SET started_at = $1 WHERE chain_id = $2 AND started_at IS NULL"
)

func (p *planning) run(ctx context.Context) error {
	waiting, err := collect(ctx, p.tx, episodeFields, selectEpisodes+waitingAlertsQuery, p.Now.UnixMilli())
	if err != nil {
		return err
	}
	checks, err := collect(ctx, p.tx, episodeFields, selectEpisodes+checkAlertsQuery, true)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		count *int
		since time.Duration
	}{{&p.hour, time.Hour}, {&p.day, 24 * time.Hour}} {
		since := p.Now.Add(-of.since).UnixMilli()
		if err := p.tx.QueryRowContext(ctx, recentAlertChains, since).Scan(of.count); err != nil {
			return err
		}
	}
	for _, group := range byService(waiting) {
		if err := p.decide(ctx, group); err != nil {
			return err
		}
	}
	for _, group := range byService(checks) {
		if err := p.check(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// byService groups episodes by their service, in the order of the first of each service.
func byService(episodes []alert.Episode) [][]alert.Episode {
	var groups [][]alert.Episode
	places := map[string]int{}
	for _, e := range episodes {
		key := escalation.ServiceKey(e.Service)
		if _, known := places[key]; !known {
			places[key] = len(groups)
			groups = append(groups, nil)
		}
		groups[places[key]] = append(groups[places[key]], e)
	}
	return groups
}

// decide decides on the alerts that wait for one service.
func (p *planning) decide(ctx context.Context, waiting []alert.Episode) error {
	service := waiting[0].Service
	work, err := p.work(ctx, service)
	if err != nil {
		return err
	}
	var rest []alert.Episode
	for _, e := range waiting {
		joined, why, err := p.join(ctx, work, e)
		if err != nil {
			return err
		}
		if joined == "" {
			rest = append(rest, e)
			continue
		}
		e.Outcome, e.Reason, e.ChainID, e.LookedAt, e.DueAt = alert.OutcomeJoined, why, joined, p.Now, time.Time{}
		if _, err := saveEpisode(ctx, p.tx, e); err != nil {
			return err
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if limit := p.limit(); limit != "" {
		return p.hold(ctx, rest, limit)
	}
	return p.start(ctx, AlertChain{Service: service, MaxTier: highest(rest)}, rest)
}

// highest returns the highest tier that one of the alerts permits; 0 if one has no limit of its own.
func highest(episodes []alert.Episode) escalation.Tier {
	top := escalation.Tier(0)
	for _, e := range episodes {
		if e.MaxTier == 0 {
			return 0
		}
		top = max(top, e.MaxTier)
	}
	return top
}

// limit says which limit on starts is used up; empty if none is.
func (p *planning) limit() string {
	switch {
	case p.hour >= p.Rules.PerHour:
		return fmt.Sprintf("alerts have started %d chains within an hour, and max_per_hour is %d", p.hour, p.Rules.PerHour)
	case p.day >= p.Rules.PerDay:
		return fmt.Sprintf("alerts have started %d chains within a day, and max_per_day is %d", p.day, p.Rules.PerDay)
	}
	return ""
}

// hold lets alerts wait because of a limit. They stay due.
func (p *planning) hold(ctx context.Context, episodes []alert.Episode, limit string) error {
	for _, e := range episodes {
		p.Limited = append(p.Limited, e)
		if e.Reason == limit {
			continue
		}
		e.Reason = limit
		if _, err := saveEpisode(ctx, p.tx, e); err != nil {
			return err
		}
	}
	return nil
}

// start plans a chain for the alerts.
func (p *planning) start(ctx context.Context, chain AlertChain, episodes []alert.Episode) error {
	chain.ChainID, chain.Planned = p.NewID(), p.Now
	query, args := insertInto("alert_chains", alertChainFields(&chain))
	if _, err := p.tx.ExecContext(ctx, query, args...); err != nil {
		return err
	}
	p.hour, p.day = p.hour+1, p.day+1
	p.Chains = append(p.Chains, chain)
	for _, e := range episodes {
		if !e.CheckDue { // a claim keeps its outcome
			e.Outcome, e.Reason = alert.OutcomeStarted, ""
		}
		e.ChainID, e.LookedAt, e.DueAt, e.CheckDue = chain.ChainID, p.Now, time.Time{}, false
		if _, err := saveEpisode(ctx, p.tx, e); err != nil {
			return err
		}
	}
	return nil
}

// serviceWork is the work on a service.
type serviceWork struct {
	// running is the chain of alerts that runs for the service; empty if none does.
	running string
	// open are the open incidents of the service, and waiting the chains that wait with one of them.
	open    []escalation.Incident
	waiting map[string]bool
}

func (p *planning) work(ctx context.Context, service string) (work serviceWork, err error) {
	chains, err := collect(ctx, p.tx, alertChainFields, selectAlertChains+runningAlertChain, escalation.ServiceKey(service))
	if err != nil {
		return work, err
	}
	for _, chain := range chains {
		work.running = chain.ChainID
	}
	work.waiting = map[string]bool{}
	if service == "" {
		return work, nil
	}
	page, err := openPage(ctx, p.tx, OpenFilter{Services: []string{service}})
	work.open = page.Incidents
	for _, incident := range work.open {
		for _, chain := range incident.Chains {
			if chain.Status == escalation.ChainWaiting {
				work.waiting[chain.ChainID] = true
			}
		}
	}
	return work, err
}

// join returns the chain that takes an alert, and why; empty if none does. A chain that waits, such as at a gate, takes
// only what it has met before: the name of the alert, or the kind of its incident.
func (p *planning) join(ctx context.Context, work serviceWork, e alert.Episode) (chainID, why string, err error) {
	if work.running != "" && !work.waiting[work.running] {
		return work.running, "the chain was at work on the service", nil
	}
	for _, incident := range work.open {
		handler, found := incident.Handler(escalation.ChainRun{}, p.Now)
		if !found {
			continue
		}
		known := incident.Kind != "" && e.Labels["kind"] == incident.Kind
		if !known {
			err = p.tx.QueryRowContext(ctx, metBeforeQuery, handler.ChainID, e.Source, e.Name).Scan(&known)
		}
		if err != nil {
			return "", "", err
		}
		if known {
			return handler.ChainID, "it is about " + incident.ID + ", of which the chain takes care", p.track(ctx, handler, e)
		}
	}
	return "", "", nil
}

// track records a chain that takes an alert, so that its end is noticed.
func (p *planning) track(ctx context.Context, handler escalation.IncidentChain, e alert.Episode) error {
	chain := AlertChain{ChainID: handler.ChainID, Service: e.Service, Started: p.Now}
	query, args := insertInto("alert_chains", alertChainFields(&chain))
	_, err := p.tx.ExecContext(ctx, query+" ON CONFLICT (chain_id) DO NOTHING", args...)
	return err
}

// check plans a look of Tier 1 that checks whether alerts have resolved, if the service has an open incident. While a
// chain works on it, the check waits for its end.
func (p *planning) check(ctx context.Context, claims []alert.Episode) error {
	work, err := p.work(ctx, claims[0].Service)
	if err != nil || work.running != "" && !work.waiting[work.running] {
		return err
	}
	if len(work.open) > 0 {
		if p.limit() != "" {
			return nil // it is checked later
		}
		return p.start(ctx, AlertChain{Service: claims[0].Service, MaxTier: escalation.TierObserve}, claims)
	}
	for _, e := range claims {
		e.CheckDue = false
		if _, err := saveEpisode(ctx, p.tx, e); err != nil {
			return err
		}
	}
	return nil
}

// PendingAlertChains returns the chains that were planned and that Temporal does not have yet, with their alerts.
func (s *Store) PendingAlertChains(ctx context.Context) (chains []AlertChain, err error) {
	defer s.count(OpAlerts, &err)
	chains, err = collect(ctx, s.db, alertChainFields, selectAlertChains+pendingAlertChains)
	for i := range chains {
		if err == nil {
			chains[i].Alerts, err = collect(ctx, s.db, episodeFields, selectEpisodes+ofAlertChain+" ORDER BY id",
				chains[i].ChainID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the chains to start for alerts: %w", err)
	}
	return chains, nil
}

// AlertChainStarted records that Temporal has a chain.
func (s *Store) AlertChainStarted(ctx context.Context, chainID string, at time.Time) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, startAlertChain, at.UnixMilli(), chainID)
		return err
	})
	if err != nil {
		return fmt.Errorf("record the start of chain %s: %w", chainID, err)
	}
	return nil
}

// OpenAlertChains returns the IDs of the chains that were not seen to have ended.
func (s *Store) OpenAlertChains(ctx context.Context) ([]string, error) {
	chains, err := collect(ctx, s.db, alertChainFields, selectAlertChains+openAlertChains)
	if err != nil {
		return nil, fmt.Errorf("read the chains of alerts: %w", err)
	}
	ids := make([]string, len(chains))
	for i, chain := range chains {
		ids[i] = chain.ChainID
	}
	return ids, nil
}

// stillFiring is how long after the end of a chain an alert that it has taken may still fire. Sources say late that an
// alert has resolved.
const stillFiring = 10 * time.Minute

// AlertChainsEnded records that chains have ended. An alert that one of them has taken while it was at work waits
// again: the chain may have looked before.
func (s *Store) AlertChainsEnded(ctx context.Context, chainIDs []string, now time.Time) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		for _, id := range chainIDs {
			_, err := tx.ExecContext(ctx, "UPDATE alert_chains SET ended_at = $1 WHERE chain_id = $2 AND ended_at IS NULL",
				now.UnixMilli(), id)
			if err != nil {
				return err
			}
			joined, err := collect(ctx, tx, episodeFields, selectEpisodes+ofAlertChain+" AND outcome = $2 AND status = $3",
				id, string(alert.OutcomeJoined), string(alert.Firing))
			for _, e := range joined {
				if err == nil {
					e.Outcome, e.DueAt = alert.OutcomeWaiting, now.Add(stillFiring)
					e.Reason = "the chain that has taken it has ended: it is looked at again if it still fires"
					_, err = saveEpisode(ctx, tx, e)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record the end of chains of alerts: %w", err)
	}
	return nil
}

// NextAlert returns the time at which the next alert is due; zero if none waits.
func (s *Store) NextAlert(ctx context.Context) (at time.Time, err error) {
	if err = s.db.QueryRowContext(ctx, "SELECT MIN(due_at) FROM alerts WHERE due_at IS NOT NULL").Scan(millis{&at}); err != nil {
		return at, fmt.Errorf("read the next alert: %w", err)
	}
	return at, nil
}
