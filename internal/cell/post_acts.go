package cell

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// RuleCooldown is the rule in entries about acts that the ledger refuses.
const RuleCooldown = "cooldown"

// start decides on the start of a program, and books its actions.
func (p *Post) start(ticket string, asked door.Start) door.Answer {
	run := p.runningWith(ticket)
	if run == nil || len(asked.Words) == 0 {
		return door.Answer{Reason: "the guard knows no running call of this program"}
	}
	inherited, environ := p.inherited(run, asked.Environ)
	start := p.guard.Start(guard.Act{
		Tier: p.session.Tier, Place: p.placeIn(asked.Dir), Words: asked.Words, Set: run.changed(environ),
	})
	if len(start.Actions) > 0 && start.Script == nil {
		start.Decision = p.charge(run, start.Decision)
	}
	if !start.Allowed || len(start.Actions) > 0 && start.Script == nil {
		p.addAct(run, strings.Join(asked.Words, " "), start.Decision)
	}
	answer := door.Answer{
		Allowed: start.Allowed, Reason: start.Reason, Path: start.Path, Words: start.Words, Inner: start.Inner,
		EmptyInput: start.EmptyInput, Executable: p.executable(start), Offline: start.Offline,
		Hidden: append(inherited, run.hidden()...),
	}
	if start.Allowed {
		answer.Variables = p.passed(start.Variables, environ)
	}
	if script := start.Script; script != nil && start.Allowed {
		answer.Interpret = &door.Script{
			Text: script.Text, Input: script.Input, POSIX: script.POSIX, Options: script.Options, Params: script.Params,
		}
	}
	return answer
}

// executable returns the files that a program may execute; nil if there is no limit.
func (p *Post) executable(start guard.Start) []string {
	if p.session.Executables == nil || start.Path == "" || start.Script != nil {
		return nil
	}
	file, err := guard.Host{}.Resolve(start.Path)
	if err != nil {
		file = start.Path
	}
	return append([]string{file}, p.session.Executables.Of(file)...)
}

// open decides on a file that the shell opens.
func (p *Post) open(ticket string, asked door.Open) door.Answer {
	run := p.runningWith(ticket)
	if run == nil {
		return door.Answer{Reason: "the guard knows no running call of this shell"}
	}
	opening := p.guard.Open(p.session.Tier, p.session.Place, asked.Path, asked.Write)
	if !opening.Allowed {
		p.addAct(run, map[bool]string{false: "< ", true: "> "}[asked.Write]+asked.Path, opening.Decision)
	}
	return door.Answer{Allowed: opening.Allowed, Reason: opening.Reason, Path: opening.Path}
}

// The rules in entries about files that a program wanted to open, and about addresses to which it wanted to connect.
const (
	RuleFiles       = "files"
	RuleConnections = "connections"
)

// RefusedFile is a file or an address that a program of the session was not allowed to use.
type RefusedFile struct {
	// Path is the file's real path, or the address.
	Path string
	// Program is the path of the program's executable.
	Program string
	// Write reports that the program wanted to change the file, and Connect that it wanted to connect.
	Write, Connect bool
	// Reason says why it may not.
	Reason string
}

// Refused records that the kernel has refused a file or an address to a program. If a single call of the session runs,
// it is an act of that call.
func (p *Post) Refused(file RefusedFile) {
	rule, sign := RuleFiles, " < "
	switch {
	case file.Connect:
		rule, sign = RuleConnections, " -> "
	case file.Write:
		sign = " > "
	}
	text := filepath.Base(file.Program) + sign + file.Path
	decision := guard.Decision{Rule: rule, Reason: file.Path + ": " + file.Reason}
	if run := p.onlyRunning(); run != nil {
		p.addAct(run, text, decision)
		return
	}
	p.add("file-"+rand.Text(), "Bash", commandInput(text), decision)
}

// onlyRunning returns the call that runs; nil if there are none or several.
func (p *Post) onlyRunning() *running {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.running) != 1 {
		return nil
	}
	for _, run := range p.running {
		return run
	}
	return nil
}

func (p *Post) runningWith(ticket string) *running {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.running[ticket]
}

// charge books the actions of a program. If the ledger refuses them, charge denies the program.
func (p *Post) charge(run *running, decision guard.Decision) guard.Decision {
	act := p.actOf(run)
	refusal, err := p.ledger.Charge(p.answering, act, decision.Actions)
	if err != nil { // the booking may have succeeded despite the error
		refusal = "the ledger of restarts cannot be asked: " + err.Error()
		p.refund(act)
	}
	if refusal != "" {
		return guard.Decision{Rule: RuleCooldown, Reason: refusal, Actions: decision.Actions}
	}
	return decision
}

// actOf returns a new id for an act of a call, as escalation.CallDecision describes it.
func (p *Post) actOf(run *running) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	run.acts++
	return fmt.Sprintf("%s#%d", run.call, run.acts)
}

// addAct records the decision on an act of a call.
func (p *Post) addAct(run *running, text string, decision guard.Decision) {
	p.add(p.actOf(run), "Bash", commandInput(text), decision)
}

// refundLimit limits the wait for the ledger to cancel a booking.
const refundLimit = 5 * time.Second

// refund cancels the booking of a denied act, if there is a booking. If the cancellation fails, the booking stays,
// because a superfluous booking does less harm than a missing booking.
func (p *Post) refund(act string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.answering), refundLimit)
	defer cancel()
	_ = p.ledger.Return(ctx, act)
}

// changed returns the variables of a program that its call's shell did not start with, as NAME=value, and the names of
// those that it started with and the program lacks.
func (r *running) changed(environ []string) (changed []string) {
	missing := maps.Clone(r.environ)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		delete(missing, name)
		if before, had := r.environ[name]; (!had || before != value) && !ofShell(name) {
			changed = append(changed, variable)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if !ofShell(name) && !guard.IsSecret(name) {
			changed = append(changed, name)
		}
	}
	return changed
}

// ofShell reports whether a shell changes a variable itself, or has it for itself only.
func ofShell(name string) bool {
	return slices.Contains(shellVariables, name) || strings.HasPrefix(name, "CLAUDE_CODE_MESSAGING_")
}

// shellVariables lists the variables that a shell changes itself, and those of the shell's own questions.
var shellVariables = []string{
	"PWD", "OLDPWD", "SHLVL", "_", "IFS", "OPTIND", "UID", "EUID", "GID", "", door.SocketVariable, "CLAUDEOPS_TICKET",
}

// inherited returns the passed variables in the environment of a program that another program starts, and the
// environment without them. The program that starts the other one has got them.
func (p *Post) inherited(run *running, environ []string) (names, others []string) {
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if _, had := run.environ[name]; !had && slices.Contains(p.session.Passed, variable) {
			names = append(names, name)
		} else {
			others = append(others, variable)
		}
	}
	return names, others
}

// passed returns the passed variables with certain names, without those that a script has set itself.
func (p *Post) passed(names, environ []string) (variables []string) {
	for _, variable := range p.session.Passed {
		name, _, _ := strings.Cut(variable, "=")
		isSet := slices.ContainsFunc(environ, func(own string) bool { return strings.HasPrefix(own, name+"=") })
		if guard.MatchesAny(names, name) && !isSet {
			variables = append(variables, variable)
		}
	}
	return variables
}

// hidden lists the variables whose values scripts and programs do not get.
func (r *running) hidden() (names []string) {
	for name := range r.environ {
		if guard.IsSecret(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
