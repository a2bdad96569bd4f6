package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProblems(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.md")
	require.NoError(t, os.WriteFile(broken, []byte("Look at\n{{.Nothing}}\n"), 0o600))
	brokenPolicy, wrongPolicy := filepath.Join(dir, "broken.yaml"), filepath.Join(dir, "wrong.yaml")
	require.NoError(t, os.WriteFile(brokenPolicy, []byte("version: 1\nteirs: {}\n"), 0o600))
	require.NoError(t, os.WriteFile(wrongPolicy, []byte("version: 1\ntiers: {1: {}, 2: {}, 3: {}}\nprograms:\n  cat: {tier: 1, args: FIEL}\n"), 0o600))

	for name, test := range map[string]struct {
		settings []string
		want     string
	}{
		"tier 4":            {[]string{"CLAUDEOPS_MAX_TIER=4"}, `CLAUDEOPS_MAX_TIER is "4"; it must be 1, 2 or 3.`},
		"tier 0":            {[]string{"CLAUDEOPS_MAX_TIER=0"}, `CLAUDEOPS_MAX_TIER is "0"; it must be 1, 2 or 3.`},
		"no tier":           {[]string{"CLAUDEOPS_MAX_TIER=opus"}, `CLAUDEOPS_MAX_TIER is "opus"; it must be 1, 2 or 3.`},
		"dry run":           {[]string{"CLAUDEOPS_DRY_RUN=yes"}, `CLAUDEOPS_DRY_RUN is "yes"; it must be true or false.`},
		"continuity":        {[]string{"CLAUDEOPS_CONTINUITY=resume"}, `CLAUDEOPS_CONTINUITY is "resume"; it must be auto or handoff.`},
		"threshold 0":       {[]string{"CLAUDEOPS_RESUME_CONTEXT_THRESHOLD=0"}, `CLAUDEOPS_RESUME_CONTEXT_THRESHOLD is "0"; it must be above 0 and at most 1.`},
		"threshold percent": {[]string{"CLAUDEOPS_RESUME_CONTEXT_THRESHOLD=80"}, `CLAUDEOPS_RESUME_CONTEXT_THRESHOLD is "80"; it must be above 0 and at most 1.`},
		"threshold NaN":     {[]string{"CLAUDEOPS_RESUME_CONTEXT_THRESHOLD=NaN"}, `CLAUDEOPS_RESUME_CONTEXT_THRESHOLD is "NaN"; it must be above 0 and at most 1.`},
		"threshold text":    {[]string{"CLAUDEOPS_RESUME_CONTEXT_THRESHOLD=80%"}, `CLAUDEOPS_RESUME_CONTEXT_THRESHOLD is "80%"; it must be a number such as 0.8.`},

		"duration":      {[]string{"CLAUDEOPS_IDLE_TIMEOUT=30"}, `CLAUDEOPS_IDLE_TIMEOUT is "30"; it must be a duration with its unit, such as 90s, 15m or 1h30m.`},
		"no idle":       {[]string{"CLAUDEOPS_IDLE_TIMEOUT=0s"}, `CLAUDEOPS_IDLE_TIMEOUT is "0s"; it must be longer than nothing, such as 30s.`},
		"no grace":      {[]string{"CLAUDEOPS_STOP_GRACE=-1s"}, `CLAUDEOPS_STOP_GRACE is "-1s"; it must be longer than nothing, such as 30s.`},
		"long grace":    {[]string{"CLAUDEOPS_STOP_GRACE=11s"}, `CLAUDEOPS_STOP_GRACE is "11s"; it must be at most 10s, so that`},
		"no drain":      {[]string{"CLAUDEOPS_DRAIN_TIMEOUT=0s"}, `CLAUDEOPS_DRAIN_TIMEOUT is "0s"; it must be longer than nothing, such as 30s.`},
		"no first byte": {[]string{"CLAUDEOPS_FIRST_BYTE_TIMEOUT=0s"}, `CLAUDEOPS_FIRST_BYTE_TIMEOUT is "0s"; it must be longer than nothing, such as 30s.`},
		"late first byte": {
			[]string{"CLAUDEOPS_FIRST_BYTE_TIMEOUT=20m"},
			`CLAUDEOPS_FIRST_BYTE_TIMEOUT is "20m"; it must be at most CLAUDEOPS_TIER1_TIMEOUT, which is 15m.`,
		},
		"retries": {[]string{"CLAUDEOPS_API_RETRIES=11"}, `CLAUDEOPS_API_RETRIES is "11"; it must be between 0 and 10.`},
		"passed":  {[]string{"CLAUDEOPS_PASS_ENV=KUBECONFIG,*"}, `CLAUDEOPS_PASS_ENV is "KUBECONFIG,*"; it must be a comma-separated list of variable names, or NAME=PROGRAM, and "*" is none.`},

		"threshold tokens":  {[]string{"CLAUDEOPS_RESUME_MAX_TOKENS=-1"}, `CLAUDEOPS_RESUME_MAX_TOKENS is "-1"; it must be 0 (no cap) or more.`},
		"too many returns":  {[]string{"CLAUDEOPS_RETURNS=51/24h"}, `CLAUDEOPS_RETURNS is "51/24h"; it must be 1 to 50 returns within at most 720h, or none.`},
		"no return":         {[]string{"CLAUDEOPS_RETURNS=0/24h"}, `CLAUDEOPS_RETURNS is "0/24h"; it must be 1 to 50 returns within at most 720h, or none.`},
		"chain budget":      {[]string{"CLAUDEOPS_CHAIN_BUDGET_USD=-1"}, `CLAUDEOPS_CHAIN_BUDGET_USD is "-1"; it must be 0 (no cap) or more.`},
		"day budget":        {[]string{"CLAUDEOPS_DAY_BUDGET_USD=NaN"}, `CLAUDEOPS_DAY_BUDGET_USD is "NaN"; it must be 0 (no cap) or more.`},
		"day budget text":   {[]string{"CLAUDEOPS_DAY_BUDGET_USD=$20"}, `CLAUDEOPS_DAY_BUDGET_USD is "$20"; it must be a number such as 0.8.`},
		"escalations":       {[]string{"CLAUDEOPS_ESCALATION_LIMIT=3"}, `CLAUDEOPS_ESCALATION_LIMIT is "3"; it must be a number and a duration of at most 87600h, such as 3/1h (three within any hour) or 0/1h (never), or be none.`},
		"negative limit":    {[]string{"CLAUDEOPS_RESTART_LIMIT=-1/1h"}, `CLAUDEOPS_RESTART_LIMIT is "-1/1h"; it must be a number and a duration`},
		"limit without end": {[]string{"CLAUDEOPS_REDEPLOYMENT_LIMIT=1/0h"}, `CLAUDEOPS_REDEPLOYMENT_LIMIT is "1/0h"; it must be a number and a duration`},
		"wait":              {[]string{"CLAUDEOPS_COOLDOWN_MAX_WAIT=-1h"}, `CLAUDEOPS_COOLDOWN_MAX_WAIT is "-1h"; it must be 0s (no waiting) or more.`},
		"no issue":          {[]string{"CLAUDEOPS_MAX_PARALLEL_ISSUES=0"}, `CLAUDEOPS_MAX_PARALLEL_ISSUES is "0"; it must be between 1 and 20.`},
		"too many issues":   {[]string{"CLAUDEOPS_MAX_PARALLEL_ISSUES=21"}, `CLAUDEOPS_MAX_PARALLEL_ISSUES is "21"; it must be between 1 and 20.`},
		"an override":       {[]string{"CLAUDEOPS_COOLDOWN_OVERRIDES=jellyfin=4/4h"}, `CLAUDEOPS_COOLDOWN_OVERRIDES is "jellyfin=4/4h"; it must be items such as jellyfin:restart=4/4h, separated by semicolons; "jellyfin=4/4h" has no colon between the service and restart or redeployment.`},

		"threshold below":   {[]string{"CLAUDEOPS_RESUME_CONTEXT_THRESHOLD=-0.8"}, `CLAUDEOPS_RESUME_CONTEXT_THRESHOLD is "-0.8"; it must be above 0 and at most 1.`},
		"tokens text":       {[]string{"CLAUDEOPS_RESUME_MAX_TOKENS=150k"}, `CLAUDEOPS_RESUME_MAX_TOKENS is "150k"; it must be a whole number.`},
		"chain budget Inf":  {[]string{"CLAUDEOPS_CHAIN_BUDGET_USD=Inf"}, `CLAUDEOPS_CHAIN_BUDGET_USD is "Inf"; it must be 0 (no cap) or more.`},
		"negative day":      {[]string{"CLAUDEOPS_DAY_BUDGET_USD=-20"}, `CLAUDEOPS_DAY_BUDGET_USD is "-20"; it must be 0 (no cap) or more.`},
		"negative number":   {[]string{"CLAUDEOPS_ESCALATION_LIMIT=-3/1h"}, `CLAUDEOPS_ESCALATION_LIMIT is "-3/1h"; it must be a number and a duration`},
		"negative window":   {[]string{"CLAUDEOPS_ESCALATION_LIMIT=3/-1h"}, `CLAUDEOPS_ESCALATION_LIMIT is "3/-1h"; it must be a number and a duration`},
		"negative past":     {[]string{"CLAUDEOPS_REDEPLOYMENT_LIMIT=1/-24h"}, `CLAUDEOPS_REDEPLOYMENT_LIMIT is "1/-24h"; it must be a number and a duration`},
		"wait text":         {[]string{"CLAUDEOPS_COOLDOWN_MAX_WAIT=6"}, `CLAUDEOPS_COOLDOWN_MAX_WAIT is "6"; it must be a duration with its unit, such as 90s, 15m or 1h30m.`},
		"negative issues":   {[]string{"CLAUDEOPS_MAX_PARALLEL_ISSUES=-1"}, `CLAUDEOPS_MAX_PARALLEL_ISSUES is "-1"; it must be between 1 and 20.`},
		"negative override": {[]string{"CLAUDEOPS_COOLDOWN_OVERRIDES=nas:restart=-1/1h"}, `CLAUDEOPS_COOLDOWN_OVERRIDES is "nas:restart=-1/1h"; it must be items such as jellyfin:restart=4/4h, separated by semicolons; "nas:restart=-1/1h" has a limit that is none: "-1/1h" is not a limit: the number must not be negative.`},
		"backward override": {[]string{"CLAUDEOPS_COOLDOWN_OVERRIDES=nas:redeployment=1/-1h"}, `"nas:redeployment=1/-1h" has a limit that is none`},

		"model":        {[]string{"CLAUDEOPS_TIER3_MODEL=--help"}, `CLAUDEOPS_TIER3_MODEL is "--help"; it must be the name of a model, without spaces.`},
		"timeout":      {[]string{"CLAUDEOPS_TIER2_TIMEOUT=0m"}, `CLAUDEOPS_TIER2_TIMEOUT is "0m"; it must be longer than nothing, such as 30s.`},
		"budget":       {[]string{"CLAUDEOPS_TIER2_BUDGET_USD=-0.1"}, `CLAUDEOPS_TIER2_BUDGET_USD is "-0.1"; it must be 0 (no cap) or more.`},
		"budget Inf":   {[]string{"CLAUDEOPS_TIER2_BUDGET_USD=Inf"}, `CLAUDEOPS_TIER2_BUDGET_USD is "Inf"; it must be 0 (no cap) or more.`},
		"no tools":     {[]string{"CLAUDEOPS_TIER1_TOOLS=none"}, `CLAUDEOPS_TIER1_TOOLS is "none"; it must name at least one tool: without one an agent cannot look at anything.`},
		"misspelt":     {[]string{"CLAUDEOPS_TIER1_TOOLS=Bsah"}, `CLAUDEOPS_TIER1_TOOLS is "Bsah"; it must name one of Bash, Read, Grep, Glob, Edit, Write: a policy grants no others.`},
		"rule as tool": {[]string{"CLAUDEOPS_TIER1_TOOLS=Bash,Read(./**)"}, `CLAUDEOPS_TIER1_TOOLS is "Bash,Read(./**)"; it must be a comma-separated list of names of tools, and "Read(./**)" is none: what a tier may do is said by the policy.`},
		"other agents": {[]string{"CLAUDEOPS_TIER1_TOOLS=Bash,Agent"}, `CLAUDEOPS_TIER1_TOOLS is "Bash,Agent"; it must leave out Agent, which reaches beyond the one session that a tier is.`},
		"spaces":       {[]string{"CLAUDEOPS_TIER1_TOOLS=Bash Read"}, `CLAUDEOPS_TIER1_TOOLS is "Bash Read"; it must be a comma-separated list of names of tools, and "Bash Read" is none: what`},

		"missing policy": {[]string{"CLAUDEOPS_POLICY_FILE=" + dir + "/none.yaml"}, `CLAUDEOPS_POLICY_FILE is "` + dir + `/none.yaml"; it must name a policy that can be used: open ` + dir + `/none.yaml: no such file or directory.`},
		"near policy":    {[]string{"CLAUDEOPS_POLICY_FILE=policy.yaml"}, `CLAUDEOPS_POLICY_FILE is "policy.yaml"; it must be an absolute path.`},
		"broken policy":  {[]string{"CLAUDEOPS_POLICY_FILE=" + brokenPolicy}, `it must name a policy that can be used: in line 2: unknown field "teirs".`},
		"wrong policy":   {[]string{"CLAUDEOPS_POLICY_FILE=" + wrongPolicy}, `it must name a policy that can be used: in line 4: programs: cat: args: there is no type "FIEL".`},
		"missing prompt": {[]string{"CLAUDEOPS_PROMPT=" + dir + "/none.md"}, `CLAUDEOPS_PROMPT is "` + dir + `/none.md"; it must name a file that can be used: open ` + dir + `/none.md: no such file or directory.`},
		"broken prompt":  {[]string{"CLAUDEOPS_TIER2_PROMPT=" + broken}, broken + ":2:2"},

		"pigeon":         {[]string{"CLAUDEOPS_NOTIFY_URLS=ntfy://h/a pigeon://hunter2"}, `CLAUDEOPS_NOTIFY_URLS (value not shown): it must name services by URLs: URL 2 must begin with the scheme of a service, and pigeon:// is none; there are apprise,`},
		"no target":      {[]string{"CLAUDEOPS_NOTIFY_URLS=hunter2"}, `CLAUDEOPS_NOTIFY_URLS (value not shown): it must name services by URLs: URL 1 must be a URL that begins with the scheme of a service`},
		"half a target":  {[]string{"CLAUDEOPS_NOTIFY_URLS=discord://hunter2"}, `URL 1 must be a complete discord URL`},
		"target twice":   {[]string{"CLAUDEOPS_NOTIFY_URLS=ntfy://hunter2/a,ntfy://hunter2/a"}, `it must name each place once, and URLs 1 and 2 are the same.`},
		"a web page":     {[]string{"CLAUDEOPS_NOTIFY_URLS=https://u:hunter2@h/hunter2"}, `URL 1 must begin with the scheme of a service, and https:// is none`},
		"log":            {[]string{"CLAUDEOPS_NOTIFY_URLS=logger://"}, `and logger:// is none`},
		"no Web UI":      {[]string{"CLAUDEOPS_UI_URL=temporal.example.org"}, `CLAUDEOPS_UI_URL is "temporal.example.org"; it must be the address of a web site`},
		"no repository":  {[]string{"CLAUDEOPS_REPOSITORIES=" + dir + "," + dir + "/none"}, `it must list existing directories, and ` + dir + `/none is none.`},
		"near directory": {[]string{"CLAUDEOPS_REPOSITORIES=./x"}, `CLAUDEOPS_REPOSITORIES is "./x"; it must be a comma-separated list of absolute paths, and "./x" is none.`},
		"inside state":   {[]string{"CLAUDEOPS_REPOSITORIES=" + dir, "CLAUDEOPS_STATE_DIR=" + filepath.Dir(dir)}, `it must list nothing in the state directory`},
		"state inside":   {[]string{"CLAUDEOPS_REPOSITORIES=" + dir, "CLAUDEOPS_STATE_DIR=" + dir + "/state"}, `it must not contain the state directory ` + dir + `/state, which agents must not touch.`},

		"queue":                    {[]string{"CLAUDEOPS_TASK_QUEUE=my queue"}, `CLAUDEOPS_TASK_QUEUE is "my queue"; it must be a name without spaces, of at most 200 bytes.`},
		"agents":                   {[]string{"CLAUDEOPS_MAX_CONCURRENT_AGENTS=0"}, `CLAUDEOPS_MAX_CONCURRENT_AGENTS is "0"; it must be between 1 and 1000.`},
		"a dot in a deployment":    {[]string{"CLAUDEOPS_DEPLOYMENT=claude.ops"}, `CLAUDEOPS_DEPLOYMENT is "claude.ops"; it must be a name without spaces, dots and colons`},
		"a reserved build":         {[]string{"CLAUDEOPS_DEPLOYMENT=ops", "CLAUDEOPS_BUILD_ID=__v1"}, `CLAUDEOPS_BUILD_ID is "__v1"; it must be a name without spaces`},
		"a build of no deployment": {[]string{"CLAUDEOPS_BUILD_ID=v1"}, `CLAUDEOPS_BUILD_ID is "v1"; it must be unset, because CLAUDEOPS_DEPLOYMENT is`},
		"level":                    {[]string{"CLAUDEOPS_LOG_LEVEL=verbose"}, `CLAUDEOPS_LOG_LEVEL is "verbose"; it must be debug, info, warn or error.`},
		"format":                   {[]string{"CLAUDEOPS_LOG_FORMAT=logfmt"}, `CLAUDEOPS_LOG_FORMAT is "logfmt"; it must be text or json.`},

		"a password in clear": {[]string{"CLAUDEOPS_DATABASE_URL=postgres://u:hun%zzter2@db/x"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must be spelled postgres://user:password@host:5432/database, with special characters in the password as %XX.`},
		"a password with @/":  {[]string{"CLAUDEOPS_DATABASE_URL=postgres://u:hun@t/er2@db/x"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must be spelled postgres://`},
		"a password with #":   {[]string{"CLAUDEOPS_DATABASE_URL=postgres://u:1#er2@db/x"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must be spelled postgres://`},
		"no database":         {[]string{"CLAUDEOPS_DATABASE_URL=postgres://u:hunter2@db:5432"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must name a database after the host, as in postgres://user:password@host:5432/claudeops.`},
		"an unknown sslmode":  {[]string{"CLAUDEOPS_DATABASE_URL=postgres://u:hunter2@db/x?sslmode=tls"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must have valid parameters: wrong value for "sslmode"`},
		"retention of a week": {[]string{"CLAUDEOPS_RETENTION=168h"}, `CLAUDEOPS_RETENTION is "168h"; it must be 0s (off) or at least 744h, because incidents are remembered for nearly that long.`},
		"retention, cooldown": {[]string{"CLAUDEOPS_RETENTION=800h", "CLAUDEOPS_RESTART_LIMIT=1/900h"}, `CLAUDEOPS_RETENTION is "800h"; it must be longer than 900h, the longest cooldown.`},
		"retention, chains":   {[]string{"CLAUDEOPS_RETENTION=800h", "CLAUDEOPS_ESCALATION_LIMIT=1/900h"}, `CLAUDEOPS_RETENTION is "800h"; it must be longer than 900h, the time span of CLAUDEOPS_ESCALATION_LIMIT.`},
		"connections":         {[]string{"CLAUDEOPS_DATABASE_CONNECTIONS=1"}, `CLAUDEOPS_DATABASE_CONNECTIONS is "1"; it must be between 2 and 100.`},
		"no URL":              {[]string{"CLAUDEOPS_DATABASE_URL=://hunter2"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must be the URL of a file with an absolute path, such as sqlite:///var/lib/claudeops/claudeops.db, or of a PostgreSQL database, such as postgres://user:password@host:5432/claudeops.`},
		"parameters":          {[]string{"CLAUDEOPS_DATABASE_URL=sqlite:///x.db?key=hunter2"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must be the URL of a file`},
		"two slashes":         {[]string{"CLAUDEOPS_DATABASE_URL=sqlite://claudeops.db"}, `CLAUDEOPS_DATABASE_URL (value not shown): it must be the URL of a file with an absolute path, such as sqlite:///var/lib/claudeops/claudeops.db, or of a PostgreSQL database, such as postgres://user:password@host:5432/claudeops.`},
		"no work dir":         {[]string{"CLAUDEOPS_WORK_DIR=" + dir + "/none"}, `CLAUDEOPS_WORK_DIR is "` + dir + `/none"; it must be an existing directory.`},
		"work around state":   {[]string{"CLAUDEOPS_WORK_DIR=" + dir, "CLAUDEOPS_STATE_DIR=" + dir + "/state"}, `CLAUDEOPS_WORK_DIR is "` + dir + `"; it must not contain the state directory ` + dir + `/state, which agents must not touch.`},
		"work around itself":  {[]string{"CLAUDEOPS_WORK_DIR=" + dir, "CLAUDEOPS_STATE_DIR=" + dir}, `it must not contain the state directory`},
		"work around base":    {[]string{"CLAUDEOPS_WORK_DIR=" + dir, "CLAUDEOPS_DATABASE_URL=sqlite://" + dir + "/x.db"}, `it must not contain the database ` + dir + `/x.db, which agents must not touch.`},
		"work around archive": {[]string{"CLAUDEOPS_WORK_DIR=" + dir, "CLAUDEOPS_TRANSCRIPTS=file://" + dir + "/archive"}, `it must not contain the transcript archive ` + dir + `/archive, which agents must not touch.`},
		"archive path":        {[]string{"CLAUDEOPS_TRANSCRIPTS=/var/lib/x"}, `CLAUDEOPS_TRANSCRIPTS is "/var/lib/x"; it must begin with file://, s3://, gs:// or azblob://, or be none.`},
		"archive scheme":      {[]string{"CLAUDEOPS_TRANSCRIPTS=ftp://x"}, `it must begin with file://, s3://, gs:// or azblob://, or be none.`},
		"archive in memory":   {[]string{"CLAUDEOPS_TRANSCRIPTS=mem://"}, `it must begin with file://`},
		"archive slashes":     {[]string{"CLAUDEOPS_TRANSCRIPTS=file://var/lib"}, `CLAUDEOPS_TRANSCRIPTS is "file://var/lib"; it must name a directory by its absolute path, such as file:///var/lib/claudeops-transcripts.`},
		"archive parameters":  {[]string{"CLAUDEOPS_TRANSCRIPTS=file:///x?metadata=skip"}, `it must name a directory by its absolute path`},
		"archive bucket":      {[]string{"CLAUDEOPS_TRANSCRIPTS=s3://?prefix=x/"}, `it must name a bucket, such as s3://claudeops.`},
		"archive key":         {[]string{"CLAUDEOPS_TRANSCRIPTS=gs://bucket/some/dir"}, `it must have nothing after the bucket but parameters; a part of a bucket is spelled gs://bucket?prefix=some/dir/.`},
		"archive credentials": {[]string{"CLAUDEOPS_TRANSCRIPTS=s3://u:hunter2@bucket"}, `CLAUDEOPS_TRANSCRIPTS (value not shown): it must hold no credentials; they come from`},
		"archive no URL":      {[]string{"CLAUDEOPS_TRANSCRIPTS=s3://u:hunter2@a b%"}, `CLAUDEOPS_TRANSCRIPTS (value not shown): it must be a URL, or none.`},
		"work around login":   {[]string{"CLAUDEOPS_WORK_DIR=" + dir, "CLAUDEOPS_CLAUDE_CONFIG_DIR=" + dir}, `it must not contain the CLI's directory`},
		"no config dir":       {[]string{"CLAUDEOPS_CLAUDE_CONFIG_DIR=Login"}, `CLAUDEOPS_CLAUDE_CONFIG_DIR is "Login"; it must be an absolute path, or login.`},
		"missing config dir":  {[]string{"CLAUDEOPS_CLAUDE_CONFIG_DIR=" + dir + "/none"}, `CLAUDEOPS_CLAUDE_CONFIG_DIR is "` + dir + `/none"; it must be an existing directory, or login.`},
		"near config dir":     {[]string{"CLAUDEOPS_CLAUDE_CONFIG_DIR=./claude"}, `CLAUDEOPS_CLAUDE_CONFIG_DIR is "./claude"; it must be an absolute path, or login.`},
		"near login":          {[]string{"CLAUDEOPS_CLAUDE_CONFIG_DIR=login", "CLAUDE_CONFIG_DIR=claude"}, `CLAUDEOPS_CLAUDE_CONFIG_DIR is "login"; it must be a path, because the directory of the user's login, "claude", is relative, and agents run elsewhere.`},
		"near state":          {[]string{"CLAUDEOPS_STATE_DIR=relative/dir"}, `CLAUDEOPS_STATE_DIR is "relative/dir"; it must be an absolute path.`},
		"another's home":      {[]string{"CLAUDEOPS_STATE_DIR=~ops/state"}, `CLAUDEOPS_STATE_DIR is "~ops/state"; it must be an absolute path.`},
		"near work dir":       {[]string{"CLAUDEOPS_WORK_DIR=."}, `CLAUDEOPS_WORK_DIR is "."; it must be an absolute path.`},
		"near prompt":         {[]string{"CLAUDEOPS_TIER3_PROMPT=tier3.md"}, `CLAUDEOPS_TIER3_PROMPT is "tier3.md"; it must be an absolute path.`},
		"no login":            {[]string{"CLAUDEOPS_CLAUDE_CONFIG_DIR=login"}, `CLAUDEOPS_CLAUDE_CONFIG_DIR is "login"; it must be a path, because there is no login in /home/someone/.claude.`},
		"a long value":        {[]string{"CLAUDEOPS_MAX_TIER=" + strings.Repeat("9", 500)}, `CLAUDEOPS_MAX_TIER is "` + strings.Repeat("9", 120) + `"...; it must be 1, 2 or 3.`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := problemsOf(t, test.settings...)
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Sentence, test.want)
			require.Contains(t, problems[0].Sentence, problems[0].Variable)
			require.NotContains(t, problems[0].Sentence, "hunter2")
		})
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	problems := problemsOf(t,
		"CLAUDEOPS_MAX_TIER=9", "CLAUDEOPS_TIER1_TIMEOUT=soon", "CLAUDEOPS_TIER3_TIMEOUT=later",
		"CLAUDEOPS_LOG_FORMAT=xml", "CLAUDEOPS_API_RETRIES=99", "CLAUDEOPS_DATABASE_URL=mysql://x", "CLAUDEOPS_DRYRUN=true")
	var variables []string
	for _, problem := range problems {
		variables = append(variables, strings.TrimPrefix(problem.Variable, Prefix))
	}
	slices.Sort(variables)
	require.Equal(t, []string{"API_RETRIES", "DATABASE_URL", "DRYRUN", "LOG_FORMAT", "MAX_TIER", "TIER1_TIMEOUT", "TIER3_TIMEOUT"}, variables)

	text := (&Error{Problems: problems}).Error()
	require.True(t, strings.HasPrefix(text, "configuration: 7 problems:\n  - "))
	require.Len(t, strings.Split(text, "\n"), 8)
}

func TestUnknownSettings(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"CLAUDEOPS_DRYRUN":        "CLAUDEOPS_DRYRUN is not a setting of Claude Ops; did you mean CLAUDEOPS_DRY_RUN?",
		"claudeops_dry_run":       "did you mean CLAUDEOPS_DRY_RUN?",
		"CLAUDE_OPS_DRY_RUN":      "did you mean CLAUDEOPS_DRY_RUN?",
		"CLAUDEOPS_MAXTIER":       "did you mean CLAUDEOPS_MAX_TIER?",
		"CLAUDEOPS_TIER1_PROMPT":  "did you mean CLAUDEOPS_PROMPT?",
		"CLAUDEOPS_TIER4_MODEL":   "did you mean CLAUDEOPS_TIER1_MODEL?",
		"CLAUDEOPS_TIER2_TOOL":    "did you mean CLAUDEOPS_TIER2_TOOLS?",
		"CLAUDEOPS_SLACK_WEBHOOK": "CLAUDEOPS_SLACK_WEBHOOK is not a setting of Claude Ops; `claudeops config` lists those that are.",
		"CLAUDEOPS_":              "CLAUDEOPS_ is not a setting of Claude Ops",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			problems := problemsOf(t, variable+"=hunter2")
			require.Len(t, problems, 1)
			require.Equal(t, variable, problems[0].Variable)
			require.Contains(t, problems[0].Sentence, want)
			require.NotContains(t, problems[0].Sentence, "hunter2")
		})
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	load(t, "CLAUDE_CONFIG_DIR=/x", "CLAUDEOPSY=1", "PATH=/bin", "TEMPORAL_ADDRESS=x",
		// Kubernetes sets these for Services called claudeops and claudeops-ui.
		"CLAUDEOPS_SERVICE_HOST=10.0.0.1", "CLAUDEOPS_SERVICE_PORT=80", "CLAUDEOPS_SERVICE_PORT_HTTP=80",
		"CLAUDEOPS_PORT=tcp://10.0.0.1:80", "CLAUDEOPS_PORT_80_TCP=tcp://10.0.0.1:80", "CLAUDEOPS_PORT_80_TCP_ADDR=10.0.0.1",
		"CLAUDEOPS_UI_SERVICE_HOST=10.0.0.1", "CLAUDEOPS_UI_PORT=tcp://10.0.0.1:80")
	problemsOf(t, "CLAUDEOPS_UI_PORT=8080")
}

// TestRemovedSettings sets each setting of earlier releases. The program does not start, and says what has taken its
// place.
func TestRemovedSettings(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, leaf := range leaves(defaults()) {
		known[leaf.name] = true
	}
	var environ []string
	for name, successor := range removed {
		require.False(t, known[Prefix+name], name)
		require.True(t, strings.HasSuffix(successor, "."), name)
		for _, named := range regexp.MustCompile(Prefix+`[A-Z0-9_]+`).FindAllString(successor, -1) {
			require.True(t, known[named], "%s leads to %s", name, named)
		}
		environ = append(environ, Prefix+name+"=hunter2")
	}
	problems := problemsOf(t, environ...)
	require.Len(t, problems, len(removed))
	for _, problem := range problems {
		require.Equal(t, problem.Variable+" is gone: "+removed[strings.TrimPrefix(problem.Variable, Prefix)], problem.Sentence)
	}
}
