// Package hook answers the CLI's questions about an agent's calls. The CLI asks in two ways: through its PreToolUse
// hook, and through the program that it runs in place of its shell (package agentshell). Each session has its own
// socket, which is open while the session's CLI runs.
//
// The guard decides on each call once, when the PreToolUse hook asks. A shell script runs only if the guard has allowed
// the script's call before. If the CLI starts a script without asking the hook, the script does not run.
package hook

import (
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

	"github.com/claudeops/claudeops/internal/agentshell"
	"github.com/claudeops/claudeops/internal/guard"
)

// Session describes the session whose calls are decided.
type Session struct {
	ID    string
	Tier  int
	Place guard.Place
	// Narrowed reports that the CLI also has permission rules. These rules then decide on the calls that the guard
	// allows.
	Narrowed bool
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

// Ledger limits how often agents' calls can act on services.
type Ledger interface {
	// Charge books the actions of a call before the call runs. If Charge refuses the call, it books nothing and returns
	// the reason in refusal. Otherwise refusal is "".
	Charge(ctx context.Context, call string, actions []guard.Action) (refusal string, err error)
	// Return cancels the booking of a call that did not run.
	Return(ctx context.Context, call string) error
}

// Post answers the CLI's questions about one session, from Open to Close.
type Post struct {
	session Session
	guard   *guard.Guard
	ledger  Ledger
	record  func(Entry)

	listener net.Listener
	socket   string
	// answering is the context of all answers. Close cancels answering by calling the function end.
	answering context.Context
	end       context.CancelFunc
	served    sync.WaitGroup

	mutex sync.Mutex
	// decided holds the ids of the calls that were decided.
	decided map[string]bool
	// granted holds, by command, the shell calls that were allowed and have not yet run.
	granted map[string][]grant
}

// grant is an allowed shell call.
type grant struct {
	call    string
	charged bool
}

// Open starts a Post on a socket in dir, a directory that no user except the worker can write. The Post passes every
// decision to the function record.
func Open(dir string, g *guard.Guard, session Session, ledger Ledger, record func(Entry)) (*Post, error) {
	socket := filepath.Join(dir, rand.Text()[:16])
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("open the guard's socket: %w", err)
	}
	// Let every user connect, because the agent can run as another user. Only the agent's CLI knows the name of the
	// socket.
	if err := os.Chmod(socket, 0o666); err != nil { //nolint:gosec // see above
		return nil, errors.Join(fmt.Errorf("open the guard's socket: %w", err), listener.Close())
	}
	answering, end := context.WithCancel(context.Background())
	p := &Post{
		session: session, guard: g, ledger: ledger, record: record,
		listener: listener, socket: socket, answering: answering, end: end,
		decided: map[string]bool{}, granted: map[string][]grant{},
	}
	p.served.Go(p.serve)
	return p, nil
}

// Environment returns the variables that make the CLI ask this Post.
func (p *Post) Environment(executable string) map[string]string {
	return map[string]string{
		agentshell.SocketVariable:  p.socket,
		"CLAUDE_CODE_SHELL_PREFIX": executable,
		"SHELL":                    agentshell.Shell,
	}
}

// Close stops the Post and cancels the bookings of calls that were allowed and did not run.
func (p *Post) Close(ctx context.Context) error {
	p.end()
	err := p.listener.Close()
	p.served.Wait()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, grants := range p.granted {
		for _, g := range grants {
			if g.charged {
				err = errors.Join(err, p.ledger.Return(ctx, g.call))
			}
		}
	}
	return err
}

// acceptPause is the wait after a failed accept.
const acceptPause = 20 * time.Millisecond

// serve accepts connections until the listener is closed.
func (p *Post) serve() {
	for {
		connection, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for instance, too many files are open
			time.Sleep(acceptPause)
			continue
		}
		p.served.Go(func() { p.handle(connection) })
	}
}

// handle answers the question of one connection.
func (p *Post) handle(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	stop := context.AfterFunc(p.answering, func() { _ = connection.Close() })
	defer stop()
	var question agentshell.Question
	if err := json.NewDecoder(connection).Decode(&question); err != nil {
		return
	}
	answer := p.answer(question)
	_ = json.NewEncoder(connection).Encode(answer) // an error means that the caller has gone
}

func (p *Post) answer(question agentshell.Question) agentshell.Answer {
	if question.Hook == nil {
		answer := p.script(question.Script)
		if !answer.Run {
			p.recordUnasked(question.Script, answer.Reason)
		}
		return answer
	}
	var call struct {
		Event     string          `json:"hook_event_name"`
		Tool      string          `json:"tool_name"`
		Input     json.RawMessage `json:"tool_input"`
		ToolUseID string          `json:"tool_use_id"`
		Dir       string          `json:"cwd"`
	}
	if err := json.Unmarshal(question.Hook, &call); err != nil || call.Tool == "" || call.ToolUseID == "" {
		return agentshell.Answer{Reason: "the question of the CLI cannot be read"}
	}
	if !p.isNew(call.ToolUseID) { // a repeated question must not change the booking of the call
		return agentshell.Answer{Reason: "this call was decided on already"}
	}
	decision := p.decide(call.Tool, call.ToolUseID, call.Dir, call.Input)
	p.record(Entry{
		At: time.Now(), Session: p.session.ID, Tier: p.session.Tier, Call: call.ToolUseID, Tool: call.Tool, Input: call.Input,
		Decision: decision,
	})
	return agentshell.Answer{Output: p.output(decision)}
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
	input, err := json.Marshal(map[string]string{"command": script})
	if err != nil {
		input = nil
	}
	p.record(Entry{
		At: time.Now(), Session: p.session.ID, Tier: p.session.Tier, Call: "unasked-" + rand.Text(), Tool: "Bash", Input: input,
		Decision: guard.Decision{Rule: RuleUnasked, Reason: reason},
	})
}

// decide asks the guard for its decision. If the guard allows the call, decide books the actions of the call in the
// ledger. If the ledger refuses the actions, decide denies the call.
func (p *Post) decide(tool, id, dir string, input json.RawMessage) guard.Decision {
	place := p.session.Place
	place.Dir = dir
	decision := p.guard.Decide(guard.Call{Tier: p.session.Tier, Tool: tool, Input: input, Place: place})
	if !decision.Allowed {
		return decision
	}
	charged := len(decision.Actions) > 0
	if charged {
		refusal, err := p.ledger.Charge(p.answering, id, decision.Actions)
		if err != nil { // the booking may have succeeded despite the error
			refusal = "the ledger of restarts cannot be asked: " + err.Error()
			p.refund(id)
		}
		if refusal != "" {
			return guard.Decision{Rule: "cooldown", Reason: refusal, Actions: decision.Actions}
		}
	}
	var bash struct {
		Command string `json:"command"`
	}
	if tool == "Bash" && json.Unmarshal(input, &bash) == nil {
		p.mutex.Lock()
		p.granted[bash.Command] = append(p.granted[bash.Command], grant{id, charged})
		p.mutex.Unlock()
	}
	return decision
}

// refundLimit limits the wait for the ledger to cancel a booking.
const refundLimit = 5 * time.Second

// refund cancels the booking of a denied call, if there is a booking. If the cancellation fails, the booking stays,
// because a superfluous booking does less harm than a missing booking.
func (p *Post) refund(call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.answering), refundLimit)
	defer cancel()
	_ = p.ledger.Return(ctx, call)
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
func (p *Post) script(script string) agentshell.Answer {
	command, err := commandOf(script)
	if err != nil {
		return agentshell.Answer{Reason: err.Error()}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	grants := p.granted[command]
	if len(grants) == 0 {
		return agentshell.Answer{Reason: "the guard was not asked about this command"}
	}
	if p.granted[command] = grants[1:]; len(grants) == 1 {
		delete(p.granted, command)
	}
	return agentshell.Answer{Run: true}
}

// commandOf returns the agent's command from the CLI's script. The script consists of settings, then eval 'COMMAND',
// then a command that saves the working directory for the next call.
func commandOf(script string) (string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return "", fmt.Errorf("the CLI's script cannot be read: %w", err)
	}
	var evals []*syntax.CallExpr
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, is := node.(*syntax.CallExpr); is && len(call.Args) > 0 && call.Args[0].Lit() == "eval" {
			evals = append(evals, call)
		}
		return true
	})
	if len(evals) != 1 || len(evals[0].Args) != 2 {
		return "", fmt.Errorf("the CLI's script must have one command of the agent in it: %d found", len(evals))
	}
	return plain(evals[0].Args[1])
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

// Settings returns the CLI's settings for the hook. With these settings the CLI runs the hook before every call.
func Settings() map[string]any {
	command := map[string]any{"type": "command", "command": agentshell.HookScript, "timeout": 60}
	return map[string]any{"hooks": map[string]any{
		"PreToolUse": []any{map[string]any{"matcher": "*", "hooks": []any{command}}},
	}}
}
