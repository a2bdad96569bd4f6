package claudesim

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"
)

// session is one run of the stand-in in one conversation.
type session struct {
	*program
	options
	id string
	// shellDir is the directory in which the next command starts.
	shellDir     string
	conversation *conversation
	model        model
	fault        Fault
	out          *emitter
	ledger       *ledger
	started      time.Time

	calls      int // model calls answered by this process
	turns      int // num_turns of the next result
	nudged     bool
	mismatches int // structured outputs that the schema refused
	denials    []map[string]any
	background []*backgroundTask
	results    int  // result lines printed
	warned     bool // that a hook has no answer
}

func newSession(p *program, o options, c *conversation) *session {
	s := &session{
		program: p, options: o, id: c.id, shellDir: p.dir, conversation: c, model: p.release.model(o.model), started: time.Now(),
		ledger: newLedger(p.release, c.cost),
	}
	first := s.request()
	first.Messages = append(slices.Clone(first.Messages), userText(o.prompt))
	s.fault = p.faultFor(first)
	s.out = newEmitter(p.stdout, s.id, s.fault)
	return s
}

// faultFor returns the fault of the turn that answers r, if it still strikes.
func (p *program) faultFor(r Request) Fault {
	turn, _, ok := p.scenario.turnFor(r)
	if !ok || turn.Fault == nil {
		return Fault{}
	}
	if turn.Fault.Times > 0 && p.records.count("fault-"+r.promptKey()) >= turn.Fault.Times {
		return Fault{}
	}
	return *turn.Fault
}

// run plays the session and returns the exit code.
func (s *session) run(ctx context.Context) int {
	s.printf(s.stderr, "%s", s.fault.Stderr)
	if s.hangs(ctx, HangAtStart) {
		return s.stopped(ctx)
	}
	s.resumeTranscript()
	s.emitInit()
	s.say(userText(s.prompt), nil)
	if s.hangs(ctx, HangAfterInit) {
		return s.stopped(ctx)
	}
	for origin := ""; ; origin = "task-notification" {
		end, err := s.loop(ctx)
		if err != nil {
			return s.exitFor(ctx, err)
		}
		end.origin = origin
		s.conclude(end)
		if end.isError || !s.awaitBackground(ctx) {
			return s.finish(ctx, end)
		}
	}
}

// finish writes what follows the last result and returns the exit code.
func (s *session) finish(ctx context.Context, end outcome) int {
	s.stopBackground()
	s.saveCost()
	if s.hangs(ctx, HangAfterResult) {
		return s.stopped(ctx)
	}
	switch {
	case s.fault.ExitCode != 0:
		return s.fault.ExitCode
	case end.exit != nil:
		return *end.exit
	case end.isError:
		return exitFailure
	default:
		return exitOK
	}
}

// exitFor returns the exit code of a session that ended without an outcome.
func (s *session) exitFor(ctx context.Context, err error) int {
	crashed, ok := errors.AsType[*crashError](err)
	if !ok {
		return s.stopped(ctx)
	}
	s.printf(s.stderr, "%s", crashed.Stderr)
	if crashed.Code == KilledBySelf {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal arrives before this matters
	}
	return crashed.Code
}

// stopped is the exit code when a signal ended the session without a result.
func (s *session) stopped(ctx context.Context) int {
	s.stopBackground()
	if errors.Is(context.Cause(ctx), errTerminated) {
		return exitTerminated
	}
	return exitOK
}

// hangs waits for a signal if the fault says so at this point.
func (s *session) hangs(ctx context.Context, point HangPoint) bool {
	if s.fault.Hang != point {
		return false
	}
	<-ctx.Done()
	return true
}

// request is the model call that the conversation has come to.
func (s *session) request() Request {
	tools := s.toolNames()
	return Request{Model: s.model.id, System: s.appended, Tools: tools, Messages: s.conversation.messages, Stream: true}
}

// toolNames lists the tools that exist.
func (s *session) toolNames() []string {
	tools := append([]string{}, s.permissions.tools...) // never null in JSON
	if s.schema != nil {
		tools = append(tools, structuredOutputTool)
	}
	return tools
}

// say appends a user message to the conversation, and prints it with the extra fields
// unless extra is nil: the CLI does not print prompts.
func (s *session) say(m Message, extra event) {
	s.conversation.messages = append(s.conversation.messages, m)
	s.conversation.writeMessage(m.Role, m.wire(), s.stamp())
	if extra != nil {
		s.emitUser(m, extra)
		s.turns++
	}
}

// emitUser prints a user message.
func (s *session) emitUser(m Message, extra event) {
	line := event{"message": m.wire(), "parent_tool_use_id": nil}
	maps.Copy(line, extra)
	s.out.emit("user", line)
}

// stamp is what every transcript line says about the process.
func (s *session) stamp() map[string]any {
	return map[string]any{"cwd": s.dir, "version": s.claimedVersion(), "permissionMode": s.permissions.mode}
}

// resumeTranscript writes what mending the conversation added to it.
func (s *session) resumeTranscript() {
	for _, m := range s.conversation.repairs {
		s.conversation.writeMessage(m.Role, m.wire(), s.stamp())
	}
	s.turns = 1
}

// emitInit prints the line that begins a run.
func (s *session) emitInit() {
	keySource := "none"
	if s.env["ANTHROPIC_API_KEY"] != "" {
		keySource = "ANTHROPIC_API_KEY"
	}
	s.out.emit("system", event{
		"subtype": "init", "cwd": s.dir, "tools": s.toolNames(), "mcp_servers": []string{}, "model": s.model.id,
		"permissionMode": s.permissions.mode, "slash_commands": []string{}, "apiKeySource": keySource,
		"claude_code_version": s.claimedVersion(), "output_style": "default", "agents": []string{},
		"skills": []string{}, "plugins": []string{},
	})
}

// saveCost writes the line by which the conversation carries its cost, in releases that do.
func (s *session) saveCost() {
	if !s.release.cumulative {
		return
	}
	state := s.ledger.totals(CostCumulative)
	s.conversation.write(map[string]any{
		"type": "cost-state", "sessionId": s.id, "totalCostUSD": state.TotalCostUSD, "modelUsage": state.ModelUsage,
	})
}

// promptKey identifies the prompt that r answers, whatever came of it so far.
func (r Request) promptKey() string {
	data, _ := json.Marshal([]string{r.Model, r.Prompt()}) // strings always encode
	return Request{Model: string(data)}.fingerprint()
}
