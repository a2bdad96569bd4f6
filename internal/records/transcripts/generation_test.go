package transcripts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// takeOver restores the conversation on another host and returns that host's Copy and path.
func takeOver(t *testing.T, archive *Archive) (*Copy, string) {
	t.Helper()
	path := place(t)
	local := copyAt(t, archive, path)
	_, err := local.Restore(t.Context())
	require.NoError(t, err)
	return local, path
}

func TestRestoreDecides(t *testing.T) {
	t.Parallel()
	const common = 5
	for name, tt := range map[string]struct {
		local    string
		want     Outcome
		setAside bool
	}{
		"missing":               {"", FromArchive, false},
		"older":                 {lines("first", common-1), FromArchive, false},
		"older, half line":      {lines("first", common-1) + `{"ha`, FromArchive, false},
		"the same":              {lines("first", common), KeptLocal, false},
		"newer":                 {lines("first", common) + lines("own", 1), KeptLocal, false},
		"another way":           {lines("first", common-1) + lines("own", 9), FromArchive, true},
		"shorter and different": {lines("own", 1), FromArchive, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, path := inMemory(t), place(t)
			put(t, path, lines("first", common))
			save(t, copyAt(t, archive, path))
			here := place(t)
			if tt.local != "" {
				put(t, here, tt.local)
			}
			restored, err := copyAt(t, archive, here).Restore(t.Context())
			require.NoError(t, err)
			require.Equal(t, tt.want, restored.Outcome)
			if tt.want == KeptLocal {
				require.Equal(t, tt.local, text(t, here))
			} else {
				require.Equal(t, lines("first", common), text(t, here))
			}
			if !tt.setAside {
				require.Empty(t, restored.SetAside)
				require.Len(t, files(t, filepath.Dir(here)), 1)
				return
			}
			require.Equal(t, tt.local, text(t, restored.SetAside), "nothing is deleted")
			require.False(t, strings.HasSuffix(restored.SetAside, ".jsonl"), "the CLI must not take it for a conversation")
		})
	}
}

// TestACutOffHostCannotUndoWhatAnotherDid simulates a host that is considered dead, continues to write and
// comes back. It has more lines than the host that took over, but must not win.
func TestACutOffHostCannotUndoWhatAnotherDid(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	old := copyAt(t, archive, path)
	put(t, path, lines("first", 90))
	save(t, old)

	next, there := takeOver(t, archive)
	add(t, path, lines("ghost", 10))
	save(t, old) // this Copy does not know of any later writer
	add(t, there, lines("second", 3))
	save(t, next)
	require.Equal(t, lines("first", 90)+lines("second", 3), archived(t, archive))

	add(t, path, lines("ghost", 10))
	_, err := old.Save(t.Context())
	require.ErrorIs(t, err, ErrSuperseded)
	add(t, there, lines("second", 1))
	save(t, next)

	back := copyAt(t, archive, path)
	restored, err := back.Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, FromArchive, restored.Outcome)
	require.Equal(t, text(t, there), text(t, path))
	require.Contains(t, text(t, restored.SetAside), "ghost")
	add(t, path, lines("third", 1))
	save(t, back)
	_, err = next.Save(t.Context())
	require.NoError(t, err, "it has nothing new to say")
	add(t, there, lines("second", 1))
	_, err = next.Save(t.Context())
	require.ErrorIs(t, err, ErrSuperseded)
}

func TestTakingOverWithNothingNewHidesNothing(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	old := copyAt(t, archive, path)
	put(t, path, lines("first", 5))
	save(t, old)
	next, _ := takeOver(t, archive)
	add(t, path, lines("first", 5))
	save(t, old)
	saved, err := next.Save(t.Context())
	require.NoError(t, err)
	require.False(t, saved)
	require.Equal(t, lines("first", 5)+lines("first", 5), archived(t, archive))
}

func TestSaveWithoutRestore(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	put(t, path, lines("first", 5))
	save(t, copyAt(t, archive, path))

	for name, tt := range map[string]struct {
		local string
		want  error
	}{
		"the same": {lines("first", 5), nil},
		"older":    {lines("first", 4), ErrSuperseded},
		"other":    {lines("own", 9), ErrSuperseded},
	} {
		here := place(t)
		put(t, here, tt.local)
		saved, err := copyAt(t, archive, here).Save(t.Context())
		require.ErrorIs(t, err, tt.want, name)
		require.False(t, saved, name)
		require.Equal(t, lines("first", 5), archived(t, archive), name)
	}
	here := place(t)
	put(t, here, lines("first", 6))
	save(t, copyAt(t, archive, here))
	require.Equal(t, lines("first", 6), archived(t, archive))
}

// TestWritersAtOnce saves one growing transcript from several workers at the same time. No worker may destroy another's
// copy. If one worker continues alone, its lines are restored.
func TestWritersAtOnce(t *testing.T) {
	t.Parallel()
	for name, archive := range map[string]*Archive{"memory": inMemory(t), "directory": inDirectory(t, t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const writers, rounds = 6, 8
			copies := make([]*Copy, writers)
			var all sync.WaitGroup
			for w := range copies {
				local := copyAt(t, archive, place(t))
				copies[w] = local
				all.Go(func() {
					for round := range rounds {
						put(t, local.path, lines("shared", 1+round*writers+w))
						if _, err := local.Save(t.Context()); err != nil && !errors.Is(err, ErrSuperseded) {
							t.Errorf("writer %d: %v", w, err)
						}
					}
				})
			}
			all.Wait()
			got := archived(t, archive)
			require.Equal(t, lines("shared", strings.Count(got, "\n")), got)
			last := copies[writers-1]
			put(t, last.path, lines("shared", writers*rounds+1))
			save(t, last)
			require.Equal(t, lines("shared", writers*rounds+1), archived(t, archive))
			for _, other := range copies[:writers-1] {
				add(t, other.path, lines("own", 1))
				_, err := other.Save(t.Context())
				require.ErrorIs(t, err, ErrSuperseded)
			}
		})
	}
}

// TestTakingOverAtTheSameMoment lets two workers restore and then begin the same generation. This should not
// happen, but must not destroy anything.
func TestTakingOverAtTheSameMoment(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	put(t, path, lines("first", 5))
	save(t, copyAt(t, archive, path))
	one, here := takeOver(t, archive)
	two, there := takeOver(t, archive)
	add(t, here, lines("one", 2))
	add(t, there, lines("two", 3))
	for _, local := range []*Copy{one, two} {
		whole, err := measure(local.path)
		require.NoError(t, err)
		local.known = version{generation: 2, writer: local.writer}
		require.NoError(t, local.write(t.Context(), local.known, whole))
	}
	require.Equal(t, text(t, there), archived(t, archive))
	add(t, here, lines("one", 9))
	_, err := one.Save(t.Context())
	require.ErrorIs(t, err, ErrSuperseded)
	add(t, there, lines("two", 1))
	save(t, two)
	require.Equal(t, text(t, there), archived(t, archive))
}

// site is a simulated host in TestSavesAreNeverLost.
type site struct {
	path string
	copy *Copy // nil while the host does not write
}

// complete returns the complete lines of the site's file.
func (s *site) complete() string {
	content, _ := os.ReadFile(s.path)
	return string(content[:bytes.LastIndexByte(content, '\n')+1])
}

// TestSavesAreNeverLost lets hosts take over a session, write, save and vanish in any order. The last save must
// be restored to the byte.
func TestSavesAreNeverLost(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		archive := inMemory(t)
		defer func() { _ = archive.Close() }()
		sites := make([]site, 3)
		for i := range sites {
			sites[i].path = filepath.Join(base, fmt.Sprint(run), fmt.Sprint(i), session+".jsonl")
		}
		committed, written := "", 0
		pick := func(rt *rapid.T) *site { return &sites[rapid.IntRange(0, len(sites)-1).Draw(rt, "site")] }
		rt.Repeat(map[string]func(*rapid.T){
			"take over": func(rt *rapid.T) {
				s := pick(rt)
				s.copy = copyAt(t, archive, s.path)
				if _, err := s.copy.Restore(t.Context()); err != nil {
					require.ErrorIs(rt, err, ErrNotFound)
				}
				require.True(rt, strings.HasPrefix(s.complete(), committed), "committed lines are missing")
			},
			"write": func(rt *rapid.T) {
				s := pick(rt)
				if s.copy == nil {
					rt.Skip("it does not run")
				}
				written++
				add(t, s.path, fmt.Sprintf("line %d", written)+rapid.SampledFrom([]string{"\n", "\n", "", "\nmore\n", "\nhalf"}).Draw(rt, "end"))
			},
			"save": func(rt *rapid.T) {
				s := pick(rt)
				if s.copy == nil {
					rt.Skip("it does not run")
				}
				saved, err := s.copy.Save(t.Context())
				switch {
				case errors.Is(err, ErrSuperseded):
					require.False(rt, strings.HasPrefix(s.complete(), committed), "a copy that goes on from the latest was refused")
				default:
					require.NoError(rt, err)
				}
				if saved {
					committed = s.complete()
				}
			},
			"lose the host": func(rt *rapid.T) {
				s := pick(rt)
				require.NoError(rt, os.RemoveAll(filepath.Dir(s.path)))
				s.copy = nil
			},
			"": func(rt *rapid.T) {
				if committed != "" {
					fresh := filepath.Join(base, fmt.Sprint(run), "fresh", session+".jsonl")
					_, err := copyAt(t, archive, fresh).Restore(t.Context())
					require.NoError(rt, err)
					require.Equal(rt, committed, text(t, fresh))
					require.NoError(rt, os.Remove(fresh))
				}
			},
		})
	})
}
