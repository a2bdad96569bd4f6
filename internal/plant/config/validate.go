package config

import (
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

// validate records values that are out of range and settings that contradict each other.
func (c Config) validate(p *problems) {
	p.must("RESUME_CONTEXT_THRESHOLD", c.Chain.ResumeThreshold > 0 && c.Chain.ResumeThreshold <= 1,
		"be above 0 and at most 1")
	p.must("RESUME_MAX_TOKENS", c.Chain.ResumeMaxTokens >= 0, noCap)
	c.Limits.validate(p)
	c.validateOverrides(p)
	c.Gate.validate(p)
	c.State.validateDatabase(p)
	c.validateRetention(p)
	validateTranscripts(c.State.Transcripts, p)
	c.validateClaude(p)
	c.validatePlaces(p)
	for _, named := range c.Tiers.named() {
		named.tier.validate(named.prefix, c.Claude.FirstByteTimeout, p)
	}
	c.Review.validate(p)
	c.Author.validate(p)
	c.Talk.validate(p)
	c.Guard.validate(p)
	c.Prompts.validate(p)
	c.Notify.validate(p)
	c.Web.validate(p)
	c.Telemetry.validate(p)
	p.must("TASK_QUEUE", isWord(c.Worker.TaskQueue) && len(c.Worker.TaskQueue) <= 200,
		"be a name without spaces, of at most 200 bytes")
	p.must("MAX_CONCURRENT_AGENTS", c.Worker.MaxConcurrentAgents >= 1 && c.Worker.MaxConcurrentAgents <= 1000,
		"be between 1 and 1000")
	p.must("MAX_CONCURRENT_TALKS", c.Worker.MaxConcurrentTalks >= 1 && c.Worker.MaxConcurrentTalks <= 1000,
		"be between 1 and 1000")
	p.must("DRAIN_TIMEOUT", c.Worker.DrainTimeout > 0, positive)
	p.must(heartbeatInterval, c.Worker.HeartbeatInterval >= leastHeartbeat &&
		c.Worker.HeartbeatInterval <= longestHeartbeat,
		"be between %s and %s", escalation.ShortDuration(leastHeartbeat), escalation.ShortDuration(longestHeartbeat))
	c.Worker.validateVersion(p)
}

const (
	heartbeatInterval = "HEARTBEAT_INTERVAL"
	// leastHeartbeat is the shortest permitted interval between heartbeats. Temporal needs only milliseconds to answer
	// a heartbeat.
	leastHeartbeat = time.Second
	// longestHeartbeat is the longest permitted interval between heartbeats. A worker learns only from the answer to a
	// heartbeat that the agent's chain was cancelled.
	longestHeartbeat = 10 * time.Second
)

const (
	positive = "be longer than nothing, such as 30s"
	noCap    = "be 0 (no cap) or more"
)

// maxVersionName is the maximum length of the name of a deployment, and of a build ID, in bytes. Temporal puts both
// into one workflow ID.
const maxVersionName = 200

// validateVersion checks the names of the worker's deployment and build. Temporal reserves some characters for its own
// use.
func (w Worker) validateVersion(p *problems) {
	valid := func(name string) bool {
		return isWord(name) && len(name) <= maxVersionName && !strings.HasPrefix(name, "__")
	}
	if w.Deployment != "" {
		p.must("DEPLOYMENT", valid(w.Deployment) && !strings.ContainsAny(w.Deployment, ".:"),
			"be a name without spaces, dots and colons, of at most %d bytes, that does not begin with __",
			maxVersionName)
	}
	if w.BuildID != "" {
		p.must("BUILD_ID", valid(w.BuildID),
			"be a name without spaces, of at most %d bytes, that does not begin with __", maxVersionName)
		p.must("BUILD_ID", w.Deployment != "",
			"be unset, because %sDEPLOYMENT is: without a deployment there are no versions", Prefix)
	}
}

// shortestRetention is the minimum of RETENTION, unless RETENTION is 0. It is longer than the time for which resolved
// incidents are remembered.
const shortestRetention = escalation.IncidentMemory + 24*time.Hour

func (c Config) validateRetention(p *problems) {
	if c.State.Retention == 0 {
		return
	}
	p.must("RETENTION", c.State.Retention >= shortestRetention,
		"be 0s (off) or at least %s, because incidents are remembered for nearly that long",
		escalation.ShortDuration(shortestRetention))
	longest := c.Services.Catalog.Cooldowns(c.Limits.cooldowns()).Window()
	p.must("RETENTION", c.State.Retention > longest, "be longer than %s, the longest cooldown",
		escalation.ShortDuration(longest))
	escalations := time.Duration(c.Limits.Escalations.Window)
	p.must("RETENTION", c.State.Retention > escalations, "be longer than %s, the time span of %sESCALATION_LIMIT",
		escalation.ShortDuration(escalations), Prefix)
}

// longestGrace is the maximum of STOP_GRACE. It is well below the shortest heartbeat timeout (30 seconds), after which
// Temporal considers a silent worker dead.
const longestGrace = 10 * time.Second

func (c Config) validateClaude(p *problems) {
	p.must("FIRST_BYTE_TIMEOUT", c.Claude.FirstByteTimeout > 0, positive)
	p.must("IDLE_TIMEOUT", c.Claude.IdleTimeout > 0, positive)
	p.must("STOP_GRACE", c.Claude.StopGrace > 0, positive)
	p.must("STOP_GRACE", c.Claude.StopGrace <= longestGrace,
		"be at most %s, so that a worker that Temporal has given up for lost "+
			"has stopped its agent before another worker starts one", escalation.ShortDuration(longestGrace))
	c.validateSandbox(p)
	p.must("SESSION_DISK", c.Claude.SessionDisk >= 16, "be at least 16")
	p.must("API_RETRIES", c.Claude.APIRetries >= 0 && c.Claude.APIRetries <= 10, "be between 0 and 10")
}

// validatePlaces checks the directories that the operator has chosen for agents. Agents can read their working
// directory and, from Tier 2 on, write to it. So these directories must contain none of Claude Ops' own files.
func (c Config) validatePlaces(p *problems) {
	const exist = "be an existing directory"
	if c.Claude.Login {
		p.must("CLAUDE_CONFIG_DIR", isDir(c.Claude.ConfigDir), "be a path, because there is no login in %s",
			c.Claude.ConfigDir)
	} else if p.given("CLAUDE_CONFIG_DIR") {
		p.must("CLAUDE_CONFIG_DIR", isDir(c.Claude.ConfigDir), "%s, or %s", exist, userLogin)
	}
	if p.given("WORK_DIR") {
		p.must("WORK_DIR", isDir(c.Claude.WorkDir), exist)
		c.validatePlace("WORK_DIR", c.Claude.WorkDir, p)
	}
	for _, repository := range c.Claude.Repositories {
		p.must("REPOSITORIES", isDir(repository), "list existing directories, and %s is none", repository)
		p.must("REPOSITORIES", !contains(c.State.Dir, repository), "list nothing in the state directory %s",
			c.State.Dir)
		c.validatePlace("REPOSITORIES", repository, p)
	}
}

// validatePlace checks that a directory for agents contains none of Claude Ops' own files.
func (c Config) validatePlace(name, dir string, p *problems) {
	const ours = "which agents must not touch"
	p.must(name, !contains(dir, c.State.Dir), "not contain the state directory %s, %s", c.State.Dir, ours)
	p.must(name, !contains(dir, c.Claude.ConfigDir), "not contain the CLI's directory %s, %s", c.Claude.ConfigDir, ours)
	archive := c.State.TranscriptsDir()
	p.must(name, archive == "" || !contains(dir, archive), "not contain the transcript archive %s, %s", archive, ours)
	file := c.State.DatabaseFile()
	p.must(name, file == "" || !contains(dir, file), "not contain the database %s, %s", file, ours)
	keys := c.Encryption.KeysFile
	p.must(name, keys == "" || !contains(dir, keys), "not contain the file of keys %s, %s", keys, ours)
	for _, file := range slices.Concat(c.Web.SecretFiles(), c.Services.Alerts.SecretFiles()) {
		p.must(name, contains(c.State.Dir, file) || !contains(dir, file), "not contain %s, %s", file, ours)
	}
	settings := c.State.EnvFile
	p.must(name, settings == "" || !contains(dir, settings), "not contain the settings %s, %s", settings, ours)
}

func (n Notify) validate(p *problems) {
	_, err := n.Targets()
	p.must("NOTIFY_URLS", err == nil, "name services by URLs: %s", errorText(err))
	seen := map[string]int{}
	for i, rawURL := range n.URLs {
		p.must("NOTIFY_URLS", seen[rawURL] == 0, "name each place once, and URLs %d and %d are the same", seen[rawURL],
			i+1)
		seen[rawURL] = i + 1
	}
	if n.UIURL == "" {
		return
	}
	parsed, err := url.Parse(n.UIURL)
	p.must("UI_URL", err == nil && parsed.Host != "" && (parsed.Scheme == "http" || parsed.Scheme == "https") &&
		parsed.User == nil && parsed.RawQuery == "" && parsed.Fragment == "",
		"be the address of a web site, without credentials and parameters, such as https://temporal.example.org")
}

func (t Tier) validate(prefix string, firstByte time.Duration, p *problems) {
	p.must(prefix+"MODEL", isWord(t.Model) && !strings.HasPrefix(t.Model, "-"),
		"be the name of a model, without spaces")
	p.must(prefix+"TIMEOUT", t.Timeout > 0, positive)
	p.must(prefix+"BUDGET_USD", isBudget(t.BudgetUSD), noCap)
	if p.given("FIRST_BYTE_TIMEOUT") && t.Timeout > 0 {
		p.must("FIRST_BYTE_TIMEOUT", firstByte <= t.Timeout,
			"be at most %s%sTIMEOUT, which is %s", Prefix, prefix, escalation.ShortDuration(t.Timeout))
	}
	t.Tools.validate(prefix+"TOOLS", p)
}

// refusedTools lists tools that no agent is permitted to use. Each agent must remain one process with one record and
// one cost. With one of these tools, an agent could start another agent, or leave work that continues after the agent's
// end.
var refusedTools = []string{
	"Agent", "Task", // start other agents
	"ListAgents", "SendMessage", // talk to other sessions, whatever their tier
	"CronCreate", "ScheduleWakeup", // run later, without supervision
	"EnterWorktree", // leaves the working directory
	"default",       // means all of the CLI's tools, including these
}

// validate checks a list of tools.
func (l ToolList) validate(name string, p *problems) {
	p.must(name, len(l) > 0, "name at least one tool: without one an agent cannot look at anything")
	for _, tool := range l {
		p.must(name, !slices.Contains(refusedTools, tool),
			"leave out %s, which reaches beyond the one session that a tier is", tool)
	}
	p.must(name, slices.ContainsFunc(l, granted), "name one of %s: a policy grants no others",
		strings.Join(policyTools, ", "))
}

// policyTools lists the CLI's tools whose use a policy can permit.
var policyTools = []string{"Bash", "Read", "Grep", "Glob", "Edit", "Write"}

// granted reports whether a policy can permit the use of tool.
func granted(tool string) bool {
	return slices.Contains(policyTools, tool) || strings.HasPrefix(tool, mcpPrefix)
}

// mcpPrefix begins the names of tools that come from an MCP server.
const mcpPrefix = "mcp__"

// validate reads every prompt file, so that an unusable file is reported at the start of the program, and not at the
// start of an agent.
func (p Prompts) validate(found *problems) {
	for _, file := range []struct {
		name     string
		override prompts.Overrides
	}{
		{"PROMPT", prompts.Overrides{Tier1: p.Tier1}},
		{"TIER2_PROMPT", prompts.Overrides{Tier2: p.Tier2}},
		{"TIER3_PROMPT", prompts.Overrides{Tier3: p.Tier3}},
	} {
		_, err := prompts.Load(file.override)
		found.must(file.name, err == nil, "name a file that can be used: %s",
			strings.TrimPrefix(errorText(err), "prompt file: "))
	}
}

// isBudget reports whether usd is a valid budget; 0 sets no cap.
func isBudget(usd float64) bool { return usd >= 0 && !math.IsInf(usd, 0) }

// isWord reports whether text is not empty and has no spaces or control characters.
func isWord(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) ||
			unicode.IsControl(r)
	})
}
