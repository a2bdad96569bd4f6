package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// field is a column of a table. It has a pointer to the matching field of a Go record, or an adapter around that
// pointer. Package database/sql scans the column into this pointer, and reads query arguments through it.
type field struct {
	column string
	value  any
}

// sessionFields lists the columns of the table sessions. Every query on that table is built from this list. So a new
// column needs only a line here and a migration.
func sessionFields(s *escalation.Session) []field {
	return append([]field{
		{"id", &s.ID},
		{"parent_session_id", nullableInt{&s.ParentID}},
		{"chain_id", &s.ChainID},
		{"first_run_id", &s.FirstRunID},
		{"sequence", &s.Sequence},
		{"session_id", &s.SessionID},
		{"tier", &s.Tier},
		{"model", &s.Model},
		{"trigger", &s.Trigger},
		{"continuity", &s.Continuity},
		{"continuity_reason", &s.ContinuityReason},
		{"purpose", &s.Purpose},
		{"phase", &s.Phase},
		{"scope", jsonText[[]string]{&s.Scope}},
		{"budget_usd", &s.BudgetUSD},
		{"forced", &s.Forced},
		{"dry_run", &s.DryRun},
		{"has_request", &s.HasRequest},
		{"started_at", millis{&s.StartedAt}},
		{"started_day", dayNumber{&s.StartedAt}},
		{"ended_at", millis{&s.EndedAt}},
	}, reportFields(&s.Report)...)
}

// reportFields lists those columns of the table sessions that a report sets.
func reportFields(r *escalation.Report) []field {
	return []field{
		{"status", &r.Status},
		{"cost_usd", &r.CostUSD},
		{"cost_estimated", &r.CostEstimated},
		{"reported_total_usd", &r.ReportedTotalUSD},
		{"input_tokens", &r.Tokens.Input},
		{"output_tokens", &r.Tokens.Output},
		{"cache_read_tokens", &r.Tokens.CacheRead},
		{"cache_creation_tokens", &r.Tokens.CacheCreation},
		{"context_tokens", &r.ContextTokens},
		{"context_window", &r.ContextWindow},
		{"turns", &r.Turns},
		{"duration_ms", &r.DurationMS},
		{"reported_session_id", &r.ReportedSessionID},
		{"cli_version", &r.CLIVersion},
		{"containment", &r.Containment},
		{"sandbox", &r.Sandbox},
		{"worktree", jsonText[*escalation.Worktree]{&r.Worktree}},
		{"survivors", &r.Survivors},
		{"interrupted", &r.Interrupted},
		{"attempts", &r.Attempts},
		{"host", &r.Host},
		{"worker_version", &r.WorkerVersion},
		{"verdict", jsonText[*escalation.Verdict]{&r.Verdict}},
		{"services", services{r}},
		{"conclusion", conclusion{r}},
		{"error", &r.Error},
		{"ending", &r.Ending},
		{"limited_until", millis{&r.LimitedUntil}},
		{"limited_model", &r.LimitedModel},
	}
}

// eventFields lists the columns of the table events, without the row number.
func eventFields(e *escalation.Event) []field {
	return []field{
		{"event_key", &e.Key},
		{"chain_id", &e.ChainID},
		{"first_run_id", &e.FirstRunID},
		{"session_id", &e.SessionID},
		{"kind", &e.Kind},
		{"severity", &e.Severity},
		{"message", &e.Message},
		{"occurred_at", millis{&e.At}},
	}
}

// replacedFields lists the columns of the table replaced_reports, without the row number.
func replacedFields(r *replacedReport) []field {
	return []field{
		{"session_id", &r.sessionID},
		{"started_at", millis{&r.startedAt}}, // a copy, as the next ones, so that SQL can select and sum it
		{"ended_at", millis{&r.endedAt}},
		{"cost_usd", &r.report.CostUSD},
		{"cost_estimated", &r.report.CostEstimated},
		{"report", jsonText[escalation.Report]{&r.report}},
	}
}

// ledgerFields lists the columns of the table ledger, without the row number.
func ledgerFields(r *ledgerRow) []field {
	return []field{
		{"service_key", serviceKey{&r.Service}},
		{"service", &r.Service},
		{"kind", &r.Kind},
		{"position", &r.position},
		{"at", millis{&r.At}},
		{"chain_id", &r.ChainID},
		{"session_id", &r.SessionID},
		{"call_id", &r.Call},
		{"succeeded", &r.Succeeded},
	}
}

// callFields lists the columns of the table calls, without the row number.
func callFields(d *escalation.CallDecision) []field {
	return []field{
		{"chain_id", &d.ChainID},
		{"session_id", &d.SessionID},
		{"call_id", &d.Call},
		{"tier", &d.Tier},
		{"decided_at", millis{&d.At}},
		{"tool", &d.Tool},
		{"input", &d.Input},
		{"allowed", &d.Allowed},
		{"rule", &d.Rule},
		{"reason", &d.Reason},
		{"actions", jsonText[[]escalation.CallAction]{&d.Actions}},
	}
}

// lockFields lists the columns of the table service_locks.
func lockFields(l *ServiceLock) []field {
	return []field{
		{"service_key", serviceKey{&l.Service}},
		{"service", &l.Service},
		{"chain_id", &l.ChainID},
		{"since", millis{&l.Since}},
	}
}

// incidentFields lists the columns of the table incidents.
func incidentFields(i *incidentRow) []field {
	return []field{
		{"id", &i.row},
		{"services", jsonText[[]string]{&i.Services}},
		{"kind", &i.Kind},
		{"summary", &i.Summary},
		{"severity", &i.Severity},
		{"opened_at", millis{&i.OpenedAt}},
		{"last_seen_at", millis{&i.LastSeenAt}},
		{"returned_at", millis{&i.ReturnedAt}},
		{"worse_at", millis{&i.WorseAt}},
		{"resolved_at", millis{&i.ResolvedAt}},
		{"resolved_by", &i.ResolvedBy},
		{"resolved_verified", &i.ResolvedVerified},
		{"resolved_reason", &i.ResolvedReason},
		{"resolved_session", &i.resolvedSession},
		{"resolution", &i.Resolution},
		{"returned", &i.Returned},
		{"returns", jsonText[[]time.Time]{&i.Returns}},
		{"acknowledged", jsonText[*escalation.Acknowledgement]{&i.Acknowledged}},
	}
}

// incidentChainFields lists the columns of the table incident_chains, without the row number.
func incidentChainFields(c *incidentChainRow) []field {
	return []field{
		{"incident_id", &c.incident},
		{"chain_id", &c.ChainID},
		{"first_run_id", &c.FirstRunID},
		{"status", &c.Status},
		{"rule", &c.Rule},
		{"reason", &c.Reason},
		{"until", millis{&c.Until}},
		{"outcome", &c.Outcome},
		{"at", millis{&c.At}},
		{"max_tier", &c.MaxTier},
		{"dry_run", &c.DryRun},
		{"tier", &c.Tier},
		{"did", &c.Did},
		{"since", millis{&c.Since}},
	}
}

// columns returns the names of the columns for a query: "a, b, c".
func columns(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.column
	}
	return strings.Join(names, ", ")
}

// values returns the pointers or adapters of fields, for use as query arguments or as scan destinations.
func values(fields []field) []any {
	out := make([]any, len(fields))
	for i, f := range fields {
		out[i] = f.value
	}
	return out
}

// insertInto returns the statement that inserts fields into table, and its arguments.
func insertInto(table string, fields []field) (query string, args []any) {
	query = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, columns(fields), placeholders(1, len(fields)))
	return query, values(fields)
}

// placeholders returns a list of placeholders, such as "$2, $3". It takes the first number and the count.
func placeholders(first, count int) string {
	marks := make([]string, count)
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", first+i)
	}
	return strings.Join(marks, ", ")
}

// assignments returns the assignments of an UPDATE, numbered from $1: "a = $1, b = $2".
func assignments(fields []field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = fmt.Sprintf("%s = $%d", f.column, i+1)
	}
	return strings.Join(parts, ", ")
}
