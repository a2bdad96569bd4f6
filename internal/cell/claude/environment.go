package claude

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// provider is a service that offers models, and the variables that the CLI needs to use it.
type provider struct {
	// enabledBy is the variable that enables the provider. The agent gets a cloud's credentials only if the CLI needs
	// them, and so only if this variable is set. If enabledBy is empty, the provider is always enabled.
	enabledBy string
	names     []string
}

// base returns the names of the variables that any program can need. A name that ends in "*" is a prefix. HOME is on
// the list for an existing login. If the CLI has its own directory, the function fixed replaces HOME. XDG_* is not on
// the list, so that programs look below HOME.
func base() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LANGUAGE", "LC_*", "TZ",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_CERT_STORE",
		"CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
	}
}

// providers returns the providers that the CLI documents.
func providers() []provider {
	return []provider{
		{names: []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS",
			"ANTHROPIC_DEFAULT_*", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_OAUTH_TOKEN",
		}},
		{enabledBy: "CLAUDE_CODE_USE_BEDROCK", names: []string{
			"AWS_*", "ANTHROPIC_BEDROCK_*", "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION", "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
		}},
		{enabledBy: "CLAUDE_CODE_USE_VERTEX", names: []string{
			"ANTHROPIC_VERTEX_*", "VERTEX_REGION_*", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS",
			"GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLAUDE_CODE_SKIP_VERTEX_AUTH",
		}},
		{enabledBy: "CLAUDE_CODE_USE_FOUNDRY", names: []string{
			"ANTHROPIC_FOUNDRY_*", "AZURE_*", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
		}},
	}
}

// fixed returns variables that this package sets in every invocation. They override the operator's and the invocation's
// variables.
func (c *CLI) fixed(i Invocation) map[string]string {
	variables := map[string]string{
		// Prompts quote the output of services. Without this variable, an "@path" in such a quotation would make the
		// CLI read that file.
		"CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
		// Without this variable the CLI calls Git at its start. Git would run programs named in the configuration of
		// the working directory.
		"CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
		// Notes from other conversations must not be used in this one.
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY":          "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_TELEMETRY":                        "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"CLAUDE_CODE_MAX_RETRIES":                  strconv.Itoa(max(c.options.MaxRetries, 0)),
	}
	maps.Copy(variables, timeouts(i.Limits.Idle))
	maps.Copy(variables, c.window(i.Model))
	if home := c.ownHome(); home != "" {
		variables["HOME"] = home
	}
	if dir := c.configDir(); dir != "" {
		variables[configVariable] = dir
	}
	for _, name := range ownDirs {
		if dir, given := i.Env[name]; given {
			variables[name] = dir
		}
	}
	if user := c.options.User; user != nil {
		variables["USER"], variables["LOGNAME"] = user.Name, user.Name
	}
	return variables
}

// window returns the variables that keep a conversation below the length above which the model's price is higher. The
// CLI then summarizes the conversation before a call that would come near it. The second variable is the share of the
// window, in percent, at which it does: what the results of one answer add has room below the limit.
func (c *CLI) window(model string) map[string]string {
	above := c.profile.prices.of(c.profile.fullName(withoutWindow(model))).longOver
	if above == 0 {
		return nil
	}
	return map[string]string{
		"CLAUDE_CODE_AUTO_COMPACT_WINDOW": strconv.Itoa(int(above)),
		"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": strconv.Itoa(compactAt),
	}
}

// compactAt is the share in percent, of the window without room for an answer, at which the CLI summarizes a
// conversation. In 2.1.332 that is at 48,000 tokens. Six commands at once with the longest output that the CLI shows
// add 46,000.
const compactAt = 60

const (
	// defaultCommandTimeout is the CLI's time limit for a command if the agent sets no limit.
	defaultCommandTimeout = 2 * time.Minute
	// maxAPITimeout is the longest time limit for one API call. After this time the CLI retries the call.
	maxAPITimeout = 5 * time.Minute
	// idleMargin is the largest difference between Limits.Idle and the CLI's own time limits, which are shorter.
	idleMargin = time.Minute
)

// timeouts returns the variables with the CLI's own time limits. The CLI prints nothing while it waits for a command or
// the API. If that took longer than Limits.Idle, the whole run would end. So the CLI's own limits are shorter than
// Limits.Idle. The agent can then react to a command that hangs. If the API hangs, the CLI can report that the API is
// unavailable.
func timeouts(idle time.Duration) map[string]string {
	if idle == 0 {
		return map[string]string{"API_TIMEOUT_MS": milliseconds(maxAPITimeout)}
	}
	longest := idle - min(idleMargin, idle/2)
	variables := map[string]string{
		"API_TIMEOUT_MS":      milliseconds(min(maxAPITimeout, longest)),
		"BASH_MAX_TIMEOUT_MS": milliseconds(longest),
	}
	if longest < defaultCommandTimeout {
		variables["BASH_DEFAULT_TIMEOUT_MS"] = milliseconds(longest)
	}
	return variables
}

// milliseconds returns d in milliseconds, but at least 1, because with 0 the CLI would use its default.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// gitSettings returns variables that override the configuration of any repository. Otherwise an agent could write
// programs into the configuration of a repository, and even "git add" would run them. The configuration need not be in
// a .git directory, because Git also accepts a directory that looks like a bare repository.
func gitSettings(more ...[2]string) map[string]string {
	settings := append([][2]string{
		{"safe.bareRepository", "explicit"},
		{"core.fsmonitor", "false"},
		{"core.hooksPath", "/dev/null"},
	}, more...)
	variables := map[string]string{
		"GIT_CONFIG_COUNT": strconv.Itoa(len(settings)),
		// a reviewer must see what a push would send, not what refs/replace names instead
		"GIT_NO_REPLACE_OBJECTS": "1",
	}
	for i, setting := range settings {
		variables["GIT_CONFIG_KEY_"+strconv.Itoa(i)] = setting[0]
		variables["GIT_CONFIG_VALUE_"+strconv.Itoa(i)] = setting[1]
	}
	return variables
}

// environment returns the whole environment of an invocation, sorted by name. From lowest to highest precedence, its
// sources are the variables on the allow list, the invocation's own variables, the fixed variables, the endpoint's
// variables and the guard's variables.
func (c *CLI) environment(i Invocation) []string {
	variables := map[string]string{}
	allowed := c.allowList()
	for _, variable := range c.options.Environ {
		name, value, _ := strings.Cut(variable, "=")
		if !isTelemetrySecret(name) && slices.ContainsFunc(allowed,
			func(pattern string) bool { return matchesName(pattern, name) }) {
			variables[name] = value
		}
	}
	maps.Copy(variables, i.variables())
	maps.Copy(variables, c.fixed(i))
	git := i.GitSettings
	if c.options.User != nil && i.Dir != "" {
		// Git refuses a repository that belongs to another user. The operator chose this directory, so permit it.
		git = append(slices.Clip(git), [2]string{"safe.directory", i.Dir})
	}
	maps.Copy(variables, gitSettings(git...))
	if i.API != nil {
		c.redirect(variables, *i.API)
	}
	if i.Guard != nil {
		maps.Copy(variables, i.Guard.Env)
	}

	environment := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		environment = append(environment, name+"="+variables[name])
	}
	return environment
}

// isTelemetrySecret reports whether a variable contains credentials for the export of the worker's traces. No agent
// gets such a variable, even if PassEnv names it.
func isTelemetrySecret(name string) bool {
	return strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && strings.HasSuffix(name, "HEADERS")
}

// allowList returns the name patterns of the operator's variables that are passed to the CLI.
func (c *CLI) allowList() []string {
	allowed := slices.Concat(base(), c.options.PassEnv)
	for _, p := range providers() {
		if p.enabledBy == "" || lookupVariable(c.options.Environ, p.enabledBy) != "" {
			allowed = append(append(allowed, p.names...), p.enabledBy)
		}
	}
	return allowed
}

// withoutProviders returns the variables that no provider of models needs.
func withoutProviders(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(providers(), func(p provider) bool {
			return name == p.enabledBy || slices.ContainsFunc(p.names,
				func(pattern string) bool { return matchesName(pattern, name) })
		})
	})
}

// ownDirs are the variables with the directories of the CLI and of its agent. An invocation can have directories of its
// own.
var ownDirs = []string{configVariable, "HOME"}

// configVariable names the CLI's own directory.
const configVariable = "CLAUDE_CONFIG_DIR"

// configDir returns the CLI's own directory. If neither the options nor the environment set it, configDir returns "".
func (c *CLI) configDir() string {
	if c.options.ConfigDir != "" {
		return c.options.ConfigDir
	}
	return lookupVariable(c.options.Environ, configVariable)
}

// lookupVariable returns the value of name in environ, or "". If the variable occurs several times, the last value
// counts.
func lookupVariable(environ []string, name string) string {
	for _, variable := range slices.Backward(environ) {
		if value, found := strings.CutPrefix(variable, name+"="); found {
			return value
		}
	}
	return ""
}

func matchesName(pattern, name string) bool {
	if prefix, isPrefix := strings.CutSuffix(pattern, "*"); isPrefix {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}
