// Command summary reads the output of `go test -json` for contract tests, and lists the differences between the tested
// CLI and the contract. It exits with 1 if there are differences.
//
//	go test -json -run '^TestContract' ./... | summary -log FILE
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/claudeops/claudeops/internal/claudesim/contract"
)

func main() {
	path := flag.String("log", os.DevNull, "the `file` for what the tests print")
	flag.Parse()
	same, err := run(os.Stdin, os.Stdout, *path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(2)
	}
	if !same {
		os.Exit(1)
	}
}

func run(events io.Reader, printed io.Writer, path string) (same bool, err error) {
	log, err := os.Create(path)
	if err != nil {
		return false, fmt.Errorf("open the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	summary, err := contract.Read(events, printed, log)
	if err != nil {
		return false, err
	}
	return summary.Print(printed)
}
