package activities

import (
	"context"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// Memories has what agents and people have learned.
type Memories interface {
	// RecallMemories returns the text about confirmed memories for a prompt, and records which session has read them. A
	// repetition for the same session records nothing new.
	RecallMemories(ctx context.Context, recall memory.Recall) (memory.Brief, error)
}

// recall returns the text about memories for a tier's prompt: about those of the chain's services or, in a chain
// without services, of all services. A session that resumes a conversation gets only what is not in it. A tier can do
// its work without memories, so if they cannot be read, recall logs that and returns none.
func (t *Tiers) recall(ctx context.Context, input RunTierInput) string {
	if t.Memories == nil {
		return ""
	}
	parent := ""
	if input.Continuity == escalation.ContinuityResume {
		parent = input.ParentSessionID
	}
	services := slices.Concat(input.Affected, input.Services)
	topics := []string{input.Issue, input.Request, input.Guidance}
	for i := range input.Incidents {
		topics = append(topics, input.Incidents[i].Kind, input.Incidents[i].Summary)
	}
	brief, err := t.Memories.RecallMemories(ctx, memory.Recall{
		ChainID: input.ChainID, FirstRunID: input.FirstRunID, SessionID: input.SessionID,
		Services: t.Catalog.CanonicalAll(services), Text: strings.Join(topics, " "),
		ParentSessionID: parent, At: stopwatch(ctx)(),
	})
	if err != nil {
		activity.GetLogger(ctx).Warn("the tier starts without memories, because they cannot be read", "error", err)
	}
	return brief.Markdown
}
