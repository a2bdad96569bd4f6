package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// credentialVariables let the CLI reach a model without a login or a provider's switch.
var credentialVariables = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}

// Credentials says where the CLI finds what it needs to reach a model: the name of a variable that is
// passed on to it, or a file in its own directory; false if nowhere. It tells nothing of their values, and
// not whether they are good. A user's own login counts as found, because it may be in the system's keychain.
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

// loginFile returns the file in configDir that holds a login: of an account, or of a key that the CLI
// manages. In the latter the key is one of many settings.
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
