package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// credentialVariables are the variables with which the CLI can use a model without a login or a cloud provider.
var credentialVariables = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}

// Credentials returns where the CLI finds its credentials: the name of a variable that it gets, or a file in its own
// directory. It returns false if there are none. It does not return their values, and does not check them. A user's own
// login counts as found, because it may be in the system's keychain.
func Credentials(options Options) (where string, found bool) {
	variables := slices.Clone(credentialVariables)
	for _, p := range providers() {
		if p.enabledBy != "" {
			variables = append(variables, p.enabledBy)
		}
	}
	for _, name := range variables {
		if lookupVariable(options.Environ, name) != "" {
			return name, true
		}
	}
	if options.ConfigDir == "" {
		return "the login of this user", true
	}
	return loginFile(options.ConfigDir)
}

// loginFile returns the file in configDir with the login of an account, or the settings file with a key that the CLI
// manages.
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
