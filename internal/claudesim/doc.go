// Package claudesim stands in for Claude: for the command line program, and for the
// Messages API behind the real one. Both play the same Scenario, so that a test can run
// its table on the stand-in (milliseconds, no download) and on the real CLI.
//
//	             +--> Install: a program named claude that plays it, tools and all
//	Scenario ----+
//	             +--> NewAPI:  a Messages API on loopback that plays it to the real CLI
//
// The contract tests of this package hold the stand-in to the real CLI: where they
// differ in something that the driver relies on, the stand-in is wrong. One thing it leaves out: when
// the API says that a resumed conversation is too long, the CLI first asks the model to sum it up,
// and gives up only if that fails, too.
//
// # Hooks
//
// PreToolUse hooks of --settings decide on every call of a tool that exists, StructuredOutput among them. As measured:
//
//   - "allow" grants a call without a rule, also outside of the working directory. Rules that deny it win, and so does what
//     the CLI never does without a person: it writes no .git, .claude, .vscode or dotfile of a shell, and removes nothing in
//     the root directory. With --restricted (2.1.330) no hook lets the file tools out of the working directory. The
//     stand-in leaves these last two out.
//   - "deny" and exit code 2 deny it, and the result lists the call under permission_denials. There is no event of it.
//   - Anything else, such as {}, no output, another exit code, a hook that cannot be run or takes too long, leaves the call
//     to the rules. Without a rule they let the CLI read below the working directory, and run programs that only look.
//
// CLAUDE_CODE_SHELL_PREFIX names a program that gets every script of the CLI's shell as its one argument: the hook's
// command as it is, and the model's command as eval 'COMMAND' in a script of the CLI's.
//
// # Matching
//
// Nothing is remembered between model calls. What "the model" answers follows from the
// request alone: the first Turn whose Match holds gives the replies, and the number of
// model calls since the last prompt of a person picks one of them. A retry of a request
// gets the same answer, a process that was killed and resumed goes on where the
// conversation stands, and several tiers, or several runs at once, share one scenario.
//
// What the CLI itself adds to a conversation (reminders, notices of an interruption,
// demands for structured output) is no prompt. Requests that the CLI makes for itself
// (titles, quota probes) are answered and never touch the scenario.
//
// After its last reply a turn repeats that reply, unless the reply calls a tool other
// than StructuredOutput: then the request is refused with status 400 and an explanation,
// as is a request that no turn matches. A script that is too short thus fails a test in
// words, not by running for ever.
//
// # As a file
//
// A scenario is also a JSON file; unknown fields are refused. The first turn below is an
// observer that looks and escalates, the second a repairer whose first model call is
// rejected once:
//
//	{
//	  "version": "2.1.330",
//	  "turns": [
//	    {
//	      "name": "observe",
//	      "match": {"model": "haiku"},
//	      "replies": [
//	        {"text": "Checking.", "calls": [{"name": "Bash", "input": {"command": "curl -s localhost:8096/health"}}]},
//	        {"structured": {"status": "escalate", "summary": "The service answers 502."}}
//	      ]
//	    },
//	    {
//	      "name": "repair",
//	      "match": {"model": "sonnet", "prompt": "restart", "tools": ["Bash"]},
//	      "replies": [
//	        {"error": {"status": 429, "times": 1}, "structured": {"status": "resolved", "summary": "Restarted."},
//	         "usage": {"input": 900, "output": 50}, "delay": "20ms"}
//	      ]
//	    }
//	  ]
//	}
//
// # Faults
//
// A Fault is what the program does wrong, whatever the model says: crash, hang, print
// garbage, lose a field. Only the stand-in can play one; NewAPI ignores them.
package claudesim
