package config

// Remote holds the settings with which claudeops works through a server, from a machine without workers. The command
// line reads them itself, because it needs no other setting then.
type Remote struct {
	Server    string `env:"SERVER" desc:"Address of a server (claudeops web), such as https://ops.example. claudeops works through it, as with --server. Agents and workers ignore it."`
	Token     string `env:"TOKEN" secret:"true" desc:"Token for that server, made with claudeops web token."`
	TokenFile string `env:"TOKEN_FILE" desc:"File that holds the token, in place of CLAUDEOPS_TOKEN."`
}

// The variables of Remote.
const (
	ServerVariable    = Prefix + "SERVER"
	TokenVariable     = Prefix + "TOKEN"
	TokenFileVariable = Prefix + "TOKEN_FILE"
)
