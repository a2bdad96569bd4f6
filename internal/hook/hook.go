// Package hook answers what the CLI asks before an agent makes a call: its PreToolUse hook, and the program in front
// of its shell (package agentshell). Each session has a socket of its own, which is open as long as its CLI runs.
//
// A call is allowed once by the hook, and a script of the shell is let through if it is such a call. So what the CLI
// runs without asking its hook does not run.
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

// Session is whose calls are decided on.
type Session struct {
	ID    string
	Tier  int
	Place guard.Place
	// Narrowed leaves what the guard allows to the permission rules of the CLI.
	Narrowed bool
}

// Entry is a decision, for the records.
type Entry struct {
	At       time.Time       `json:"at"`
	Session  string          `json:"session_id"`
	Tier     int             `json:"tier"`
	Call     string          `json:"call"` // the API's id of the call
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input"`
	Decision guard.Decision  `json:"decision"`
}

// RuleUnasked is the rule of entries about scripts that the CLI wanted to run without asking its hook. They were denied.
const RuleUnasked = "unasked"

// Ledger admits what calls do to services.
type Ledger interface {
	// Charge books actions before they happen. It returns why they are refused, or "".
	Charge(ctx context.Context, call string, actions []guard.Action) (refusal string, err error)
	// Return gives back what was booked for a call that never ran.
	Return(ctx context.Context, call string) error
}

// Post answers for one session, from Open to Close.
type Post struct {
	session Session
	guard   *guard.Guard
	ledger  Ledger
	record  func(Entry)

	listener net.Listener
	socket   string
	// answering ends when Close has been called.
	answering context.Context
	end       context.CancelFunc
	served    sync.WaitGroup

	mutex sync.Mutex
	// decided are the calls that were decided on, by their ids.
	decided map[string]bool
	// granted are the calls of the shell that were allowed and have not run, by their command.
	granted map[string][]grant
}

// grant is a call of the shell that was allowed.
type grant struct {
	call    string
	charged bool
}

// Open begins to answer on a socket in dir, which only the worker may write. record gets every decision.
func Open(dir string, g *guard.Guard, session Session, ledger Ledger, record func(Entry)) (*Post, error) {
	socket := filepath.Join(dir, rand.Text()[:16])
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("open the guard's socket: %w", err)
	}
	// The agent may run as another user. The name of the socket is known to its CLI alone.
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

// Environment returns the variables that make the CLI ask.
func (p *Post) Environment(executable string) map[string]string {
	return map[string]string{
		agentshell.SocketVariable:  p.socket,
		"CLAUDE_CODE_SHELL_PREFIX": executable,
		"SHELL":                    agentshell.Shell,
	}
}

// Close ends the answers, and gives back what was booked for calls that never ran.
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

// acceptPause is how long to wait after a connection that could not be taken.
const acceptPause = 20 * time.Millisecond

// serve takes questions until the listener is closed.
func (p *Post) serve() {
	for {
		connection, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many files are open, for instance
			time.Sleep(acceptPause)
			continue
		}
		p.served.Go(func() { p.converse(connection) })
	}
}

// converse answers one question.
func (p *Post) converse(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	stop := context.AfterFunc(p.answering, func() { _ = connection.Close() })
	defer stop()
	var question agentshell.Question
	if err := json.NewDecoder(connection).Decode(&question); err != nil {
		return
	}
	answer := p.answer(question)
	_ = json.NewEncoder(connection).Encode(answer) // whoever has gone needs no answer
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
	if !p.isNew(call.ToolUseID) { // what was booked for a call belongs to one call
		return agentshell.Answer{Reason: "this call was decided on already"}
	}
	decision := p.decide(call.Tool, call.ToolUseID, call.Dir, call.Input)
	p.record(Entry{
		At: time.Now(), Session: p.session.ID, Tier: p.session.Tier, Call: call.ToolUseID, Tool: call.Tool, Input: call.Input,
		Decision: decision,
	})
	return agentshell.Answer{Output: p.output(decision)}
}

// isNew reports whether nothing was decided on a call so far.
func (p *Post) isNew(id string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.decided[id] {
		return false
	}
	p.decided[id] = true
	return true
}

// recordUnasked records a script that the CLI wanted to run of its own accord.
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

// decide asks the guard, and the ledger for what the guard allows.
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
		if err != nil { // it may have been booked all the same
			refusal = "the ledger of restarts cannot be asked: " + err.Error()
			p.giveBack(id)
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

// returnLimit bounds the wait for the ledger to take something back.
const returnLimit = 5 * time.Second

// giveBack returns what may have been booked for a call that is denied. If that fails it stays booked, which does less harm
// than the contrary.
func (p *Post) giveBack(call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.answering), returnLimit)
	defer cancel()
	_ = p.ledger.Return(ctx, call)
}

// output is what the CLI reads: https://code.claude.com/docs/en/hooks#pretooluse-decision-control.
func (p *Post) output(decision guard.Decision) json.RawMessage {
	type specific struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason,omitempty"`
	}
	said := map[string]specific{"hookSpecificOutput": {"PreToolUse", "deny", decision.Reason}}
	switch {
	case decision.Allowed && p.session.Narrowed:
		return json.RawMessage(`{}`)
	case decision.Allowed:
		said["hookSpecificOutput"] = specific{Event: "PreToolUse", Decision: "allow"}
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	return text
}

// script lets a script of the CLI's shell through if it is a call that was allowed and has not run yet.
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

// commandOf returns the agent's command out of the script that the CLI makes of it: settings, then eval 'COMMAND', then
// the working directory for the next call.
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

// plain returns the text of a word that is quoted in pieces, of which the shell expands none.
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

// errExpands is the refusal of a script in which the shell would put a part of the agent's command together.
var errExpands = errors.New("the CLI's script must have the command of the agent in plain quotes")

// Settings returns the part of the CLI's settings that makes it ask before every call.
func Settings() map[string]any {
	command := map[string]any{"type": "command", "command": agentshell.HookScript, "timeout": 60}
	return map[string]any{"hooks": map[string]any{
		"PreToolUse": []any{map[string]any{"matcher": "*", "hooks": []any{command}}},
	}}
}
