package cell

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
	_ "github.com/claudeops/claudeops/internal/cell/shell" // the program that answers is also the shell that asks
)

// PostSession describes the session whose calls a Post decides.
type PostSession struct {
	ID    string
	Tier  int
	Place guard.Place
	// Narrowed reports that the CLI also has permission rules. These rules then decide on the calls that the guard
	// allows.
	Narrowed bool
	// Passed lists variables, as NAME=value, each for the programs that the policy names for it.
	Passed []string
	// Executables lists what each program may execute; nil if there is no limit.
	Executables *guard.Executables
	// Admit returns an error if a connection does not come from a process of the session. It may wait until the
	// session's processes are known, but not longer than ctx. If Admit is nil, every process of the host may ask.
	Admit func(ctx context.Context, connection net.Conn) error
}

// Entry records one decision.
type Entry struct {
	At       time.Time       `json:"at"`
	Session  string          `json:"session_id"`
	Tier     int             `json:"tier"`
	Call     string          `json:"call"` // the API's id of the call
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input"`
	Decision guard.Decision  `json:"decision"`
}

// RuleUnasked is the rule in entries about scripts that the CLI tried to run without asking its hook. All such scripts
// were denied.
const RuleUnasked = "unasked"

// Ledger limits how often agents can act on services.
type Ledger interface {
	// Charge books the actions of a program before the program starts. The argument act is unique in the session. If
	// Charge refuses the act, it books nothing and returns the reason in refusal. Otherwise refusal is "".
	Charge(ctx context.Context, act string, actions []guard.Action) (refusal string, err error)
	// Return cancels a booking whose Charge has failed: it may have succeeded nevertheless.
	Return(ctx context.Context, act string) error
}

// Post answers the questions of an agent's CLI and of its shell (package door): may this call be made, this script be
// run, this program be started, this file be opened? Each session has its own socket, which is open while the session's
// CLI runs.
//
// The guard decides on each call when the CLI's PreToolUse hook asks. An allowed script gets a ticket that is used up
// by one run. While it runs, the guard decides on each program and file. If the CLI starts a script without asking the
// hook, the script does not run.
type Post struct {
	session PostSession
	guard   *guard.Guard
	ledger  Ledger
	record  func(Entry)

	listener net.Listener
	socket   string
	// large has room for one connection, whose question is large.
	large chan struct{}
	// answering is the context of all answers. Close cancels answering by calling the function end.
	answering context.Context
	end       context.CancelFunc
	served    sync.WaitGroup

	mutex sync.Mutex
	// decided holds the ids of the calls that were decided.
	decided map[string]bool
	// granted holds, by command, the shell calls that were allowed and have not yet run.
	granted map[string][]string
	// running holds, by ticket, the shell calls that run or have run.
	running map[string]*running
}

// running is a shell call that runs.
type running struct {
	// call is the API's id of the call. command is its script.
	call, command string
	// environ is the environment in which its shell started.
	environ map[string]string
	// acts counts the starts of programs that act on services.
	acts int
}

// OpenPost starts a Post on a socket in dir, a directory that no user except the worker can write. The Post passes
// every decision to the function record.
func OpenPost(dir string, g *guard.Guard, session PostSession, ledger Ledger, record func(Entry)) (*Post, error) {
	socket := filepath.Join(dir, rand.Text()[:16])
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("open the guard's socket: %w", err)
	}
	// Let every user connect, because the agent can run as another user. The socket's name is no secret, because the
	// kernel lists it. PostSession.Admit decides who may ask.
	if err := os.Chmod(socket, 0o666); err != nil { //nolint:gosec // see above
		return nil, errors.Join(fmt.Errorf("open the guard's socket: %w", err), listener.Close())
	}
	answering, end := context.WithCancel(context.Background())
	p := &Post{
		session: session, guard: g, ledger: ledger, record: record,
		listener: listener, socket: socket, large: make(chan struct{}, 1), answering: answering, end: end,
		decided: map[string]bool{}, granted: map[string][]string{}, running: map[string]*running{},
	}
	p.served.Go(p.serve)
	return p, nil
}

// InstallShell makes a link to the executable in dir, and returns the link's path. The CLI starts it as its shell.
func InstallShell(dir, executable string) (link string, err error) {
	link = filepath.Join(dir, door.ShellName)
	if err := os.Symlink(executable, link); err != nil {
		return "", fmt.Errorf("make the shell of the agents: %w", err)
	}
	return link, nil
}

// Socket returns the path of the session's socket.
func (p *Post) Socket() string { return p.socket }

// Environment returns the variables that make the CLI ask this Post. The argument shell comes from InstallShell.
func (p *Post) Environment(executable, shell string) map[string]string {
	return map[string]string{
		door.SocketVariable:        p.socket,
		"CLAUDE_CODE_SHELL_PREFIX": executable,
		"SHELL":                    shell,
	}
}

// Close stops the Post.
func (p *Post) Close() error {
	p.end()
	err := p.listener.Close()
	p.served.Wait()
	return err
}

// acceptPause is the wait after a failed accept.
const acceptPause = 20 * time.Millisecond

// serve accepts connections until the listener is closed.
func (p *Post) serve() {
	places := make(chan struct{}, maxConnections)
	for {
		places <- struct{}{}
		connection, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for instance, too many files are open
			time.Sleep(acceptPause)
			<-places
			continue
		}
		p.served.Go(func() {
			p.handle(connection)
			<-places
		})
	}
}

// maxConnections limits the connections of a session. A shell has one, and so has each command that a program starts.
const maxConnections = 256

// handle answers the questions of one connection.
func (p *Post) handle(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	stop := context.AfterFunc(p.answering, func() { _ = connection.Close() })
	defer stop()
	if admit := p.session.Admit; admit != nil {
		if err := admit(p.answering, connection); err != nil {
			_ = json.NewEncoder(connection).Encode(door.Answer{Reason: err.Error()})
			return
		}
	}
	questions := questions{connection: connection, buffered: bufio.NewReader(connection), large: p.large}
	for err := error(nil); err == nil; {
		err = p.serveNext(&questions)
	}
}

// serveNext answers the next question of a connection.
func (p *Post) serveNext(questions *questions) error {
	defer questions.done()
	text, err := questions.next(p.answering)
	if err != nil {
		return err
	}
	var question door.Question
	if err := json.Unmarshal(text, &question); err != nil {
		return err
	}
	return json.NewEncoder(questions.connection).Encode(p.answer(question))
}

func (p *Post) answer(question door.Question) door.Answer {
	switch {
	case question.Hook != nil:
		return p.hook(question.Hook)
	case question.Start != nil:
		return p.start(question.Ticket, *question.Start)
	case question.Open != nil:
		return p.open(question.Ticket, *question.Open)
	}
	answer := p.script(question)
	if !answer.Allowed {
		p.recordUnasked(question.Script, answer.Reason)
	}
	return answer
}

// hook decides on a call.
func (p *Post) hook(input json.RawMessage) door.Answer {
	var call struct {
		Event     string          `json:"hook_event_name"`
		Tool      string          `json:"tool_name"`
		Input     json.RawMessage `json:"tool_input"`
		ToolUseID string          `json:"tool_use_id"`
		Dir       string          `json:"cwd"`
	}
	if err := json.Unmarshal(input, &call); err != nil || call.Tool == "" || call.ToolUseID == "" {
		return door.Answer{Reason: "the question of the CLI cannot be read"}
	}
	if !p.isNew(call.ToolUseID) { // a repeated question must not grant the call again
		return door.Answer{Reason: "this call was decided on already"}
	}
	decision := p.guard.Decide(guard.Call{
		Tier: p.session.Tier, Tool: call.Tool, Input: call.Input,
		Place: p.placeIn(call.Dir),
	})
	var bash struct {
		Command string `json:"command"`
	}
	if decision.Allowed && call.Tool == "Bash" && json.Unmarshal(call.Input, &bash) == nil {
		decision.Actions = nil // they are charged when they happen
		p.grant(call.ToolUseID, bash.Command)
	}
	p.add(call.ToolUseID, call.Tool, call.Input, decision)
	return door.Answer{Output: p.output(decision)}
}

// Try decides on a script as the hook does, and allows one run of it. If the guard denies it, Try returns the reason.
func (p *Post) Try(script string) (denied string) {
	decision := p.guard.Decide(guard.Call{
		Tier: p.session.Tier, Tool: "Bash", Input: commandInput(script), Place: p.session.Place,
	})
	if decision.Allowed {
		p.grant("try-"+rand.Text(), script)
	}
	return decision.Reason
}

// grant allows one run of a script, for the call with this id.
func (p *Post) grant(call, script string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.granted[script] = append(p.granted[script], call)
}

func (p *Post) placeIn(dir string) guard.Place {
	place := p.session.Place
	place.Dir = dir
	return place
}

// add records a decision.
func (p *Post) add(call, tool string, input json.RawMessage, decision guard.Decision) {
	p.record(Entry{
		At: time.Now(), Session: p.session.ID, Tier: p.session.Tier, Call: call, Tool: tool, Input: input,
		Decision: decision,
	})
}

// isNew reports whether the call was not decided before, and marks the call as decided.
func (p *Post) isNew(id string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.decided[id] {
		return false
	}
	p.decided[id] = true
	return true
}

// recordUnasked records a script that the CLI tried to run without asking its hook.
func (p *Post) recordUnasked(script, reason string) {
	p.add("unasked-"+rand.Text(), "Bash", commandInput(script), guard.Decision{Rule: RuleUnasked, Reason: reason})
}

// commandInput returns the input of a call of the tool Bash.
func commandInput(command string) json.RawMessage {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return nil
	}
	return input
}

// output returns a decision in the form that the CLI reads:
// https://code.claude.com/docs/en/hooks#pretooluse-decision-control.
func (p *Post) output(decision guard.Decision) json.RawMessage {
	type specific struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason,omitempty"`
	}
	answer := map[string]specific{"hookSpecificOutput": {"PreToolUse", "deny", decision.Reason}}
	switch {
	case decision.Allowed && p.session.Narrowed:
		return json.RawMessage(`{}`)
	case decision.Allowed:
		answer["hookSpecificOutput"] = specific{Event: "PreToolUse", Decision: "allow"}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil
	}
	return text
}

// script decides on a shell script of the CLI. It allows the script if the script runs the command of an allowed call,
// and that call has not yet run.
func (p *Post) script(question door.Question) door.Answer {
	command, kept, err := commandOf(question.Script)
	if err != nil {
		return door.Answer{Reason: err.Error()}
	}
	environ, hidden := map[string]string{}, []string{}
	for _, variable := range question.Environ {
		name, value, is := strings.Cut(variable, "=")
		if !is { // no program gets it
			continue
		}
		if environ[name] = value; guard.IsSecret(name) {
			hidden = append(hidden, name)
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	calls := p.granted[command]
	if len(calls) == 0 {
		return door.Answer{Reason: "the guard was not asked about this command"}
	}
	if p.granted[command] = calls[1:]; len(calls) == 1 {
		delete(p.granted, command)
	}
	ticket := rand.Text()
	p.running[ticket] = &running{call: calls[0], command: command, environ: environ}
	return door.Answer{Allowed: true, Ticket: ticket, Command: command, Kept: kept, Hidden: hidden}
}

// commandOf returns the agent's command from the CLI's script, and the file in which the CLI keeps the working
// directory; "" if there is none. The script consists of settings, then eval 'COMMAND', then pwd -P >| FILE. Nothing
// else of it is run.
func commandOf(script string) (command, kept string, err error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return "", "", fmt.Errorf("the CLI's script cannot be read: %w", err)
	}
	var evals []*syntax.CallExpr
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, is := node.(*syntax.CallExpr); is && len(call.Args) > 0 && call.Args[0].Lit() == "eval" {
			evals = append(evals, call)
		}
		if stmt, is := node.(*syntax.Stmt); is && keepsDir(stmt) {
			kept, err = plain(stmt.Redirs[0].Word)
		}
		return err == nil
	})
	switch {
	case err != nil:
		return "", "", err
	case len(evals) == 1 && len(evals[0].Args) == 2:
		command, err = plain(evals[0].Args[1])
		return command, kept, err
	case len(evals) == 0 && len(file.Stmts) == 1: // PREFIX 'SCRIPT', as the CLI starts its shell with a prefix
		if call, is := file.Stmts[0].Cmd.(*syntax.CallExpr); is && len(call.Args) == 2 &&
			len(file.Stmts[0].Redirs) == 0 {
			inner, err := plain(call.Args[1])
			if err != nil || !strings.Contains(inner, "eval ") {
				return "", "", errors.Join(err, errNoCommand)
			}
			return commandOf(inner)
		}
	}
	return "", "", errNoCommand
}

// errNoCommand means that the CLI has started a script of its own.
var errNoCommand = errors.New("the CLI's script must have one command of the agent in it")

// keepsDir reports whether a statement is pwd -P >| FILE.
func keepsDir(stmt *syntax.Stmt) bool {
	call, is := stmt.Cmd.(*syntax.CallExpr)
	return is && len(call.Args) == 2 && call.Args[0].Lit() == "pwd" && call.Args[1].Lit() == "-P" &&
		len(stmt.Redirs) == 1 &&
		(stmt.Redirs[0].Op == syntax.RdrClob || stmt.Redirs[0].Op == syntax.RdrOut)
}

// plain returns the text of a word that consists of quoted and literal parts. plain fails if the shell would expand a
// part.
func plain(word *syntax.Word) (string, error) {
	var text strings.Builder
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", errExpands
			}
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, is := inner.(*syntax.Lit)
				if !is || p.Dollar {
					return "", errExpands
				}
				text.WriteString(strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(lit.Value))
			}
		case *syntax.Lit:
			text.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		default:
			return "", errExpands
		}
	}
	return text.String(), nil
}

// errExpands means that the shell would expand a part of the agent's command.
var errExpands = errors.New("the CLI's script must have the command of the agent in plain quotes")

// HookSettings returns the CLI's settings for the hook. With these settings the CLI runs the hook before every call,
// and needs no shell for that.
func HookSettings(executable string) map[string]any {
	command := map[string]any{
		"type": "command", "command": executable, "args": []string{door.HookScript},
		"timeout": 60,
	}
	return map[string]any{"hooks": map[string]any{
		"PreToolUse": []any{map[string]any{"matcher": "*", "hooks": []any{command}}},
	}}
}
