package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

func TestSettingsAreWhatTheParserReads(t *testing.T) {
	t.Parallel()
	params, err := env.GetFieldParamsWithOptions(&Config{}, env.Options{Prefix: Prefix, Environment: map[string]string{}})
	require.NoError(t, err)
	var read []string
	for _, param := range params {
		if param.OwnKey != "-" {
			read = append(read, param.Key)
		}
	}
	var listed []string
	for _, setting := range load(t).Settings() {
		listed = append(listed, setting.Name)
	}
	require.Equal(t, read, listed)
}

func TestEverySettingIsDescribed(t *testing.T) {
	t.Parallel()
	for _, setting := range load(t).Settings() {
		require.NotEmpty(t, setting.Group, setting.Name)
		require.Regexp(t, `\.$`, setting.Meaning, setting.Name)
		require.Equal(t, setting.Name == Prefix+agentUser, setting.Source == SourceEnvironment, setting.Name)
		require.Equal(t, setting.Secret, slices.Contains(secretVariables, setting.Name), setting.Name)
	}
}

// TestListedValuesCanBeSet copies every value of the listing into the environment. The result must be the same
// configuration.
func TestListedValuesCanBeSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := []string{
		"CLAUDEOPS_STATE_DIR=" + t.TempDir(), "CLAUDEOPS_WORK_DIR=" + dir, "CLAUDEOPS_CLAUDE_CONFIG_DIR=" + t.TempDir(),
		"CLAUDEOPS_DRY_RUN=true", "CLAUDEOPS_TIER1_TIMEOUT=5400s", "CLAUDEOPS_PASS_ENV=A,B_*,C=gh",
		"CLAUDEOPS_DAY_BUDGET_USD=19.99", "CLAUDEOPS_ESCALATION_LIMIT=none", "CLAUDEOPS_RESTART_LIMIT=2/90m", "CLAUDEOPS_COOLDOWN_MAX_WAIT=0s",
		"CLAUDEOPS_COOLDOWN_OVERRIDES=shop:web=1:restart=4/4h\nb:redeployment = none; a:restart=0/90m;a:redeployment=2/1h;",
	}
	first := load(t, settings...)
	var listed []string
	for _, setting := range first.Settings() {
		listed = append(listed, setting.Name+"="+setting.Value)
	}
	second := load(t, listed...)
	require.Equal(t, first.Policy(), second.Policy())
	require.Equal(t, first.Limits, second.Limits)
	require.Equal(t, first.Claude, second.Claude)
	require.Equal(t, first.State, second.State)
	require.Equal(t, first.Worker, second.Worker)
}

func TestSettingsTellWhatIsSet(t *testing.T) {
	t.Parallel()
	for _, setting := range load(t, "CLAUDEOPS_DRY_RUN=true", "CLAUDEOPS_TIER1_TIMEOUT=1h30m0s").Settings() {
		switch setting.Name {
		case "CLAUDEOPS_DRY_RUN":
			require.Equal(t, SourceEnvironment, setting.Source)
			require.Equal(t, "true", setting.Value)
			require.Equal(t, "false", setting.Default)
		case "CLAUDEOPS_TIER1_TIMEOUT":
			require.Equal(t, SourceEnvironment, setting.Source)
			require.Equal(t, "1h30m", setting.Value)
			require.Equal(t, "15m", setting.Default)
		default:
			require.Equal(t, setting.Name == Prefix+agentUser, setting.Source == SourceEnvironment, setting.Name)
		}
	}
}

func TestNoCredentialIsListed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sqlite:///var/lib/x.db":              "sqlite:///var/lib/x.db",
		"sqlite:///x.db?key=hunter2":          "(not shown)",
		"sqlite://u:hunter2@/x.db":            "(not shown)",
		"sqlite:///x.db#hunter2":              "(not shown)",
		"postgres://u:hunter2@db/x":           "(not shown)",
		"://hunter2":                          "(not shown)",
		"host=db user=u password=hunter2":     "(not shown)",
		"postgres://u:hunter2%zz@db/whatever": "(not shown)",
	} {
		cfg := load(t)
		cfg.State.DatabaseURL = text
		for _, setting := range cfg.Settings() {
			if setting.Name == databaseVariable {
				require.Equal(t, want, setting.Value)
			}
		}
	}
}

func TestNoNotificationURLIsListed(t *testing.T) {
	t.Parallel()
	cfg := load(t, "CLAUDEOPS_NOTIFY_URLS=generic://hunter2.example.org/hunter2 apprise://hunter2@host/key")
	require.Len(t, cfg.Notify.URLs, 2)
	for _, setting := range cfg.Settings() {
		require.NotContains(t, fmt.Sprintf("%+v", setting), "hunter2")
		if setting.Name == Prefix+"NOTIFY_URLS" {
			require.Equal(t, "(2, not shown)", setting.Value)
		}
	}
	require.NotContains(t, cfg.Notify.URLs.String(), "hunter2")
}

func TestNotificationURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SecretList{
		"ntfy://h/a":                           {"ntfy://h/a"},
		"ntfy://h/a,ntfy://h/b,":               {"ntfy://h/a", "ntfy://h/b"},
		"ntfy://h/a , ntfy://h/b\nntfy://h/c":  {"ntfy://h/a", "ntfy://h/b", "ntfy://h/c"},
		"smtp://h/?from=a@b.c&to=d@e.f,g@h.i":  {"smtp://h/?from=a@b.c&to=d@e.f,g@h.i"},
		"apprise://h/k?tags=a,b,generic://h/x": {"apprise://h/k?tags=a,b", "generic://h/x"},
	} {
		got, err := parseSecrets(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}

func TestConfigurationIsDocumented(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "docs", "configuration.md")
	document := documentation(load(t).Settings())
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(document), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), document, "run this test with -update")
}

const documentHead = `# Configuration

<!-- Written by the tests of internal/plant/config (go test ./internal/plant/config -update). Do not edit. -->

Configure Claude Ops with environment variables, or in a file of settings (` + "`CLAUDEOPS_ENV_FILE`" + `). Each program reads them once, when it
starts; a running chain keeps its values. An empty variable counts as unset: the value in the file holds. ` + "`none`" + ` is the empty list.
Numbers are at most 1000000000, durations 87600h (ten years). An unknown ` + "`CLAUDEOPS_`" + ` variable is an error. ` + "`claudeops config`" + ` prints every
setting with its value.

The connection to Temporal follows Temporal's own settings: ` + "`TEMPORAL_ADDRESS`" + `, ` + "`TEMPORAL_NAMESPACE`" + `, ` + "`TEMPORAL_API_KEY`" + `, TLS,
and the profiles of ` + "`temporal.toml`" + `. If they name no address, or that of a ` + "`claudeops up`" + ` with the same state directory, the
programs connect to that server with its token.
`

// notes are printed below a group's heading.
var notes = map[string]string{
	"Tiers": `The agent can only use the tools in the list of its tier. The policy decides on every call: see Permissions. In a dry run
every tier has the tools and permissions of tier 1.`,
	"Permissions": `[The policy](policy.md) says what each tier may do. ` + "`" + `claudeops policy explain --tier 1` + "`" + ` describes it in words.`,
	"Services": `[Services](services.md) describes the file. Prompts contain up to 40 services, those of the chain first. If the file has a mistake, the program does
not start, and names the line or the service.`,
	"Prompts": `A file replaces the built-in instructions of a tier, in every form of its prompt. Do not repeat what always follows: the request, services, handoff,
permissions, dry run, rules and the form of the verdict.

It is a Go template (` + "`" + `text/template` + "`" + `) with ` + "`" + `.Tier` + "`" + `, ` + "`" + `.Resumed` + "`" + `, ` + "`" + `.DryRun` + "`" + `, ` + "`" + `.Services` + "`" + `, ` + "`" + `.Request` + "`" + `, ` + "`" + `.Guidance` + "`" + `, ` + "`" + `.Handoff` + "`" + `,
` + "`" + `.Brief` + "`" + ` (what the policy grants), ` + "`" + `.Allowed` + "`" + ` and ` + "`" + `.Denied` + "`" + ` (rules that narrow it). ` + "`" + `{{if .Resumed}}` + "`" + ` distinguishes the forms; write two plain
braces as ` + "`{{\"{{\"}}`" + `. Each file is tried at the start; an error names file and line.`,
}

// documentation renders docs/configuration.md. A meaning that several settings of a group share is printed once.
func documentation(settings []Setting) string {
	var text strings.Builder
	text.WriteString(documentHead)
	group := ""
	var said map[string]string
	for _, setting := range settings {
		if setting.Group != group {
			group, said = setting.Group, map[string]string{}
			fmt.Fprintf(&text, "\n## %s\n", group)
			if notes[group] != "" {
				fmt.Fprintf(&text, "\n%s\n", notes[group])
			}
			text.WriteString("\n| variable | default | meaning |\n|---|---|---|\n")
		}
		meaning := setting.Meaning
		if first := said[meaning]; first != "" {
			meaning = "as `" + first + "`"
		} else {
			said[meaning] = setting.Name
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", setting.Name, documentedDefault(setting), meaning)
	}
	return text.String()
}

func documentedDefault(setting Setting) string {
	if setting.Default == "" {
		return ""
	}
	return "`" + setting.Default + "`"
}
