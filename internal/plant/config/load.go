package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config/envfile"
)

// Load reads the configuration from environ, which has the form of os.Environ, and from the file of settings. It also
// reads the files that the configuration names: the prompts, the policy, the services and the keys. It changes no file.
// If Load finds problems, the error is an *Error with all of them, and the Config must not be used.
func Load(environ []string) (Config, error) {
	file, err := envfile.Read(environ, holdsSecret)
	if err != nil {
		return Config{}, &Error{Problems: []Problem{{Variable: envfile.Variable, Sentence: err.Error()}}}
	}
	vars := env.ToMap(file.Merge(environ))
	cfg := defaults()
	cfg.given, cfg.lines = map[string]bool{}, map[string]int{}
	found := &problems{vars: map[string]string{}}
	var known []string
	for _, leaf := range leaves(cfg) {
		known = append(known, leaf.name)
		found.vars[leaf.name] = strings.TrimSpace(vars[leaf.name])
		cfg.given[leaf.name] = found.vars[leaf.name] != ""
		cfg.lines[leaf.name] = file.Line(leaf.name, vars[leaf.name])
	}
	parse(&cfg, found)
	cfg.State.EnvFile = file.Path
	resolve(&cfg, foreignVariables{
		home:         vars["HOME"],
		xdgState:     vars["XDG_STATE_HOME"],
		claudeConfig: vars["CLAUDE_CONFIG_DIR"],

		mayChangeUser: mayChangeUser(),
	}, found)
	cfg.validate(found)
	reportUnknown(vars, known, found)
	found.locate(file, vars)
	if err := found.err(); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// Environ returns environ with the variables of the file of settings that environ lacks. If the file cannot be used,
// Environ returns environ, and Load says why.
func Environ(environ []string) []string {
	file, err := envfile.Read(environ, holdsSecret)
	if err != nil {
		return environ
	}
	return file.Merge(environ)
}

// holdsSecret reports whether the value of a variable may be a credential.
func holdsSecret(variable string) bool {
	if strings.HasPrefix(variable, Prefix) {
		return slices.Contains(secretVariables, variable)
	}
	return guard.IsSecret(variable) && !strings.HasSuffix(variable, "_FILE") && !strings.HasSuffix(variable, "_PATH")
}

// foreignVariables holds what defaults are derived from: other programs' variables, and the rights of this process.
type foreignVariables struct {
	home         string // HOME
	xdgState     string // XDG_STATE_HOME
	claudeConfig string // CLAUDE_CONFIG_DIR, the CLI's own variable
	// mayChangeUser reports that this process may run agents as another user.
	mayChangeUser bool
}

// userLogin is a value of CLAUDEOPS_CLAUDE_CONFIG_DIR. It selects the login of the user who runs this program.
const userLogin = "login"

// resolve makes configured paths absolute. It also fills in settings that are derived from other settings.
func resolve(c *Config, foreign foreignVariables, p *problems) {
	absolute := func(name string, path *string) {
		if !p.given(name) {
			return
		}
		resolved, err := foreign.absolute(*path)
		p.must(name, err == nil, "%s", errorText(err))
		*path = resolved
	}

	absolute("STATE_DIR", &c.State.Dir)
	if !p.given("STATE_DIR") {
		c.State.Dir = foreign.stateDir()
		p.must("STATE_DIR", c.State.Dir != "",
			"name a directory, because neither XDG_STATE_HOME nor HOME gives a place for one")
	}
	if c.State.DatabaseURL == "" {
		c.State.DatabaseURL = c.State.OwnDatabaseURL()
	}
	if c.State.Transcripts == "" && c.State.Dir != "" {
		// The archive lies beside the state directory, so that it survives the loss of the state directory.
		c.State.Transcripts = locationOf(c.State.Dir + "-transcripts")
	}
	resolveAccount(&c.Claude, foreign, p)
	absolute("WORK_DIR", &c.Claude.WorkDir)
	if !p.given("WORK_DIR") {
		c.Claude.WorkDir = c.ScratchDir()
	}
	resolveConfigDir(&c.Claude, c.AgentsDir(), foreign, p)
	absolute("POLICY_FILE", &c.Guard.PolicyFile)
	c.Guard.passed = c.Claude.PassEnv
	c.Guard.reviewed = c.Review.Changes == escalation.ReviewRequired
	absolute("SERVICES_FILE", &c.Services.File)
	c.Services.load(p)
	absolute(encryptionKeysFile, &c.Encryption.KeysFile)
	c.Encryption.load(p)
	absolute("IDENTITY_FILE", &c.Talk.IdentityFile)
	absolute("SOUL_FILE", &c.Talk.SoulFile)
	absolute("USER_FILE", &c.Talk.UserFile)
	c.Talk.load(p)
	resolveWeb(&c.Web, c.State.Dir, absolute)
	absolute("PROMPT", &c.Prompts.Tier1)
	absolute("TIER2_PROMPT", &c.Prompts.Tier2)
	absolute("TIER3_PROMPT", &c.Prompts.Tier3)
}

func resolveConfigDir(c *Claude, agentsDir string, foreign foreignVariables, p *problems) {
	const name = "CLAUDE_CONFIG_DIR"
	switch c.ConfigDir {
	case "":
		c.ConfigDir = filepath.Join(agentsDir, "claude")
	case userLogin:
		c.Login = true
		c.ConfigDir = foreign.claudeConfig
		if c.ConfigDir == "" && foreign.home != "" {
			c.ConfigDir = filepath.Join(foreign.home, ".claude")
		}
		p.must(name, c.ConfigDir != "", "be a path, because HOME is not set and so there is no user's login")
		p.must(name, filepath.IsAbs(c.ConfigDir),
			"be a path, because the directory of the user's login, %q, is relative, and agents run elsewhere",
			c.ConfigDir)
	default:
		resolved, err := foreign.absolute(c.ConfigDir)
		p.must(name, err == nil, "%s, or %s", errorText(err), userLogin)
		c.ConfigDir = resolved
	}
}
