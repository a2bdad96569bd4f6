package claude

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// provider is a way to reach a model, and the variables that it needs.
type provider struct {
	// enabledBy is the variable that switches it on; empty is always on. The credentials of a cloud
	// are none of the agent's business unless the CLI itself needs them.
	enabledBy string
	names     []string
}

// base are the variables that any program may need. A name that ends in "*" is a prefix. HOME is
// that of an existing login; fixed replaces it where the CLI has a directory of its own. XDG_* are
// left out, so that programs look below HOME.
func base() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LANGUAGE", "LC_*", "TZ",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_CERT_STORE",
		"CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
	}
}

// providers are the ways to reach a model that the CLI documents.
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

// fixed are the variables that every invocation gets, whatever else says otherwise.
func (c *CLI) fixed(limits Limits) map[string]string {
	variables := map[string]string{
		// A prompt quotes what a service wrote; "@path" in it must not read that file.
		"CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
		// Git at startup would run what the working directory's configuration says.
		"CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
		// Notes of other conversations must not get into this one.
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY":          "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_TELEMETRY":                        "1",
		"DISABLE_ERROR_REPORTING":                  "1",
		"DISABLE_AUTOUPDATER":                      "1",
		"CLAUDE_CODE_MAX_RETRIES":                  strconv.Itoa(max(c.options.MaxRetries, 0)),
	}
	maps.Copy(variables, timeouts(limits.Idle))
	maps.Copy(variables, gitSettings())
	if home := c.ownHome(); home != "" {
		variables["HOME"] = home
	}
	if dir := c.configDir(); dir != "" {
		variables["CLAUDE_CONFIG_DIR"] = dir
	}
	if user := c.options.User; user != nil {
		variables["USER"], variables["LOGNAME"] = user.Name, user.Name
	}
	return variables
}

const (
	// defaultCommandTimeout is how long the CLI lets a command run that asks for no time of its own.
	defaultCommandTimeout = 2 * time.Minute
	// maxAPITimeout is how long the CLI waits for the API before it tries again.
	maxAPITimeout = 5 * time.Minute
	// idleMargin is by how much the CLI's own time-outs come before Limits.Idle.
	idleMargin = time.Minute
)

// timeouts make the CLI end by itself what it waits for in silence, before Limits.Idle ends the
// CLI: a command that hangs is then the agent's to judge, and an API that hangs is unavailable.
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

// milliseconds returns d in the CLI's unit, and at least one, because it takes 0 for its default.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// gitSettings win over the configuration of any repository. A file that an agent may write can be
// such a configuration: even "git add" runs the programs that it names, and a directory that looks
// like a bare repository needs no .git.
func gitSettings(more ...[2]string) map[string]string {
	settings := append([][2]string{
		{"safe.bareRepository", "explicit"},
		{"core.fsmonitor", "false"},
		{"core.hooksPath", "/dev/null"},
	}, more...)
	variables := map[string]string{"GIT_CONFIG_COUNT": strconv.Itoa(len(settings))}
	for i, setting := range settings {
		variables["GIT_CONFIG_KEY_"+strconv.Itoa(i)] = setting[0]
		variables["GIT_CONFIG_VALUE_"+strconv.Itoa(i)] = setting[1]
	}
	return variables
}

// environment returns the whole environment of an invocation: what the lists pass on, then what
// it adds itself, then what is fixed, then what makes it ask its guard, sorted.
func (c *CLI) environment(i Invocation) []string {
	variables := map[string]string{}
	allowed := c.allowList()
	for _, variable := range c.options.Environ {
		name, value, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(allowed, func(pattern string) bool { return matchesName(pattern, name) }) {
			variables[name] = value
		}
	}
	maps.Copy(variables, i.variables())
	maps.Copy(variables, c.fixed(i.Limits))
	if c.options.User != nil && i.Dir != "" {
		// Git would refuse a repository of another user; this one was named by the operator.
		maps.Copy(variables, gitSettings([2]string{"safe.directory", i.Dir}))
	}
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

// allowList returns the patterns of the names that may pass.
func (c *CLI) allowList() []string {
	allowed := slices.Concat(base(), c.options.PassEnv)
	for _, p := range providers() {
		if p.enabledBy == "" || lookupVariable(c.options.Environ, p.enabledBy) != "" {
			allowed = append(append(allowed, p.names...), p.enabledBy)
		}
	}
	return allowed
}

// configDir returns the directory that holds the CLI's transcripts, or "" when the environment
// does not tell.
func (c *CLI) configDir() string {
	if c.options.ConfigDir != "" {
		return c.options.ConfigDir
	}
	return lookupVariable(c.options.Environ, "CLAUDE_CONFIG_DIR")
}

// lookupVariable returns the value of name in environ, or "". As in a process, the last one counts.
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
