// Command deploycheck checks the files of a deployment. It parses each file with the parser of the program that reads
// the file: the Dockerfile with BuildKit, compose.yaml with Compose, and the Kubernetes overlays with kustomize. It
// validates them with kubeconform and the schemas of the modules in tools/kubernetes.
//
//	deploycheck DIRECTORY
//
// It prints one line for each finding. The exit code is 1 if there is a finding. It downloads the modules if they
// are missing.
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

// checks maps the path of a file or directory, relative to DIRECTORY, to the function that checks it.
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
