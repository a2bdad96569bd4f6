// Command deploycheck checks the files of a deployment with the parsers of the programs that read them: the Dockerfile with BuildKit's,
// compose.yaml with Compose's, the overlays of Kubernetes with kustomize and the types of its API.
//
//	deploycheck DIRECTORY
//
// It prints one line for each finding, and ends with 1 if there is one. It contacts nobody.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: deploycheck DIRECTORY")
		os.Exit(2)
	}
	os.Exit(run(os.Args[1], os.Stdout))
}

// run checks the files below directory and returns the exit code.
func run(directory string, out io.Writer) int {
	checks := []struct {
		file  string
		check func(path string) ([]string, error)
	}{
		{"Dockerfile", checkDockerfile},
		{"compose.yaml", func(path string) ([]string, error) { return checkCompose(context.Background(), path) }},
		{"kubernetes", checkKubernetes},
	}
	code := 0
	for _, one := range checks {
		path := filepath.Join(directory, one.file)
		found, err := one.check(path)
		if err != nil {
			found = append(found, err.Error())
		}
		for _, finding := range found {
			fmt.Fprintf(out, "%s: %s\n", path, finding)
			code = 1
		}
	}
	return code
}
