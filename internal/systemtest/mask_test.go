package systemtest

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

const (
	maskedAPIKey = "not-a-key-of-any-shape-4711"
	maskedFleet  = `fl33t "quoted" <value>`
	// toldSecret is the secret in the texts of a person.
	toldSecret = "ghp_" + "q9W8e7R6t5Y4u3I2o1P0a9S8d7F6g5H4j3K2"
)

// secret is a text that an agent reveals. part is the part of it that must not occur anywhere.
type secret struct{ text, part string }

// secrets returns the secrets that the agent reveals.
func secrets() []secret {
	token := strings.Repeat("x9Y8z7W6v5U4t3S2", 8)
	return []secret{
		{maskedAPIKey, maskedAPIKey},
		{maskedFleet, "fl33t"},
		{base64.StdEncoding.EncodeToString([]byte(maskedAPIKey + "\n")), base64.StdEncoding.EncodeToString([]byte(maskedAPIKey))[:24]},
		{"sk-ant-api03-" + token[:93], token[:16]},
		{"ghp_" + token[:36], token[:16]},
		{"glpat-" + token[:20], token[:16]},
		{"xoxb-123456789012-1234567890123-" + token[:24], "123456789012-"},
		{"AKIAQYLPMN5HFIQR7XYA", "AKIAQYLPMN5HFIQR7XYA"},
		{"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYz01", "wJalrXUtnFEMI"},
		{"AIza" + token[:35], token[:16]},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJvcHMifQ." + token[:43], "eyJzdWIiOiJvcHMifQ"},
		{"postgres://ops:hunter2-db@db.example/x", "hunter2-db"},
		{"Authorization: Bearer " + token[:40], token[:16]},
		{"123456789:AA" + token[:33], token[:16]},
		{"sk_live_" + token[:24], token[:16]},
		{"POSTGRES_PASSWORD=tr0ub4dor", "tr0ub4dor"},
		{"-----BEGIN RSA PRIVATE KEY-----\n" + token[:64] + "\n" + token[:64] + "\n-----END RSA PRIVATE KEY-----", token[:64]},
	}
}

// leaky returns the scenario of an agent that puts secrets into everything that it writes. A tool call waits until
// the file seen exists.
func leaky(all string, each []string, seen string) claudesim.Scenario {
	var checks []escalation.CheckResult
	var actions []escalation.Action
	for _, secret := range each {
		checks = append(checks, escalation.CheckResult{Service: secret, CheckType: secret, Status: escalation.CheckDown, Error: all})
		actions = append(actions, escalation.Action{Kind: escalation.ActionOther, Service: secret, Detail: all})
	}
	verdict := escalation.Verdict{Status: escalation.VerdictEscalate, Summary: all, Services: each, RecommendedTier: 2, Findings: all}
	final := verdict
	final.Status, final.Checks, final.Remediation, final.Actions = escalation.VerdictNeedsHuman, checks, all, actions
	final.Issues = []escalation.Issue{{Summary: all, Services: each[:1], Severity: escalation.SeverityCritical}}

	handoff, err := json.Marshal(map[string]any{
		"schema_version": 1, "from_tier": 1, "recommended_tier": 2, "summary": all, "services_affected": each, "check_results": checks,
		"investigation_findings": all, "remediation_attempted": all, "actions": actions, "cooldown_state": map[string]any{"services": map[string]any{}},
	})
	if err != nil {
		panic(err)
	}
	file := activities.ChainsDir + "/" + activities.ChainDirName("chain-leaky") + "/" + activities.HandoffFile
	quoted := "'" + strings.ReplaceAll(all, "'", `'\''`) + "'"
	return claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "break off"}, claudesim.Fail(400, "no such thing: "+all)),
		claudesim.On(claudesim.Match{Prompt: "goes on from here"},
			claudesim.Call("Write", map[string]any{"file_path": file, "content": string(handoff)}), claudesim.Say(all)),
		claudesim.On(claudesim.Match{Model: "haiku"},
			claudesim.Bash("echo "+quoted).Saying(all),
			claudesim.Call("Write", map[string]any{"file_path": "notes-" + all, "content": all}),
			claudesim.Bash("until [ -e "+seen+" ]; do sleep 0.1; done; : "+quoted),
			claudesim.Bash("docker restart "+quoted),
			claudesim.Conclude(verdict).Saying(all)),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Conclude(final).Saying(all)),
	)
}

// overhearing is a payload codec that records everything that a worker sends to Temporal, including heartbeats.
type overhearing struct{ heard *lockedBuffer }

func (o overhearing) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	for _, payload := range payloads {
		if _, err := o.heard.Write(payload.GetData()); err != nil {
			return nil, err
		}
	}
	return payloads, nil
}

func (o overhearing) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return payloads, nil
}

// TestSecretsAreMasked has an agent print and write secrets wherever it can. None of them may occur in the data that
// the supervisor stores, logs or sends.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	temporalServer, _ := startTemporalAt(t) // its own server, because the test lists all chains
	var each, parts []string
	for _, s := range secrets() {
		each, parts = append(each, s.text), append(parts, s.part)
	}
	names := append([]string(nil), each...)
	for i, name := range names { // names of services are short and have no line breaks
		if strings.Contains(name, "\n") {
			names[i] = "jellyfin"
		}
	}
	place, seen := notifytest.Start(t), filepath.Join(t.TempDir(), "seen")
	claude := simtest.Install(t, leaky(strings.Join(each, " , "), names, seen))
	environ := environment(t, claude, "ANTHROPIC_API_KEY="+maskedAPIKey, "FLEET_TOKEN="+maskedFleet, "CLAUDEOPS_PASS_ENV=FLEET_TOKEN",
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_CONTINUITY=handoff", "CLAUDEOPS_NOTIFY_URLS="+place.Apprise(), "CLAUDEOPS_LOG_LEVEL=debug", "CLAUDEOPS_LOG_FORMAT=json")
	logged, heard := &lockedBuffer{}, &lockedBuffer{}
	s := startMaskedSite(t, temporalServer, environ, logged, heard)

	run, err := s.client.SignalWithStartWorkflow(t.Context(), "chain-leaky", workflows.EscalateSignalName,
		map[string]any{"to_tier": 2, "reason": "because of " + toldSecret, "guidance": "use " + toldSecret},
		client.StartWorkflowOptions{TaskQueue: s.cfg.Worker.TaskQueue}, workflows.ChainWorkflow, map[string]any{"prompt": "look with " + toldSecret})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(heard.text(), `"in_flight":[{`) }, testTimeout, 20*time.Millisecond)
	require.NoError(t, os.WriteFile(seen, nil, 0o600))
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 3, "tier 1, its handoff, tier 2")
	require.Contains(t, chain.Sessions[2].Verdict.Summary, "[masked: github token]")
	require.Contains(t, chain.Services, "[masked: gitlab token]")
	broken := s.startAs("chain-broken", map[string]any{"prompt": "break off"})
	failed, err := s.finish(broken)
	require.NoError(t, err)
	require.Contains(t, failed.Sessions[0].Error, "[masked: slack token]")
	shown, err := json.Marshal([]any{s.query(run), s.query(broken)})
	require.NoError(t, err)
	require.NotEmpty(t, place.Received())
	require.NoError(t, s.stop())

	require.Contains(t, heard.text(), "because of "+toldSecret, "the test sees what is sent")
	kept := map[string]string{
		"history":           decodedHistory(t, s, run) + decodedHistory(t, s, broken),
		"search attributes": visible(t, s.client),
		"records":           rowsOf(t, s.cfg),
		"notifications":     strings.Join(place.Received(), "\n"),
		"log":               logged.text(),
		"sent to Temporal":  heard.text(),
		"query":             string(shown),
	}
	for where, text := range kept {
		require.Contains(t, text, "masked: ", "%s: the agent's words are there", where)
		for _, part := range parts {
			require.NotContains(t, text, part, where)
			require.NotContains(t, text, base64.RawStdEncoding.EncodeToString([]byte(part)), where)
		}
		if where != "history" && where != "sent to Temporal" && where != "query" { // these contain the texts that a person has sent
			require.NotContains(t, text, toldSecret, where)
		}
	}
}

// startMaskedSite starts a worker like main does. The test can read the worker's log and heartbeats.
func startMaskedSite(t *testing.T, c client.Client, environ []string, logged, heard *lockedBuffer) *site {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	mask := redact.New(environ)
	logger := supervisor.NewLogger(logged, cfg.Log, mask)
	connected, err := client.NewClientFromExisting(c, client.Options{
		Logger: log.NewStructuredLogger(logger), FailureConverter: supervisor.MaskFailures(mask, nil),
		DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), overhearing{heard}),
	})
	require.NoError(t, err)
	worker, err := supervisor.New(t.Context(), cfg, supervisor.Environment{Environ: environ, Host: "host-1", Logger: logger})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx, connected, client.DefaultNamespace) }()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		require.NoError(t, stop())
		require.NoError(t, worker.Close())
	})
	return &site{t: t, cfg: cfg, client: c, stop: stop}
}

// decodedHistory returns the history of a run as JSON, followed by its decoded payloads.
func decodedHistory(t *testing.T, s *site, run client.WorkflowRun) string {
	t.Helper()
	var all strings.Builder
	events := s.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		all.WriteString(decoded(t, event))
	}
	return all.String()
}

// decoded returns a message as JSON, followed by the content of its payloads.
func decoded(t *testing.T, message proto.Message) string {
	t.Helper()
	text, err := protojson.Marshal(message)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(text, &tree))
	var all strings.Builder
	all.Write(text)
	walkPayloads(tree, func(data string) {
		content, err := base64.StdEncoding.DecodeString(data)
		require.NoError(t, err)
		all.Write(content)
	})
	return all.String()
}

// walkPayloads calls found with the data of every payload in a tree of JSON.
func walkPayloads(tree any, found func(data string)) {
	switch node := tree.(type) {
	case map[string]any:
		for name, child := range node {
			if data, ok := child.(string); ok && name == "data" {
				found(data)
			}
			walkPayloads(child, found)
		}
	case []any:
		for _, child := range node {
			walkPayloads(child, found)
		}
	}
}

// visible returns everything that Temporal lists about chains. It waits until both chains are listed.
func visible(t *testing.T, c client.Client) string {
	t.Helper()
	var all strings.Builder
	require.Eventually(t, func() bool {
		listed, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: `ExecutionStatus = "Completed"`})
		require.NoError(t, err)
		all.Reset()
		for _, execution := range listed.GetExecutions() {
			all.WriteString(decoded(t, execution))
		}
		return len(listed.GetExecutions()) == 2
	}, testTimeout, 20*time.Millisecond)
	return all.String()
}

// rowsOf returns every row of the database as text.
func rowsOf(t *testing.T, cfg config.Config) string {
	t.Helper()
	db := openSQL(t, cfg)
	var all strings.Builder
	if cfg.State.DatabaseFile() == "" {
		for _, table := range column(t, db, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") {
			all.WriteString(strings.Join(column(t, db, fmt.Sprintf("SELECT row_to_json(%[1]s)::text FROM %[1]s", table)), "\n"))
		}
		return all.String()
	}
	for _, table := range column(t, db, "SELECT name FROM sqlite_master WHERE type = 'table'") {
		for _, row := range column(t, db, fmt.Sprintf("SELECT json_array(%s) FROM %s", columnsOf(t, db, table), table)) {
			all.WriteString(row + "\n")
		}
	}
	return all.String()
}

// columnsOf lists the columns of a table. JSON cannot hold the bytes of the full text index, so they are in hexadecimal
// digits.
func columnsOf(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	const readable = "SELECT 'CASE typeof(' || name || ') WHEN ''blob'' THEN hex(' || name || ') ELSE ' || name || ' END' FROM pragma_table_info('%s')"
	return strings.Join(column(t, db, fmt.Sprintf(readable, table)), ", ")
}

// column returns the first column of a query's rows.
func column(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var all []string
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		all = append(all, text)
	}
	require.NoError(t, rows.Err())
	return all
}
