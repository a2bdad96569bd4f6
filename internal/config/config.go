package config

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/notify"
	"github.com/claudeops/claudeops/prompts"
)

// Prefix starts the name of every variable that this package reads.
const Prefix = "CLAUDEOPS_"

// Config is every setting of Claude Ops, validated. Load makes it; paths in it are absolute.
type Config struct {
	Chain   Chain   `group:"Chain"`
	Limits  Limits  `group:"Budgets and cooldowns"`
	Gate    Gate    `group:"Gates"`
	State   State   `group:"State and records"`
	Claude  Claude  `group:"The claude command line"`
	Tiers   Tiers   `group:"Tiers"`
	Guard   Guard   `group:"Permissions"`
	Prompts Prompts `group:"Prompts"`
	Notify  Notify  `group:"Notifications"`
	Worker  Worker  `group:"Worker"`
	Log     Log     `group:"Log"`

	// given holds the names of the variables that the environment sets.
	given map[string]bool
}

// Chain is what every chain may do and how it passes context on.
type Chain struct {
	MaxTier         escalation.Tier           `env:"MAX_TIER" desc:"Highest tier that may run: 1, 2 or 3. A chain that needs more asks for a person."`
	DryRun          bool                      `env:"DRY_RUN" desc:"true: look and report only. Nothing escalates, and whatever tier runs has the permissions of tier 1."`
	Continuity      escalation.ContinuityMode `env:"CONTINUITY" desc:"How a tier gets the context of the one before: auto resumes the conversation where that is possible, handoff always passes on a summary."`
	ResumeThreshold float64                   `env:"RESUME_CONTEXT_THRESHOLD" desc:"Share of the next model's context window, above 0 and at most 1, that a conversation may fill and still be resumed; a fuller one is handed over as a summary."`
	ResumeMaxTokens int                       `env:"RESUME_MAX_TOKENS" desc:"Tokens that a conversation may hold and still be resumed, whatever the window; 0 is no such cap. A resumed conversation is paid for again with every tier, at the higher tier's price."`
}

// Limits are what chains may spend and how often they may repair.
type Limits struct {
	ChainBudgetUSD    float64       `env:"CHAIN_BUDGET_USD" desc:"What one chain may spend over all its sessions, in US dollars; 0 is no cap. A session gets the rest as its own limit, and none starts once nothing is left."`
	DayBudgetUSD      float64       `env:"DAY_BUDGET_USD" desc:"What all chains together may spend on one day (UTC), in US dollars; 0 is no cap. What a running session may still spend is reserved."`
	Escalations       Limit         `env:"ESCALATION_LIMIT" desc:"How many chains may start repairs (tier 2 or 3) within a span of time, as number/duration; none is no limit, 0/1h forbids it. The default lets one cycle repair three independent problems; a fourth within the hour is no routine fault any more, and a person is asked before more is spent."`
	Restarts          Limit         `env:"RESTART_LIMIT" desc:"How often one service may be restarted within a span of time, over all chains, as number/duration; none is no limit."`
	Redeployments     Limit         `env:"REDEPLOYMENT_LIMIT" desc:"How often one service may be redeployed within a span of time, over all chains, as number/duration; none is no limit."`
	Overrides         Overrides     `env:"COOLDOWN_OVERRIDES" desc:"Services that have limits of their own, as service:restart=number/duration or service:redeployment=number/duration, separated by semicolons or line breaks: jellyfin:restart=4/4h; postgres:redeployment=0/24h."`
	MaxWait           time.Duration `env:"COOLDOWN_MAX_WAIT" desc:"How long a chain may wait, altogether, for a cooldown to pass or for another chain to leave a service, before a person is asked instead; 0s is not at all."`
	MaxParallelIssues int           `env:"MAX_PARALLEL_ISSUES" desc:"How many of the independent problems that one look has found are repaired at a time, each by a chain of its own; 1 to 20."`
}

// Gate is how a chain that only a person can decide on waits for one.
type Gate struct {
	Timeout   time.Duration         `env:"GATE_TIMEOUT" desc:"How long a chain that needs a person waits at its gate for an answer; 0s opens no gates, and such a chain ends as needs_human or failed at once."`
	Remind    DurationList          `env:"GATE_REMIND" desc:"When people are reminded of an open gate, counted from its opening: rising durations shorter than the timeout, comma-separated; none is never."`
	OnTimeout escalation.GateAction `env:"GATE_ON_TIMEOUT" desc:"What follows when nobody has answered in time: abort ends the chain, fix runs the tier again in a new session, twice in a row at most."`
	Approvers PersonList            `env:"GATE_APPROVERS" desc:"Names of those who may answer, comma-separated; everybody if unset. An answer carries the name that its sender gives: whoever can reach Temporal can give any, so this guards against mistakes and not against malice."`
	FourEyes  bool                  `env:"GATE_FOUR_EYES" desc:"true: whoever started a chain cannot answer at its gates, and a chain starts only if it says who starts it."`
}

func (g Gate) policy() escalation.GatePolicy {
	policy := escalation.GatePolicy{
		Timeout: escalation.Duration(g.Timeout), OnTimeout: g.OnTimeout, Approvers: g.Approvers, FourEyes: g.FourEyes,
	}
	for _, after := range g.Remind {
		policy.Remind = append(policy.Remind, escalation.Duration(after))
	}
	return policy
}

// State is where Claude Ops keeps its own files.
type State struct {
	Dir         string `env:"STATE_DIR" default:"$XDG_STATE_HOME/claudeops, else ~/.local/state/claudeops" desc:"Absolute path of the directory for records, conversations and the agents' working directory. Created if missing, readable by its owner only. All workers of a task queue, and the starters that look at their records, must share it."`
	DatabaseURL string `env:"DATABASE_URL" secret:"true" default:"sqlite://STATE_DIR/claudeops.db" desc:"Database for session records and events, spelled sqlite:///absolute/path.db."`
	Transcripts string `env:"TRANSCRIPTS" default:"file://STATE_DIR-transcripts" desc:"Archive of the agents' conversations, from which they go on when the host or the state directory is lost. The URL of a directory (file:///absolute/path) or of a bucket that all workers share: s3://bucket?region=eu-west-1, gs://bucket or azblob://container, with &prefix=some/dir/ for a part of it. none: no archive. Nothing in it is ever deleted."`
}

// Claude is how the claude CLI is run, whatever the tier.
type Claude struct {
	Path      string `env:"CLAUDE" desc:"The claude executable: a path, or a name that is looked up on PATH."`
	ConfigDir string `env:"CLAUDE_CONFIG_DIR" default:"STATE_DIR/claude" desc:"Directory for the CLI's login, settings and conversations. Unset: an own one, so credentials come from the environment. login: that of the user who runs this program, with the login made there. An absolute path: that existing directory."`
	// Login says that ConfigDir is the user's own: the CLI must get the HOME (and
	// CLAUDE_CONFIG_DIR, if there is one) of this process, so that it finds a login
	// that is kept outside the directory, in a keychain for example.
	Login            bool          `env:"-"`
	PassEnv          NameList      `env:"PASS_ENV" desc:"Names of further environment variables that agents get, comma-separated (AWS_* stands for all that begin so), beside the built-in list of what they need to run and of a cloud's credentials where it serves the model. A key or token of the model's API stays with the worker, whatever is named here."`
	WorkDir          string        `env:"WORK_DIR" default:"STATE_DIR/work (created)" desc:"Directory in which agents run; by the built-in policy those of tier 2 change files in it. A directory of your own is given by its absolute path, must exist, and must not contain the state directory."`
	Repositories     PathList      `env:"REPOSITORIES" desc:"Further directories, comma-separated, in which a chain may have its agents run: its input names one by its path or by the last part of it. Each must be an absolute path that exists, and must not contain the state directory."`
	Environment      string        `env:"ENVIRONMENT" desc:"Description of the infrastructure for the agents, free text: what runs where, how to reach it, what to keep in mind. Goes into every launch."`
	FirstByteTimeout time.Duration `env:"FIRST_BYTE_TIMEOUT" desc:"Time within which a started agent must give the first sign of life."`
	IdleTimeout      time.Duration `env:"IDLE_TIMEOUT" desc:"Time without any output after which an agent counts as stalled. The CLI is silent while a command runs, so this bounds the longest command, too."`
	StopGrace        time.Duration `env:"STOP_GRACE" desc:"Time that an agent gets to end after it was asked to, before it is killed; at most 10s."`
	Containment      Containment   `env:"CONTAINMENT" desc:"How an agent is held together with all that it starts, so that it can be ended completely: auto, namespace, subreaper or group. auto is subreaper on Linux and group elsewhere. namespace is the surest, but its agents cannot send signals to processes of the host. starter doctor tells what holds here."`
	Sandbox          Sandbox       `env:"SANDBOX" desc:"Whether the kernel (Landlock, Linux 5.19 and newer) keeps the agents of tiers 1 and 2 from the worker's files, keys and memory, and tier 1 from writing outside of its own directories: auto does where it can and records where not, require runs no agent of these tiers without, off does not. starter doctor tells what holds here."`
	AgentUser        string        `env:"AGENT_USER" desc:"Name of the user whom agents run as. Takes a worker that runs as root. Unset: the worker's own user. The directories that are in STATE_DIR by default and belong to agents are then in STATE_DIR-agents; that user must be able to pass through those above it."`
	// Account is that user; nil if unset.
	Account    *Account `env:"-"`
	APIRetries int      `env:"API_RETRIES" desc:"Times that the CLI repeats a failed call of the model's API before it gives up; 0 to 10."`
}

// Containment is how an agent is held together with all that it starts.
type Containment string

// The containments.
const (
	ContainmentAuto      Containment = "auto"
	ContainmentNamespace Containment = "namespace"
	ContainmentSubreaper Containment = "subreaper"
	ContainmentGroup     Containment = "group"
)

// Sandbox is whether agents run in a sandbox of the kernel.
type Sandbox string

// The values of Sandbox.
const (
	SandboxAuto    Sandbox = "auto"
	SandboxRequire Sandbox = "require"
	SandboxOff     Sandbox = "off"
)

// Tiers holds the settings of each tier.
type Tiers struct {
	Tier1 Tier `envPrefix:"TIER1_"`
	Tier2 Tier `envPrefix:"TIER2_"`
	Tier3 Tier `envPrefix:"TIER3_"`
}

// Tier is what one tier runs with.
type Tier struct {
	Model           string        `env:"MODEL" desc:"Model, as the CLI understands it: an alias such as haiku or a full name."`
	ContextWindow   int           `env:"CONTEXT_WINDOW" desc:"The model's context window in tokens; used until the CLI has reported one."`
	Tools           RuleList      `env:"TOOLS" desc:"Tools of the CLI that exist for the agent at all, comma-separated names. A policy can grant Bash, Read, Grep, Glob, Edit and Write."`
	AllowedTools    RuleList      `env:"ALLOWED_TOOLS" desc:"Permission rules of the CLI that narrow what the policy grants, comma-separated, such as Bash(docker ps:*),Read(./**): a call must pass the policy and match one of them. Unset: the policy alone decides."`
	DisallowedTools RuleList      `env:"DISALLOWED_TOOLS" desc:"Permission rules of the CLI that deny some of what the policy grants. No boundary, because a command can be spelled in many ways; what must not happen belongs into the policy. Unset, or none: no such rule."`
	Timeout         time.Duration `env:"TIMEOUT" desc:"Wall-clock limit of one attempt."`
	MaxTurns        int           `env:"MAX_TURNS" desc:"Cap on the agent's turns; 0 is no cap."`
	BudgetUSD       float64       `env:"BUDGET_USD" desc:"Cap on what one session may spend over all its attempts, in US dollars; 0 is no cap. Checked after each call, so the last one can overshoot."`
	AbortOnTimeout  bool          `env:"ABORT_ON_TIMEOUT" desc:"true: a session that its time limit has ended is given up, and nobody is offered to continue it. Otherwise its conversation is kept for that."`
}

// Guard is what decides on the calls of agents.
type Guard struct {
	PolicyFile string `env:"POLICY_FILE" default:"the built-in deploy/policy.yaml" desc:"Absolute path of the file that says what the agents of each tier may do, in place of the built-in one. Begin with a copy of deploy/policy.yaml; deploy/policy.schema.json describes it. starter policy check and starter policy test try it."`
}

// Prompts are the paths of files that replace the built-in instructions of a tier;
// empty keeps the built-in ones.
type Prompts struct {
	Tier1 string `env:"PROMPT" desc:"Absolute path of a file with the instructions of tier 1, in place of the built-in ones."`
	Tier2 string `env:"TIER2_PROMPT" desc:"Absolute path of a file with the instructions of tier 2, in place of the built-in ones."`
	Tier3 string `env:"TIER3_PROMPT" desc:"Absolute path of a file with the instructions of tier 3, in place of the built-in ones."`
}

// Overrides returns p as prompts.Load takes it.
func (p Prompts) Overrides() prompts.Overrides {
	return prompts.Overrides{Tier1: p.Tier1, Tier2: p.Tier2, Tier3: p.Tier3}
}

// Notify is how people are told that something needs them, or was repaired.
type Notify struct {
	URLs  SecretList `env:"NOTIFY_URLS" secret:"true" desc:"Where people are notified when a chain needs a person, failed, or was resolved by tier 2 or 3, when an escalation was blocked or a budget is spent, and when cycles of a schedule were missed: URLs as shoutrrr spells them (discord://, slack://, telegram://, smtp://, ntfy://, generic:// and others), or apprise://host:port/key (apprises:// for HTTPS) for what an Apprise API has stored under a key. Separated by commas or blanks. starter notify test tries them."`
	UIURL string     `env:"UI_URL" desc:"Address of the Temporal Web UI as people reach it, such as https://temporal.example.org. Notifications then hold a link to the chain."`
}

// Targets returns where notifications go.
func (n Notify) Targets() ([]notify.Target, error) {
	targets := make([]notify.Target, 0, len(n.URLs))
	for i, rawURL := range n.URLs {
		target, err := notify.Parse(rawURL)
		if err != nil {
			return nil, fmt.Errorf("URL %d must %w", i+1, err)
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// Worker is how a worker process takes part in Temporal. The connection itself follows
// Temporal's own settings (TEMPORAL_ADDRESS and so on) and is not part of this package.
type Worker struct {
	TaskQueue           string        `env:"TASK_QUEUE" desc:"Temporal task queue of workflows and light activities. Agents run on the queue of this name with -agents added."`
	MaxConcurrentAgents int           `env:"MAX_CONCURRENT_AGENTS" desc:"Agents that one worker runs at a time."`
	DrainTimeout        time.Duration `env:"DRAIN_TIMEOUT" desc:"Time that running agents get to finish when the worker is told to stop. Those that do not are stopped and go on at another worker, or after the restart."`
}

// Log is what the programs write to stderr.
type Log struct {
	Level  LogLevel  `env:"LOG_LEVEL" desc:"Least severe messages that are logged: debug, info, warn or error."`
	Format LogFormat `env:"LOG_FORMAT" desc:"text for people, json for machines."`
}

// LogLevel is a severity below which nothing is logged.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// Slog returns l as a level of log/slog.
func (l LogLevel) Slog() slog.Level {
	switch l {
	case LogDebug:
		return slog.LevelDebug
	case LogInfo:
		return slog.LevelInfo
	case LogWarn:
		return slog.LevelWarn
	case LogError:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// LogFormat is how log lines are written.
type LogFormat string

// The formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Policy returns what a chain that starts now may do.
func (c Config) Policy() escalation.Policy {
	policy := escalation.Policy{
		MaxTier:         c.Chain.MaxTier,
		DryRun:          c.Chain.DryRun,
		Continuity:      c.Chain.Continuity,
		ResumeThreshold: c.Chain.ResumeThreshold,
		Notify:          len(c.Notify.URLs) > 0,
		Repositories:    c.Claude.Repositories,
		ResumeMaxTokens: c.Chain.ResumeMaxTokens,

		ChainBudgetUSD:    c.Limits.ChainBudgetUSD,
		DayBudgetUSD:      c.Limits.DayBudgetUSD,
		Cooldowns:         c.Limits.cooldowns(),
		EscalationLimit:   escalation.Limit(c.Limits.Escalations),
		MaxParallelIssues: c.Limits.MaxParallelIssues,
		Gate:              c.Gate.policy(),
	}
	for _, named := range c.Tiers.named() {
		policy.Tiers = append(policy.Tiers, named.tier.policy())
	}
	return policy
}

// namedTier is a tier's settings with what their names have in common, such as "TIER1_".
type namedTier struct {
	prefix string
	tier   *Tier
}

// named lists the tiers, least powerful first.
func (t *Tiers) named() []namedTier {
	return []namedTier{{"TIER1_", &t.Tier1}, {"TIER2_", &t.Tier2}, {"TIER3_", &t.Tier3}}
}

func (t Tier) policy() escalation.TierPolicy {
	return escalation.TierPolicy{
		Model:           t.Model,
		ContextWindow:   t.ContextWindow,
		Tools:           t.Tools,
		AllowedTools:    t.AllowedTools,
		DisallowedTools: t.DisallowedTools,
		Timeout:         escalation.Duration(t.Timeout),
		MaxTurns:        t.MaxTurns,
		BudgetUSD:       t.BudgetUSD,
		AbortOnTimeout:  t.AbortOnTimeout,
	}
}
