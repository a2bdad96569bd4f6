package config

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/plant/notify"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/prompts"
)

// Prefix begins the name of every variable that this package reads.
const Prefix = "CLAUDEOPS_"

// Config holds all settings of Claude Ops after validation. All paths are absolute.
type Config struct {
	Chain      Chain      `group:"Chain"`
	Limits     Limits     `group:"Budgets and cooldowns"`
	Gate       Gate       `group:"Gates"`
	State      State      `group:"State and records"`
	Encryption Encryption `group:"Encryption"`
	Claude     Claude     `group:"The claude command line"`
	Tiers      Tiers      `group:"Tiers"`
	Review     Review     `group:"Reviews"`
	Author     Author     `group:"Authors"`
	Talk       Talk       `group:"Conversations"`
	Guard      Guard      `group:"Permissions"`
	Services   Services   `group:"Services"`
	Prompts    Prompts    `group:"Prompts"`
	Notify     Notify     `group:"Notifications"`
	Web        Web        `group:"Web"`
	Worker     Worker     `group:"Worker"`
	Log        Log        `group:"Log"`
	Telemetry  Telemetry  `group:"Telemetry"`
	Remote     Remote     `group:"A server, from elsewhere"`

	// given reports for each variable whether it is set to a value that is not empty.
	given map[string]bool
	// lines gives the line in the file of settings of each variable that the file sets.
	lines map[string]int
}

// Chain holds the settings of chains, and the settings for passing context between tiers.
type Chain struct {
	MaxTier         escalation.Tier           `env:"MAX_TIER" desc:"Highest tier that may run: 1, 2 or 3. A chain that needs a higher one asks a person."`
	DryRun          bool                      `env:"DRY_RUN" desc:"true: check and report only. Nothing escalates, and every tier has the permissions of tier 1."`
	Continuity      escalation.ContinuityMode `env:"CONTINUITY" desc:"How a tier gets the context of the previous tier. auto: resume the conversation if possible. handoff: always pass on a summary."`
	ResumeThreshold float64                   `env:"RESUME_CONTEXT_THRESHOLD" desc:"Share of the next model's context window, above 0 and at most 1, up to which a conversation is resumed. A larger one is passed on as a summary."`
	ResumeMaxTokens int                       `env:"RESUME_MAX_TOKENS" desc:"Size in tokens up to which a conversation is resumed, whatever the window; 0: no cap. Every tier pays for a resumed conversation again."`
}

// Limits holds the budgets, cooldowns and other limits of chains.
type Limits struct {
	ChainBudgetUSD    float64       `env:"CHAIN_BUDGET_USD" desc:"Budget of one chain for all its sessions, in US dollars; 0: no cap. Each session gets what is left as its limit."`
	DayBudgetUSD      float64       `env:"DAY_BUDGET_USD" desc:"Budget of all chains for one day (UTC), in US dollars; 0: no cap. Running sessions reserve their budgets; one without a cap reserves, and may spend, a quarter of what is left."`
	Escalations       Limit         `env:"ESCALATION_LIMIT" desc:"Number of chains that may start repairs (tier 2 or 3) within a time span, as number/duration; none: no limit; 0/1h: forbidden. The default lets one cycle repair three independent problems."`
	Restarts          Limit         `env:"RESTART_LIMIT" desc:"Number of restarts of one service within a time span, over all chains, as number/duration; none: no limit."`
	Redeployments     Limit         `env:"REDEPLOYMENT_LIMIT" desc:"Number of redeployments of one service within a time span, over all chains, as number/duration; none: no limit."`
	Overrides         Overrides     `env:"COOLDOWN_OVERRIDES" desc:"Limits for single services, as service:restart=number/duration or service:redeployment=number/duration, separated by semicolons or line breaks: jellyfin:restart=4/4h; postgres:redeployment=0/24h."`
	Returns           Limit         `env:"RETURNS" desc:"Number of returns of a repaired fault within a time span, as number/duration, from which on tier 3 begins at once or, if it may not or was tried, a person is asked. At most 50 and 720h; none: every return is repaired as before."`
	MaxWait           time.Duration `env:"COOLDOWN_MAX_WAIT" desc:"Total time that a chain may wait for cooldowns, or for another chain to finish with a service. Then a person is asked. 0s: never wait."`
	MaxParallelIssues int           `env:"MAX_PARALLEL_ISSUES" desc:"Number of independent problems of one cycle that are repaired at the same time, each by its own chain; 1 to 20. Chains that wait do not count."`
}

// Gate holds the settings of gates, where chains wait for an operator.
type Gate struct {
	Timeout   time.Duration           `env:"GATE_TIMEOUT" desc:"Time that a chain waits at its gate for a person's answer. 0s: no gates; a chain that needs a person ends as needs_human or failed at once."`
	Remind    DurationList            `env:"GATE_REMIND" desc:"Times of the reminders about an open gate, counted from its opening: ascending durations shorter than the timeout, comma-separated; none: never."`
	OnTimeout escalation.GateAction   `env:"GATE_ON_TIMEOUT" desc:"What happens if nobody answers in time. abort: end the chain. fix: run the tier again in a new session, at most twice in a row."`
	Approvers PersonList              `env:"GATE_APPROVERS" desc:"Names of the people who may answer, comma-separated; everybody if unset. Everybody who can reach Temporal can give any name, so this protects against mistakes, not against malice."`
	OnHealed  escalation.HealedAction `env:"GATE_ON_HEALED" desc:"What a chain at a gate does if a later look finds its incidents healed. close: look once more, and end as resolved if all is well. keep: show the finding, and wait for an answer."`
	FourEyes  bool                    `env:"GATE_FOUR_EYES" desc:"true: the person who started a chain cannot answer at its gates. A chain starts only if its input names that person."`
	Verified  bool                    `env:"GATE_REQUIRE_VERIFIED" desc:"true: only people who have logged in to claudeops web or claudeops up may answer, under the name of their login. Whoever can reach Temporal itself can still forge a login: see docs/security.md."`
}

func (g Gate) policy() escalation.GatePolicy {
	policy := escalation.GatePolicy{
		Timeout: escalation.Duration(g.Timeout), OnTimeout: g.OnTimeout, Approvers: g.Approvers, FourEyes: g.FourEyes,
		OnHealed: g.OnHealed, RequireVerified: g.Verified,
	}
	for _, after := range g.Remind {
		policy.Remind = append(policy.Remind, escalation.Duration(after))
	}
	return policy
}

// State holds the locations of Claude Ops' own files.
type State struct {
	EnvFile             string        `env:"ENV_FILE" default:"$XDG_CONFIG_HOME/claudeops/claudeops.env, else ~/.config/claudeops/claudeops.env, if it is there" desc:"Absolute path of the file of settings: NAME=value lines, also for variables of Temporal and of the model. A variable with a value in the environment wins over it. If it holds a secret, other users must not be able to read it. Agents cannot."`
	Dir                 string        `env:"STATE_DIR" default:"$XDG_STATE_HOME/claudeops, else ~/.local/state/claudeops" desc:"Absolute path of the directory for records and conversations. Created if missing; readable by its owner only. All workers of one host, and the starters that read its records, share it; each host has its own."`
	DatabaseURL         string        `env:"DATABASE_URL" secret:"true" default:"sqlite://STATE_DIR/claudeops.db" desc:"Database for session records and events: sqlite:///absolute/path.db for one host, or postgres://user:password@host:5432/database?sslmode=verify-full for several. docs/postgresql.md describes the parameters of PostgreSQL."`
	DatabaseConnections int           `env:"DATABASE_CONNECTIONS" desc:"Maximum number of connections of one process to PostgreSQL; 2 to 100. One connection is for the only writer, the others are for readers."`
	Retention           time.Duration `env:"RETENTION" desc:"Time after which records, events and archived conversations of an ended chain are removed, such as 8760h; at least 744h. 0s: nothing is removed. See docs/postgresql.md."`
	Transcripts         string        `env:"TRANSCRIPTS" default:"file://STATE_DIR-transcripts" desc:"Archive of the agents' conversations: a directory (file:///absolute/path) or a bucket that all workers share: s3://bucket?region=eu-west-1, gs://bucket or azblob://container, with &prefix=some/dir/ for a part of it. none: no archive. Only CLAUDEOPS_RETENTION deletes from it."`
}

// Encryption holds the settings for encrypting the data that Temporal stores.
type Encryption struct {
	KeysFile string `env:"ENCRYPTION_KEYS_FILE" desc:"Absolute path of a file of keys (an ID, a blank and 32 random bytes as base64 a line), the same for all workers and starters, which then encrypt what Temporal stores. The first key encrypts; all keys decrypt. Other users must have no access to the file. See docs/encryption.md."`
	// Keys holds the keys in KeysFile; nil if KeysFile is unset.
	Keys *encryption.Keys `env:"-"`
}

// load reads the file of keys, if KeysFile is set.
func (e *Encryption) load(p *problems) {
	if e.KeysFile == "" {
		return
	}
	keys, err := encryption.ReadKeys(e.KeysFile)
	p.must(encryptionKeysFile, err == nil, "name a file of keys that can be used, and it %s", errorText(err))
	e.Keys = keys
}

const encryptionKeysFile = "ENCRYPTION_KEYS_FILE"

// Claude holds the settings of the claude CLI for all tiers.
type Claude struct {
	Path      string `env:"CLAUDE" desc:"The claude executable: a path, or a name to look up on PATH."`
	ConfigDir string `env:"CLAUDE_CONFIG_DIR" default:"STATE_DIR/claude" desc:"Directory for the CLI's login; files in its subdirectory home are linked into each agent's home. Unset: one of its own, with credentials from the environment. login: that of the user who runs this program. An absolute path: that existing directory."`
	// Login reports whether ConfigDir is the directory of the user who runs this program. If so, the CLI gets the
	// variables HOME and CLAUDE_CONFIG_DIR of this process, if they are set. With these variables, the CLI also finds a
	// login outside of ConfigDir, for example in a keychain.
	Login            bool          `env:"-"`
	PassEnv          PassList      `env:"PASS_ENV" desc:"Names of environment variables for the programs of agents, comma-separated (AWS_* matches all with that beginning). Each goes only to the programs that the policy names for it (gh gets GH_TOKEN) or that NAME=PROGRAM names. NAME=claude, CLAUDE_... and ANTHROPIC_... go to the CLI and, unless the name suggests a secret, to all programs; a key or token of the model's API never does. See docs/security.md."`
	WorkDir          string        `env:"WORK_DIR" default:"STATE_DIR/work (created)" desc:"Directory in which agents run. Tier 2 can change files in it. If set, it must be an absolute path that exists, and must not contain the state directory."`
	Repositories     PathList      `env:"REPOSITORIES" desc:"Additional directories in which agents may run, comma-separated: absolute paths that exist and do not contain the state directory. A chain's input selects one by its path or by the last part of it."`
	Worktrees        Worktrees     `env:"WORKTREES" desc:"Where tiers 2 and 3 repair if their directory is in a git repository. auto: in a git worktree on a branch claudeops/CHAIN, which a person merges. off: in the directory itself, one session at a time, for services that run from its files. See docs/repositories.md."`
	Environment      string        `env:"ENVIRONMENT" desc:"Description of your infrastructure for the agents, in free text: what runs where, how to reach it, what to keep in mind. It is part of every prompt."`
	FirstByteTimeout time.Duration `env:"FIRST_BYTE_TIMEOUT" desc:"Time within which a started agent must print its first output."`
	IdleTimeout      time.Duration `env:"IDLE_TIMEOUT" desc:"Time without output after which an agent is considered stalled. It also limits the longest command, during which the CLI prints nothing."`
	StopGrace        time.Duration `env:"STOP_GRACE" desc:"Time between asking an agent to end and killing it; at most 10s."`
	Containment      Containment   `env:"CONTAINMENT" desc:"How an agent's processes are kept together, so that all of them can be ended: auto, namespace, subreaper or group. auto is subreaper on Linux and group elsewhere. namespace is the most reliable, but its agents cannot send signals to processes of the host. claudeops doctor prints the method in use."`
	Sandbox          Sandbox       `env:"SANDBOX" desc:"Sandbox of the kernel (Landlock, Linux 5.19) for tiers 1 and 2. auto: use it if possible. require-kernel: run no agent of these tiers without it. require-full: also refuse to start without CLAUDEOPS_AGENT_USER. require: require-full for a worker of root, else require-kernel. off: do not use it. claudeops doctor prints the level of protection."`
	AgentUser        string        `env:"AGENT_USER" default:"claudeops-agent for root" desc:"Name of the user that agents run as; requires a worker that runs as root. Unset: for root claudeops-agent, created if it is missing; otherwise the worker's own user, as with none or with CLAUDEOPS_CLAUDE_CONFIG_DIR=login. Agents' directories are then in STATE_DIR-agents, and the user must be able to pass through those above."`
	// Account describes AgentUser. It is nil if agents run as the worker's user, and before the worker creates
	// AgentUser.
	Account     *Account `env:"-"`
	SessionDisk int      `env:"SESSION_DISK" desc:"Space in MiB that one session may use for its own files; at least 16. A session that uses more is ended."`
	APIRetries  int      `env:"API_RETRIES" desc:"Number of times that the CLI repeats a failed call of the model's API; 0 to 10."`
}

// Containment selects the method with which a worker finds and ends all processes of an agent.
type Containment string

// The containments.
const (
	ContainmentAuto      Containment = "auto"
	ContainmentNamespace Containment = "namespace"
	ContainmentSubreaper Containment = "subreaper"
	ContainmentGroup     Containment = "group"
)

// Worktrees selects where an agent makes its repairs if its working directory is in a git repository.
type Worktrees string

// The values of Worktrees.
const (
	WorktreesAuto Worktrees = "auto"
	WorktreesOff  Worktrees = "off"
)

// Sandbox selects whether agents run in a sandbox of the kernel.
type Sandbox string

// The values of Sandbox.
const (
	SandboxAuto    Sandbox = "auto"
	SandboxRequire Sandbox = "require"
	// SandboxRequireKernel requires the kernel's sandbox, and SandboxRequireFull also another user for agents.
	SandboxRequireKernel Sandbox = "require-kernel"
	SandboxRequireFull   Sandbox = "require-full"
	SandboxOff           Sandbox = "off"
)

// Required reports whether agents of Tiers 1 and 2 must not run without the kernel's sandbox.
func (s Sandbox) Required() bool {
	return s == SandboxRequire || s == SandboxRequireKernel || s == SandboxRequireFull
}

// Tiers holds the settings of each tier.
type Tiers struct {
	Tier1 Tier `envPrefix:"TIER1_"`
	Tier2 Tier `envPrefix:"TIER2_"`
	Tier3 Tier `envPrefix:"TIER3_"`
}

// Tier holds the settings of one tier.
type Tier struct {
	Model     string        `env:"MODEL" desc:"The model's name for the CLI: an alias such as haiku or a full name."`
	Tools     ToolList      `env:"TOOLS" desc:"Tools of the CLI that the agent can see, comma-separated names. A policy can grant Bash, Read, Grep, Glob, Edit and Write."`
	Timeout   time.Duration `env:"TIMEOUT" desc:"Wall-clock limit of one attempt."`
	BudgetUSD float64       `env:"BUDGET_USD" desc:"Budget of one session for all its attempts, in US dollars; 0: no cap. It is checked after each call, so the last call can exceed it."`
}

// Guard holds the settings of the guard, which decides on the agents' tool calls.
type Guard struct {
	// reviewed forbids agents to push, because only approved commits are pushed.
	reviewed bool
	// passed are the entries of PASS_ENV, which name programs as the policy does.
	passed PassList

	PolicyFile string `env:"POLICY_FILE" default:"the built-in deploy/policy.yaml" desc:"Absolute path of a policy: with extends: default, what differs from the built-in one; otherwise all of it. See docs/policy.md."`
}

// Services holds the description of the operator's services.
type Services struct {
	File string `env:"SERVICES_FILE" desc:"Absolute path of a list of your services. Begin with a copy of deploy/services.example.yaml. Unset: services have the names that people and agents give them."`
	// Catalog holds the services in File; nil if File is unset.
	Catalog *escalation.Catalog `env:"-"`
	// Alerts are the rules for alerts in File; without sources if File is unset.
	Alerts alert.Rules `env:"-"`
}

// Prompts holds, for each tier, the path of a file that replaces the tier's built-in instructions. If the path is
// empty, the tier keeps its built-in instructions.
type Prompts struct {
	Tier1 string `env:"PROMPT" desc:"Absolute path of a file with the instructions of tier 1. It replaces the built-in ones."`
	Tier2 string `env:"TIER2_PROMPT" desc:"Absolute path of a file with the instructions of tier 2. It replaces the built-in ones."`
	Tier3 string `env:"TIER3_PROMPT" desc:"Absolute path of a file with the instructions of tier 3. It replaces the built-in ones."`
}

// Overrides converts p for prompts.Load.
func (p Prompts) Overrides() prompts.Overrides {
	return prompts.Overrides{Tier1: p.Tier1, Tier2: p.Tier2, Tier3: p.Tier3}
}

// Notify holds the settings of notifications.
type Notify struct {
	URLs  SecretList `env:"NOTIFY_URLS" secret:"true" desc:"Notification services, separated by commas or blanks: shoutrrr URLs (discord://, slack://, telegram://, smtp://, ntfy://, generic:// and others), or apprise://host:port/key (apprises:// for HTTPS) for an Apprise API. Test them with claudeops notify test. See docs/notifications.md."`
	UIURL string     `env:"UI_URL" desc:"Address of the Temporal Web UI for people, such as https://temporal.example.org. If set, notifications contain a link to the chain."`
}

// Targets parses the URLs of the notification targets. A URL that names several recipients is as many targets.
func (n Notify) Targets() ([]notify.Target, error) {
	targets := make([]notify.Target, 0, len(n.URLs))
	for i, rawURL := range n.URLs {
		parsed, err := notify.Parse(rawURL)
		if err != nil {
			return nil, fmt.Errorf("URL %d must %w", i+1, err)
		}
		targets = append(targets, parsed...)
	}
	return targets, nil
}

// Worker holds the settings of a worker, without the connection to Temporal. Temporal's own variables (TEMPORAL_ADDRESS
// and so on) configure that connection.
type Worker struct {
	TaskQueue           string        `env:"TASK_QUEUE" desc:"Temporal task queue of workflows and short activities. Agents of chains use the queue of this name with -agents appended, and those of conversations the one with -talks."`
	MaxConcurrentAgents int           `env:"MAX_CONCURRENT_AGENTS" desc:"Number of agents of chains that one worker runs at the same time."`
	MaxConcurrentTalks  int           `env:"MAX_CONCURRENT_TALKS" desc:"Number of turns of conversations that one worker runs at the same time, in addition to the agents of chains, which never wait for them."`
	HeartbeatInterval   time.Duration `env:"HEARTBEAT_INTERVAL" default:"10s; 1s on the server of claudeops up" desc:"Time between two heartbeats of a running agent, 1s to 10s; Temporal Cloud bills each. With a longer one, progress is shown and a cancelled agent ends later. A lost worker is noticed after six, and at least 30s."`
	DrainTimeout        time.Duration `env:"DRAIN_TIMEOUT" desc:"Time for running agents to finish after the worker was asked to stop. Others are stopped, and continue at another worker or after the restart."`
	Deployment          string        `env:"DEPLOYMENT" desc:"Name of the Temporal Worker Deployment of the workers, such as claudeops. If set, a chain stays with the version that began it: see docs/releasing.md. Unset: any worker continues any chain. claudeops up ignores it."`
	BuildID             string        `env:"BUILD_ID" default:"the version of the program" desc:"Build ID of this worker in its deployment. Two programs with the same one must have the same workflows. Set it for a program that was not built from a release."`
}

// WithoutVersion returns a copy of w without a deployment and a build ID. A worker with these settings continues chains
// of every version.
func (w Worker) WithoutVersion() Worker {
	w.Deployment, w.BuildID = "", ""
	return w
}

// Log holds the settings of the log on stderr.
type Log struct {
	Level  LogLevel  `env:"LOG_LEVEL" desc:"Lowest severity that is logged: debug, info, warn or error."`
	Format LogFormat `env:"LOG_FORMAT" desc:"text for people, json for machines."`
}

// LogLevel is the lowest severity of logged messages.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// Slog converts l to a level of log/slog.
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

// LogFormat is the format of log lines.
type LogFormat string

// The formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Policy returns the policy for a chain that starts now.
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
		Cooldowns:         c.Services.Catalog.Cooldowns(c.Limits.cooldowns()),
		EscalationLimit:   escalation.Limit(c.Limits.Escalations),
		Returns:           escalation.Limit(c.Limits.Returns),
		MaxParallelIssues: c.Limits.MaxParallelIssues,
		Gate:              c.Gate.policy(),
		Review:            c.Review.policy(),
		Author:            c.Author.policy(),
		Heartbeat:         escalation.Duration(c.Worker.HeartbeatInterval),
		Encrypted:         c.Encryption.Keys != nil,
	}
	for _, named := range c.Tiers.named() {
		policy.Tiers = append(policy.Tiers, named.tier.policy())
	}
	return policy
}

// WithFreeHeartbeats returns a copy of c for a server on which heartbeats cost nothing. If the environment does not set
// the heartbeat interval, the interval in the copy is one second.
func (c Config) WithFreeHeartbeats() Config {
	if !c.given[Prefix+heartbeatInterval] {
		c.Worker.HeartbeatInterval = leastHeartbeat
	}
	return c
}

// namedTier holds the settings of a tier, and the prefix of their variables, such as "TIER1_".
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
		Model:         t.Model,
		ContextWindow: window,
		Tools:         t.Tools,
		Timeout:       escalation.Duration(t.Timeout),
		BudgetUSD:     t.BudgetUSD,
	}
}
