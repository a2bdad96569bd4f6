package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// credentialVariables lists the variables from which the CLI takes credentials if there is no login and no cloud
// provider.
var credentialVariables = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}

// Credentials returns the place where the CLI finds its credentials: the name of a variable, or a file in the CLI's own
// directory. It returns false if there are no credentials. It does not return the values of the credentials, and does
// not check whether they are valid.
//
// Without a directory of its own the CLI uses the login of the user. Credentials then always returns true, because that
// login can be in the system's keychain.
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
