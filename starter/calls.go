package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

const (
	// maxDenied bounds the denied calls of one session that a tree lists unasked. An agent may try for hours.
	maxDenied = 20
	// maxSubject is how many characters a tree shows of what a call was to do.
	maxSubject = 100
)

// chainView is a chain as JSON.
type chainView struct {
	escalation.Chain
	// Calls are what was decided on the calls of the chain's agents, in order; left out where the records
	// are elsewhere.
	Calls []escalation.CallDecision `json:"calls,omitzero"`
}

// recordedCalls returns what was decided on the calls of a chain; nil where the records are elsewhere. It makes no
// database where there is none.
func recordedCalls(ctx context.Context, cfg config.Config, chainID string) []escalation.CallDecision {
	if file := cfg.State.DatabaseFile(); file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil
		}
	}
	records, err := supervisor.OpenStore(ctx, cfg)
	if err != nil {
		return nil
	}
	defer func() { _ = records.Close() }() // nothing was written
	calls, err := records.Decisions(ctx, chainID)
	if err != nil {
		return nil
	}
	return calls
}

// callsOf returns what was decided on the calls of sessions, which may be of several chains.
func callsOf(ctx context.Context, records *store.Store, sessions []escalation.Session) ([]escalation.CallDecision, error) {
	calls := []escalation.CallDecision{}
	var chains []string
	for i := range sessions {
		if id := sessions[i].ChainID; !slices.Contains(chains, id) {
			chains = append(chains, id)
		}
	}
	for _, id := range chains {
		found, err := records.Decisions(ctx, id)
		if err != nil {
			return nil, err
		}
		for i := range found {
			own := func(session escalation.Session) bool { return session.SessionID == found[i].SessionID }
			if slices.ContainsFunc(sessions, own) {
				calls = append(calls, found[i])
			}
		}
	}
	return calls, nil
}

// writeCalls writes what was decided on the calls of a session, each line behind indent: how many were allowed and
// denied, and those that were denied, or every one. A session without calls gets no line.
func (a *app) writeCalls(w io.Writer, indent string, calls []escalation.CallDecision, every bool) {
	if len(calls) == 0 {
		return
	}
	listed := slices.Clone(calls)
	if !every {
		listed = slices.DeleteFunc(listed, func(call escalation.CallDecision) bool { return call.Allowed })
	}
	denied := 0
	for i := range calls {
		if !calls[i].Allowed {
			denied++
		}
	}
	_, _ = fmt.Fprintf(w, "%scalls: %d allowed, %d denied\n", indent, len(calls)-denied, denied)
	for i := range listed {
		if i == maxDenied && !every {
			_, _ = fmt.Fprintf(w, "%s… %d more denied: --calls lists every call\n", indent, len(listed)-i)
			return
		}
		_, _ = fmt.Fprintf(w, "%s%s\n", indent, a.callLine(&listed[i]))
	}
}

// callLine shows a call on one line: what was decided when, on what, and if it was denied, why.
func (a *app) callLine(call *escalation.CallDecision) string {
	decided, why := "allowed", ""
	if !call.Allowed {
		decided, why = "denied ", " — "+printable(call.Reason, 300)
	}
	at := call.At.In(a.now().Location()).Format(time.DateTime)
	return fmt.Sprintf("%s  %s  %s  %s%s", decided, at, printable(call.Tool, 40), printable(subjectOf(call.Input), maxSubject), why)
}

// subjectOf returns the field of a call's input that tells most about it; if it has none, the input itself.
func subjectOf(input string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(input), &fields) == nil {
		for _, key := range []string{"command", "file_path", "pattern", "url", "path", "description"} {
			if text, ok := fields[key].(string); ok && text != "" {
				return text
			}
		}
	}
	return input
}

// ofSession returns the calls of one session.
func ofSession(calls []escalation.CallDecision, sessionID string) []escalation.CallDecision {
	var own []escalation.CallDecision
	for i := range calls {
		if calls[i].SessionID == sessionID {
			own = append(own, calls[i])
		}
	}
	return own
}
