package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

const mediaServices = "version: 1\nservices:\n  - {name: Jellyfin, aliases: [media]}\n"

func mountIsLate() escalation.MemoryProposal {
	return escalation.MemoryProposal{
		Kind: escalation.MemoryDiscovery, Service: "MEDIA", Subject: "start order", Text: "The mount comes up late.",
	}
}

func TestMemoriesOfPeople(t *testing.T) {
	t.Parallel()
	s := newStage(t, mediaServices, "FLEET_TOKEN=s3cr3t-of-the-fleet")
	memories := s.operations.Memories
	warned := 0
	s.operations.backend.Masked = func() { warned++ }
	secret := mountIsLate()
	secret.Text = "The mount of s3cr3t-of-the-fleet comes up late."
	added, err := memories.Add(t.Context(), secret, "ada")
	require.NoError(t, err)
	require.Equal(t, 1, warned)
	require.Equal(t, "Jellyfin", added.Service)
	require.Equal(t, "The mount of [masked: FLEET_TOKEN] comes up late.", added.Text)
	require.Equal(t, memory.TrustPerson, added.Trust)
	require.Equal(t, chaintest.Noon, added.DecidedAt)

	text, service := "The mount comes up late.", ""
	edited, err := memories.Edit(t.Context(), SeenMemory{Given: "1"}, MemoryEdit{Text: &text, Service: &service}, "bob")
	require.NoError(t, err)
	require.Equal(t, []string{"", "start order", text, "bob"}, []string{edited.Service, edited.Subject, edited.Text, edited.DecidedBy})
	shown, err := memories.Get(t.Context(), "memory-1")
	require.NoError(t, err)
	require.Equal(t, []memory.Act{memory.ActAdded, memory.ActEdited}, []memory.Act{shown.Sources[0].Act, shown.Sources[1].Act})

	again := mountIsLate()
	again.Service = ""
	same, err := memories.Add(t.Context(), again, "ada")
	require.Equal(t, KindConflict, KindOf(err))
	require.EqualError(t, err, "memory-1 says the same already; nothing was changed")
	require.Equal(t, "memory-1", same.ID)
	_, err = memories.Confirm(t.Context(), SeenMemory{Given: "1"}, "ada")
	require.EqualError(t, err, "bob has confirmed it already; nothing was changed")
	deleted, err := memories.Delete(t.Context(), SeenMemory{Given: "memory-1"}, "ada")
	require.NoError(t, err)
	require.Equal(t, memory.StatusDeleted, deleted.Status)
	_, err = memories.Delete(t.Context(), SeenMemory{Given: "memory-1"}, "bob")
	require.EqualError(t, err, "ada has deleted it already; nothing was changed")
	found, err := memories.List(t.Context(), MemoryFilter{})
	require.NoError(t, err)
	require.Empty(t, found)
	require.NotNil(t, found)
}

func TestMemoriesRefuse(t *testing.T) {
	t.Parallel()
	s := newStage(t, mediaServices)
	memories := s.operations.Memories
	state, text := mountIsLate(), "x"
	state.Text = "All is well."
	for name, call := range map[string]func() error{
		"a state":  func() error { _, err := memories.Add(t.Context(), state, "ada"); return err },
		"nobody":   func() error { _, err := memories.Add(t.Context(), mountIsLate(), " "); return err },
		"no ID":    func() error { _, err := memories.Get(t.Context(), "incident-1"); return err },
		"number 0": func() error { _, err := memories.Confirm(t.Context(), SeenMemory{Given: "0"}, "ada"); return err },
		"no change": func() error {
			_, err := memories.Edit(t.Context(), SeenMemory{Given: "1"}, MemoryEdit{}, "ada")
			return err
		},
		"an unknown kind": func() error { _, err := memories.List(t.Context(), MemoryFilter{Kind: "order"}); return err },
		"a status":        func() error { _, err := memories.List(t.Context(), MemoryFilter{Status: "open"}); return err },
	} {
		require.Equal(t, KindInvalid, KindOf(call()), name)
	}
	for name, call := range map[string]func() error{
		"get":     func() error { _, err := memories.Get(t.Context(), "7"); return err },
		"confirm": func() error { _, err := memories.Confirm(t.Context(), SeenMemory{Given: "7"}, "ada"); return err },
		"edit": func() error {
			_, err := memories.Edit(t.Context(), SeenMemory{Given: "7"}, MemoryEdit{Text: &text}, "ada")
			return err
		},
		"delete": func() error { _, err := memories.Delete(t.Context(), SeenMemory{Given: "7"}, "ada"); return err },
	} {
		require.Equal(t, KindNotFound, KindOf(call()), name)
		require.ErrorContains(t, call(), "there is no memory-7", name)
	}
}

func TestMemoriesListed(t *testing.T) {
	t.Parallel()
	s := newStage(t, mediaServices)
	memories := s.operations.Memories
	_, err := s.records.ProposeMemories(t.Context(), memory.Source{Trust: memory.TrustOutput, At: chaintest.Noon.Add(-time.Hour), ChainID: "chain-1", SessionID: "a"},
		[]escalation.MemoryProposal{{Kind: escalation.MemoryRemediation, Service: "Jellyfin", Subject: "502", Text: "Waiting for the mount helps."}})
	require.NoError(t, err)
	_, err = memories.Add(t.Context(), mountIsLate(), "ada")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		filter MemoryFilter
		want   []string
	}{
		"all":       {MemoryFilter{}, []string{"memory-1", "memory-2"}},
		"confirmed": {MemoryFilter{Status: "confirmed"}, []string{"memory-2"}},
		"kind":      {MemoryFilter{Kind: "remediation"}, []string{"memory-1"}},
		"an alias":  {MemoryFilter{Service: "media", Search: "LATE mount"}, []string{"memory-2"}},
		"nothing":   {MemoryFilter{Service: "db"}, []string{}},
	} {
		found, err := memories.List(t.Context(), test.filter)
		require.NoError(t, err, name)
		ids := []string{}
		for _, one := range found {
			ids = append(ids, one.ID)
		}
		require.Equal(t, test.want, ids, name)
	}
}

// TestMemoryChangedSince decides on memories that have changed since the person has read them.
func TestMemoryChangedSince(t *testing.T) {
	t.Parallel()
	s := newStage(t, mediaServices)
	memories := s.operations.Memories
	read, err := memories.Add(t.Context(), mountIsLate(), "ada")
	require.NoError(t, err)
	seen := SeenMemory{"memory-1", read.Revision}
	early, later := "The mount comes up early.", "The mount comes up at noon."
	edited, err := memories.Edit(t.Context(), seen, MemoryEdit{Text: &early}, "bob")
	require.NoError(t, err)
	for name, decide := range map[string]func() (memory.Memory, error){
		"edit": func() (memory.Memory, error) {
			return memories.Edit(t.Context(), seen, MemoryEdit{Text: &later}, "ada")
		},
		"delete":  func() (memory.Memory, error) { return memories.Delete(t.Context(), seen, "ada") },
		"confirm": func() (memory.Memory, error) { return memories.Confirm(t.Context(), seen, "ada") },
	} {
		same, err := decide()
		require.Equal(t, KindConflict, KindOf(err), name)
		require.EqualError(t, err, "memory-1 has changed since you read it, and is at revision 3 now: read it again; nothing was changed", name)
		require.Equal(t, edited, same, name)
	}
	_, err = memories.Edit(t.Context(), SeenMemory{"memory-1", edited.Revision}, MemoryEdit{Text: &later}, "ada")
	require.NoError(t, err)
}
