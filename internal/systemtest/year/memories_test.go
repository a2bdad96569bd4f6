package year

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// memories returns the memories that people see.
func (i *installation) memories(ctx context.Context) []memory.Memory {
	var list struct{ Memories []memory.Memory }
	status, body := i.ask(ctx, "ada", http.MethodGet, "/api/v1/memories", nil)
	if status != http.StatusOK || json.Unmarshal(body, &list) != nil {
		return nil // the records may be away
	}
	return list.Memories
}

// tend lets a person decide on memories, from a host whose clock may be a day wrong: each is confirmed, changed,
// deleted or left.
func (i *installation) tend(ctx context.Context, n int) {
	ahead := []time.Duration{-24 * time.Hour, 0, 0, 24 * time.Hour}[i.draw(4, "laptop", n)]
	for _, one := range i.memories(ctx) {
		revision, text := strconv.Itoa(one.Revision), one.Text
		var args []string
		switch i.draw(8, one.ID, n, "decides") {
		case 0, 1:
			if one.Status != memory.StatusCandidate {
				continue
			}
			args = []string{"memory", "confirm", one.ID, "--revision", revision, "--actor", "ada"}
		case 2:
			text = fmt.Sprintf("A restart of %s helps, as of visit %d.", one.Service, n)
			args = []string{"memory", "edit", one.ID, "--text", text, "--revision", revision, "--actor", "ada"}
		case 3:
			text = ""
			args = []string{"memory", "delete", one.ID, "--revision", revision, "--actor", "ada"}
		default:
			continue
		}
		if i.in(50, one.ID, n, "by the API") && args[1] == "confirm" {
			i.ask(ctx, "ada", http.MethodPost, "/api/v1/memories/"+one.ID+"/confirm", map[string]any{"revision": one.Revision})
		} else if code, _, complaint := i.command(ctx, ahead, args...); code != program.ExitOK {
			i.agents.count(i.agents.ran, "memories refused")
			if *verbose {
				fmt.Println("MEMORY", args, complaint)
			}
			continue
		}
		// An edit from what was read before must not count any more.
		if code, _, _ := i.command(ctx, ahead, "memory", "edit", one.ID, "--text", "An older form of this.", "--revision", revision, "--actor", "sam"); code == program.ExitOK {
			i.problem("an edit of %s from revision %s was taken after another decision", one.ID, revision)
		}
		i.mu.Lock()
		i.seen.memories[one.ID] = text
		i.mu.Unlock()
		i.agents.count(i.agents.ran, "memories decided")
	}
}

// checkMemories checks that what a person has decided on a memory stays: its text, or that it is deleted.
func (i *installation) checkMemories(ctx context.Context) {
	found := map[string]memory.Memory{}
	for _, one := range i.memories(ctx) {
		found[one.ID] = one
	}
	i.mu.Lock()
	decided := maps.Clone(i.seen.memories)
	i.mu.Unlock()
	for id, text := range decided {
		switch one, still := found[id]; {
		case text == "" && still:
			i.problem("a person has deleted %s, and it is %s", id, one.Status)
		case text != "" && (one.Text != text || one.Status != memory.StatusConfirmed):
			i.problem("a person has confirmed %s as %q, and it is %s: %q", id, text, one.Status, one.Text)
		}
	}
}
