// Package claude drives the real `claude` command line: it builds an invocation, runs it,
// reads the event stream, and returns what came of it as a Result or a typed *Error.
//
//	Invocation -> arguments, environment, prompt -> process -> lines -> events -> accumulator -> judge -> Result, *Error
//
// Two versions of the CLI were measured, and they differ. Everything that differs is in
// version.go, chosen once by `claude --version` in Locate; no other file asks which version runs.
//
// What the agent may do is denied by default: settings files, MCP servers and slash commands of
// the working directory are shut out, only the tools of the Invocation exist, only its rules grant,
// and nothing is inherited from the environment that is not on a list. A conversation remembers none
// of this, so every invocation says all of it again.
package claude
