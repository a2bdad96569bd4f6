// Package claude drives the real `claude` command line. It builds an invocation, runs it, reads its event stream, and
// returns a Result, and an *Error if the run failed.
//
//	Invocation -> arguments, environment, prompt -> process -> lines -> events -> accumulator -> judge -> Result, *Error
//
// The measured versions of the CLI differ. All differences are in the version profiles of version.go. Locate chooses a
// profile once, by `claude --version`, and no other file depends on the version.
//
// Everything is denied to the agent by default. Settings files, MCP servers and slash commands of the working directory
// are disabled. Only the tools of the Invocation exist. Only its rules permit calls. Only variables on an allow list
// are inherited. The CLI does not store these settings in a conversation, so every invocation passes all of them.
package claude
