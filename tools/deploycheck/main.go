// Command deploycheck checks the files of a deployment with the parsers of the programs that read them: the Dockerfile with BuildKit's,
// compose.yaml with Compose's, the overlays of Kubernetes with kustomize and the schemas of its API.
//
//	deploycheck DIRECTORY
//
// It prints one line for each finding, and ends with 1 if there is one. It contacts nobody.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: deploycheck DIRECTORY")
		os.Exit(2)
	}
	os.Exit(run(os.Args[1], slices.Sorted(maps.Keys(checks)), os.Stdout))
}

// checks lists what is checked below the directory.
var checks = map[string]func(path string) ([]string, error){
	"Dockerfile":   checkDockerfile,
	"compose.yaml": func(path string) ([]string, error) { return checkCompose(context.Background(), path) },
	"kubernetes":   checkKubernetes,

	"prometheus/compose.yaml": checkPrometheus,
	"grafana/provisioning":    checkGrafana,
}

// run checks the files below directory with the named checks and returns the exit code.
func run(directory string, names []string, out io.Writer) int {
	code := 0
	for _, name := range names {
		path := filepath.Join(directory, name)
		found, err := checks[name](path)
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
