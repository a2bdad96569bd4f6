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
	// stopReason is Reply.Stop of the last answer, and cuts counts the answers in a row that were cut.
	stopReason string
	cuts       int

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

	calls      int // answered model calls of this process
	turns      int // num_turns of the next result
	nudged     bool
	mismatches int // structured outputs that violate the schema
	denials    []map[string]any
	background []*backgroundTask
	results    int  // number of printed result lines
	warned     bool // set after the warning about a hook
}

func newSession(p *program, o options, c *conversation) *session {
	s := &session{
		program: p, options: o, id: c.id, shellDir: p.dir, conversation: c, model: p.release.model(o.model),
		started: time.Now(), ledger: newLedger(p.release, c.cost),
	}
	first := s.request()
	first.Messages = append(slices.Clone(first.Messages), userText(o.prompt))
	s.fault = p.faultFor(first)
	s.out = newEmitter(p.stdout, s.id, s.fault)
	return s
}

// faultFor returns the fault of the turn that answers r. If the fault has already affected Fault.Times processes,
// faultFor returns no fault.
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

// run plays the session and returns the exit code of the process.
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

// finish stops background tasks and saves the cost after the last result. It returns the exit code.
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
		select {} // SIGKILL ends the process here
	}
	return crashed.Code
}

// stopped returns the exit code of a session that a signal ended without a result.
func (s *session) stopped(ctx context.Context) int {
	s.stopBackground()
	if errors.Is(context.Cause(ctx), errTerminated) {
		return exitTerminated
	}
	return exitOK
}

// hangs reports whether the fault stops the output at the given point. In that case hangs first waits until a signal
// arrives.
func (s *session) hangs(ctx context.Context, point HangPoint) bool {
	if s.fault.Hang != point {
		return false
	}
	<-ctx.Done()
	return true
}

// request returns the next model call of the conversation.
func (s *session) request() Request {
	tools := s.toolNames()
	return Request{Model: s.model.id, System: s.appended, Tools: tools, Messages: s.sent(), Stream: true}
}

// sent returns the messages of the conversation without the thinking of other models.
func (s *session) sent() []Message {
	messages := slices.Clone(s.conversation.messages)
	for i := range messages {
		messages[i].Blocks = slices.DeleteFunc(slices.Clone(messages[i].Blocks), func(block Block) bool {
			return block.Type == BlockThinking && block.ID != signature(s.model.id)
		})
	}
	return messages
}

// toolNames returns the names of the tools that the session offers to the model.
func (s *session) toolNames() []string {
	tools := append([]string{}, s.permissions.tools...) // encodes to a list even if empty
	if s.schema != nil {
		tools = append(tools, structuredOutputTool)
	}
	return tools
}

// say appends a user message to the conversation. If extra is not nil, say also prints the message, with the additional
// fields in extra. For prompts extra must be nil, because the CLI does not print prompts.
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

// stamp returns the fields about the process that every transcript line with a message contains.
func (s *session) stamp() map[string]any {
	return map[string]any{"cwd": s.dir, "version": s.claimedVersion(), "permissionMode": s.permissions.mode}
}

// resumeTranscript writes the messages that repair has added to the conversation to the transcript.
func (s *session) resumeTranscript() {
	for _, m := range s.conversation.repairs {
		s.conversation.writeMessage(m.Role, m.wire(), s.stamp())
	}
	s.turns = 1
}

// emitInit prints the first line of a run.
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

// saveCost writes the conversation's cost to the transcript.
func (s *session) saveCost() {
	state := s.ledger.totals(CostCumulative)
	s.conversation.write(map[string]any{
		"type": "cost-state", "sessionId": s.id, "totalCostUSD": state.TotalCostUSD, "modelUsage": state.ModelUsage,
	})
}

// promptKey returns a key for the model and the last prompt of r. The key does not depend on the messages after the
// prompt.
func (r Request) promptKey() string {
	data, _ := json.Marshal([]string{r.Model, r.Prompt()}) // strings always encode
	return Request{Model: string(data)}.fingerprint()
}
