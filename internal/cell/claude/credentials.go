package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// credentialVariables lists the variables from which the CLI takes credentials if there is no login and no cloud
// provider.
var credentialVariables = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}

// Credentials returns the place where the CLI finds its credentials: the name of a variable, or a file in the CLI's own
// directory. A cloud provider that is switched on comes before all others, as for the CLI. Credentials returns false if
// there are no credentials. It does not return their values, and does not check whether they are valid.
//
// Without a directory of its own the CLI uses the login of the user. Credentials then always returns true, because that
// login can be in the system's keychain.
func Credentials(options Options) (where string, found bool) {
	for _, p := range providers() {
		if isOn(lookupVariable(options.Environ, p.enabledBy)) {
			return p.enabledBy, true
		}
	}
	for _, name := range credentialVariables {
		if lookupVariable(options.Environ, name) != "" {
			return name, true
		}
	}
	if options.ConfigDir == "" {
		return "the login of this user", true
	}
	return loginFile(options.ConfigDir)
}

// loginFile returns the path of the file in configDir that holds the credentials. If an account has logged in, this is
// the file of that login. Otherwise it is the settings file, if that file has an API key. If there are no credentials,
// found is false.
func loginFile(configDir string) (path string, found bool) {
	path = filepath.Join(configDir, ".credentials.json")
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return path, true
	}
	path = filepath.Join(configDir, ".claude.json")
	var settings struct {
		Key string `json:"primaryApiKey"`
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	found = err == nil && json.Unmarshal(text, &settings) == nil && settings.Key != ""
	return path, found
}

// notLoggedIn is the status of a CLI that has not called the API, because it has no credentials.
const notLoggedIn = -1

// AccessProblem says in one sentence why the API refuses the CLI with the given HTTP status, as far as the settings
// show it, and what to do. With the status 0 it says only what the settings show without a call: "" means that they
// show nothing.
func AccessProblem(options Options, status int) string {
	where, found := Credentials(options)
	switch {
	case AddressProblem(options.Environ) != "":
		return AddressProblem(options.Environ)
	case !found:
		return fmt.Sprintf("agents find no credentials in this environment, and none in %s: set ANTHROPIC_API_KEY, "+
			"or CLAUDEOPS_CLAUDE_CONFIG_DIR=login to use the login of this user", options.ConfigDir)
	case status == 0:
		return ""
	case status == notLoggedIn:
		return "the CLI is not logged in: log in with claude as the worker's user, or set ANTHROPIC_API_KEY"
	case strings.HasPrefix(where, "CLAUDE_CODE_USE_"):
		return fmt.Sprintf("the model's provider refuses the account of %s (%d)", where, status)
	case slices.Contains(credentialVariables, where):
		return fmt.Sprintf("the model's API refuses the credentials in %s (%d): correct the variable", where, status)
	default:
		return fmt.Sprintf("the model's API refuses %s (%d): log in again with claude, or set ANTHROPIC_API_KEY",
			where, status)
	}
}

// AddressProblem says in one sentence what is wrong with the API's address in environ; "" if nothing is seen.
func AddressProblem(environ []string) string {
	address := lookupVariable(environ, "ANTHROPIC_BASE_URL")
	if path := strings.TrimRight(address, "/"); strings.HasSuffix(path, "/v1") {
		return fmt.Sprintf("ANTHROPIC_BASE_URL is %q, and the CLI itself adds /v1: set it to %q", address,
			strings.TrimSuffix(path, "/v1"))
	}
	return ""
}
