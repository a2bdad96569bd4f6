// Package claude drives the real `claude` command line. It builds an invocation, runs it and reads its event stream. It
// returns a Result and, if the run failed, an *Error.
//
//	Invocation -> arguments, environment, prompt -> process -> lines -> events -> accumulator -> judge -> Result, *Error
//
// The measured versions of the CLI differ. All differences are in the version profiles of version.go. Locate chooses a
// profile once, by `claude --version`, and no other file depends on the version.
//
// Everything is denied to the agent by default. Settings files, MCP servers and slash commands of the working directory
// are disabled. The agent has no tools except those of the Invocation, and only the Invocation's rules permit calls.
// The agent inherits only variables on an allow list. The CLI does not store these settings in a conversation, so every
// invocation passes all of them.
package claude
