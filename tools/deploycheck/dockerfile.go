package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// dockerfile is a parsed Dockerfile. Its build context is the directory above the directory that contains the
// Dockerfile.
type dockerfile struct {
	context string
	args    map[string]string
	stages  map[string]instructions.Stage
	found   []string
}

// checkDockerfile returns the findings of BuildKit's parser and linter, and the violations of this project's rules. By
// these rules, base images have a version, the resulting images name a user by number, commands are in JSON, apt-get
// leaves no unneeded packages and lists behind, and copied sources exist.
func checkDockerfile(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parsed, err := parser.Parse(file)
	if err != nil {
		return nil, err
	}
	d := &dockerfile{
		context: filepath.Dir(filepath.Dir(path)), args: map[string]string{}, stages: map[string]instructions.Stage{},
	}
	for _, warning := range parsed.Warnings {
		d.report([]parser.Range{*warning.Location}, "%s", warning.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, text string,
		where []parser.Range,
	) {
		d.report(where, "%s: %s", rule, text)
	}})
	stages, global, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		return d.found, err
	}
	for i := range global {
		d.define(&global[i])
	}
	for _, stage := range stages {
		d.checkStage(stage)
		d.stages[stage.Name] = stage
	}
	d.checkResults(stages)
	return d.found, nil
}

// report adds a finding and the number of its line.
func (d *dockerfile) report(where []parser.Range, format string, arguments ...any) {
	line := 0
	if len(where) > 0 {
		line = where[0].Start.Line
	}
	d.found = append(d.found, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, arguments...))
}

// define stores the default values of build arguments.
func (d *dockerfile) define(command *instructions.ArgCommand) {
	for _, arg := range command.Args {
		if arg.Value != nil {
			d.args[arg.Key] = *arg.Value
		}
	}
}

func (d *dockerfile) expand(text string) string {
	return os.Expand(text, func(name string) string { return d.args[name] })
}

func (d *dockerfile) checkStage(stage instructions.Stage) {
	if _, ours := d.stages[stage.BaseName]; !ours {
		if err := pinned(d.expand(stage.BaseName)); err != nil {
			d.report(stage.Location, "%v", err)
		}
	}
	for _, command := range stage.Commands {
		switch command := command.(type) {
		case *instructions.ArgCommand:
			d.define(command)
		case *instructions.AddCommand:
			d.report(command.Location(), "ADD unpacks and downloads; use COPY")
		case *instructions.CopyCommand:
			d.checkCopy(command)
		case *instructions.RunCommand:
			d.checkRun(command)
		case *instructions.CmdCommand:
			d.checkJSON(command, command.ShellDependantCmdLine)
		case *instructions.EntrypointCommand:
			d.checkJSON(command, command.ShellDependantCmdLine)
		}
	}
}

// checkJSON reports a command that runs in a shell, because the shell would receive the signals instead of the program.
func (d *dockerfile) checkJSON(command instructions.Command, line instructions.ShellDependantCmdLine) {
	if line.PrependShell {
		d.report(command.Location(), "%s: write it as JSON, so that no shell takes the signals", command.Name())
	}
}

// checkCopy reports missing sources of a COPY command. With --from, the source must be a stage above. Without it, the
// sources must be files in the build context.
func (d *dockerfile) checkCopy(command *instructions.CopyCommand) {
	if command.From != "" {
		if _, known := d.stages[command.From]; !known {
			d.report(command.Location(), "COPY --from=%s: no stage above has this name", command.From)
		}
		return
	}
	for _, source := range command.SourcePaths {
		if _, err := os.Stat(filepath.Join(d.context, d.expand(source))); err != nil {
			d.report(command.Location(), "COPY: %v", err)
		}
	}
}

// checkRun reports a use of apt-get install that leaves unneeded packages or package lists in the image.
func (d *dockerfile) checkRun(command *instructions.RunCommand) {
	script := strings.Join(command.CmdLine, " ")
	if !regexp.MustCompile(`\bapt-get install\b`).MatchString(script) {
		return
	}
	for _, needed := range []string{"--no-install-recommends", "rm -rf /var/lib/apt/lists"} {
		if !strings.Contains(script, needed) {
			d.report(command.Location(), "RUN: apt-get install without %q", needed)
		}
	}
}

// checkResults checks the users of the resulting images. A stage becomes a resulting image if no other stage uses it.
func (d *dockerfile) checkResults(stages []instructions.Stage) {
	var used []string
	for _, stage := range stages {
		used = append(used, stage.BaseName)
		for _, command := range stage.Commands {
			if from, ok := command.(*instructions.CopyCommand); ok {
				used = append(used, from.From)
			}
		}
	}
	for _, stage := range stages {
		if user := d.userOf(stage); !slices.Contains(used, stage.Name) && !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
			d.report(stage.Location, "stage %q runs as %q: name a user and a group by numbers, not root", stage.Name,
				user)
		}
	}
}

// userOf returns the user of a stage. A stage inherits the user of its base stage.
func (d *dockerfile) userOf(stage instructions.Stage) (user string) {
	if base, ours := d.stages[stage.BaseName]; ours {
		user = d.userOf(base)
	}
	for _, command := range stage.Commands {
		if chosen, ok := command.(*instructions.UserCommand); ok {
			user = chosen.User
		}
	}
	return user
}

// pinned returns an error if an image has no version.
func pinned(image string) error {
	name, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !tagged || tag == "" || tag == "latest" || name == "" {
		return errors.New("the image " + image + " has no version")
	}
	if !regexp.MustCompile(`[0-9]+\.[0-9]+`).MatchString(tag) && tag != "dev" { // dev is built here
		return errors.New("the version of the image " + image + " names no minor version")
	}
	return nil
}
