// Package claudesim replaces Claude in tests. It contains a stand-in for the CLI, and a Messages API for the real CLI.
// Both play the same Scenario. So the same test cases can run on the stand-in (milliseconds, no download) and on the
// real CLI.
//
//	             +--> Install: a program named claude that plays it and runs its tool calls
//	Scenario ----+
//	             +--> NewAPI:  a Messages API on loopback that plays it to the real CLI
//
// The contract tests of this package compare the stand-in with the real CLI. If the two differ in something that
// package claude relies on, the stand-in is wrong. One difference is permitted: if the API says that a resumed
// conversation is too long, the real CLI first asks the model to summarize the conversation, and gives up only if the
// summary fails, too. The stand-in gives up at once.
//
// # Hooks
//
// PreToolUse hooks of --settings decide on every call of an existing tool, including StructuredOutput. Measurements
// of the real CLI showed:
//
//   - "allow" grants a call without a rule, even outside of the working directory. Rules that deny the call take
//     precedence. Without a person the CLI refuses some operations even if a hook allows them: it writes no .git,
//     .claude, .vscode or dotfile of a shell, and removes nothing in the root directory. With --restricted no
//     hook can let the file tools leave the working directory. The stand-in simulates neither these refusals nor the
//     effect of --restricted.
//   - "deny" and exit code 2 deny the call. The result line lists the call under permission_denials. No separate event
//     reports the denial.
//   - After any other answer the rules decide. Other answers are {}, no output, another exit code, a hook that cannot
//     be run, and a time-out. If no rule covers the call, the CLI permits reading below the working directory and
//     running programs that only read.
//
// CLAUDE_CODE_SHELL_PREFIX names a program that receives every script of the CLI's shell as its only argument. A
// hook's command is passed unchanged. The model's command is passed as eval 'COMMAND' within a script of the CLI.
//
// # Matching
//
// The simulation keeps no state between model calls. The request alone determines the model's answer. The first Turn
// whose Match holds supplies the replies. The number of model calls since the last prompt of a person selects one of
// these replies. So a retry of a request gets the same answer. A process that was killed and resumed continues at the
// same point of the conversation. Several tiers, or several runs at once, can share one scenario.
//
// Texts that the CLI itself adds to a conversation (reminders, notices of an interruption, demands for structured
// output) do not count as prompts. Requests that the CLI makes for its own purposes (titles, quota probes) are
// answered without the scenario.
//
// Requests after a turn's last reply get the last reply again. If the last reply calls a tool other than
// StructuredOutput, such a request is refused instead, with status 400 and an explanation. A request that no turn
// matches is refused in the same way. So a script that is too short makes a test fail with a message. The test does not
// run forever.
//
// # As a file
//
// A scenario can also be a JSON file. Unknown fields are refused. The first turn below is an observer that checks and
// escalates. The second is a repairer whose first model call is rejected once:
//
//	{
//	  "version": "2.1.332",
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
// A Fault makes the program misbehave, whatever the model says: crash, hang, print garbage or omit a field. Only the
// stand-in plays faults; NewAPI ignores them.
package claudesim
