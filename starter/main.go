// Command claudeops is the operator's command line. It starts and shows chains, and checks an installation. It can also
// run everything in one process: up for use on one machine, or demo for a demonstration. The commands are in
// internal/desk/cli.
package main

import (
	"os"

	_ "github.com/claudeops/claudeops/internal/cell/shell" // this program is also the shell of its agents
	"github.com/claudeops/claudeops/internal/desk/cli"
	"github.com/claudeops/claudeops/internal/plant/program"
)

func main() {
	os.Exit(int(program.Main(cli.Execute, program.Process{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})))
}
