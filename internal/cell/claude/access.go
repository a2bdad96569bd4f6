package claude

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// firstPartyURL is the default address of the API.
const firstPartyURL = "https://api.anthropic.com"

// Access holds the address and the credentials of the model's API. They come from the variables of an environment.
type Access struct {
	// Variables holds the names of the variables that contain the credentials.
	Variables []string
	// BaseURL is the address of the API.
	BaseURL string
	// Header holds the headers of every call: the credentials and the operator's own headers.
	Header http.Header
}

// FindAccess returns the address and the credentials with which the CLI calls the API. It returns false if the CLI uses
// a login or a cloud provider, because no other program can use those credentials.
func FindAccess(options Options) (Access, bool) {
	for _, p := range providers() {
		if p.enabledBy != "" && isOn(lookupVariable(options.Environ, p.enabledBy)) {
			return Access{}, false
		}
	}
	access := Access{BaseURL: baseURL(options.Environ), Header: customHeaders(options.Environ)}
	for _, name := range credentialsInForce(options.Environ) {
		access.Variables = append(access.Variables, name)
		credentialHeader(access.Header, name, lookupVariable(options.Environ, name))
	}
	return access, len(access.Variables) > 0
}

// isOn reports whether the CLI reads value as "enabled".
func isOn(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
}

// baseURL returns the API's address in environ, or the default.
func baseURL(environ []string) string {
	if given := lookupVariable(environ, "ANTHROPIC_BASE_URL"); given != "" {
		return given
	}
	return firstPartyURL
}

// credentialsInForce returns the names of the variables whose credentials the CLI sends. The CLI sends an API key and
// an authentication token together. If neither is set, the CLI sends the token of an account.
func credentialsInForce(environ []string) []string {
	var names []string
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} {
		if lookupVariable(environ, name) != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 && lookupVariable(environ, "CLAUDE_CODE_OAUTH_TOKEN") != "" {
		names = append(names, "CLAUDE_CODE_OAUTH_TOKEN")
	}
	return names
}

// credentialHeader adds a credential to the header, in the form that the CLI uses. The argument name is the name of the
// variable with the credential.
func credentialHeader(header http.Header, name, value string) {
	if name == "ANTHROPIC_API_KEY" {
		header.Set("X-Api-Key", value)
		return
	}
	header.Set("Authorization", "Bearer "+value)
}

// customHeaders returns the headers that the operator adds to every call. ANTHROPIC_CUSTOM_HEADERS holds one header per
// line.
func customHeaders(environ []string) http.Header {
	header := http.Header{}
	for line := range strings.Lines(lookupVariable(environ, "ANTHROPIC_CUSTOM_HEADERS")) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) != "" {
			header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return header
}

// withheld lists the variables that are for the worker's own connection to the API. An invocation with an Endpoint gets
// neither these variables nor the credentials.
var withheld = []string{
	"ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY",
	"CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
}

// redirect changes the environment variables so that the CLI calls the endpoint with the endpoint's key. It removes all
// other credentials.
func (c *CLI) redirect(variables map[string]string, api Endpoint) {
	environ := c.options.Environ
	withoutSecrets(variables, environ)
	for _, name := range credentialsInForce(environ) {
		variables[name] = api.Key
	}
	variables["ANTHROPIC_BASE_URL"] = api.URL
	if isFirstParty(baseURL(environ)) {
		// Without this variable the CLI uses fewer features at an unknown address. It then shares no cached system
		// prompt between conversations, and leaves out some tools.
		variables["_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"] = "1"
	}
	bypassProxy(variables)
}

// minSecretBytes is the length of the shortest secret that withoutSecrets searches for in the values of variables. A
// shorter secret could occur in a value by chance.
const minSecretBytes = 6

// withoutSecrets deletes three kinds of entries from the map variables: the credentials, the withheld variables, and
// all variables whose values contain a credential. The credentials to search for are those in environ.
func withoutSecrets(variables map[string]string, environ []string) {
	for _, name := range slices.Concat(credentialVariables, withheld) {
		delete(variables, name)
	}
	for _, name := range credentialVariables {
		secret := lookupVariable(environ, name)
		for other, value := range variables {
			if len(secret) >= minSecretBytes && strings.Contains(value, secret) {
				delete(variables, other)
			}
		}
	}
}

// isFirstParty reports whether address is the default address of the API.
func isFirstParty(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && parsed.Scheme == "https" && parsed.Host == "api.anthropic.com"
}

// bypassProxy makes the CLI connect to this host without the operator's proxy. If the operator has no proxy, it changes
// nothing.
func bypassProxy(variables map[string]string) {
	proxied := false
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		proxied = proxied || variables[name] != ""
	}
	if !proxied {
		return
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		variables[name] = strings.TrimPrefix(variables[name]+",127.0.0.1", ",")
	}
}
