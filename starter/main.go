// Command starter is the operator's command line: it starts chains and shows them, checks
// an installation, and runs everything in one process for one machine (up) or for a look
// (demo). Its commands are in internal/cli.
package main

import (
	"os"

	_ "github.com/claudeops/claudeops/internal/agentshell" // this program is also the shell of its agents
	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/program"
)

func main() {
	os.Exit(int(program.Main(cli.Execute, program.Process{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})))
}
