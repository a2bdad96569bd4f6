//go:build soak

package year

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows"
)

// mutant breaks an installation, or what is seen of it. Its invariant must complain.
type mutant struct {
	name, complaint string
	days            int // 2 if it is 0
	settings        []string
	refuses, pace   int
	breaks          func(i *installation)
}

// after calls a function once the life has lasted for some hours, and then each hour.
func after(hours int, do func(i *installation)) func(i *installation) {
	return func(i *installation) {
		i.hourly = func(hour int) {
			if hour >= hours {
				do(i)
			}
		}
	}
}

// once is after, for one hour.
func once(hour int, do func(i *installation)) func(i *installation) {
	return func(i *installation) {
		i.hourly = func(now int) {
			if now == hour {
				do(i)
			}
		}
	}
}

// execute changes the records behind the installation's back.
func execute(query string) func(i *installation) {
	return func(i *installation) {
		database, err := sql.Open("sqlite", "file:"+i.cfg.State.DatabaseFile()+"?_pragma=busy_timeout(5000)&_pragma=foreign_keys(0)")
		require.NoError(i.t, err)
		defer func() { require.NoError(i.t, database.Close()) }()
		_, err = database.ExecContext(i.t.Context(), query)
		require.NoError(i.t, err)
	}
}

// shows changes what a page, the API or a command shows.
func shows(where string, change func(body []byte) []byte) func(i *installation) {
	return func(i *installation) {
		i.mangle = func(what string, body []byte) []byte {
			if strings.Contains(what, where) {
				return change(body)
			}
			return body
		}
	}
}

// says changes how the provider's refusal reaches the installation.
func says(way string, change func(report *activities.AgentReport)) func(i *installation) {
	return func(i *installation) {
		i.agents.distorts = func(name string, report *activities.AgentReport) {
			if name == way {
				change(report)
			}
		}
	}
}

func replace(old, with string) func(body []byte) []byte {
	return func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(old), []byte(with)) }
}

func mutants() []mutant {
	providerAway := func(report *activities.AgentReport) {
		report.Status, report.Ending = escalation.SessionFailed, escalation.EndingProvider
	}
	return []mutant{
		{name: "a session disappears", complaint: "has disappeared", breaks: once(20, execute(
			"DELETE FROM sessions WHERE id = (SELECT MIN(id) FROM sessions WHERE ended_at IS NOT NULL)"))},
		{name: "a turn disappears", complaint: "has disappeared", breaks: once(20, execute(
			"DELETE FROM talk_turns WHERE ended_at = (SELECT MIN(ended_at) FROM talk_turns)"))},
		{name: "an incident disappears", complaint: "incident", breaks: once(40, execute("DELETE FROM incidents"))},
		{name: "the records halve a cost", complaint: "and the records have", breaks: once(20, execute(
			"UPDATE sessions SET cost_usd = cost_usd / 2 WHERE ended_at IS NOT NULL"))},
		{name: "the budget forgets talks", complaint: "and the day's budget knows of", breaks: after(5, execute(
			"UPDATE sessions SET started_at = started_at - 172800000 WHERE purpose = 'talk'"))},
		{name: "a look is not paid for", complaint: "as a workflow", breaks: once(20, execute(
			"UPDATE sessions SET cost_usd = cost_usd + 1 WHERE ended_at IS NOT NULL AND chain_id LIKE 'chain-hourly%'"))},
		{
			name: "the budget is passed", complaint: "of a day's budget of", settings: []string{"DAY_BUDGET_USD=90"},
			breaks: func(i *installation) { i.cfg.Limits.DayBudgetUSD = 0.01 },
		},
		{name: "the API's costs differ", complaint: "the API add up to", breaks: shows("/api/v1/costs", replace(`"usd":`, `"usd":1`))},
		{name: "the command's costs differ", complaint: "the command add up to", breaks: shows("claudeops costs", replace(`"usd": `, `"usd": 1`))},
		{name: "the page's costs differ", complaint: "page /cost: 200", breaks: shows("/cost", replace("$", "€"))},
		{name: "the command lists other chains", complaint: "and the command does not", breaks: shows("claudeops chains", func([]byte) []byte {
			return []byte("[]")
		})},
		{name: "a chain waits without a reason", complaint: "without a reason", days: 4, breaks: after(20, execute(
			"UPDATE incident_chains SET reason = '' WHERE status = 'waiting'"))},
		{name: "a list is not bounded", complaint: "a list of 1001 entries", breaks: shows("/api/v1/services", func([]byte) []byte {
			list, _ := json.Marshal(make([]int, 1001)) // it cannot fail
			return list
		})},
		{name: "an answer is not bounded", complaint: "bytes", breaks: shows("/api/v1/services", func(body []byte) []byte {
			return append(body, bytes.Repeat([]byte(" "), maxAnswer)...)
		})},
		{name: "somebody else's answer", complaint: "and heard", breaks: func(i *installation) {
			i.agents.answers = func(activities.AgentRun, string) escalation.TalkReply {
				return escalation.TalkReply{Reply: "You asked «nothing» at 2026-01-01T00:00:00Z."}
			}
		}},
		{name: "an old answer", complaint: "heard an old answer", breaks: func(i *installation) {
			answers := i.agents.answers
			i.agents.answers = func(run activities.AgentRun, prompt string) escalation.TalkReply {
				reply := answers(run, prompt)
				reply.Reply = strings.ReplaceAll(reply.Reply, fmt.Sprint(time.Now().Year(), "-"), "2020-")
				return reply
			}
		}},
		{name: "turns go back", complaint: "follows turn", breaks: func(i *installation) {
			i.heardBy = func(one *said) { one.turn = 1 }
		}},
		{name: "no answer", complaint: "has no answer after", breaks: shows("/turns/", replace(`"answered"`, `"running"`))},
		{name: "no sentence", complaint: "without a sentence", breaks: shows("/turns/", replace(`"answered"`, `"failed"`))},
		{name: "two agents at one service", complaint: "two agents work at", days: 4, breaks: after(0, func(i *installation) {
			for _, service := range services() {
				i.agents.repairs = append(i.agents.repairs, repair{span{time.Now(), time.Now().Add(time.Hour)}, "another", service})
			}
		})},
		{name: "a look imagines a fault", complaint: "which nobody had to", breaks: func(i *installation) { i.imagines = "web" }},
		{name: "looks are blind", complaint: "and no incident says so", days: 4, breaks: func(i *installation) { i.blind = true }},
		{name: "an incident never ends", complaint: "and all its services are healthy", days: 4, breaks: func(i *installation) {
			i.hourly = func(hour int) {
				if hour == 4*24-1 {
					for _, service := range services() {
						i.faults[service] = nil
					}
				}
			}
		}},
		{name: "a sweep settles what runs", complaint: "a sweep settled", breaks: after(5, func(i *installation) {
			running, err := i.records.Running(i.t.Context())
			require.NoError(i.t, err)
			for _, one := range running {
				_, err := clocked{i.records, i, "x"}.SettleSession(i.t.Context(), one.SessionID, escalation.Report{Status: escalation.SessionStopped}, time.Now())
				require.NoError(i.t, err)
			}
		})},
		{name: "a notification comes twice", complaint: "people got the notification", days: 4, breaks: after(20, func(i *installation) {
			if len(i.told) > 0 {
				i.told = append(i.told, i.told[0])
			}
		})},
		{name: "the pager is forgotten", complaint: "and no event says so", days: 4, breaks: after(20, func(i *installation) { clear(i.paged) })},
		{name: "nobody is told", complaint: "nobody was told of", days: 6, breaks: after(0, func(i *installation) { i.told = nil })},
		{
			name: "nobody is asked", complaint: "ends known: it leaves", days: 6, settings: []string{"GATE_TIMEOUT=2h"},
			breaks: after(0, func(i *installation) { i.told = nil }),
		},
		{name: "a refusal looks like an outage", complaint: "and refused each time: refused", days: 6, refuses: 40, breaks: says("refused", providerAway)},
		{name: "a poisoned conversation looks like an outage", complaint: "for good, and", days: 6, refuses: 40, breaks: says("poisoned", providerAway)},
		{
			name: "a limit looks shorter", complaint: "although it is known that the account is limited", days: 6, refuses: 40,
			breaks: says("limited", func(report *activities.AgentReport) { report.LimitedUntil = time.Now().Add(time.Second) }),
		},
		{name: "a goroutine leaks", complaint: "goroutines", days: 6, breaks: after(0, func(i *installation) {
			i.background.Go(func() { <-i.ctx.Done() })
		})},
		{name: "memory leaks", complaint: "the heap has", days: 5, breaks: func(i *installation) {
			var kept [][]byte
			i.hourly = func(int) { kept = append(kept, make([]byte, 8<<20)) }
			i.t.Cleanup(func() { runtime.KeepAlive(kept) })
		}},
		{name: "a kilobyte of each session leaks", complaint: "the product holds", days: 7, breaks: func(i *installation) {
			var kept []string
			i.hourly = func(int) {
				for len(kept) < i.agents.sessions() {
					kept = append(kept, plaintext.Compact(strings.Repeat("a word ", 146))) // the product allocates it
				}
			}
			i.t.Cleanup(func() { runtime.KeepAlive(kept) })
		}},
		{name: "a file leaks", complaint: "files", breaks: after(0, func(i *installation) {
			require.NoError(i.t, os.WriteFile(filepath.Join(i.home, fmt.Sprint("leak-", time.Now().Unix())), nil, 0o600))
		})},
		{name: "retention removes nothing", complaint: "rows", days: 130, pace: 10, settings: []string{"RETENTION=744h"}, breaks: func(i *installation) {
			i.hoards = true
		}},
		{name: "an operation is slow", complaint: "of the processors", breaks: shows("/api/v1/services", func(body []byte) []byte {
			for begin := realTime(); realTime()-begin < 1200*time.Millisecond; { //nolint:revive // it uses the processor
			}
			return body
		})},
		{name: "a memory changes", complaint: "a person has confirmed", breaks: func(i *installation) {
			i.hourly = func(hour int) {
				switch hour {
				case 8:
					_, stdout, complaint := i.command(i.t.Context(), 0, "memory", "add", "Restart web twice.", "--subject", "web", "--actor", "ada", "-o", "json")
					var added struct{ ID string }
					require.NoError(i.t, json.Unmarshal(stdout, &added), complaint)
					i.seen.memories[added.ID] = "Restart web twice."
				case 20:
					execute("UPDATE memories SET text = 'Restart web thrice.'")(i)
				}
			}
		}},
		{name: "a run loses its signals", complaint: "runs since", days: 6, breaks: func(i *installation) {
			i.temporal.loses = workflows.WaitingSignal
		}},
	}
}

// TestSoakMutants breaks an installation in each way of the table. The complaint shows that the invariant works.
func TestSoakMutants(t *testing.T) {
	for _, one := range mutants() {
		t.Run(one.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				i := newInstallation(t, life{
					seed: 3, days: max(2, one.days), begin: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), zone: time.UTC, settings: one.settings,
					refuses: one.refuses, pace: one.pace, breaks: one.breaks,
				})
				i.live()
				n := slices.IndexFunc(i.problems, func(problem string) bool { return strings.Contains(problem, one.complaint) })
				require.GreaterOrEqual(t, n, 0, "nobody complains of %q: %s", one.complaint, strings.Join(i.problems, "\n"))
				t.Logf("soak: mutant: %s: %.200s", one.name, i.problems[n])
			})
		})
	}
}
