package supervisor

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/config/envfile"
)

// AgentPlace holds the facts about one session that the guard needs in addition to the configuration.
type AgentPlace struct {
	// Directory is the agent's working directory; empty for the configured directory.
	Directory string
	// Variables holds the variables that only the agent of this session gets, such as its TMPDIR.
	Variables map[string]string
	// Doors lists ports of the supervisor that the configuration does not name, such as the ports of `claudeops up`.
	Doors []guard.Door
	// Asked lists files that the prompt asks the agent to write.
	Asked []string
}

// places describes to the guard the directories and variables of this worker's sessions, and the supervisor's own
// files and addresses.
type places struct {
	config  config.Config
	environ []string
	// doors lists ports of the worker that the configuration does not name.
	doors []guard.Door
}

// of describes where the calls of one session run.
func (p *places) of(directory string, variables map[string]string, asked []string) (guard.Place, error) {
	return GuardPlace(p.config, p.environ, AgentPlace{
		Directory: directory, Variables: variables, Doors: p.doors,
		Asked: asked,
	})
}

// GuardPlace describes to the guard where an agent's calls run: the agent's directories and variables, and the
// supervisor's own files and addresses. The argument environ ("NAME=value") is the worker's environment. GuardPlace
// resolves symbolic links and changes nothing.
func GuardPlace(cfg config.Config, environ []string, session AgentPlace) (guard.Place, error) {
	doors, err := doorsOf(cfg, environ)
	if err != nil {
		return guard.Place{}, err
	}
	directory := session.Directory
	if directory == "" {
		directory = cfg.Claude.WorkDir
	}
	given := claude.Variables(ClaudeOptions(cfg.Claude, environ), session.Variables)
	names := make(map[string]string, len(given)+len(shellVariables))
	for name := range given { // only the names, because the values include credentials and the guard needs no values
		names[name] = ""
	}
	for _, name := range shellVariables {
		names[name] = ""
	}
	temp := given["TMPDIR"]
	if temp == "" {
		temp = "/tmp"
	}
	return guard.Place{
		Work:      []string{directory},
		Home:      given["HOME"],
		Temp:      filepath.Clean(temp),
		Path:      filepath.SplitList(given["PATH"]),
		Variables: names,
		Own:       bothNames(ownFiles(cfg, environ)),
		Doors:     append(doors, session.Doors...),
		Services:  ownServices(),
		Asked:     bothNames(session.Asked),
	}, nil
}

// ownServices returns the unit of systemd in which this process runs; nil if there is none.
func ownServices() []string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return unitsOf(string(groups))
}

// unitsOf returns the innermost unit in each of the control groups of a process (cgroups(7)).
func unitsOf(groups string) (units []string) {
	for line := range strings.Lines(groups) {
		for _, part := range slices.Backward(strings.Split(strings.TrimSpace(line), "/")) {
			if unit, is := strings.CutSuffix(part, ".service"); is {
				units = append(units, unit)
				break
			}
		}
	}
	return slices.Compact(units)
}

// shellVariables lists the variables that the CLI and the shell set for every command.
var shellVariables = []string{
	"PWD", "OLDPWD", "SHLVL", "_", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_TMPDIR", "GIT_EDITOR",
}

// ownFiles lists the supervisor's own files: its records, its conversations, the credentials for Temporal and claude,
// the encryption keys, the tokens of pages and API, and the files that control agents (the policy, the services file
// and the prompts). It also lists the directory of all worktrees, because a session must not use any worktree but its
// own.
func ownFiles(cfg config.Config, environ []string) []string {
	settings, _ := envfile.Find(environ) // also if it is not there: the next start would read it
	own := []string{
		settings, cfg.State.Dir, cfg.State.TranscriptsDir(), cfg.Claude.ConfigDir, cfg.WorktreesDir(),
		cfg.Guard.PolicyFile, cfg.Services.File, cfg.Encryption.KeysFile, cfg.Prompts.Tier1, cfg.Prompts.Tier2,
		cfg.Prompts.Tier3,
	}
	own = slices.Concat(own, cfg.Web.SecretFiles(), cfg.Services.Alerts.SecretFiles())
	for _, service := range cfg.Services.Catalog.Services() { // agents get their text
		own = append(own, service.RunbookFile, service.LookFile)
	}
	if file := cfg.State.DatabaseFile(); file != "" {
		own = append(own, file, file+"-wal", file+"-shm", file+"-journal")
	}
	own = append(own, cfg.State.DatabaseCredentials()...)
	if cfg.Claude.Login { // the CLI keeps the account and keys in a file beside its directory
		own = append(own, cfg.Claude.ConfigDir+".json")
	}
	for _, name := range []string{
		"TEMPORAL_CONFIG_FILE", "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
	} {
		if file, _ := variables(environ).LookupEnv(name); filepath.IsAbs(file) {
			own = append(own, file)
		}
	}
	return slices.DeleteFunc(own, func(path string) bool { return path == "" })
}

// bothNames returns each path twice: as given, and with symbolic links resolved.
func bothNames(paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, filepath.Clean(path))
		if target, err := (guard.Host{}).Resolve(path); err == nil {
			all = append(all, target)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// doorsOf lists the addresses of Temporal, its Web UI, the server of pages and API, and the database that are in the
// configuration. It also lists the default ports of the first three on this host. Agents must not connect to these
// ports, whatever program listens there.
func doorsOf(cfg config.Config, environ []string) ([]guard.Door, error) {
	options, err := ConnectionOptions(environ, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	var doors []guard.Door
	for _, port := range config.OwnPorts() {
		doors = append(doors, guard.Door{Host: "127.0.0.1", Port: port})
	}
	// gRPC addresses may have the form resolver:///host:port
	_, address, hasScheme := strings.Cut(options.HostPort, "///")
	if !hasScheme {
		address = options.HostPort
	}
	temporal, err := doorAt(address, "443")
	if err != nil {
		return nil, fmt.Errorf("%w: the address of Temporal: %w", ErrConnectionSettings, err)
	}
	doors = append(doors, temporal)
	for _, site := range []string{cfg.Notify.UIURL, cfg.Web.URL} {
		if parsed, err := url.Parse(site); err == nil && parsed.Host != "" {
			if door, err := doorAt(parsed.Host, usualPorts[parsed.Scheme]); err == nil {
				doors = append(doors, door)
			}
		}
	}
	for _, address := range []string{cfg.Telemetry.MetricsAddress, cfg.Telemetry.PprofAddress, cfg.Web.Listen} {
		if door, err := doorAt(address, ""); err == nil {
			doors = append(doors, guard.Door{Host: "127.0.0.1", Port: door.Port})
		}
	}
	for _, server := range cfg.State.DatabaseServers() {
		doors = append(doors, guard.Door{Host: server.Host, Port: server.Port})
	}
	slices.SortFunc(doors, func(a, b guard.Door) int {
		return strings.Compare(a.Host+" "+strconv.Itoa(a.Port), b.Host+" "+strconv.Itoa(b.Port))
	})
	return slices.Compact(doors), nil
}

// usualPorts maps schemes of URLs to their default ports.
var usualPorts = map[string]string{"http": "80", "https": "443"}

// doorAt parses "host:port" or "host". If the address has no port, the door has the port in usualPort.
func doorAt(address, usualPort string) (guard.Door, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), usualPort
	}
	number, err := strconv.Atoi(port)
	return guard.Door{Host: host, Port: number}, err
}
