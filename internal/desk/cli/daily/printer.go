package daily

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Printer prints the progress of a chain line by line. It prints each event, call and gate once.
type Printer struct {
	console *console.Console

	// lastEvent is the key of the event that was printed last. The index of this event can change, because a chain that
	// has run for very long drops its oldest events.
	lastEvent string
	// session is the ID of the conversation whose tool call was printed last. call is the number of this tool call.
	session string
	call    int
	// lastStatus is the status that was printed last. lastEnded identifies the attempt whose end was printed last.
	lastStatus, lastEnded string
	// gates holds the open gates that were printed, by the ID of the chain and the ID of the gate.
	gates map[string]bool
	away  bool // no worker answered the last query
	// waits holds the last printed reason for a wait.
	waits string
}

var _ operations.Observer = (*Printer)(nil)

// NewPrinter returns a printer that prints to c.
func NewPrinter(c *console.Console) *Printer {
	return &Printer{console: c, gates: make(map[string]bool)}
}

// SawNobody implements operations.Observer. It prints that no worker answers. It prints this again only if a worker
// has answered in the meantime.
func (p *Printer) SawNobody() {
	if !p.away {
		p.console.Say("%s  no worker answers yet", p.now())
	}
	p.away = true
}

// Saw implements operations.Observer.
func (p *Printer) Saw(now operations.Snapshot) {
	p.away = false
	p.printEvents(now.Chain)
	p.printGate(now.Chain)
	for _, issue := range now.Chain.Issues {
		if chain, ok := now.Issues[issue.ChainID]; ok {
			p.printGate(chain)
		}
	}
	p.printAttempt(now)
	if now.Waits != "" && now.Waits != p.waits {
		p.console.Say("%s  waits for %s", p.now(), console.Printable(now.Waits, 1_000))
	}
	p.waits = now.Waits
	if now.Progress != nil {
		p.printTools(*now.Progress)
	}
	if now.Notifying {
		id := now.Chain.ID
		p.console.Say("The notifications of chain %s are still on their way. What becomes of them: %s",
			console.PrintableID(id), console.LookCommand(id))
	}
}

func (p *Printer) printEvents(chain escalation.Chain) {
	last := slices.IndexFunc(chain.Events, func(event escalation.Event) bool { return event.Key == p.lastEvent })
	for _, event := range chain.Events[last+1:] {
		first, _, _ := strings.Cut(event.Message, "\n") // `claudeops gate` shows the rest
		p.console.Say("%s  %s", p.console.Clock.TimeOfDay(event.At), console.Printable(first, 1_000))
		p.lastEvent = event.Key
	}
}

// printGate prints that a chain waits for a person, and the command for the answer.
func (p *Printer) printGate(chain escalation.Chain) {
	gate := chain.OpenGate()
	if gate == nil || p.gates[chain.ID+" "+gate.ID] {
		return
	}
	p.gates[chain.ID+" "+gate.ID] = true
	at := p.console.Clock.TimeOfDay(gate.OpenedAt)
	p.console.Say("%s  chain %s waits for a person at %s: %s",
		at, console.Printable(chain.ID, 200), gate.ID, console.Printable(gate.Headline(), 300))
	p.console.Say("%s    answer with: %s", at, console.AnswerCommand(chain.ID))
}

// printTools prints the tool calls in the heartbeat of the running tier.
func (p *Printer) printTools(progress activities.TierProgress) {
	if p.session != progress.SessionID {
		p.session, p.call = progress.SessionID, 0
	}
	p.printCalls(progress.Now.Tools)
}

// printAttempt prints why the previous attempt ended. If the status of the session has changed, it also prints the
// status.
func (p *Printer) printAttempt(now operations.Snapshot) {
	if before := now.Attempt.Before(); before != "" {
		ended := fmt.Sprintf("%s %d", now.Chain.Last().SessionID, now.Attempt.Number)
		if ended != p.lastEnded {
			p.lastEnded = ended
			p.console.Say("%s    %s", p.now(), before)
		}
	}
	if status := statusOf(p.console.Clock, now); status != "" && status != p.lastStatus {
		p.lastStatus = status
		p.console.Say("%s    %s", p.now(), status)
	}
}

// printCalls prints the calls that it has not printed yet. Each invocation of a session numbers its calls from 1.
func (p *Printer) printCalls(calls []activities.ToolCall) {
	if len(calls) > 0 && calls[len(calls)-1].Number < p.call {
		p.call = 0
	}
	for _, call := range calls {
		if call.Number > p.call {
			p.call = call.Number
			p.console.Say("%s    %s  %s", p.now(), console.Printable(call.Name, 40), console.Printable(call.Input, 160))
		}
	}
}

// now returns the current time of day.
func (p *Printer) now() string { return p.console.Clock.TimeOfDay(p.console.Clock()) }
