package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/change/forge"
)

const (
	// proposeLimit limits the time in which a pull request is written, and loginLimit that of a question for a login.
	proposeLimit, loginLimit = 2 * time.Minute, 20 * time.Second
	// maxForgeOutput limits the output of a forge's program, in bytes. A list of comments can be long.
	maxForgeOutput = 8 << 20
)

var _ activities.Proposer = (*Runner)(nil)

// Propose implements activities.Proposer. The forge's program runs with the user, the home and the environment of
// agents, so it has their login and no other, and in an empty directory.
func (r *Runner) Propose(ctx context.Context, proposal activities.Proposal) (activities.ProposeResult, error) {
	program := proposal.Project.Program
	if !branchPattern.MatchString(proposal.Branch) {
		return activities.ProposeResult{Problem: "only the branch of a chain is proposed"}, nil
	}
	if !slices.Contains(forge.Programs(), program) || !r.policy.Runs(int(proposal.Tier), string(program)) {
		return activities.ProposeResult{Problem: fmt.Sprintf("the policy does not grant %s to tier %d", program,
			proposal.Tier)}, nil
	}
	if r.lookPath(string(program)) == "" {
		return activities.ProposeResult{}, fmt.Errorf("this host does not have %s", program)
	}
	scratch, err := r.host.Scratch(ctx, "propose-"+rand.Text())
	if err != nil {
		return activities.ProposeResult{}, err
	}
	defer scratch.Close(ctx)
	ctx, cancel := context.WithTimeout(ctx, proposeLimit)
	defer cancel()
	client := forge.NewClient(proposal.Project, func(ctx context.Context, args []string, input []byte) (forge.Answer,
		error,
	) {
		return r.askForge(ctx, scratch, program, args, input)
	})
	address, err := r.propose(ctx, client, proposal)
	if refused, is := errors.AsType[*forge.RefusedError](err); is {
		return activities.ProposeResult{PullRequest: address, Problem: refused.Error()}, nil
	}
	return activities.ProposeResult{PullRequest: address}, err
}

// propose writes a pull request or a comment, with secrets masked. It returns the address of the pull request; "" if
// there is none.
func (r *Runner) propose(ctx context.Context, client forge.Client, proposal activities.Proposal) (string, error) {
	title, body := r.mask.Text(proposal.Title), r.mask.Text(proposal.Body)
	if !proposal.Comment {
		opened, err := client.Propose(ctx, forge.Proposal{Branch: proposal.Branch, Title: title, Body: body})
		return opened.URL, err
	}
	known, err := client.Comment(ctx, proposal.Branch, proposal.Marker, body)
	if known == nil {
		return "", err
	}
	return known.URL, err
}

// askForge runs a forge's program. What it prints is masked only in messages, because the rest is not shown.
func (r *Runner) askForge(
	ctx context.Context, scratch *cell.Scratch, program forge.Program, args []string, input []byte,
) (forge.Answer, error) {
	output, said := head{most: maxForgeOutput}, tail{}
	code, err := scratch.Run(ctx, cell.Program{
		Path: r.lookPath(string(program)), Args: args, Env: forge.Environment(), Passed: []string{string(program)},
		Stdin: bytes.NewReader(input), Stdout: &output, Stderr: &said,
	})
	switch {
	case err != nil:
		return forge.Answer{}, err
	case ctx.Err() != nil:
		return forge.Answer{}, fmt.Errorf("%s did not end: %w", program, context.Cause(ctx))
	case output.cut:
		return forge.Answer{}, fmt.Errorf("%s has printed more than %d bytes", program, maxForgeOutput)
	}
	return forge.Answer{Code: code, Output: string(output.kept), Errors: r.mask.Text(said.text())}, nil
}

// locate adds to a change whether there is a remote, and where a pull request can propose it, if the author's tier may
// run the program for that.
func (r *Runner) locate(ctx context.Context, place workplace, run activities.AgentRun, change *activities.Change) {
	remote, err := place.Remote(ctx)
	if err != nil {
		r.logger.WarnContext(ctx, "no pull request can be opened", "session_id", run.SessionID, "error", err)
		return
	}
	change.NoRemote = remote.Push == ""
	var usable []forge.Program
	for _, program := range forge.Programs() {
		if r.policy.Runs(int(run.Tier), string(program)) && r.lookPath(string(program)) != "" {
			usable = append(usable, program)
		}
	}
	if len(usable) == 0 || change.Problem != "" {
		return
	}
	host, path, found := forge.Locate(remote.Push, remote.Fetch)
	if !found {
		return
	}
	program := forge.Choose(host, usable, func(program forge.Program) bool { return r.hasLogin(ctx, program, host) })
	if program != "" {
		change.Project = &forge.Project{Program: program, Host: host, Path: path, Base: remote.Branch}
	}
}

// hasLogin reports whether a forge's program has a login at a host.
func (r *Runner) hasLogin(ctx context.Context, program forge.Program, host string) bool {
	scratch, err := r.host.Scratch(ctx, "login-"+rand.Text())
	if err != nil {
		return false
	}
	defer scratch.Close(ctx)
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	answer, err := r.askForge(ctx, scratch, program, program.StatusArgs(host), nil)
	return err == nil && answer.Code == 0
}

// head keeps the beginning of what is written to it.
type head struct {
	kept []byte
	most int
	cut  bool
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	left := min(len(p), h.most-len(h.kept))
	h.kept, h.cut = append(h.kept, p[:left]...), h.cut || left < len(p)
	return len(p), nil
}
