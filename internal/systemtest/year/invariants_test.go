package year

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // reads the records beside the store

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

const (
	// cent is what two sums of the same amounts may differ by, in US dollars.
	cent = 0.000_1
	// maxList is the largest number of entries of a list, and maxAnswer the largest answer, in bytes.
	maxList, maxAnswer = 1_000, 2 << 20
	// heapAtMost is what the heap may grow by in a life, in bytes, besides heapOfRun for each run of a workflow.
	heapAtMost, heapOfRun = 32 << 20, 80 << 10
	// productAtMost is what the memory of the product may grow by in a life, in bytes, besides productOfSession for
	// each session.
	productAtMost, productOfSession = 96 << 10, 256
	// maxOperation is the time that an operation may take, of the processors.
	maxOperation = time.Second
)

// seen is what the watcher has seen before.
type seen struct {
	turns map[string]int // the latest turn of each person
	// ended holds the ends of the sessions that the records had, by session, and of the turns, by conversation and
	// turn.
	ended map[string]time.Time
	// memories holds what people have decided: the texts that they have confirmed, by the ID; empty for those that they
	// have deleted.
	memories map[string]string
	asked    map[string]string // what the sessions of talks were asked
	// alone holds since when nobody takes care of an open incident.
	alone map[string]time.Time
	// early and late are the numbers of goroutines on the third day and on the last one, without those of runs that
	// have continued.
	early, late int
	// runsEarly and runsLate are the workflows that ran then.
	runsEarly, runsLate int
	// rows and files are how much there was at half time.
	rows  int64
	files int
	// longest holds the two longest times of each operation.
	longest map[string][2]time.Duration
}

func (s *seen) begin() {
	s.turns, s.ended, s.memories, s.alone = map[string]int{}, map[string]time.Time{}, map[string]string{}, map[string]time.Time{}
	s.asked, s.longest = map[string]string{}, map[string][2]time.Duration{}
}

// figures are those of a life.
type figures struct {
	seed                          uint64
	days, sessions, turns         int
	usd                           float64
	rows, bytes                   int64
	told, goroutines, longestList int
	longestHistory, workflows     int
	heapEarly, heapLate           uint64 // in use on the third day and at the end
	productEarly, productLate     int64  // of these, what the product has allocated
	sessionsEarly                 int
	ran, refused, continued       map[string]int
	slowest                       time.Duration
	slowestName, longestListName  string
	incidents, memories           int
}

// String returns the figures in one line.
func (f figures) String() string {
	return fmt.Sprintf("seed=%d days=%d sessions=%d turns=%d usd=%.2f rows=%d bytes=%d incidents=%d memories=%d told=%d goroutines=%d history=%d heap=%d..%d product_heap=%d..%d workflows=%d "+
		"longest_list=%d (%s) slowest=%s (%s) ran=%v refused=%v continued=%v", f.seed, f.days, f.sessions, f.turns, f.usd, f.rows, f.bytes, f.incidents, f.memories,
		f.told, f.goroutines, f.longestHistory, f.heapEarly, f.heapLate, f.productEarly, f.productLate, f.workflows, f.longestList, f.longestListName, f.slowest.Round(time.Millisecond), f.slowestName, f.ran, f.refused,
		f.continued)
}

// watch looks at the installation each hour until a time.
func (i *installation) watch(ctx context.Context, until time.Time) {
	for hour, at := 0, i.life.begin.Add(37*time.Minute); at.Before(until); hour, at = hour+1, at.Add(time.Hour) {
		time.Sleep(time.Until(at))
		i.hourly(hour)
		i.checkHour(ctx)
		if hour%24 == 12 {
			i.checkDay(ctx)
		}
		if *verbose {
			i.temporal.mu.Lock()
			fmt.Println(time.Now().UTC().Format(time.DateTime), realTime().Round(time.Millisecond), runtime.NumGoroutine(), i.temporal.calls, i.temporal.continued)
			i.temporal.mu.Unlock()
		}
	}
	time.Sleep(time.Until(until))
}

// checkHour checks what must hold in each hour: what waits has a reason, and the day's budget knows all that was paid.
func (i *installation) checkHour(ctx context.Context) {
	now := time.Now()
	shown := i.does.Overview.Now(ctx)
	for _, part := range []operations.Part{shown.Gates.Part, shown.Work.Part, shown.Waits.Part, shown.Incidents.Part, shown.Day.Part} {
		if part.Problem != "" {
			i.problem("the overview has a problem: %s", part.Problem)
		}
	}
	for _, wait := range shown.Waits.Chains {
		if strings.TrimSpace(wait.Reason) == "" {
			i.problem("chain %s waits (%s) without a reason", wait.ChainID, wait.Kind)
		}
	}
	for _, incident := range shown.Incidents.Incidents {
		for _, chain := range incident.Chains {
			if chain.Status == "waiting" && chain.Reason == "" {
				i.problem("chain %s waits with %s without a reason", chain.ChainID, incident.ID)
			}
		}
	}
	i.checkCare(ctx)
	i.agents.mu.Lock()
	paid := i.agents.paidDays[now.UTC().Format(time.DateOnly)]
	i.agents.mu.Unlock()
	if total := shown.Day.SpentUSD + shown.Day.ReservedUSD; total < paid-cent {
		i.problem("the provider has billed $%.4f today, and the day's budget knows of $%.4f", paid, total)
		i.checkBill(ctx, now.UTC().Truncate(24*time.Hour), true)
	}
	if budget := i.cfg.Limits.DayBudgetUSD; budget > 0 && paid > budget+cent {
		i.problem("the provider has billed $%.4f today, of a day's budget of $%.2f", paid, budget)
	}
	if now.Hour()%6 == 0 {
		i.checkNowAgain(ctx, shown)
	}
	i.figures.goroutines = max(i.figures.goroutines, runtime.NumGoroutine())
}

// alone is how long an incident may stay open without anybody who can repair it: until the looks after the one that has
// tried.
const aloneAtMost = 5 * time.Hour

// checkCare checks that no incident is left as known while nobody can repair it: a chain of it runs, or people were
// asked.
func (i *installation) checkCare(ctx context.Context) {
	now := time.Now()
	incidents, err := i.records.Incidents(ctx, store.IncidentFilter{})
	if err != nil {
		i.problem("the incidents: %v", err)
		return
	}
	open := map[string]bool{}
	for _, incident := range incidents {
		open[incident.ID] = true
		if !slices.ContainsFunc(firstNames(incident.Services), func(service string) bool { return i.broken(service, now) != nil }) || i.cared(incident) {
			delete(i.seen.alone, incident.ID)
			continue
		}
		since, known := i.seen.alone[incident.ID]
		if !known {
			i.seen.alone[incident.ID] = now
		} else if now.Sub(since) > i.slowly(aloneAtMost) && !i.disturbed(since, now) {
			i.problem("%s is open since %s: no chain of it runs, and nobody was asked", incident.Describe(), since)
			delete(i.seen.alone, incident.ID)
		}
	}
	for id := range i.seen.alone {
		if !open[id] {
			delete(i.seen.alone, id)
		}
	}
}

// hearsWithin is how long it may take until people have got a notification: a Delivery tries for an hour, and agents
// may end late.
const hearsWithin = 2 * time.Hour

// checkKnown checks a chain that has ended "known", at that moment: the chain to which it leaves an incident can repair
// it, because it runs, or people can, because it has asked them. A chain that waits for an answer, or has ended for
// want of one, must have asked.
func (i *installation) checkKnown(chain escalation.Chain) {
	if chain.Outcome != escalation.OutcomeKnown {
		return
	}
	for _, left := range chain.Incidents {
		if left.Handler == "" || left.Resolved {
			continue
		}
		i.temporal.mu.Lock()
		handler, since, does := i.temporal.executions[left.Handler], time.Time{}, "is not known to Temporal any more"
		switch {
		case handler == nil:
		case !handler.closed.IsZero():
			since, does = handler.closed, "has ended"
		case !handler.asksSince.IsZero():
			since, does = handler.asksSince, "waits for an answer"
		default: // it works, or waits for a time
			i.temporal.mu.Unlock()
			continue
		}
		i.temporal.mu.Unlock()
		late := leftAt(chain, left).Sub(since) > i.slowly(hearsWithin) && !slices.ContainsFunc(i.outages, func(one span) bool {
			return one.from.Before(since.Add(hearsWithin)) && one.to.After(since)
		})
		if late && !i.asked(left.Handler) {
			i.problem("chain %s ends known: it leaves %s to chain %s, which %s since %s, and nobody was asked", chain.ID, left.ID, left.Handler,
				does, since.UTC().Format(time.RFC3339))
		}
	}
}

// leftAt returns the time at which a chain has last left an incident to another one. A chain that was split ends long
// after that.
func leftAt(chain escalation.Chain, left escalation.ChainIncident) (at time.Time) {
	for _, event := range chain.Events {
		if event.Kind == escalation.EventIncident && strings.Contains(event.Message, ": "+left.ID+" (") {
			at = event.At
		}
	}
	return at
}

// asked reports whether people have got a notification in which the chain, or the chain of one of its issues, asks for
// them.
func (i *installation) asked(chainID string) bool {
	asks := []escalation.NotificationKind{
		escalation.NotifyNeedsHuman, escalation.NotifyFailed, escalation.NotifyBlocked, escalation.NotifyBudgetSpent,
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.told, func(told escalation.Notification) bool {
		return (told.ChainID == chainID || strings.HasPrefix(told.ChainID, chainID+"-issue-")) && slices.Contains(asks, told.Kind)
	})
}

// cared reports whether a chain of an incident runs, or has asked people.
func (i *installation) cared(incident escalation.Incident) bool {
	return slices.ContainsFunc(incident.Chains, func(chain escalation.IncidentChain) bool {
		if chain.Status != escalation.ChainEnded && i.temporal.running(chain.ChainID) != nil {
			return true
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		return slices.ContainsFunc(i.told, func(told escalation.Notification) bool {
			return told.ChainID == chain.ChainID && told.Kind != escalation.NotifyResolved && !incident.WorseAt.After(chain.At)
		})
	})
}

// disturbed reports whether something kept chains from beginning at some time: the database, the provider, or the day's
// budget.
func (i *installation) disturbed(from, to time.Time) bool {
	spans := slices.Clone(i.outages)
	for _, one := range i.refusals {
		spans = append(spans, one.span)
	}
	i.agents.mu.Lock()
	spans = append(spans, i.agents.limited)
	i.agents.mu.Unlock()
	return i.cfg.Limits.DayBudgetUSD > 0 || slices.ContainsFunc(spans, func(one span) bool { return one.from.Before(to) && one.to.After(from) })
}

// checkNowAgain checks that the API and the page show the money of the overview.
func (i *installation) checkNowAgain(ctx context.Context, shown operations.Now) {
	var again operations.Now
	i.get(ctx, "/api/v1/now", &again)
	if math.Abs(again.Day.SpentUSD-shown.Day.SpentUSD) > cent || len(again.Waits.Chains) != len(shown.Waits.Chains) {
		i.problem("the API says that $%.4f are spent and %d chains wait, the overview $%.4f and %d",
			again.Day.SpentUSD, len(again.Waits.Chains), shown.Day.SpentUSD, len(shown.Waits.Chains))
	}
	i.page(ctx, "/", dollars(shown.Day.SpentUSD))
}

// dollars writes an amount as the pages do.
func dollars(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// get asks the API, and decodes the answer. It notes how long lists are.
func (i *installation) get(ctx context.Context, path string, into any) {
	status, body := i.ask(ctx, "ada", http.MethodGet, path, nil)
	if status != http.StatusOK {
		i.problem("GET %s: %d %s", path, status, body)
		return
	}
	i.checkSize(path, body)
	if err := json.Unmarshal(body, into); err != nil {
		i.problem("GET %s: %v", path, err)
	}
}

// page reads a page, which must have a text.
func (i *installation) page(ctx context.Context, path, text string) {
	status, body := i.ask(ctx, "ada", http.MethodGet, path, nil)
	if status != http.StatusOK || !strings.Contains(string(body), text) {
		i.problem("page %s: %d, without %s", path, status, text)
	}
	i.checkSize(path, body)
}

// checkSize checks that an answer and its lists are bounded.
func (i *installation) checkSize(path string, body []byte) {
	if len(body) > maxAnswer {
		i.problem("GET %s: %d bytes", path, len(body))
	}
	var document any
	if json.Unmarshal(body, &document) != nil {
		return
	}
	if longest := longestList(document); longest > i.figures.longestList {
		i.figures.longestList, i.figures.longestListName = longest, path
		if longest > maxList {
			i.problem("GET %s: a list of %d entries", path, longest)
		}
	}
}

func longestList(value any) (longest int) {
	switch value := value.(type) {
	case []any:
		longest = len(value)
		for _, one := range value {
			longest = max(longest, longestList(one))
		}
	case map[string]any:
		for _, one := range value {
			longest = max(longest, longestList(one))
		}
	}
	return longest
}

// checkDay checks once a day what takes longer: sums over all sessions, what must still be there, and all lists.
func (i *installation) checkDay(ctx context.Context) {
	i.checkCosts(ctx)
	i.checkBill(ctx, time.Now().Add(-50*time.Hour), false)
	i.checkKept(ctx)
	i.checkChains(ctx)
	i.checkMemories(ctx)
	for _, path := range []string{
		"/api/v1/incidents", "/api/v1/incidents?all=true", "/api/v1/memories", "/api/v1/conversations", "/api/v1/gates", "/api/v1/schedules",
		"/api/v1/services", "/api/v1/chains?limit=100", "/api/v1/conversations/@me/turns",
	} {
		var list any
		i.get(ctx, path, &list)
	}
	for _, path := range []string{"/incidents", "/chains", "/services", "/memories", "/schedules", "/talk", "/services/db"} {
		i.page(ctx, path, "</html>")
	}
	if day := int(time.Since(i.life.begin) / (24 * time.Hour)); day == 2 {
		i.seen.early, i.seen.runsEarly = i.goroutines()
		i.figures.heapEarly, i.figures.productEarly, i.figures.sessionsEarly = heap(), productHeap(), i.agents.sessions()
	}
	i.seen.late, i.seen.runsLate = i.goroutines()
	if age := time.Since(i.life.begin); i.seen.rows == 0 && age > time.Duration(i.days)*12*time.Hour {
		i.seen.rows, i.seen.files = i.count(ctx, nil), i.files()
	}
}

// ofRun is how many goroutines a workflow that runs may have.
const ofRun = 12

// goroutines returns the number of goroutines, without those that the SDK's environment keeps, one for each run that
// has continued as new, and the number of workflows that run. Time passes only when nothing else can happen, so
// goroutines that are ending have ended.
func (i *installation) goroutines() (count, running int) {
	time.Sleep(time.Millisecond)
	i.temporal.mu.Lock()
	defer i.temporal.mu.Unlock()
	count = runtime.NumGoroutine()
	for _, one := range i.temporal.executions {
		if one.closed.IsZero() {
			running++
		}
	}
	for _, continued := range i.temporal.continued {
		count -= continued
	}
	return count, running
}

// heap returns the bytes in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// count returns the number of rows in the records. It also puts the rows of some tables into the counts.
func (i *installation) count(ctx context.Context, counts map[string]*int) (rows int64) {
	status, err := store.Inspect(ctx, i.cfg.State.DatabaseFile())
	if err != nil {
		i.problem("the status of the database: %v", err)
	}
	i.figures.bytes = status.SizeBytes
	for _, table := range status.Tables {
		rows += table.Rows
		if count := counts[table.Table]; count != nil {
			*count = int(table.Rows)
		}
	}
	return rows
}

// files returns the number of files of the installation.
func (i *installation) files() (count int) {
	err := filepath.WalkDir(i.home, func(_ string, _ fs.DirEntry, err error) error {
		count++
		return err
	})
	if err != nil {
		i.problem("the files: %v", err)
	}
	return count
}

// checkGrowth checks that nothing grows faster than what is kept. With a retention that is short beside the life, the
// records of the end are about as many as those of half time.
func (i *installation) checkGrowth() {
	if i.seen.late > i.seen.early+60+ofRun*max(0, i.seen.runsLate-i.seen.runsEarly) {
		i.problem("there are %d goroutines; on the third day there were %d", i.seen.late, i.seen.early)
	}
	// The environment keeps some 50 KB of each run, whatever retention removes.
	if most := i.figures.heapEarly + heapAtMost + heapOfRun*uint64(i.figures.workflows); i.figures.heapLate > most { //nolint:gosec // a count
		i.problem("the heap has %d bytes; on the third day it had %d, and %d runs have begun", i.figures.heapLate, i.figures.heapEarly, i.figures.workflows)
	}
	short := i.cfg.State.Retention > 0 && i.cfg.State.Retention < time.Duration(i.days)*6*time.Hour
	if short && 2*i.figures.rows > 3*i.seen.rows+600 {
		i.problem("there are %d rows; at half time there were %d, and retention is %s", i.figures.rows, i.seen.rows, i.cfg.State.Retention)
	}
	if files := i.files(); files > i.seen.files+10 {
		i.problem("there are %d files; at half time there were %d", files, i.seen.files)
	}
}

// checkProductHeap checks that the product keeps nothing of each session in its memory.
func (i *installation) checkProductHeap(sessions int) {
	f, begun := &i.figures, sessions-i.figures.sessionsEarly
	if f.productEarly > 0 && f.productLate > f.productEarly+productAtMost+int64(productOfSession*begun) {
		i.problem("the product holds %d bytes; on the third day it held %d, and %d sessions have begun since", f.productLate, f.productEarly, begun)
	}
}

// checkCosts compares the report of costs, of operations, the API and the page, with the sum over the sessions.
func (i *installation) checkCosts(ctx context.Context) {
	begin := realTime()
	report, err := i.does.Costs.Report(ctx, operations.CostFilter{})
	i.took("costs", realTime()-begin)
	if err != nil {
		i.problem("the report of costs: %v", err)
		return
	}
	days := 0.0
	for _, day := range report.Days {
		days += day.USD
	}
	var usd float64
	var sessions int
	row := i.database.QueryRowContext(ctx,
		"SELECT COUNT(*), COALESCE(SUM(cost_usd), 0) FROM sessions WHERE started_at >= $1 AND started_at < $2 AND ended_at IS NOT NULL",
		report.From.UnixMilli(), report.To.UnixMilli())
	if err := row.Scan(&sessions, &usd); err != nil {
		i.problem("the sum over sessions: %v", err)
	}
	var again operations.CostReport
	i.get(ctx, "/api/v1/costs", &again)
	var printed operations.CostReport
	i.print(ctx, &printed, "costs")
	for name, total := range map[string]float64{"the days": days, "the sessions": usd, "the API": again.Total.USD, "the command": printed.Total.USD} {
		if math.Abs(total-report.Total.USD) > cent {
			i.problem("%s add up to $%.4f, and the report to $%.4f", name, total, report.Total.USD)
		}
	}
	if sessions != report.Total.Sessions {
		i.problem("there are %d sessions, and the report has %d", sessions, report.Total.Sessions)
	}
	i.page(ctx, "/cost", dollars(report.Total.USD))
}

// checkKept checks that no session and no turn disappears that retention does not remove.
func (i *installation) checkKept(ctx context.Context) {
	found := map[string]time.Time{}
	for _, query := range []string{
		"SELECT session_id, ended_at FROM sessions WHERE ended_at IS NOT NULL",
		"SELECT conversation_id || ' ' || turn, ended_at FROM talk_turns WHERE ended_at IS NOT NULL",
		"SELECT 'incident ' || id, COALESCE(resolved_at, 9999999999999) FROM incidents", // an open one may have been resolved before
	} {
		if err := i.readTimes(ctx, query, found); err != nil {
			i.problem("%s: %v", query, err)
			return
		}
	}
	keep := i.cfg.State.Retention
	for name, ended := range i.seen.ended {
		_, still := found[name]
		if old := keep > 0 && time.Since(ended) > keep-maxStep; !still && !old {
			i.problem("%s, which ended at %s, has disappeared; retention is %s", name, ended.UTC().Format(time.RFC3339), keep)
		}
		if !still {
			delete(i.seen.ended, name)
		}
	}
	maps.Copy(i.seen.ended, found)
}

// readTimes puts the rows of a query, each with a name and a time, into a map.
func (i *installation) readTimes(ctx context.Context, query string, into map[string]time.Time) error {
	rows, err := i.database.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var at int64
		if err := rows.Scan(&name, &at); err != nil {
			return err
		}
		into[name] = time.UnixMilli(at)
	}
	return rows.Err()
}

// listed returns the last page of chains as the API lists it and as the command prints it. Chains begin and end between
// the two, so it reads them again until the API's has not changed meanwhile.
func (i *installation) listed(ctx context.Context) (page operations.ChainPage, printed []operations.Row) {
	same := func(a, b operations.Row) bool { return a.ID == b.ID && a.Status == b.Status && a.CostUSD == b.CostUSD }
	for range 10 {
		var before operations.ChainPage
		page, printed = operations.ChainPage{}, nil
		i.get(ctx, "/api/v1/chains?limit=40", &before)
		i.print(ctx, &printed, "chains", "--limit", "40")
		i.get(ctx, "/api/v1/chains?limit=40", &page)
		if slices.EqualFunc(before.Chains, page.Chains, same) {
			break
		}
	}
	return page, printed
}

// checkChains compares each chain of the last page with its sessions, its row and its incident.
func (i *installation) checkChains(ctx context.Context) {
	page, printed := i.listed(ctx)
	for n, row := range page.Chains {
		if n >= len(printed) || printed[n].ID != row.ID || math.Abs(printed[n].CostUSD-row.CostUSD) > cent || printed[n].Status != row.Status {
			i.problem("the API lists chain %s with $%.4f, and the command does not", row.ID, row.CostUSD)
		}
	}
	for _, row := range page.Chains {
		chain, err := i.does.Chains.Get(ctx, row.ID)
		if err != nil {
			i.problem("chain %s: %v", row.ID, err)
			continue
		}
		var usd float64
		err = i.database.QueryRowContext(ctx, "SELECT COALESCE(SUM(cost_usd), 0) FROM sessions WHERE chain_id = $1 AND ended_at IS NOT NULL", row.ID).Scan(&usd)
		if err != nil {
			i.problem("the sum of chain %s: %v", row.ID, err)
		}
		whole := chain.Chain.CostWithIssuesUSD()
		if shown := chain.Chain.CostUSD; math.Abs(shown-usd) > cent || row.Status != "running" && math.Abs(row.CostUSD-whole) > cent {
			i.problem("chain %s costs $%.4f as a workflow, with issues $%.4f, in the list $%.4f, and its sessions $%.4f", row.ID, shown, whole, row.CostUSD, usd)
		}
	}
}

// conclude checks what must hold at the end, and takes the figures.
func (i *installation) conclude(ctx context.Context) {
	i.checkDay(ctx)
	i.checkBill(ctx, i.life.begin, false)
	i.checkWorld(ctx)
	i.checkTold(ctx)
	if slowest := i.figures.slowest; slowest > maxOperation {
		i.problem("%s took %s of the processors", i.figures.slowestName, slowest)
	}
	sessions := i.agents.sessions()
	i.agents.mu.Lock()
	defer i.agents.mu.Unlock()
	f := &i.figures
	for _, usd := range i.agents.paidDays {
		f.usd += usd
	}
	f.seed, f.days, f.told, f.ran, f.refused, f.longestHistory = i.seed, i.days, len(i.told), i.agents.ran, i.agents.refused, i.temporal.longest
	f.continued, f.heapLate, f.workflows = i.temporal.continued, heap(), i.temporal.began
	f.productLate = productHeap()
	i.checkProductHeap(sessions)
	f.rows = i.count(ctx, map[string]*int{"sessions": &f.sessions, "talk_turns": &f.turns, "incidents": &f.incidents, "memories": &f.memories})
	i.checkGrowth()
}

// checkBill compares the provider's bill with the records, for each ended session since a time. Estimates may differ,
// unless exact is set.
func (i *installation) checkBill(ctx context.Context, since time.Time, exact bool) {
	rows, err := i.database.QueryContext(ctx, "SELECT session_id, chain_id, status, cost_usd, cost_estimated, ended_at IS NULL FROM sessions WHERE started_at >= $1",
		since.UnixMilli())
	if err != nil {
		i.problem("the sessions: %v", err)
		return
	}
	defer rows.Close()
	i.agents.mu.Lock()
	defer i.agents.mu.Unlock()
	known := map[string]bool{}
	for rows.Next() {
		var id, chain, status string
		var usd float64
		var estimated, open bool
		if err := rows.Scan(&id, &chain, &status, &usd, &estimated, &open); err != nil {
			i.problem("the sessions: %v", err)
			return
		}
		known[id] = true
		if paid := i.agents.paidSessions[id]; !open && math.Abs(paid-usd) > cent && (exact || !estimated) {
			i.problem("session %s of %s (%s) has cost $%.4f, and the records have $%.4f", id, chain, status, paid, usd)
		}
	}
	if err := rows.Err(); err != nil {
		i.problem("the sessions: %v", err)
		return
	}
	for id, usd := range i.agents.paidSessions {
		if !known[id] && usd > 0 && i.cfg.State.Retention == 0 && since.Equal(i.life.begin) {
			i.problem("session %s has cost $%.4f, and the records do not know it", id, usd)
		}
	}
}

// checkWorld checks that what is broken for long is known, and that what is open is broken.
func (i *installation) checkWorld(ctx context.Context) {
	now := time.Now()
	incidents, err := i.records.Incidents(ctx, store.IncidentFilter{})
	if err != nil {
		i.problem("the incidents: %v", err)
		return
	}
	affected := map[string]bool{}
	for _, incident := range incidents {
		broken := incident.IsFailedLook()
		for _, service := range firstNames(incident.Services) {
			affected[service] = true
			for ago := time.Duration(0); ago <= 3*time.Hour; ago += 5 * time.Minute {
				broken = broken || i.broken(service, now.Add(-ago)) != nil
			}
		}
		if !broken {
			i.problem("%s is open, and all its services are healthy", incident.Describe())
		}
	}
	for _, service := range services() {
		if one := i.broken(service, now); one != nil && now.Sub(one.begins) > 5*time.Hour && !affected[service] && !i.unseen(ctx, service) {
			i.problem("%s is broken since %s, and no incident says so", service, one.begins)
		}
	}
}

// unseen reports whether people were told that the looks at a service fail, so that nobody can know what it has.
func (i *installation) unseen(ctx context.Context, service string) bool {
	incidents, err := i.records.Incidents(ctx, store.IncidentFilter{})
	if err != nil {
		i.problem("the incidents: %v", err)
	}
	return slices.ContainsFunc(incidents, func(one escalation.Incident) bool {
		of := len(one.Services) == 0 || slices.Contains(firstNames(one.Services), service)
		return one.IsFailedLook() && of && i.cared(one)
	})
}

// checkTold checks that people were told of each fault that lasts, that nobody got a notification twice, and not more
// of them than there are things to tell, and that an event says what one of the targets did not get.
func (i *installation) checkTold(ctx context.Context) {
	now := time.Now()
	i.mu.Lock()
	told, paged := slices.Clone(i.told), maps.Clone(i.paged)
	i.mu.Unlock()
	faults := 0
	for service, list := range i.faults {
		for _, one := range list {
			faults++
			if one.repairedBy != 0 || now.Sub(one.begins) < i.slowly(30*time.Hour) || i.broken(service, now) != one || i.unseen(ctx, service) {
				continue
			}
			if !slices.ContainsFunc(told, func(n escalation.Notification) bool {
				return strings.Contains(n.Title+n.Text, service) && n.Kind != escalation.NotifyResolved
			}) {
				i.problem("nobody was told of %s, which is broken since %s", service, one.begins)
			}
		}
	}
	keys := map[string]bool{}
	for _, one := range told {
		if keys[one.Key] {
			i.problem("people got the notification %s twice: %s", one.Key, one.Title)
		}
		keys[one.Key] = true
		if paged[one.Key] == 0 && i.cfg.State.Retention == 0 && !i.recorded(ctx, one.ChainID, escalation.EventNotNotified) {
			i.problem("the pager did not get %s of chain %s, and no event says so", one.Key, one.ChainID)
		}
	}
	for key, count := range paged {
		if count > 1 {
			i.problem("the pager got the notification %s %d times", key, count)
		}
	}
	// Of each fault people hear when it begins, when it becomes worse, when its gate expires and when it is over.
	i.agents.mu.Lock()
	most := 8 * (faults + len(i.refusals) + i.agents.ran["answers"] + i.agents.ran["closed"] + i.agents.ran["plans"] + i.agents.refusedAlone)
	i.agents.mu.Unlock()
	if len(told) > most {
		i.problem("people got %d notifications of %d faults, at most %d were expected", len(told), faults, most)
	}
}

// session returns when a session was opened, and whether a person had it started in spite of a limit.
func (i *installation) session(id string) (opened time.Time, forced bool) {
	var at int64
	row := i.database.QueryRowContext(i.t.Context(), "SELECT started_at, forced FROM sessions WHERE session_id = $1", id)
	if err := row.Scan(&at, &forced); err != nil {
		i.problem("session %s: %v", id, err)
	}
	return time.UnixMilli(at), forced
}

// recorded reports whether a chain has an event.
func (i *installation) recorded(ctx context.Context, chainID string, kind escalation.EventKind) bool {
	var count int
	row := i.database.QueryRowContext(ctx, "SELECT COUNT(*) FROM events WHERE chain_id = $1 AND kind = $2", chainID, string(kind))
	if err := row.Scan(&count); err != nil {
		i.problem("the events of chain %s: %v", chainID, err)
	}
	return count > 0
}

// openDatabase opens the records beside the store, to read them.
func openDatabase(file string) (*sql.DB, error) { return sql.Open("sqlite", "file:"+file+"?mode=ro") }
