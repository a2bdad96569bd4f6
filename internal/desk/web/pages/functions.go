package pages

import (
	"fmt"
	"hash/fnv"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/desk/markdown"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// functions returns the functions of the templates.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":    p.assets.url,
		"moment":   p.moment,
		"dollars":  plaintext.Dollars, // of budgets and limits
		"amount":   plaintext.Cost,
		"count":    plaintext.Count,
		"cut":      cut,
		"markdown": func(text string) template.HTML { return markdown.HTML(cut(text, maxReply)) },
		"compact":  func(text string) string { return plaintext.Compact(cut(text, maxLine)) },
		"words":    func(value any) string { return escalation.InWords(fmt.Sprint(value)) },
		"sentence": sentence,
		"names":    names,
		"headOf":   headOf,
		"tone":     tone,
		"key":      key,
		"bytes":    byteCount,
		"number":   grouped,
		"length":   func(d escalation.Duration) string { return plaintext.Length(d.Std()) },
		"cost":     func(s escalation.Session) string { return operations.SessionCost(&s) },
		"subject":  escalation.CallSubject,
		"meaning": func(action escalation.GateAction, gate escalation.Gate) string {
			return gate.Meaning(action, p.Clock())
		},
		"facts":  func(gate escalation.Gate) []escalation.GateFact { return gate.Facts(p.Clock()) },
		"usedUp": func(gate escalation.Gate) bool { _, usedUp := gate.UsedUp(p.Clock()); return usedUp },

		"task":      func(s escalation.Session) string { return operations.SessionTask(&s) },
		"phaseName": operations.PhaseName,
		"progress":  operations.PhaseProgress,
		"commit":    operations.ShortCommit,
		"phaseTone": phaseTone,
		"fixes": func(phase escalation.PlanPhase) fixes {
			fixed, cost := operations.PhaseFixes(phase)
			return fixes{fixed, cost}
		},

		"sections": sections,
		"gateCard": func(f frame, form gateForm, tick, fold bool) gateCard { return gateCard{f, form, tick, fold} },
		"listOf": func(f frame, list []operations.Incident,
			back string,
		) closable {
			return closable{f, list, back}
		},
		"left":       func(use escalation.Use) int { return max(use.Limit.Max-use.Used, 0) },
		"programsOf": programsOf,
		"namedCost": func(id, title string, list []operations.NamedCost) namedCost {
			return namedCost{id, title, namedFirst(list)}
		},

		"chainPath":    pathOf("/chains/"),
		"incidentPath": pathOf("/incidents/"),
		"memoryPath":   pathOf(memoriesPath + "/"),
		"servicePath":  pathOf("/services/"),
		"schedulePath": pathOf("/schedules/"),
		"talkPath":     pathOf(talkPath + "/"),
		"aboutPath":    aboutPath,
		"turnOf":       func(name string, turn turnCard) namedTurn { return namedTurn{name, turn} },
		"external":     external,
		"sessionPath":  func(number int64) string { return "/sessions/" + strconv.FormatInt(number, 10) },
	}
}

// maxReply limits a reply on a page, in characters. It is more than a valid one has.
const maxReply = 40_000

// external returns the address of another site for a link; "" if it is none of the web.
func external(address string) string {
	if parsed, err := url.Parse(address); err != nil || parsed.Host == "" ||
		parsed.Scheme != "https" && parsed.Scheme != "http" {
		return ""
	}
	return address
}

// section is a link of the navigation, for people with a role.
type section struct {
	Path, Name string
	Role       access.Role
}

func sections() []section {
	return []section{
		{"/", "Now", access.View},
		{"/chains", "Chains", access.View},
		{talkPath, "Talk", access.ReadTalk},
		{"/incidents", "Incidents", access.View},
		{"/services", "Services", access.View},
		{memoriesPath, "Memories", access.View},
		{"/schedules", "Schedules", access.View},
		{"/cost", "Cost", access.View},
		{"/policy", "Policy", access.View},
	}
}

// gateCard is the data of the template of an open gate. Tick adds a box that selects the gate, and Fold folds the card.
type gateCard struct {
	Frame frame
	Form  gateForm
	Tick  bool
	Fold  bool
}

// closable is the data of a list of incidents that a person can close. Back is the path of the page with the list.
type closable struct {
	Frame frame
	List  []operations.Incident
	Back  string
}

// namedCost is the data of a table of costs.
type namedCost struct {
	ID, Title string
	List      []operations.NamedCost
}

// namedFirst returns the costs with a name before the one without. A look that finds no fault names no service: it is
// for all services.
func namedFirst(list []operations.NamedCost) []operations.NamedCost {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b operations.NamedCost) int {
		if (a.Name == "") == (b.Name == "") {
			return 0
		}
		if a.Name == "" {
			return 1
		}
		return -1
	})
	return sorted
}

// namedTurn is the data of the template of a turn: the name of its conversation, and the turn.
type namedTurn struct {
	Name string
	Turn turnCard
}

// phaseTone returns the class that colours the progress of a phase.
func phaseTone(phase escalation.PlanPhase, progress string) string {
	switch {
	case phase.Status == escalation.PhaseWaiting:
		return "calm"
	case progress == operations.PhaseAtGate || progress == operations.PhaseUnfinished:
		return "warn"
	}
	return tone(phase.Status)
}

// fixes says how many findings of a phase were fixed, and what the reviews cost for each.
type fixes struct{ Fixed, Cost string }

// aboutPath returns the path of the conversation about a chain.
func aboutPath(chainID string) string {
	return talkPath + "/" + url.PathEscape(escalation.AboutChain(chainID)) + "?" +
		url.Values{"about": {chainID}}.Encode()
}

// pathOf returns a function that appends a name to a path, as one segment.
func pathOf(prefix string) func(name any) string {
	return func(name any) string { return prefix + url.PathEscape(fmt.Sprint(name)) }
}

// moment is a time as a page shows it.
type moment struct {
	// Machine is the time in the form of HTML. Full is the date and the time of day with the zone.
	Machine, Full string
	// Clock is the time of day, with the date if that is not today's.
	Clock string
	// Text says how long ago the time was, or how far ahead it is. The script keeps it up to date in the same words.
	Text string
}

// moment describes t; nil for the zero time.
func (p *Pages) moment(t time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	now := p.Clock()
	t = t.In(now.Location())
	clock := t.Format(time.TimeOnly)
	if calendar.Of(t) != calendar.Of(now) {
		clock = t.Format("Jan 2 15:04")
	}
	return &moment{
		Clock:   clock,
		Machine: t.UTC().Format(time.RFC3339),
		Full:    t.Format("2006-01-02 15:04:05 MST"),
		Text:    relative(t.Sub(now)),
	}
}

// relative says how far away a time is, in the largest unit that fits, rounded.
func relative(d time.Duration) string {
	text := plaintext.About(d.Abs())
	if d.Abs().Round(time.Second) < 5*time.Second {
		return "now"
	}
	if d < 0 {
		return text + " ago"
	}
	return "in " + text
}

// message is the text of an event: its first line, and the others.
type message struct{ Head, Rest string }

func headOf(text string) message {
	head, rest, _ := strings.Cut(text, "\n")
	return message{head, strings.TrimSpace(rest)}
}

// names lists names, such as those of services.
func names(list []string) string { return strings.Join(list, ", ") }

// byteCount returns a number of bytes in words.
func byteCount(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return plaintext.Count(n, "byte")
}

// maxLine is the longest text that a page shows on one line, in characters.
const maxLine = 2_000

// cut returns text like plaintext.Cut, but does not read all of a text that has megabytes.
func cut(text string, limit int) string {
	if most := utf8.UTFMax * (limit + 1); len(text) > most {
		text = text[:most] // has more characters than limit
	}
	return plaintext.Cut(text, limit)
}

// grouped returns a number with a blank before each group of three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "\u202f" + text[at:]
	}
	return text
}

// key returns an ID for an element that belongs to something with a name. Names can have characters that an ID cannot.
func key(parts ...any) string {
	sum := fnv.New64a()
	_, _ = fmt.Fprintln(sum, parts...)
	return "k" + strconv.FormatUint(sum.Sum64(), 36)
}

// tone returns the class that colours a state. The state is always written, too, so that no meaning is in the colour
// alone.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case string(escalation.OutcomeHealthy), string(escalation.OutcomeResolved), string(escalation.SessionCompleted),
		string(escalation.OutcomeApproved), string(escalation.PhaseAccepted),
		string(escalation.ActionRestart), string(memory.StatusConfirmed), string(escalation.TalkAnswered), "allowed",
		"active",
		"ready", "complete", string(operations.StandingUp):
		return "good"
	case string(escalation.OutcomeNeedsHuman), string(escalation.IncidentWaiting), string(escalation.SeverityWarning),
		string(escalation.CheckDegraded), string(escalation.SessionTimedOut), string(escalation.SessionBudgetExhausted),
		string(memory.StatusCandidate), "waits for a person", "paused", "at run", "escalate",
		string(operations.StandingUnwell), string(operations.StandingAnswers),
		"not_ready", "ready_with_corrections":
		return "warn"
	case string(escalation.OutcomeFailed), string(escalation.IncidentOpen), string(escalation.SeverityCritical),
		string(escalation.CheckDown), string(escalation.SessionResumeFailed), string(escalation.SessionTranscriptLost),
		"denied", "terminated", "timedout":
		return "bad"
	case string(escalation.SessionRunning), string(escalation.IncidentRepairing):
		return "busy"
	}
	return "calm"
}
