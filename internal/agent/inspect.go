package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/change/checkout"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// changeLimit limits the time in which a change is read from git.
	changeLimit = 2 * time.Minute
	// checkLimit limits the time of all checks of a repository together, unless Options say otherwise. previewLimit
	// limits one preview.
	checkLimit, previewLimit = 5 * time.Minute, time.Minute
	// maxPreviews limits the previews of one change.
	maxPreviews = 5
	// maxCommandOutput limits the output of one command, and maxChecksOutput that of all checks together, in bytes.
	// What is left out is the beginning, because errors are at the end.
	maxCommandOutput, maxChecksOutput = 8 << 10, 32 << 10
	// maxPrinted limits what one command may print before it is ended, in bytes. maxCellProcesses and maxCellMemory
	// limit what the processes of a cell may use together, in bytes.
	maxPrinted, maxCellProcesses, maxCellMemory = 32 << 20, 512, 4 << 30
	// maxChecks limits the file that lists the checks, in bytes.
	maxChecks = 8 << 10
	// maxPlan limits a plan, in bytes.
	maxPlan = 128 << 10
	// maxChangedFiles limits the files that are listed one by one.
	maxChangedFiles = 500
)

// inspection looks at what a session has committed, after its agent has ended.
type inspection struct {
	*Runner

	place   workplace
	session activities.AgentRun
	scratch *cell.Scratch
	// tree contains the commit that is looked at, and nothing else.
	tree *checkout.Worktree
}

// inspect returns what a session has committed in its worktree; nil if it has committed nothing. While programs run,
// the argument observe is told.
func (r *Runner) inspect(
	ctx context.Context, place workplace, run activities.AgentRun, observe func(activities.AgentProgress),
) *activities.Change {
	if !run.Inspect || place.tree() == nil {
		return nil
	}
	found, err := place.Change(ctx, place.question(run), changeLimit)
	if err != nil {
		change := &activities.Change{Branch: place.Worktree.Branch, Problem: r.mask.Text(err.Error())}
		if found != nil { // a person can still decide on it
			change.Base, change.Commit, change.Tree, change.Fork = found.Base, found.Commit, found.Tree, found.Fork
			change.Message = r.mask.Text(found.Message)
		}
		return change
	}
	if found == nil {
		return nil
	}
	change := &activities.Change{
		Branch: place.Worktree.Branch, Base: found.Base, Commit: found.Commit, Tree: found.Tree, Within: found.Below,
		Message: r.mask.Text(found.Message), Patch: review.Shown(found.Patch, r.mask.Text),
		Since: review.Shown(found.Since, r.mask.Text), Checks: review.QualityUnknown,
	}
	if change.Message != found.Message || review.Hidden(found.Message) {
		change.Doubts = append(change.Doubts,
			"the reviewer cannot read its message as it is, because of a secret or of hidden characters")
	}
	if found.Unpushed > 0 {
		change.Doubts = append(change.Doubts,
			fmt.Sprintf("it is based on %s that the remote origin lacks, as far as this host knows, and "+
				"that would leave with it", plaintext.Count(found.Unpushed, "commit")))
	}
	if r.mask.Text(found.Log) == found.Log && change.Patch == found.Patch { // what contains a secret does not travel
		change.Fork, change.Pack = found.Fork, found.Pack
	}
	if run.Authoring != nil {
		r.readPlan(ctx, place, run.Authoring.Plan, change)
	}
	if change.Files, err = review.ParseDiff(found.List); err == nil {
		r.markFiles(run, change, found.Patch)
	}
	switch {
	case err != nil:
		change.Problem = r.mask.Text(err.Error())
	case found.PatchCut || len(change.Files) > maxChangedFiles:
		change.Problem = fmt.Sprintf("the change is too large to be shown to a reviewer (%d files)", len(change.Files))
		change.Files = change.Files[:min(len(change.Files), maxChangedFiles)]
	case run.Authoring != nil && run.Authoring.Whole: // a plan changes nothing that could be checked
		change.Checks = review.QualityNone
	default:
		observe(activities.AgentProgress{Waiting: "checks and previews of " + found.Commit})
		r.runCommands(ctx, place, run, found, change)
	}
	if change.Problem != "" {
		change.Patch = ""
	}
	r.locate(ctx, place, run, change)
	return change
}

// markFiles notes which files may change without a person, and why a reviewer cannot read others. For the whole of a
// plan, the patch is not about the files that have changed.
func (r *Runner) markFiles(run activities.AgentRun, change *activities.Change, patch string) {
	for i := range change.Files {
		change.Files[i].Listed = r.policy.MayChange(int(run.Tier), change.Files[i].Path)
	}
	if run.Authoring == nil || !run.Authoring.Whole {
		review.MarkUnread(change.Files, patch, r.mask.Text)
	} else if patch != r.mask.Text(patch) || review.Hidden(patch) {
		change.Doubts = append(change.Doubts,
			"the reviewer cannot read the plan as it is, because of a secret or of hidden characters")
	}
}

// question asks for what a run has committed.
func (p workplace) question(run activities.AgentRun) checkout.Question {
	question := checkout.Question{Since: run.Since, Base: run.Base, Fork: run.At.Base, Pack: run.Carry}
	if of := run.Authoring; of != nil {
		question.Base, question.Fork = of.From.Commit, of.From.Base
		if of.Whole {
			question.Whole = p.Worktree.PathOf(of.Plan)
		}
	}
	return question
}

// readPlan adds the plan to a change.
func (r *Runner) readPlan(ctx context.Context, place workplace, name string, change *activities.Change) {
	text, err := place.File(ctx, change.Commit, place.Worktree.PathOf(name), maxPlan)
	if err == nil && text == "" {
		err = fmt.Errorf("%s is gone", name)
	}
	var plan review.Plan
	if err == nil {
		plan, err = review.ParsePlan(r.mask.Text(text))
	}
	if err != nil {
		change.PlanProblem = r.mask.Text(err.Error())
		return
	}
	change.Plan = &plan
}

// runCommands runs the checks and the previews of a change.
func (r *Runner) runCommands(
	ctx context.Context, place workplace, run activities.AgentRun, found *checkout.Change, change *activities.Change,
) {
	scratch, err := r.host.Scratch(ctx, "inspect-"+rand.Text())
	if err != nil {
		change.CheckOutput = err.Error()
		return
	}
	defer scratch.Close(ctx)
	tree, err := place.Committed(ctx, found.Commit)
	if err != nil {
		change.CheckOutput = r.mask.Text(err.Error())
		return
	}
	i := &inspection{Runner: r, place: place, session: run, scratch: scratch, tree: tree}
	if err := i.check(ctx, found, change); err != nil {
		change.Checks, change.CheckOutput = review.QualityUnknown, r.mask.Text(err.Error())
	}
	for _, wanted := range previewsOf(change.Files, i.read) {
		if len(change.Previews) == maxPreviews || ctx.Err() != nil {
			return
		}
		if preview, ran := i.preview(ctx, wanted); ran {
			change.Previews = append(change.Previews, preview)
		}
	}
}

// check runs the commands that the base commit lists. An author cannot weaken the list, because its own commits do not
// count. If some files may change without a person, the checks run with the base's version of all others; if they fail
// then, they run with the author's. The checks may execute what the author has written, so they run in a cell: without
// the operator's variables and files, without the network unless the policy grants it, and they may write nothing but
// temporary files.
func (i *inspection) check(ctx context.Context, found *checkout.Change, change *activities.Change) error {
	listed, err := i.place.File(ctx, found.Base, review.ChecksFile, maxChecks)
	if err != nil {
		return err
	}
	var others, shown []string
	for _, file := range change.Files {
		if !file.Listed && file.Path != review.ChecksFile { // the list counts as it is in the base in any case
			others, shown = append(others, file.Path), append(shown, plaintext.Name(file.Path))
		}
	}
	checking, cancel := context.WithTimeout(ctx, cmp.Or(i.CheckLimit, checkLimit))
	defer cancel()
	output := tail{most: maxChecksOutput}
	defer func() { change.CheckOutput = output.text() }()
	named := slices.ContainsFunc(change.Files, func(f review.File) bool { return f.Listed })
	if len(others) == 0 || !named || strings.TrimSpace(listed) == "" {
		if len(others) > 0 && strings.TrimSpace(listed) != "" {
			_, _ = fmt.Fprintf(&output, "With the author's version of %s, which the checks may run:\n",
				strings.Join(shown, ", "))
		}
		change.Checks = i.runChecks(checking, listed, &output)
		return nil
	}
	if err := i.place.Restore(ctx, i.tree, found.Base, others); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(&output, "With the earlier version of %s:\n", strings.Join(shown, ", "))
	change.Checks = i.runChecks(checking, listed, &output)
	tree, err := i.place.Committed(ctx, found.Commit) // also after the time for checks, because previews follow
	if err != nil {
		return err
	}
	if i.tree = tree; change.Checks != review.QualityFailed {
		return nil
	}
	_, _ = fmt.Fprintln(&output, "With the author's version:")
	change.Checks = i.runChecks(checking, listed, &output)
	if change.Checks == review.QualityPassed {
		change.Doubts = append(change.Doubts,
			"the checks pass only with its own version of what review.paths do not name")
	}
	return nil
}

// runChecks runs listed commands until one fails.
func (i *inspection) runChecks(ctx context.Context, listed string, output *tail) review.QualityResult {
	result := review.QualityNone
	for line := range strings.Lines(listed) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		said, code, err := i.run(ctx, command{words: []string{"/bin/sh", "-c", line}})
		_, _ = fmt.Fprintf(output, "$ %s\n%s\n", line, said)
		switch {
		case err != nil || ctx.Err() != nil:
			_, _ = fmt.Fprintf(output, "could not be run to its end: %v\n", errors.Join(err, context.Cause(ctx)))
			return review.QualityUnknown
		case code != 0:
			_, _ = fmt.Fprintf(output, "exit code %d\n", code)
			return review.QualityFailed
		}
		result = review.QualityPassed
	}
	return result
}

// command is a program that runs over a commit.
type command struct {
	// words holds the program's path and its arguments.
	words []string
	// executables lists what the program may execute; nil if that is not limited.
	executables *guard.Executables
	// prepared is the directory that "terraform init" has made for the commit's directory; empty if the program needs
	// none.
	prepared string
	// trusted reports that the program executes nothing of the commit, and has the rights of Tier 1.
	trusted bool
}

// run runs a program at the top of the commit's files, and returns the end of its output with secrets masked. A program
// that can execute what the author has written runs in a cell; if this host has none, it does not run.
func (i *inspection) run(ctx context.Context, asked command) (output string, code int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	said := tail{full: func() { stop(errTooMuchOutput) }}
	program := cell.Program{
		Path: asked.words[0], Args: asked.words[1:], Dir: i.tree.Guarded.Top, Stdout: &said, Stderr: &said,
		Readable: i.tree.Readable(), Executables: asked.executables,
	}
	if asked.trusted {
		program.Passed = []string{filepath.Base(asked.words[0])}
	} else {
		program.Sealed, program.Limits = true, claude.ScriptLimits{Processes: maxCellProcesses, Memory: maxCellMemory}
	}
	if asked.prepared != "" {
		program.Readable = append(program.Readable, asked.prepared)
		program.Env = map[string]string{"TF_DATA_DIR": asked.prepared}
	}
	code, err = i.scratch.Run(ctx, program)
	if cause := context.Cause(ctx); err == nil && errors.Is(cause, errTooMuchOutput) {
		err = cause
	}
	return i.mask.Text(plaintext.Block(said.text())), code, err
}

// errTooMuchOutput ends a program that prints without an end.
var errTooMuchOutput = fmt.Errorf("it has printed more than %d MiB", maxPrinted>>20)
