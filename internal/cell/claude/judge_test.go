package claude

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/redact"
)

// good is the result line of a successful run.
const good = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"fine"}`

func TestJudge(t *testing.T) {
	t.Parallel()
	exited := func(code int) process.Exit { return process.Exit{Code: code} }
	stopped := func(cause error) process.Exit { return process.Exit{Code: 0, StoppedBy: cause} }
	apiError := func(fields string) string {
		return `{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"it broke",` + fields + `}`
	}
	synthetic := func(class string) string {
		return `{"type":"assistant","error":"` + class + `","message":{"model":"<synthetic>","content":[]}}` + "\n"
	}
	said := func(text string) string {
		return `{"type":"assistant","message":{"id":"m","model":"claude-haiku","content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
	}
	const refusal = `{"type":"system","subtype":"model_refusal_no_fallback","api_refusal_category":"cyber",` +
		`"api_refusal_explanation":"it is about a virus"}` + "\n"
	limit := func(status string) string {
		return `{"type":"rate_limit_event","rate_limit_info":{"status":"` + status + `","resetsAt":1895809600,"rateLimitType":"seven_day_opus"}}` + "\n"
	}
	const retry401 = `{"type":"system","subtype":"api_retry","error_status":401}` + "\n"
	for name, tc := range map[string]struct {
		stdout, stderr, schema string
		exit                   process.Exit
		start                  error
		want                   ErrorKind
		message                string
	}{
		"good":                         {stdout: good},
		"good, after noise":            {stdout: "warning: x\n{not json\n[1]\n" + good + "\n" + `{"type":"news"}`, stderr: "a warning"},
		"good, with its structure":     {stdout: strings.Replace(good, "{", `{"structured_output":{"a":1},`, 1), schema: "{}"},
		"structure in a result before": {stdout: strings.Replace(good, "{", `{"structured_output":{"a":1},`, 1) + "\n" + good, schema: "{}"},
		"without its structure":        {stdout: good, schema: "{}", want: KindNoStructuredOutput},
		"with a null structure":        {stdout: strings.Replace(good, "{", `{"structured_output":null,`, 1), schema: "{}", want: KindNoStructuredOutput},
		"good, but exit code 1":        {stdout: good, exit: exited(1), want: KindFailed, message: "exit code 1"},
		"good, but killed":             {stdout: good, exit: process.Exit{Code: -1, Signal: 9}, want: KindFailed, message: "signal 9"},
		"no turn":                      {stdout: strings.Replace(good, `"num_turns":1`, `"num_turns":0`, 1), want: KindMalformed},
		"unknown subtype":              {stdout: strings.Replace(good, "success", "novelty", 1), want: KindFailed, message: "novelty"},
		"bad after good":               {stdout: good + "\n" + apiError(`"api_error_status":500`), exit: exited(1), want: KindUnavailable},
		"good after bad":               {stdout: apiError(`"api_error_status":500`) + "\n" + good},
		"401":                          {stdout: apiError(`"api_error_status":401`), exit: exited(1), want: KindAuth, message: "find no credentials in this environment, and none in /state: set ANTHROPIC_API_KEY"},
		"403":                          {stdout: apiError(`"api_error_status":403`), exit: exited(1), want: KindAuth},
		"404":                          {stdout: apiError(`"api_error_status":404`), exit: exited(1), want: KindRequest},
		"408":                          {stdout: apiError(`"api_error_status":408`), exit: exited(1), want: KindUnavailable},
		"413":                          {stdout: apiError(`"api_error_status":413`), exit: exited(1), want: KindPromptTooLong},
		"529":                          {stdout: apiError(`"api_error_status":529`), exit: exited(1), want: KindUnavailable},
		"no status, not logged in":     {stdout: synthetic("authentication_failed") + apiError(`"api_error_status":null`), exit: exited(1), want: KindAuth},
		"no status, no connection":     {stdout: synthetic("server_error") + apiError(`"api_error_status":null`), exit: exited(1), want: KindUnavailable},
		"no status, no class":          {stdout: apiError(`"api_error_status":null`), exit: exited(1), want: KindFailed},
		"prompt too long":              {stdout: apiError(`"api_error_status":400,"terminal_reason":"prompt_too_long"`), exit: exited(1), want: KindPromptTooLong},
		"other 4xx":                    {stdout: apiError(`"api_error_status":422`), exit: exited(1), want: KindRequest},
		"no money": {
			stdout: synthetic("billing_error") + apiError(`"api_error_status":400`), exit: exited(1), want: KindAuth, message: "it broke",
		},
		"refused": {
			stdout: said("I cannot") + refusal + synthetic("invalid_request") + apiError(`"api_error_status":null,"stop_reason":"refusal"`),
			exit:   exited(1), want: KindRefused, message: "the model refused, after the words “I cannot” (cyber: it is about a virus): it broke",
		},
		"too long": {
			stdout: said("long") + synthetic("max_output_tokens") + apiError(`"api_error_status":null`), exit: exited(1), want: KindAnswerTooLong,
		},
		"too long for the window": {
			stdout: strings.Replace(synthetic("max_output_tokens"), "{", `{"api_error_params":{"cut":"context_window"},`, 1) +
				apiError(`"api_error_status":null`),
			exit: exited(1), want: KindPromptTooLong,
		},
		"a limit that is used up": {
			stdout: limit("rejected") + synthetic("rate_limit") + apiError(`"api_error_status":429`), exit: exited(1), want: KindLimited,
		},
		"a limit without an end": {
			stdout: strings.Replace(limit("rejected"), `,"resetsAt":1895809600`, "", 1) + synthetic("rate_limit") + apiError(`"api_error_status":429`),
			exit:   exited(1), want: KindLimited,
		},
		"a limit that is not": {
			stdout: limit("rejected") + limit("allowed") + synthetic("rate_limit") + apiError(`"api_error_status":429`),
			exit:   exited(1), want: KindUnavailable,
		},
		"a limit, then an overload": {
			stdout: limit("rejected") + synthetic("overloaded") + apiError(`"api_error_status":529`), exit: exited(1), want: KindUnavailable,
		},
		"credits instead of the limit": {
			stdout: strings.Replace(limit("rejected"), `"status"`, `"isUsingOverage":true,"status"`, 1) + synthetic("rate_limit") +
				apiError(`"api_error_status":429`),
			exit: exited(1), want: KindUnavailable,
		},
		"a limit without a status": {
			stdout: limit("rejected") + synthetic("rate_limit") + apiError(`"api_error_status":null`), exit: exited(1), want: KindLimited,
		},
		"a limit, then an answer":    {stdout: limit("rejected") + good},
		"credentials refused again":  {stdout: strings.Repeat(retry401, 2), exit: stopped(errLogin), want: KindAuth, message: "set ANTHROPIC_API_KEY"},
		"silence":                    {want: KindMalformed, message: "without a result (exit code 0)"},
		"a crash":                    {exit: exited(1), stderr: "Segmentation fault\ncore dumped", want: KindMalformed, message: "Segmentation fault"},
		"usage":                      {exit: exited(1), stderr: "1 | code\n\nError: no such option", want: KindUsage, message: "no such option"},
		"an error after events":      {exit: exited(1), stdout: `{"type":"system","subtype":"init"}`, stderr: "Error: out of disk", want: KindMalformed},
		"no conversation, by stderr": {exit: exited(1), stderr: "No conversation found with session ID: x", want: KindNoConversation},
		"session in use":             {exit: exited(1), stderr: "note\nError: Session ID x is already in use.", want: KindSessionInUse},
		"not started":                {exit: exited(-1), start: errors.New("fork failed"), want: KindNotStarted, message: "fork failed"},
		"wall limit":                 {exit: stopped(errWall), want: KindTimedOut, message: "1m0s"},
		"wall limit while retrying": {
			exit: stopped(errWall), stdout: said("hm") + `{"type":"system","subtype":"api_retry","error_status":529}`,
			want: KindStalled, message: "after 1m0s: the model's provider did not answer while the API kept failing (status 529)",
		},
		"wall limit without a connection": {
			exit: stopped(errWall), stdout: `{"type":"system","subtype":"api_retry"}`, want: KindStalled, message: "could not be reached",
		},
		"wall limit without an answer": {
			exit: stopped(errWall), stdout: `{"type":"system","subtype":"init"}`, want: KindStalled, message: "did not answer",
		},
		"wall limit in its work":    {exit: stopped(errWall), stdout: said("hm"), want: KindTimedOut},
		"wall limit after a result": {stdout: good, exit: stopped(errWall), want: KindTimedOut},
		"first byte":                {exit: stopped(errFirstByte), want: KindStalled, message: "first 2s"},
		"idle":                      {exit: stopped(errIdle), want: KindStalled, message: "for 3s"},
		"idle while retrying": {
			exit: stopped(errIdle), stdout: `{"type":"system","subtype":"api_retry","error_status":529}`, want: KindStalled, message: "529",
		},
		"a full disk": {
			exit: stopped(errIdle), start: explainFull("/state", syscall.ENOSPC), want: KindDiskFull, message: "the disk of /state is full",
		},
		"cancelled": {exit: stopped(errors.New("the worker drains")), want: KindStopped, message: "the worker drains"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judged := cliOf("2.1.332")
			judged.options.ConfigDir = "/state"
			r := &run{
				cli:        judged,
				invocation: Invocation{Schema: tc.schema, Limits: Limits{Wall: time.Minute, FirstByte: 2 * time.Second, Idle: 3 * time.Second}},
				stderr:     tailWriter{limit: maxStderrBytes},
			}
			lines := &lineWriter{handle: func(line []byte) { r.acc.line(line) }}
			_, _ = lines.Write([]byte(tc.stdout))
			lines.flush()
			_, _ = r.stderr.Write([]byte(tc.stderr))

			got := r.judge(tc.exit, tc.start)
			if tc.want == "" {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, tc.want, got.Kind, got.Message)
			known := tc.want == KindLimited && strings.Contains(tc.stdout, "resetsAt")
			require.Equal(t, known, got.Until.Equal(time.Unix(1_895_809_600, 0)))
			require.Equal(t, tc.want == KindLimited, got.LimitKind == "seven_day_opus")
			require.Equal(t, strings.Contains(tc.stdout, "claude-haiku"), got.Answered)
			require.Contains(t, got.Message, tc.message)
			require.Equal(t, tc.exit.Code, got.ExitCode)
			require.Equal(t, tc.stderr, got.Stderr)
		})
	}
}

func TestErrorsHoldNoCredentialsAndNoFlood(t *testing.T) {
	t.Parallel()
	const secret = "sk-secret-0123456789"
	r := &run{
		mask:   redact.New([]string{"ANTHROPIC_API_KEY=" + secret}),
		stderr: tailWriter{limit: 2 * maxStderrBytes},
	}
	_, _ = r.stderr.Write([]byte("Error: rejected " + secret + "\n" + strings.Repeat("flood ", 10_000) + secret))
	got := r.judge(process.Exit{Code: 1}, nil)
	require.NotContains(t, got.Message+got.Stderr, secret)
	require.LessOrEqual(t, len(got.Stderr), maxStderrBytes)
	require.Contains(t, got.Stderr, "[masked: ANTHROPIC_API_KEY]")

	r.acc.line([]byte(`{"type":"result","is_error":true,"subtype":"success","result":"bad key ` + secret + `"}`))
	require.NotContains(t, r.judge(process.Exit{Code: 1}, nil).Message, secret)
}

// TestAccessProblem checks what people are told about credentials and the address of the API: which variable or file,
// and what to do.
func TestAccessProblem(t *testing.T) {
	t.Parallel()
	login := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(login, ".credentials.json"), []byte("{}"), 0o600))
	for name, tt := range map[string]struct {
		environ []string
		dir     string
		status  int
		want    string
	}{
		"nothing is wrong":         {[]string{"ANTHROPIC_API_KEY=k"}, "/none", 0, ""},
		"no credentials":           {nil, "/none", 0, "none in /none: set ANTHROPIC_API_KEY, or CLAUDEOPS_CLAUDE_CONFIG_DIR=login"},
		"a refused key":            {[]string{"ANTHROPIC_API_KEY=k"}, "/none", 401, "in ANTHROPIC_API_KEY (401): correct the variable"},
		"a refused token":          {[]string{"CLAUDE_CODE_OAUTH_TOKEN=k"}, "/none", 403, "in CLAUDE_CODE_OAUTH_TOKEN (403)"},
		"a refused login":          {nil, login, 401, filepath.Join(login, ".credentials.json") + " (401): log in again"},
		"a login that is none":     {nil, "", notLoggedIn, "the CLI is not logged in: log in with claude as the worker's user, or set ANTHROPIC_API_KEY"},
		"a cloud, and a key":       {[]string{"CLAUDE_CODE_USE_BEDROCK=1", "ANTHROPIC_API_KEY=k"}, "/none", 403, "the account of CLAUDE_CODE_USE_BEDROCK (403)"},
		"no cloud, but a key":      {[]string{"CLAUDE_CODE_USE_BEDROCK=0", "ANTHROPIC_API_KEY=k"}, "/none", 403, "in ANTHROPIC_API_KEY (403)"},
		"no cloud, and no key":     {[]string{"CLAUDE_CODE_USE_BEDROCK=0"}, "/none", 0, "find no credentials"},
		"a cloud":                  {[]string{"CLAUDE_CODE_USE_BEDROCK=1"}, "/none", 403, "the account of CLAUDE_CODE_USE_BEDROCK (403)"},
		"an address":               {[]string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://host/v1/"}, "/none", 0, `the CLI itself adds /v1: set it to "http://host"`},
		"an address with its path": {[]string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://host/api"}, "/none", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := AccessProblem(Options{Environ: tt.environ, ConfigDir: tt.dir}, tt.status)
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.Contains(t, got, tt.want)
		})
	}
}
