package year

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/reconcile"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/prompts"
	"github.com/claudeops/claudeops/workflows"
)

// yearSeed runs one seed, which a failed test has printed.
var yearSeed = flag.Uint64("year", 0, "live with the installation of this seed only")

// yearDays shortens a life.
var yearDays = flag.Int("days", 0, "live for so many days only")

// yearPace slows a life down.
var yearPace = flag.Int("pace", 0, "let things happen so many times slower than usual")

// verbose prints what an installation does each hour.
var verbose = flag.Bool("hours", false, "print what the installation does each hour")

const (
	// quiet is the time at the end in which nothing new happens.
	quiet = 6 * time.Hour
	// hangs is longer than a look, a repair and a wait for the day's budget take, together.
	hangs = 28 * time.Hour
	// sweeps is the time between two sweeps.
	sweeps = 20 * time.Minute
)

// life is what a test chooses of an installation's life.
type life struct {
	seed     uint64
	days     int
	begin    time.Time
	zone     *time.Location
	settings []string // "NAME=value", without the prefix
	// pace is how many times slower than usual things happen; 0 is 1.
	pace int
	// hectic means that services break several times a day, that looks take long, and that two schedules look at the
	// same time.
	hectic bool
	// refuses is the percentage of the sessions that the provider refuses, each in a way of its own.
	refuses int
	// breaks spoils the installation or what is seen of it, for the tests of the invariants; nil if nothing is broken.
	breaks func(i *installation)
}

// slowly returns a duration at the pace of the life.
func (l life) slowly(usual time.Duration) time.Duration { return usual * time.Duration(max(1, l.pace)) }

// installation is an installation that is lived in.
type installation struct {
	life
	*world

	t        *testing.T
	home     string
	cfg      config.Config
	records  *store.Store
	database *sql.DB // the same records
	does     *operations.Operations
	temporal *simulatedTemporal
	client   temporalClient
	agents   *agents
	settings activities.Settings
	tiers    activities.Tiers
	chains   activities.Records
	renamed  string // the service that has its new name
	// activities counts the attempts of all activities.
	activities int
	server     http.Handler
	tokens     map[string]string

	ctx        context.Context //nolint:containedctx // it ends with the life
	background sync.WaitGroup

	// What the tests of the invariants break.
	hourly  func(hour int)                        // is called before the checks of each hour
	mangle  func(what string, body []byte) []byte // changes what is shown
	heardBy func(one *said)                       // changes a message before its answer is checked
	hoards  bool                                  // retention finds nothing old

	mu       sync.Mutex
	told     []escalation.Notification
	paged    map[string]int // the deliveries of the target that fails, by the key of the notification
	seen     seen
	figures  figures
	problems []string
	kinds    map[string]int // how many problems have a format
}

// recover records the sessions of chains again that the records lack, as a worker does.
func (i *installation) recover(ctx context.Context, chains ...string) (bool, error) {
	for _, id := range chains {
		var chain escalation.Chain
		answer, err := i.client.QueryWorkflow(ctx, id, "", workflows.ChainQuery)
		if err == nil && answer.Get(&chain) == nil {
			if _, err = i.records.Recover(ctx, chain); err != nil {
				return false, err
			}
		}
	}
	return len(chains) > 0, nil
}

func isPermanent(err error) bool { return !store.IsTransient(err) }

func isUnknown(err error) bool {
	return errors.Is(err, store.ErrNotFound)
}

// problem notes that something does not hold. Only the first ones of each kind are of interest.
func (i *installation) problem(format string, args ...any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text := time.Now().UTC().Format("2006-01-02 15:04:05 ") + fmt.Sprintf(format, args...)
	if *verbose {
		fmt.Println("PROBLEM", text)
	}
	i.kinds[format]++
	if i.kinds[format] <= 5 {
		i.problems = append(i.problems, text)
	}
}

// environ returns the environment of the installation's programs.
func (i *installation) environ() []string {
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + i.home, "CLAUDEOPS_STATE_DIR=" + filepath.Join(i.home, "state"),
		"CLAUDEOPS_SERVICES_FILE=" + filepath.Join(i.home, "services.yaml"), "CLAUDEOPS_NOTIFY_URLS=ntfy://127.0.0.1/people",
		"CLAUDEOPS_AGENT_USER=none", "CLAUDEOPS_SANDBOX=off",
	}
	for _, setting := range i.life.settings {
		environ = append(environ, "CLAUDEOPS_"+setting)
	}
	return environ
}

// writeServices writes the services file. One service may have another name.
func (i *installation) writeServices() {
	text := strings.Builder{}
	text.WriteString("version: 1\nservices:\n")
	for _, name := range services() {
		if name == i.renamed {
			fmt.Fprintf(&text, "  - name: %s\n    aliases: [%s]\n", name+newName, name)
		} else {
			fmt.Fprintf(&text, "  - name: %s\n    aliases: [%s]\n", name, name+newName)
		}
	}
	require.NoError(i.t, os.WriteFile(filepath.Join(i.home, "services.yaml"), []byte(text.String()), 0o600))
}

// newHome returns a directory, in memory where the system has one: a life writes the records thousands of times, and
// none of its checks concerns a disk.
func newHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("/dev/shm", "claudeops-year-") //nolint:usetesting // in memory
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	return home
}

// newInstallation sets up an installation. It must be called in a bubble.
func newInstallation(t *testing.T, of life) *installation {
	t.Helper()
	time.Sleep(time.Until(of.begin))
	i := &installation{life: of, t: t, home: newHome(t), world: newWorld(of, refusals())}
	i.seen.begin()
	i.hourly, i.heardBy = func(int) {}, func(*said) {}
	i.mangle = func(_ string, body []byte) []byte { return body }
	i.paged, i.kinds = map[string]int{}, map[string]int{}
	i.agents = newAgents(i.world, of)
	i.temporal = newTemporal(t, newTurns())
	i.temporal.before, i.temporal.suggests, i.temporal.problem = i.beforeActivity, i.suggests, i.problem
	i.temporal.concluded = i.checkKnown
	i.client = temporalClient{s: i.temporal, schedules: &schedules{}}
	i.client.schedules.client, i.client.schedules.late = i.client, i.late
	i.client.schedules.list = []*schedule{
		{id: "hourly", every: of.slowly(time.Hour)},
		{id: "nightly", at: 2*time.Hour + 30*time.Minute, zone: of.zone, input: workflows.ChainInput{Services: []string{"db"}}},
		{id: "dry", every: of.slowly(11 * time.Hour), phase: 50 * time.Minute, input: workflows.ChainInput{DryRun: true}},
	}
	if of.hectic {
		i.client.schedules.list = append(i.client.schedules.list, &schedule{id: "often", every: 45 * time.Minute, phase: 22 * time.Minute})
	}
	i.writeServices()
	i.start()
	if of.breaks != nil {
		of.breaks(i)
	}
	return i
}

// start reads the settings, opens the records and makes the activities, as a worker does at its start.
func (i *installation) start() {
	var err error
	i.cfg, err = config.Load(i.environ())
	require.NoError(i.t, err)
	require.NoError(i.t, i.cfg.MakeDirs())
	i.records, err = supervisor.OpenStore(i.t.Context(), i.cfg)
	require.NoError(i.t, err)
	i.database, err = openDatabase(i.cfg.State.DatabaseFile())
	require.NoError(i.t, err)
	texts, err := prompts.Load(i.cfg.Prompts.Overrides())
	require.NoError(i.t, err)
	kept := i.records.With(store.Hooks{Recover: i.recover})
	i.chains = activities.Records{Store: kept, IsPermanent: isPermanent, IsUnknown: isUnknown}
	i.tiers = activities.Tiers{
		Agent: i.agents, Plans: i.agents, Pusher: i.agents, Prompts: texts, Memories: kept, Heartbeats: i.temporal, ReadFile: config.ReadInstructions, Host: "host-1", Version: "test",
		Talk: activities.Talker{
			Store: kept, Proposals: kept, Persona: i.cfg.Talk.Persona, IsUnknown: isUnknown, Zone: i.zone,
		},
	}
	i.settings = activities.Settings{Windows: kept}
	i.configure()
	env := i.temporal.env
	env.RegisterWorkflowWithOptions(i.temporal.root, workflow.RegisterOptions{Name: "root"})
	env.RegisterWorkflowWithOptions(workflows.Cycle, workflow.RegisterOptions{Name: workflows.CycleWorkflow})
	env.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	env.RegisterWorkflowWithOptions(workflows.Delivery, workflow.RegisterOptions{Name: workflows.DeliveryWorkflow})
	env.RegisterWorkflowWithOptions(workflows.PlanReview, workflow.RegisterOptions{Name: workflows.PlanReviewWorkflow})
	env.RegisterWorkflowWithOptions(workflows.PhaseExecution, workflow.RegisterOptions{Name: workflows.PhaseExecutionWorkflow})
	env.RegisterWorkflowWithOptions(workflows.Conversation, workflow.RegisterOptions{Name: workflows.ConversationWorkflow})
	for _, one := range []any{
		&i.settings, &i.chains, &i.tiers,
		&activities.Notifications{Targets: []activities.NotifyTarget{people{i}, pager{i}}, Deliveries: i.records, IsPermanent: isPermanent},
		&activities.Schedules{},
		&activities.Attempts{Reader: reconcile.PendingReader{Temporal: i.client, Converter: converter.GetDefaultDataConverter()}},
	} {
		env.RegisterActivity(one)
	}
	// The end of a simulation cancels what still runs. What has ended meanwhile is not there any more.
	env.OnRequestCancelExternalWorkflow(mock.Anything, mock.Anything, mock.Anything).Return(nil).Maybe()
	i.agents.answers, i.agents.recorded, i.agents.problem = i.reply, i.session, i.problem
	i.agents.distorts = func(string, *activities.AgentReport) {}
	i.does = operations.New(operations.Options{
		Environ: i.environ(), Logger: slog.New(slog.DiscardHandler), Clock: func() time.Time { return time.Now().In(i.zone) },
		Patience: operations.Patience, Masked: func() {}, Dial: i.dial,
	})
}

func (i *installation) dial(context.Context, client.Options) (client.Client, error) {
	return i.client, nil
}

// configure gives the activities what they have of the settings.
func (i *installation) configure() {
	catalog := i.cfg.Services.Catalog
	i.settings.Policy, i.settings.TalkPolicy, i.settings.Catalog = i.cfg.Policy(), i.cfg.TalkPolicy(), catalog
	i.chains.Catalog, i.tiers.Catalog = catalog, catalog
}

// restart stops the agents, and reads the settings again. Then services have their new names in the records, if the
// database is there.
func (i *installation) restart(ctx context.Context, lost bool) {
	i.agents.restart(lost)
	if until, away := during(i.outages, time.Now()); away {
		time.Sleep(time.Until(until))
	}
	var err error
	i.cfg, err = config.Load(i.environ())
	require.NoError(i.t, err)
	i.configure()
	_, err = i.records.Rename(ctx, i.cfg.Services.Catalog.Canonical)
	require.NoError(i.t, err)
}

// beforeActivity is called before each activity, which has its turn. Some begin late, so that local activities time out
// and other workflows move on meanwhile. During an outage of the database, activities fail until it is over.
func (i *installation) beforeActivity(ctx context.Context, args []any) error {
	i.activities++
	if i.in(3, "slow", i.activities) {
		time.Sleep(i.between(time.Second, 9*time.Second, "slow for", i.activities))
		i.temporal.turns.take(ctx)
	}
	for _, one := range args {
		if input, ok := one.(activities.RunTierInput); ok {
			i.agents.mu.Lock()
			i.agents.inputs[input.SessionID] = input
			i.agents.mu.Unlock()
		}
	}
	now := time.Now()
	if until, away := during(i.outages, now); away {
		return temporal.NewApplicationErrorWithOptions("the database is away", "Away",
			temporal.ApplicationErrorOptions{NextRetryDelay: until.Sub(now) + i.between(time.Second, 5*time.Minute, "back", now)})
	}
	return nil
}

// late complains of a cycle that still runs when the next one is due.
func (i *installation) late(id string, since time.Time) {
	if time.Since(since) > hangs {
		i.problem("cycle %s runs since %s", id, since.UTC().Format(time.RFC3339))
	}
}

// suggests reports whether Temporal suggests that a run, which began at a time, continues as new: now and then.
func (i *installation) suggests(id string, began time.Time) bool {
	now := time.Now()
	return now.Sub(began) > 10*time.Second && i.in(20, id, "continues as new", now.Unix()/60)
}

// live lives with the installation, and ends it.
func (i *installation) live() {
	ctx, stop := context.WithCancel(i.t.Context())
	i.ctx = ctx
	background := &i.background
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := i.temporal.run(); err != nil {
			i.problem("the simulated Temporal ended: %v", err)
		}
	}()
	stopTurns := i.temporal.turns.give(i.draw)
	logger := slog.New(problemLog{i})
	sweeper := reconcile.Sweeper{
		Holder: "worker", Records: clocked{i.records, i, "sweeper"}, Temporal: i.client, Namespace: here,
		Converter: converter.GetDefaultDataConverter(), Interval: sweeps, Logger: logger,
	}
	kept := clocked{i.records, i, "retention"}
	retention := reconcile.Retention{
		Records: kept, Talks: kept, Archive: archive{i}, Temporal: i.client, Holder: "worker", Keep: i.cfg.State.Retention, Logger: logger,
	}
	background.Go(func() { sweeper.Run(ctx) })
	background.Go(func() { retention.Run(ctx) })
	for _, one := range i.client.schedules.list {
		background.Go(func() { i.client.schedules.run(ctx, one, "") })
	}
	at := func(times []time.Time, do func(n int)) {
		background.Go(func() {
			for n, next := range times {
				select {
				case <-time.After(time.Until(next)):
					do(n)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	at(i.restarts, func(int) { i.restart(ctx, false) })
	at(i.losses, func(int) { i.restart(ctx, true) })
	var renames []time.Time
	for _, one := range i.renames {
		renames = append(renames, one.at)
	}
	at(renames, func(n int) {
		if service := i.renames[n].service; i.renamed == service {
			i.renamed = ""
		} else {
			i.renamed = service
		}
		i.writeServices()
		i.restart(ctx, false)
	})
	i.serve()
	i.talk()
	i.work()
	i.watch(ctx, i.begin.Add(time.Duration(i.days)*24*time.Hour))
	i.conclude(ctx)
	stop()
	background.Wait()
	i.endWorkflows()
	i.temporal.end()
	<-ended
	stopTurns()
	time.Sleep(2 * time.Hour) // until the last timers and deliveries have ended
	require.NoError(i.t, i.does.Close())
	require.NoError(i.t, i.database.Close())
	require.NoError(i.t, i.records.Close())
}

// endWorkflows cancels all workflows, and waits for their ends. Only deliveries are left: nobody cancels one, and each
// ends within an hour.
func (i *installation) endWorkflows() {
	ctx := context.WithoutCancel(i.t.Context())
	for range 1000 {
		left := 0
		for _, one := range i.temporal.known() {
			if one.closed.IsZero() && one.kind != workflows.DeliveryWorkflow {
				left++
				_ = i.client.CancelWorkflow(ctx, one.id, "") // it may have ended
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(time.Minute)
	}
	i.problem("workflows that were cancelled do not end")
}

// problemLog notes warnings of the sweep and of the retention, outside of outages.
type problemLog struct{ i *installation }

// Enabled implements slog.Handler.
func (problemLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (l problemLog) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(one slog.Attr) bool { text += " " + one.String(); return true })
	if strings.Contains(text, "nothing is removed, because it is") { // a clock has jumped
		l.i.agents.count(l.i.agents.ran, "clock refused")
		return nil
	}
	l.i.problem("a worker warns: %s", text)
	return nil
}

// WithAttrs implements slog.Handler.
func (l problemLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l problemLog) WithGroup(string) slog.Handler { return l }

// runLife lives with an installation, and reports what did not hold.
func runLife(t *testing.T, of life) {
	t.Helper()
	if *yearSeed != 0 {
		of.seed = *yearSeed
	}
	if *yearDays != 0 {
		of.days = *yearDays
	}
	if *yearPace != 0 {
		of.pace = *yearPace
	}
	inBubble(t, func(t *testing.T) {
		i := newInstallation(t, of)
		i.live()
		t.Log("soak: year: " + i.figures.String())
		require.Empty(t, i.problems, "run it again with: go test ./internal/systemtest/year -run %s -year %d", t.Name(), of.seed)
	})
}

// inBubble runs a life in a bubble of its own. The SDK's environment never ends the goroutine of a run that has
// continued as new, so the bubble complains of it at the end. Other goroutines that do not end are found before
// (checkGrowth).
func inBubble(t *testing.T, live func(t *testing.T)) {
	t.Helper()
	defer func() {
		if left := recover(); left != nil && !strings.Contains(fmt.Sprint(left), "blocked goroutines remain") {
			panic(left)
		}
	}()
	synctest.Test(t, live)
}

// skipUnderRace skips a test that simulates days, because the race detector slows it down tenfold. The make target race
// runs it without.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("a long simulation: not under the race detector")
	}
}

// TestHectic lives for days in which much goes wrong at the same time.
func TestHectic(t *testing.T) {
	skipUnderRace(t)
	runHectic(t, 1, 2)
}

// runHectic lives through hectic days, with some seeds.
func runHectic(t *testing.T, first, count uint64) {
	t.Helper()
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			settings := []string{"MAX_PARALLEL_ISSUES=2", "RESTART_LIMIT=3/4h", "GATE_TIMEOUT=" + []string{"0s", "20h", "100h"}[seed%3]}
			runLife(t, life{
				seed: seed, days: 3, begin: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), zone: time.UTC, hectic: true, settings: settings,
			})
		})
	}
}

// TestRefusals lives for a month in which the provider says no in each way at random.
func TestRefusals(t *testing.T) {
	skipUnderRace(t)
	runLife(t, life{seed: 1, days: 30, begin: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), zone: time.UTC, pace: 3, refuses: 12})
}

// TestMonth lives with an installation for a month, in which things happen less often than in the years of make soak.
func TestMonth(t *testing.T) {
	skipUnderRace(t)
	runLife(t, life{seed: 1, days: 30, begin: time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC), zone: time.UTC, pace: 3})
}
