package supervisor

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/guard"
)

// AgentPlace is what the guard must know of one session, beyond the configuration.
type AgentPlace struct {
	// Directory is where the agent works; empty is the configured one.
	Directory string
	// Variables are those that the agent gets for its session alone, among them a TMPDIR of its own.
	Variables map[string]string
	// Doors are ports of the supervisor that no setting names, such as those of `starter up`.
	Doors []guard.Door
	// Asked are files that the agent is asked to write.
	Asked []string
}

// places returns the places of this worker's sessions, for their guards.
type places struct {
	config  config.Config
	environ []string
	// doors are ports of the worker that no setting names.
	doors []guard.Door
}

// of returns where the calls of a session take place.
func (p *places) of(directory string, variables map[string]string, asked []string) (guard.Place, error) {
	return GuardPlace(p.config, p.environ, AgentPlace{Directory: directory, Variables: variables, Doors: p.doors, Asked: asked})
}

// GuardPlace returns where an agent's calls take place, for the guard: where it works, what it finds there, and which files
// and addresses are the supervisor's own. Environ ("NAME=value") is that of the worker. It looks up where paths lead and changes nothing.
func GuardPlace(cfg config.Config, environ []string, session AgentPlace) (guard.Place, error) {
	doors, err := doorsOf(cfg, environ)
	if err != nil {
		return guard.Place{}, err
	}
	directory := session.Directory
	if directory == "" {
		directory = cfg.Claude.WorkDir
	}
	given := claude.Variables(agent.ClaudeOptions(cfg.Claude, environ), session.Variables)
	names := make(map[string]string, len(given)+len(shellVariables))
	for name := range given { // without values: credentials are among them, and the guard asks for names
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
		Asked:     bothNames(session.Asked),
	}, nil
}

// shellVariables are those that the CLI and the shell give to every command.
var shellVariables = []string{
	"PWD", "OLDPWD", "SHLVL", "_", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_TMPDIR", "GIT_EDITOR",
}

// ownFiles lists what belongs to the supervisor: its records, its conversations, the credentials of Temporal and of claude, and
// what decides on agents.
func ownFiles(cfg config.Config, environ []string) []string {
	own := []string{
		cfg.State.Dir, cfg.State.TranscriptsDir(), cfg.Claude.ConfigDir, cfg.Guard.PolicyFile,
		cfg.Prompts.Tier1, cfg.Prompts.Tier2, cfg.Prompts.Tier3,
	}
	if file := cfg.State.DatabaseFile(); file != "" {
		own = append(own, file, file+"-wal", file+"-shm", file+"-journal")
	}
	if cfg.Claude.Login { // beside its directory the CLI has a file with the account and keys
		own = append(own, cfg.Claude.ConfigDir+".json")
	}
	for _, name := range []string{"TEMPORAL_CONFIG_FILE", "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH"} {
		if file, _ := variables(environ).LookupEnv(name); filepath.IsAbs(file) {
			own = append(own, file)
		}
	}
	return slices.DeleteFunc(own, func(path string) bool { return path == "" })
}

// bothNames returns paths as they are given, and with their symbolic links resolved.
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

// doorsOf lists the addresses that the configuration has of Temporal, its Web UI and the database, and the usual ports of
// the first two on this host: whatever listens there is no business of agents.
func doorsOf(cfg config.Config, environ []string) ([]guard.Door, error) {
	options, err := ConnectionOptions(environ, cfg.State.Dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	var doors []guard.Door
	for _, port := range config.TemporalPorts() {
		doors = append(doors, guard.Door{Host: "127.0.0.1", Port: port})
	}
	_, address, hasScheme := strings.Cut(options.HostPort, "///") // as gRPC spells what resolves the name
	if !hasScheme {
		address = options.HostPort
	}
	temporal, err := doorAt(address, "443")
	if err != nil {
		return nil, fmt.Errorf("%w: the address of Temporal: %w", ErrConnectionSettings, err)
	}
	doors = append(doors, temporal)
	for _, rawURL := range []string{cfg.Notify.UIURL, cfg.State.DatabaseURL} {
		parsed, err := url.Parse(rawURL)
		if err != nil || parsed.Host == "" {
			continue // a file, or none
		}
		if door, err := doorAt(parsed.Host, usualPorts[parsed.Scheme]); err == nil {
			doors = append(doors, door)
		}
	}
	slices.SortFunc(doors, func(a, b guard.Door) int {
		return strings.Compare(a.Host+" "+strconv.Itoa(a.Port), b.Host+" "+strconv.Itoa(b.Port))
	})
	return slices.Compact(doors), nil
}

// usualPorts are the ports of addresses that name none.
var usualPorts = map[string]string{"http": "80", "https": "443", "postgres": "5432", "postgresql": "5432"}

// doorAt reads host:port, or host.
func doorAt(address, usualPort string) (guard.Door, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), usualPort
	}
	number, err := strconv.Atoi(port)
	return guard.Door{Host: host, Port: number}, err
}
