package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/claudeops/claudeops/internal/desk/sources"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// Alerts receives alerts of monitoring systems, and starts chains for them.
type Alerts struct{ *backend }

// Delivery is a request of a monitoring system.
type Delivery struct {
	Source string // the name of the source in the services file
	Header http.Header
	Body   []byte
}

// Received is the answer to a delivery: the latest state of each of its alerts.
type Received struct {
	Alerts []alert.Episode `json:"alerts"`
}

// ErrNoSource is the error of a delivery to a source that the services file does not name.
var ErrNoSource = errors.New("the services file names no such source of alerts")

// Receive records a delivery. After it returns, nothing of the delivery can be lost. The error is KindNotFound for an
// unknown source, and KindInvalid for a delivery that cannot be used, which is recorded, too. After any other error,
// the source has to send it again.
func (a Alerts) Receive(ctx context.Context, delivery Delivery) (Received, error) {
	records, cfg, err := a.openRecords(ctx)
	if err != nil {
		return Received{}, err
	}
	now, err := records.Now(ctx, a.Clock())
	if err != nil {
		return Received{}, err
	}
	rules := cfg.Services.Alerts
	alerts, refusal, err := a.decode(cfg, delivery, now)
	if err != nil {
		return Received{}, err
	}
	episodes, err := records.RecordAlerts(ctx, alerts, func(latest *alert.Episode, one alert.Alert) []alert.Episode {
		if refusal != nil {
			return refused(latest, one, refusal, now)
		}
		return rules.Receive(cfg.Services.Catalog, latest, one, now)
	})
	if err != nil {
		return Received{}, err
	}
	return Received{episodes}, Invalid(refusal)
}

// decode returns the alerts of a delivery, masked and bounded. The refusal says why the delivery cannot be used; then
// the only alert stands for the delivery.
func (a Alerts) decode(cfg config.Config, delivery Delivery, now time.Time) (_ []alert.Alert, refusal, err error) {
	settings, found := cfg.Services.Alerts.Source(delivery.Source)
	if !found {
		return nil, nil, withKind(KindNotFound, ErrNoSource)
	}
	source, err := sources.New(settings, a.Clock)
	if err != nil {
		return nil, nil, err
	}
	alerts, refusal := source.Decode(delivery.Header, delivery.Body)
	if most := cfg.Services.Alerts.PerDelivery; refusal == nil && len(alerts) > most {
		refusal = fmt.Errorf("it has %d alerts, and max_per_delivery is %d", len(alerts), most)
	}
	if refusal != nil {
		refusal = errors.New(line(refusal.Error(), maxError))
		alerts = []alert.Alert{{Identity: "refused: " + refusal.Error(), Name: "a delivery that cannot be used"}}
	}
	for i, one := range alerts {
		one.Source = settings.Name
		one.Labels, one.Annotations = a.maskedPairs(one.Labels), a.maskedPairs(one.Annotations)
		one.Name, one.Identity = a.mask.Text(one.Name), a.mask.Text(one.Identity)
		alerts[i] = one.Bounded(now)
	}
	return alerts, refusal, nil
}

func (a Alerts) maskedPairs(pairs map[string]string) map[string]string {
	masked := make(map[string]string, len(pairs))
	for name, value := range pairs {
		masked[name] = a.mask.Text(value)
	}
	return masked
}

// refused returns the episode of deliveries that cannot be used for one reason.
func refused(latest *alert.Episode, one alert.Alert, refusal error, now time.Time) []alert.Episode {
	e := alert.Episode{Alert: one, FirstAt: now}
	if latest != nil {
		e = *latest
	}
	if e.StartsAt.IsZero() {
		e.StartsAt = now
	}
	e.Outcome, e.Reason, e.LastAt, e.Received = alert.OutcomeRefused, refusal.Error(), now, e.Received+1
	return []alert.Episode{e}
}

// Test returns what would become of a delivery now, and executes nothing. Alerts that are known already would be
// counted; Test shows them as new.
func (a Alerts) Test(_ context.Context, delivery Delivery) (Received, error) {
	cfg, err := a.config()
	if err != nil {
		return Received{}, err
	}
	rules := &cfg.Services.Alerts
	rules.Sources = slices.Clone(rules.Sources)
	for i := range rules.Sources {
		rules.Sources[i].SecretFile = "" // a person has no signature to show
	}
	now := a.Clock()
	alerts, refusal, err := a.decode(cfg, delivery, now)
	if err != nil || refusal != nil {
		return Received{}, errors.Join(err, Invalid(refusal))
	}
	received := Received{[]alert.Episode{}}
	for _, one := range alerts {
		received.Alerts = append(received.Alerts, cfg.Services.Alerts.Receive(cfg.Services.Catalog, nil, one, now)...)
	}
	return received, nil
}

// AlertList is a part of the list of alerts, the latest first.
type AlertList struct {
	Alerts []alert.Episode    `json:"alerts"`
	Counts []store.AlertCount `json:"counts"`
	// Before is the number for the next part; 0 if this is the last.
	Before int64 `json:"before,omitempty"`
}

// AlertFilter selects alerts.
type AlertFilter struct {
	Outcome string
	Before  int64
	Limit   int
}

// List returns alerts.
func (a Alerts) List(ctx context.Context, f AlertFilter) (list AlertList, err error) {
	outcomes := alert.Outcomes()
	if f.Outcome != "" && !slices.Contains(outcomes, alert.Outcome(f.Outcome)) {
		words := make([]string, len(outcomes))
		for i, outcome := range outcomes {
			words[i] = string(outcome)
		}
		return list, invalidField("outcome", "is %q; it must be %s", line(f.Outcome, 60), plaintext.Or(words))
	}
	records, _, err := a.openRecords(ctx)
	if err != nil {
		return list, err
	}
	limit := f.Limit
	if limit == 0 {
		limit = 100
	}
	list.Alerts, err = records.Alerts(ctx, store.AlertFilter{
		Outcome: alert.Outcome(f.Outcome), Before: f.Before, Limit: limit + 1,
	})
	if err != nil {
		return list, err
	}
	if len(list.Alerts) > limit {
		list.Alerts = list.Alerts[:limit]
		list.Before = list.Alerts[limit-1].Number
	}
	list.Counts, err = records.AlertCounts(ctx)
	return list, err
}

// Get returns the alert with a number.
func (a Alerts) Get(ctx context.Context, number int64) (alert.Episode, error) {
	records, _, err := a.openRecords(ctx)
	if err != nil {
		return alert.Episode{}, err
	}
	found, err := records.Alert(ctx, number)
	if errors.Is(err, store.ErrNotFound) {
		err = withKind(KindNotFound, fmt.Errorf("there is no alert %d", number))
	}
	return found, err
}

const (
	// alertTick is the longest time between two runs of Dispatch. A host can have planned what it cannot start any
	// more, and chains end.
	alertTick = 10 * time.Second
	// alertPause is the least time between two runs, because the clock of the records can be behind this host's.
	alertPause = 20 * time.Millisecond
	// alertRetry is the time after a run that failed.
	alertRetry = 2 * time.Second
)

// Run starts chains for alerts until ctx ends. Every server that receives alerts runs it. Deliveries wake it.
func (a Alerts) Run(ctx context.Context, woken <-chan struct{}) {
	complaint := ""
	for ctx.Err() == nil {
		next, err := a.Dispatch(ctx)
		pause := max(alertPause, min(time.Until(next), alertTick))
		if next.IsZero() {
			pause = alertTick
		}
		if err != nil && ctx.Err() == nil {
			pause = alertRetry
			if err.Error() != complaint {
				a.Logger.Error("no chains start for alerts, which wait", slog.Any("error", err))
			}
			complaint = err.Error()
		} else {
			complaint = ""
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-woken:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Dispatch plans chains for the alerts that are due, and starts what is planned, also by other hosts. It returns the
// time at which the next alert is due; zero if none waits.
func (a Alerts) Dispatch(ctx context.Context) (next time.Time, err error) {
	cfg, err := a.config()
	if err != nil || len(cfg.Services.Alerts.Sources) == 0 {
		return next, err
	}
	records, err := a.ownRecords(ctx)
	if err != nil {
		return next, err
	}
	now, err := records.Now(ctx, a.Clock())
	if err != nil {
		return next, err
	}
	if err := a.noticeEnds(ctx, records, now); err != nil {
		return next, err
	}
	planned, err := records.PlanAlertChains(ctx, store.AlertPlan{
		Rules: cfg.Services.Alerts, Now: now, NewID: func() string { return NewChainID(now) },
	})
	if err != nil {
		return next, err
	}
	if err := a.startPending(ctx, records, now); err != nil {
		return next, err
	}
	if len(planned.Limited) > 0 {
		return now.Add(alertTick), nil
	}
	return records.NextAlert(ctx)
}

// noticeEnds records which chains of alerts have ended.
func (a Alerts) noticeEnds(ctx context.Context, records *store.Store, now time.Time) error {
	open, err := records.OpenAlertChains(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	connection, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	var ended []string
	for _, id := range open {
		described, err := connection.DescribeWorkflowExecution(ctx, id, "")
		_, gone := errors.AsType[*serviceerror.NotFound](err)
		if err != nil && !gone {
			return fmt.Errorf("look whether chain %s runs: %w", id, err)
		}
		if gone || described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			ended = append(ended, id)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	return records.AlertChainsEnded(ctx, ended, now)
}

// startPending starts the chains that are planned. Temporal refuses an ID that it knows, so a chain that was started
// before a crash is not started twice.
func (a Alerts) startPending(ctx context.Context, records *store.Store, now time.Time) error {
	pending, err := records.PendingAlertChains(ctx)
	if err != nil || len(pending) == 0 {
		return err
	}
	connection, cfg, err := a.connect(ctx)
	if err != nil {
		return err
	}
	for _, chain := range pending {
		input := inputFor(chain)
		if err := input.Validate(); err != nil {
			return fmt.Errorf("start chain %s for alerts: %w", chain.ChainID, err)
		}
		options := startOptions(cfg.Worker.TaskQueue, chain.ChainID, input)
		options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
		_, err := connection.ExecuteWorkflow(ctx, options, workflows.ChainWorkflow, input)
		if _, known := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); err != nil && !known {
			return fmt.Errorf("start chain %s for alerts: %w", chain.ChainID, err)
		}
		if err := records.AlertChainStarted(ctx, chain.ChainID, now); err != nil {
			return err
		}
	}
	return nil
}

// inputFor returns the input of a chain for alerts. Nothing of it but the quoted text comes from a monitoring system.
func inputFor(chain store.AlertChain) workflows.ChainInput {
	input := workflows.ChainInput{
		Trigger: escalation.TriggerAlert, MaxTier: chain.MaxTier, Alert: describeAlerts(chain.Alerts),
	}
	if chain.Service != "" {
		input.Services = []string{chain.Service}
	}
	return input
}

const (
	// maxQuoted limits the alerts that a look gets, and maxQuotedText the text of each, in characters. As JSON, where a
	// character can have six bytes, all of them fit into an input (see parts.MaxPromptBytes).
	maxQuoted     = 20
	maxQuotedText = 800
)

// describeAlerts describes alerts for a look, in a few lines each.
func describeAlerts(episodes []alert.Episode) string {
	var text strings.Builder
	for i, e := range episodes {
		if i == maxQuoted {
			fmt.Fprintf(&text, "and %d more\n", len(episodes)-maxQuoted)
			break
		}
		text.WriteString(plaintext.Cut(describeAlert(e), maxQuotedText) + "\n")
	}
	return text.String()
}

// describeAlert describes one alert: its name, state and severity in the first line, its labels and annotations below.
func describeAlert(e alert.Episode) string {
	lines := []string{fmt.Sprintf("%s: %s since %s", e.Name, e.Status, e.StartsAt.Format(time.RFC3339))}
	if e.Severity != "" {
		lines[0] += ", severity " + e.Severity
	}
	for _, pairs := range []map[string]string{e.Labels, e.Annotations} {
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			lines = append(lines, "  "+name+": "+plaintext.Cut(pairs[name], 300))
		}
	}
	return strings.Join(lines, "\n")
}
