package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/reconcile"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/prompts"
	"github.com/claudeops/claudeops/workflows"
)

// stickyTimeout limits how long the next step of a chain waits for the worker that has the chain in memory. After
// this time any worker may take the step. The time is short, because that worker may have crashed. Another worker
// needs little time to load the chain, because its history is small.
const stickyTimeout = time.Second

// Supervisor is a worker: it runs chains and their agents.
type Supervisor struct {
	config config.Config
	logger *slog.Logger

	resources

	telemetry *telemetry.Telemetry
	// identity identifies the workers of this process to Temporal. It is the SDK's default identity, followed by the
	// program's version.
	identity string
	// version is the worker's version in its deployment; zero if there is none.
	version worker.WorkerDeploymentVersion
	// sweepInterval is Environment.SweepInterval.
	sweepInterval time.Duration
	settings      activities.Settings
	// Run sets the leases, which depend on the client.
	leases        *reconcile.Leases
	recording     activities.Records
	notifications activities.Notifications
	tiers         activities.Tiers
}

// Environment describes the process in which a Supervisor runs.
type Environment struct {
	// Environ is the environment ("NAME=value") of the process. Agents get only those variables that are permitted.
	Environ []string
	// Host is the name of this machine in records and in the identity of its workers.
	Host string
	// Version is the version of this program in records and in the identity of its workers.
	Version string
	Logger  *slog.Logger
	// Telemetry collects the metrics and traces of the worker; nil for none. The method Instrument of Telemetry must
	// prepare the options of the client.
	Telemetry *telemetry.Telemetry
	// Executable is the program that the CLI calls to ask whether a tool call is permitted. It must contain package
	// agentshell. If Executable is empty, the CLI calls this process's own program.
	Executable string
	// SweepInterval is the time between two sweeps; 0 means one minute. A sweep closes the sessions of chains that
	// have ended without closing them, and releases the services of these chains. The metrics of gates and incidents
	// are read at the same interval.
	SweepInterval time.Duration
	// CheckLimit limits the time of all checks of a repository together; 0 means five minutes.
	CheckLimit time.Duration
}

// locate finds the CLI, and logs what is wrong with its version.
func locate(ctx context.Context, options claude.Options, logger *slog.Logger) (*claude.CLI, error) {
	cli, err := claude.Locate(ctx, options)
	if err != nil {
		return nil, err
	}
	if warning := cli.Warning(); warning != "" {
		logger.Warn(warning)
	}
	return cli, nil
}

// WarnOfAccess logs why agents cannot call their model, if that shows without paying. Programs whose agents are real
// call it at their start.
func WarnOfAccess(ctx context.Context, cfg config.Config, environ []string, logger *slog.Logger) {
	if problem := cell.CheckAccess(ctx, ClaudeOptions(cfg.Claude, environ)); problem != "" {
		logger.WarnContext(ctx, "agents cannot work yet: "+problem)
	}
}

// WarnOfRoot logs a warning if agents would run as root. Programs whose agents are real call it at their start.
func WarnOfRoot(ctx context.Context, cfg config.Config, logger *slog.Logger) {
	if RootAlone(cfg) {
		logger.WarnContext(ctx,
			"agents run as root, like this worker: give them a user of their own with "+config.Prefix+"AGENT_USER")
	}
}

// WarnOfVariables logs which variables for agents no program gets. Programs whose agents are real call it at their
// start.
func WarnOfVariables(ctx context.Context, cfg config.Config, environ []string, logger *slog.Logger) {
	if problem, err := CheckVariables(cfg, environ); err == nil && problem != "" {
		logger.WarnContext(ctx, problem)
	}
}

// withAgentUser creates the agents' user if it is missing. The operator may want to give rights to a new user.
func withAgentUser(ctx context.Context, cfg config.Config, logger *slog.Logger) (config.Config, error) {
	cfg, created, err := EnsureUser(ctx, cfg)
	if created {
		logger.WarnContext(ctx, "created the user as whom agents run; let it into the groups that they need (docker, "+
			"for example, "+
			"which is equivalent to root): usermod --append --groups GROUP "+cfg.Claude.AgentUser, "user",
			cfg.Claude.AgentUser)
	}
	return cfg, err
}

// New creates a Supervisor. It fails in three cases: claude is missing; a setting, a prompt or the policy is invalid;
// or the records or the archive of transcripts cannot be opened. After an error, directories and a new database can
// remain. Close releases the resources of the Supervisor.
func New(ctx context.Context, cfg config.Config, env Environment) (*Supervisor, error) {
	cfg, err := withAgentUser(ctx, cfg, env.Logger)
	if err != nil {
		return nil, err
	}
	if err := cfg.MakeDirs(); err != nil {
		return nil, err
	}
	texts, policy, err := loadTexts(cfg)
	if err != nil {
		return nil, err
	}
	version, err := WorkerVersion(cfg.Worker, env.Version)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(CheckUser(ctx, cfg, env.Environ), CheckLevel(cfg)); err != nil {
		return nil, err
	}
	options := ClaudeOptions(cfg.Claude, env.Environ)
	options.SpoolDir = cfg.State.Dir // which no agent can read
	cli, err := locate(ctx, options, env.Logger)
	if err != nil {
		return nil, err
	}
	targets, err := NotifyTargets(cfg.Notify)
	if err != nil {
		return nil, err
	}
	opened, err := openResources(ctx, cfg, cli, policy, env)
	if err != nil {
		return nil, err
	}
	env.Telemetry.Metrics().SetLimits(limitsOf(cfg))
	return &Supervisor{
		config:    cfg,
		logger:    env.Logger,
		telemetry: env.Telemetry,
		identity:  fmt.Sprintf("%d@%s claudeops %s", os.Getpid(), env.Host, env.Version),
		version:   version,

		resources: opened,

		sweepInterval: env.SweepInterval,
		settings: activities.Settings{
			Policy: cfg.Policy(), TalkPolicy: cfg.TalkPolicy(), Windows: opened.store, Catalog: cfg.Services.Catalog,
		},
		recording: activities.Records{
			Store: opened.records, IsPermanent: isPermanent, IsUnknown: isUnknown,
			Catalog: cfg.Services.Catalog,
		},
		notifications: activities.Notifications{
			Targets: maskTargets(opened.mask, targets), Deliveries: opened.records, IsPermanent: isPermanent,
			UIURL: cfg.Notify.UIURL, PagesURL: cfg.Web.URL,
		},
		tiers: activities.Tiers{
			Agent: watchedAgent{opened.agents, env.Telemetry, env.Logger}, Prompts: texts, Briefs: briefs(policy),
			Pusher: opened.agents, Proposer: opened.agents, Plans: opened.agents, Catalog: cfg.Services.Catalog,
			PagesURL: cfg.Web.URL, ReadFile: config.ReadInstructions, Host: env.Host, Version: env.Version,
			Memories: opened.records,
			Talk: activities.Talker{
				Store: opened.records, Proposals: opened.records, Persona: cfg.Talk.Persona,
				Project: cfg.Claude.WorkDir, IsUnknown: isUnknown,
				Zone: time.Local, //nolint:gosmopolitan // people mean the time of their host
			},
		},
	}, nil
}

// loadTexts loads the prompts and the policy for agents.
func loadTexts(cfg config.Config) (*prompts.Set, *guard.Policy, error) {
	texts, err := prompts.Load(cfg.Prompts.Overrides())
	if err != nil {
		return nil, nil, err
	}
	policy, err := cfg.Guard.LoadPolicy()
	return texts, policy, err
}

// briefs returns a function that summarizes the policy for a tier. The prompt of the tier contains this summary.
func briefs(policy *guard.Policy) func(escalation.Tier) string {
	return func(tier escalation.Tier) string { return policy.Brief(int(tier)) }
}

// Close interrupts running agents and revokes their keys. From then on, the guards answer no calls. Finally Close
// closes the records and the archive.
func (s *Supervisor) Close() error { return s.close() }

// KeepAgentsFrom forbids agents to connect to the given ports of this host. Use it for ports of the supervisor that the
// configuration does not name. Call KeepAgentsFrom before Run.
func (s *Supervisor) KeepAgentsFrom(ports ...int) {
	for _, port := range ports {
		s.places.doors = append(s.places.doors, guard.Door{Host: "127.0.0.1", Port: port})
	}
}

// Run works until ctx ends or a worker fails permanently. Then it drains the workers: they accept no new work, and
// running agents may continue for the configured time. Run interrupts the agents that run longer. The argument
// namespace is the name of the client's namespace.
func (s *Supervisor) Run(ctx context.Context, c client.Client, namespace string) error {
	sweeper, err := s.enter(ctx, c, namespace)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	sweeper.Sweep(ctx)
	s.leases.FailOrphaned(ctx, c)
	s.logVersion(ctx, c)
	failed := make(chan error, 3) // one for each worker, so that none blocks
	onFatal := func(err error) { failed <- err }
	refused := newAudit(s.records.AppendEvents, s.logger)
	stopAudit := inBackground(context.WithoutCancel(ctx), refused.run) // the audit ends after the chains' worker
	defer stopAudit()
	queue, places := s.config.Worker.TaskQueue, s.config.Worker
	chains := s.chainsWorker(c, refused, onFatal)
	agents := s.agentsWorker(c, workflows.AgentsTaskQueue(queue), places.MaxConcurrentAgents, onFatal)
	talks := s.agentsWorker(c, workflows.TalksTaskQueue(queue), places.MaxConcurrentTalks, onFatal)
	if err := startAll(chains, agents, talks); err != nil {
		return fmt.Errorf("start the workers on task queue %q: %w", queue, err)
	}
	stopCleaning := s.clean(ctx, c, sweeper)
	defer stopCleaning()
	stopObserving := s.beginObserving(ctx, c, namespace)
	defer stopObserving()
	s.telemetry.SetProbe(s.ready(c))
	s.logger.Info("working", "task_queue", queue, "agents_task_queue", workflows.AgentsTaskQueue(queue))
	select {
	case <-ctx.Done():
		s.logger.Info("draining", "limit", s.config.Worker.DrainTimeout)
	case err = <-failed:
		err = fmt.Errorf("worker failed: %w", err)
	}
	s.drain(chains, agents, talks)
	return err
}

// startAll starts the workers. If one of them cannot start, startAll stops those before it.
func startAll(workers ...worker.Worker) error {
	for i, one := range workers {
		if err := one.Start(); err != nil {
			for _, started := range workers[:i] {
				started.Stop()
			}
			return err
		}
	}
	return nil
}

// chainsWorker returns the worker for workflows and for all activities that run no agent. If a chain of this worker
// refuses a gate answer, the worker passes the answer to the argument refused, which records it.
func (s *Supervisor) chainsWorker(c client.Client, refused *audit, onFatal func(error)) worker.Worker {
	chains := worker.New(c, s.config.Worker.TaskQueue, worker.Options{
		Identity:                     s.identity,
		StickyScheduleToStartTimeout: stickyTimeout,
		OnFatalError:                 onFatal,
		Interceptors:                 s.interceptors(&auditing{audit: refused}),
		DeploymentOptions:            s.deploymentOptions(),
	})
	s.register(chains, c)
	return chains
}

// agentsWorker returns a worker for the activities that run agents: those of chains, or those of conversations.
func (s *Supervisor) agentsWorker(c client.Client, queue string, places int, onFatal func(error)) worker.Worker {
	agents := worker.New(c, queue, worker.Options{
		Identity:                           s.identity,
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityExecutionSize: places,
		WorkerStopTimeout:                  s.config.Worker.DrainTimeout + s.config.Claude.StopGrace + agent.ReportTime,
		OnFatalError:                       onFatal,
		Interceptors:                       s.interceptors(),
		DeploymentOptions:                  s.deploymentOptions(),
	})
	s.tiers.Heartbeats = c
	agents.RegisterActivity(&s.tiers)
	return agents
}

// drain stops all workers. After the configured time, it interrupts the agents that still run. The agents' workers
// wait until these agents have ended and their results are reported to Temporal. So Temporal can give their tiers to
// another worker at once.
func (s *Supervisor) drain(chains worker.Worker, agents ...worker.Worker) {
	s.telemetry.SetProbe(nil)
	limit := time.AfterFunc(s.config.Worker.DrainTimeout, s.agents.Interrupt)
	defer limit.Stop()
	var stopping sync.WaitGroup
	for _, one := range agents {
		stopping.Go(one.Stop)
	}
	stopping.Wait()
	chains.Stop()
}

// enter looks up the namespace, and takes the records for it. If they belong to another namespace, enter changes
// nothing and returns an error. enter returns the sweeper for the chains of the namespace.
func (s *Supervisor) enter(
	ctx context.Context, c client.Client, namespace string,
) (sweeper reconcile.Sweeper, err error) {
	own, err := FindNamespace(ctx, c, namespace)
	if err != nil {
		return sweeper, err
	}
	switch err := s.records.Claim(ctx, own, time.Now()); {
	case store.IsTransient(err): // each sweep takes them, too
		s.logger.Warn("the records cannot be taken for the namespace yet", "error", err)
	case err != nil:
		return sweeper, err
	}
	if s.leases, err = reconcile.OpenLeases(s.config.State.Dir, own.ID, s.logger); err != nil {
		return sweeper, err
	}
	if err := s.rename(ctx); err != nil {
		return sweeper, err
	}
	s.recovery.client = c
	return reconcile.Sweeper{
		Records: s.records, Temporal: c, Converter: s.converter(), Namespace: own,
		Holder: s.identity, Interval: s.sweepInterval, Logger: s.logger,
		TellSnoozeEnded: func(ctx context.Context, ended escalation.Incident) error {
			return s.tellSnoozeEnded(ctx, c, ended)
		},
	}, nil
}

// rename gives the services in the records the names that they have in the services file now.
func (s *Supervisor) rename(ctx context.Context) error {
	if s.config.Services.Catalog == nil {
		return nil
	}
	renamed, err := s.store.Rename(ctx, s.config.Services.Catalog.Canonical)
	if err == nil && renamed > 0 {
		s.logger.Info("services in the records have got their names in the services file", "records", renamed)
	}
	if store.IsTransient(err) {
		s.logger.Warn("services in the records keep their names until the next start", "error", err)
		return nil
	}
	return err
}

// clean settles the records of ended chains and removes old records, until stop is called.
func (s *Supervisor) clean(ctx context.Context, c client.Client, sweeper reconcile.Sweeper) (stop func()) {
	stopSweeping := inBackground(ctx, sweeper.Run)
	retention := reconcile.Retention{
		Records: s.records, Talks: s.store, Archive: s.archive, Temporal: c, Holder: s.identity,
		Keep: s.config.State.Retention, Logger: s.logger,
	}
	stopRemoving := inBackground(ctx, retention.Run)
	return func() {
		stopSweeping()
		stopRemoving()
	}
}

// register registers the workflows, and the activities that must not wait for a free place for agents.
func (s *Supervisor) register(chains worker.Registry, c client.Client) {
	registerWorkflows(chains)
	chains.RegisterActivity(&s.settings)
	chains.RegisterActivity(&s.recording)
	chains.RegisterActivity(&s.notifications)
	chains.RegisterActivity(s.tiers.FindTranscript)
	chains.RegisterActivity(s.tiers.PushChange)
	chains.RegisterActivity(s.tiers.ReadPlan)
	chains.RegisterActivity(s.tiers.ProposeChange)
	chains.RegisterActivity(&activities.Schedules{Reader: scheduleReader{c}})
	chains.RegisterActivity(&activities.Attempts{Reader: reconcile.PendingReader{
		Temporal:  c,
		Converter: s.converter(),
	}})
}

// converter returns the data converter of the worker's client.
func (s *Supervisor) converter() converter.DataConverter {
	return encryption.NewConverter(s.config.Encryption.Keys)
}

// inBackground starts the function fn with a context. This context ends when ctx ends or the caller calls stop. The
// function stop waits until fn has returned.
func inBackground(ctx context.Context, fn func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { fn(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func isPermanent(err error) bool { return !store.IsTransient(err) }

func isUnknown(err error) bool { return errors.Is(err, store.ErrNotFound) }
