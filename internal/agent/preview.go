package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// preview runs a program that says what a change would do. It runs only if the author's tier may run the program at
// all, with what that tier may execute. If the program is missing, or a directory that it needs, ran is false.
func (i *inspection) preview(ctx context.Context, wanted previewCommand) (preview activities.Preview, ran bool) {
	tier, name := int(i.session.Tier), wanted.words[0]
	program := i.lookPath(name)
	if program == "" || !i.policy.Runs(tier, name) {
		return preview, false
	}
	asked := command{
		words: append([]string{program}, wanted.words[1:]...), executables: i.policy.Executables(tier),
		trusted: name == "kubectl", // it reads manifests, and executes nothing that they name
	}
	if wanted.prepared != "" {
		asked.prepared = i.place.Worktree.Shared(wanted.prepared)
		info, err := os.Lstat(asked.prepared)
		if err != nil || !info.IsDir() || !isReal(asked.prepared) {
			return preview, false // a link would grant the directory that it leads to
		}
	}
	ctx, cancel := context.WithTimeout(ctx, previewLimit)
	defer cancel()
	output, code, err := i.run(ctx, asked)
	switch {
	case err != nil || ctx.Err() != nil:
		output += fmt.Sprintf("\ncould not be run to its end: %v", errors.Join(err, context.Cause(ctx)))
	case failed(name, code):
		output += fmt.Sprintf("\nexit code %d", code)
	}
	return activities.Preview{Command: strings.Join(wanted.words, " "), Output: output}, true
}

// isReal reports whether no part of a path is a link.
func isReal(dir string) bool {
	target, err := filepath.EvalSymlinks(dir)
	return err == nil && target == dir
}

// failed reports whether a program ended with an error. kubectl diff says with 1 that there are differences.
func failed(program string, code int) bool { return code != 0 && (code != 1 || program != "kubectl") }

// read returns a file of the commit for the choice of previews; empty if it cannot be read.
func (i *inspection) read(name string) string {
	content, _ := guard.Host{}.ReadFile(filepath.Join(i.tree.Guarded.Top, filepath.FromSlash(name)))
	return string(content)
}

// previewCommand is a program that says what a change would do.
type previewCommand struct {
	words []string
	// prepared is a directory of the repository that the program needs, which no commit contains; empty if it needs
	// none.
	prepared string
}

// previewsOf returns the commands that say what a change would do. It reads files with the function read.
func previewsOf(files []review.File, read func(string) string) []previewCommand {
	var commands []previewCommand
	add := func(prepared string, words ...string) {
		if !slices.ContainsFunc(commands, func(known previewCommand) bool { return slices.Equal(known.words, words) }) {
			commands = append(commands, previewCommand{words, prepared})
		}
	}
	for _, file := range files {
		if file.Deleted || file.Special || file.Binary || strings.HasPrefix(path.Base(file.Path), "-") {
			continue
		}
		name := "./" + file.Path
		switch kind, dir, base := path.Ext(file.Path), path.Dir(file.Path), path.Base(file.Path); {
		case kind == ".tf":
			add(path.Join(dir, ".terraform"), "terraform", "-chdir="+dir, "plan", "-input=false", "-no-color",
				"-lock=false")
		case kind != ".yaml" && kind != ".yml":
		case strings.Contains(base, "compose"):
			add("", "docker", "compose", "-f", name, "config")
		default:
			content := read(file.Path)
			switch {
			case hasKey(content, "apiVersion") && hasKey(content, "kind"):
				add("", "kubectl", "diff", "-f", name)
			case strings.Contains(content, "\n  hosts:") || strings.Contains(content, "- hosts:"):
				add("", "ansible-playbook", "--check", "--diff", name)
			}
		}
	}
	return commands
}

// hasKey reports whether a YAML document has a key at its top.
func hasKey(content, key string) bool {
	return strings.HasPrefix(content, key+":") || strings.Contains(content, "\n"+key+":")
}
