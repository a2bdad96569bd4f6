package claude

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// firstPartyURL is where the CLI reaches the API if nothing else is said.
const firstPartyURL = "https://api.anthropic.com"

// Access is how the model's API is reached with the credentials of an environment.
type Access struct {
	// Variables are the names of the variables that hold the credentials.
	Variables []string
	// BaseURL is the address of the API.
	BaseURL string
	// Header is what every call needs: the credentials, and the headers that the operator adds.
	Header http.Header
}

// FindAccess returns how the CLI would reach the API. It returns false where the CLI has to hold the credentials
// itself: those of a login, or of a cloud.
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

// isOn reads a switch as the CLI does.
func isOn(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(value)))
}

// baseURL returns the address that environ gives, or the API's own.
func baseURL(environ []string) string {
	if given := lookupVariable(environ, "ANTHROPIC_BASE_URL"); given != "" {
		return given
	}
	return firstPartyURL
}

// credentialsInForce returns the variables whose credentials the CLI sends: a key and a token together; the token
// of an account only without both.
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

// credentialHeader adds a credential in the way in which the CLI sends it.
func credentialHeader(header http.Header, name, value string) {
	if name == "ANTHROPIC_API_KEY" {
		header.Set("X-Api-Key", value)
		return
	}
	header.Set("Authorization", "Bearer "+value)
}

// customHeaders returns the headers that the operator adds to every call, a line for each.
func customHeaders(environ []string) http.Header {
	header := http.Header{}
	for line := range strings.Lines(lookupVariable(environ, "ANTHROPIC_CUSTOM_HEADERS")) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) != "" {
			header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return header
}

// withheld are the variables that an invocation with an Endpoint does without, beside the credentials. What they
// say is for the connection from the worker to the API.
var withheld = []string{
	"ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
}

// redirect replaces the credentials in variables by those of api.
func (c *CLI) redirect(variables map[string]string, api Endpoint) {
	environ := c.options.Environ
	withoutSecrets(variables, environ)
	for _, name := range credentialsInForce(environ) {
		variables[name] = api.Key
	}
	variables["ANTHROPIC_BASE_URL"] = api.URL
	if isFirstParty(baseURL(environ)) {
		// The CLI asks for less at an address that it does not know: its system prompt is then cached for one
		// conversation only, and some tools are left out.
		variables["_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"] = "1"
	}
	bypassProxy(variables)
}

// minSecretBytes is the length from which a value is looked for in others. A shorter one would be found by chance.
const minSecretBytes = 6

// withoutSecrets removes the credentials of environ from variables, under whatever names they are passed on.
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

// isFirstParty reports whether address is the API's own.
func isFirstParty(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && parsed.Scheme == "https" && parsed.Host == "api.anthropic.com"
}

// bypassProxy keeps calls to this host out of a proxy of the operator.
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
