package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/hook"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// guards makes the CLI ask before each tool call of an agent, and answers according to the policy.
type guards struct {
	policy *guard.Policy
	// place describes the execution environment of a session for the guard (see Options.Place).
	place func(directory string, variables map[string]string, asked []string) (guard.Place, error)
	// executable is this program. The CLI starts it to ask about a call.
	executable string
	// catalog holds the canonical names of services; nil if the operator has described none.
	catalog *escalation.Catalog
	// sockets is the directory with the sockets of all sessions. shell is a link in it to the executable.
	sockets socketDir
	shell   string
	// names holds the addresses of the supervisor's hosts.
	names   names
	records Records
	logger  *slog.Logger
	// passed lists the variables, as NAME=value, that only certain programs get.
	passed []string
	// confines reports whether the kernel of this host judges the executables, files and connections of agents.
	confines func() bool
}

// Records stores the decisions on calls, and counts repairs in the ledger.
type Records interface {
	// AppendDecisions records decisions on calls, with secrets masked.
	AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) error
	// Charge adds the actions of a call to the ledger. If the call is refused, Charge returns the refusal.
	Charge(ctx context.Context, charge escalation.Charge) (*escalation.ChargeRefusal, error)
	// ReturnCharge removes the charge of a call that was not made.
	ReturnCharge(ctx context.Context, sessionID, call string) error
}

// newGuards returns guards with a new directory for the sockets. The method close removes this directory. If the agents'
// user cannot run the executable, newGuards fails.
func newGuards(options Options) (*guards, error) {
	executable := options.Executable
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program, which guards the agents' calls: %w", err)
		}
	}
	if account := options.Config.Claude.Account; account != nil {
		if err := claude.MayRun(ClaudeOptions(options.Config.Claude, options.Environ).User, executable); err != nil {
			return nil, fmt.Errorf("%sAGENT_USER=%s cannot be guarded: the worker's program asks about its calls, and that user cannot "+
				"%w; put it where every user may run it, such as /usr/local/bin", config.Prefix, account.Name, err)
		}
	}
	sockets, err := newSocketDir(options.Logger)
	if err != nil {
		return nil, err
	}
	shell, err := hook.InstallShell(sockets.path, executable)
	if err != nil {
		return nil, errors.Join(err, sockets.close())
	}
	return &guards{
		confines: sync.OnceValue(func() bool { return confines(options) }),
		policy:   options.Policy, place: options.Place, executable: executable, sockets: sockets, shell: shell, records: options.Records,
		logger: options.Logger, catalog: options.Config.Services.Catalog,
		passed: claude.Passed(ClaudeOptions(options.Config.Claude, options.Environ)),
	}, nil
}

// confines reports whether the kernel judges the executables, files and connections of the programs in a sandbox.
func confines(options Options) bool {
	sandbox := &claude.Sandbox{Opens: &process.Opens{}}
	found, err := claude.ProbeSandbox(context.Background(), ClaudeOptions(options.Config.Claude, options.Environ), sandbox)
	return err == nil && found.ABI > 0 && found.Opens && found.Connects
}

// close removes the directory of the sockets.
func (g *guards) close() error { return g.sockets.close() }

// watch answers the CLI's questions about the calls of one session.
type watch struct {
	post   *hook.Post
	audit  *callAudit
	logger *slog.Logger
}

// open starts to answer questions about the calls of a session, and changes invocation so that the CLI asks these
// questions. The guard takes into account the files that the agent is asked to write (asked), and the agent's workplace.
func (g *guards) open(
	ctx context.Context, run activities.AgentRun, invocation *claude.Invocation, asked []string, at workplace,
) (*watch, error) {
	place, err := g.place(run.Directory, invocation.Env, asked)
	if err != nil {
		return nil, err
	}
	if tree := at.tree(); tree != nil {
		place.Origin = tree.Guarded.Origin
	}
	place.Own = slices.Concat(place.Own, []string{g.sockets.path}, resolved(g.sockets.path))
	executables := g.executables(tierOf(run), invocation.Sandbox)
	place.Confined = executables.HoldTexts() && g.confines()
	tier, visitors := tierOf(run), newVisitors(run.SessionID, g.logger)
	audit := &callAudit{
		records: g.records, logger: g.logger, catalog: g.catalog, chainID: run.ChainID, executable: g.executable, known: map[string]bool{},
		session: context.WithoutCancel(ctx),
	}
	policy, session := g.policyOf(run, at), hook.Session{
		ID: run.SessionID, Tier: int(tier), Place: place, Narrowed: len(run.Policy.AllowedTools) > 0,
		Executables: executables, Admit: visitors.admit, Passed: g.passed,
	}
	post, err := hook.Open(g.sockets.path, guard.New(policy, guard.Host{}), session, charges{g.records, g.catalog, run}, audit.record)
	if err != nil {
		return nil, err
	}
	if invocation.Sandbox != nil {
		invocation.Sandbox.Opens = g.opensOf(ctx, policy, invocation.Env, session, post)
	}
	invocation.Guard = &claude.Guard{
		Settings: hook.Settings(g.executable), Env: post.Environment(g.executable, g.shell), Started: visitors.begin,
	}
	return &watch{post, audit, g.logger}, nil
}

// opensOf returns the rules by which the kernel judges the files and connections of a session.
func (g *guards) opensOf(
	ctx context.Context, policy *guard.Policy, variables map[string]string, session hook.Session, post *hook.Post,
) *process.Opens {
	opens := fileRules(policy.FileRules(session.Tier), variables, session.Place.Asked, recordIn(post))
	opens.Held = session.Executables.Held()
	opens.HeldRead, opens.HeldWrite = policy.Reached(session.Tier, session.Place)
	g.connectionRules(ctx, opens, session.Place, post)
	return opens
}

// fileRules converts the policy's rules for files to those of a sandbox. Nothing is secret in the session's own directories, nor are
// the files that the agent is asked to write.
func fileRules(rules guard.FileRules, variables map[string]string, asked []string, refused func(process.Refused)) *process.Opens {
	opens := &process.Opens{Secret: rules.Secret, Kept: rules.Kept, Clear: slices.Concat(packaged(rules.Clear), asked), Refused: refused}
	for _, name := range []string{"TMPDIR", "CLAUDE_CONFIG_DIR"} {
		if dir := variables[name]; dir != "" {
			opens.Clear = append(opens.Clear, resolved(dir)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules.Programs)) {
		program := rules.Programs[name]
		opens.Programs = append(opens.Programs, process.ProgramOpens{Program: name, Read: program.Read, Write: program.Write})
	}
	return opens
}

// packaged returns the directories with only those parts of /usr that packages fill: people keep files of their own in /usr/local.
func packaged(dirs []string) (filled []string) {
	for _, dir := range dirs {
		if dir != "/usr" {
			filled = append(filled, dir)
			continue
		}
		for _, part := range []string{"bin", "games", "include", "lib", "lib32", "lib64", "libexec", "libx32", "sbin", "share", "src"} {
			filled = append(filled, filepath.Join(dir, part))
		}
		for _, part := range []string{"bin", "games", "go", "include", "lib", "lib64", "libexec", "sbin", "share/ca-certificates"} {
			filled = append(filled, filepath.Join(dir, "local", part)) // installed toolchains have sources named secret and token
		}
	}
	return filled
}

// recordIn returns a function that records refused files as acts of the session's calls.
func recordIn(post *hook.Post) func(process.Refused) {
	return func(refused process.Refused) { post.Refused(hook.File(refused)) }
}

// policyOf returns the policy for a run. An author proposes nothing itself. If commits are reviewed, a session without a worktree commits
// nothing.
func (g *guards) policyOf(run activities.AgentRun, at workplace) *guard.Policy {
	policy := g.policy
	if run.Authoring != nil {
		policy = config.WithoutProposals(policy)
	}
	if missing := at.missing(run); missing != "" {
		policy = config.WithoutCommits(policy, missing)
	}
	return policy
}

// executables returns what each program of a tier may execute; nil if there is no limit. The limit would keep sudo from
// changing the user.
func (g *guards) executables(tier escalation.Tier, sandbox *claude.Sandbox) *guard.Executables {
	if sandbox == nil || sandbox.Setuid {
		return nil
	}
	return g.policy.Executables(int(tier))
}

// tierOf returns the tier whose permissions apply to a run. For a dry run this is Tier 1.
func tierOf(run activities.AgentRun) escalation.Tier {
	if run.DryRun {
		return escalation.TierObserve
	}
	return run.Tier
}

// settleLimit limits the time that watch.close takes after the end of a session.
const settleLimit = 10 * time.Second

// close stops answering the CLI's questions, and writes the pending decisions. Then it checks the calls that the CLI
// reports (made). If the CLI was not stopped, byItself is true. The error comes from callAudit.check.
func (w *watch) close(ctx context.Context, made []claude.MadeCall, byItself bool) error {
	if w == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	if err := w.post.Close(); err != nil {
		w.logger.WarnContext(ctx, "the guard's socket was not closed", "error", err)
	}
	w.audit.flush(ctx)
	return w.audit.check(made, byItself)
}

// charges implements the ledger of one run. It charges the repairs of the run in the records.
type charges struct {
	records Records
	catalog *escalation.Catalog
	run     activities.AgentRun
}

var _ hook.Ledger = charges{}

// Charge implements hook.Ledger. The limits get canonical names as the actions do, because their chain may have begun before a
// service was renamed.
func (c charges) Charge(ctx context.Context, act string, actions []guard.Action) (refusal string, err error) {
	refused, err := c.records.Charge(ctx, escalation.Charge{
		ChainID: c.run.ChainID, SessionID: c.run.SessionID, Call: act, At: c.run.Now(),
		Actions: actionsOf(c.catalog, actions), Cooldowns: c.catalog.Cooldowns(c.run.Limits),
	})
	if err != nil || refused == nil {
		return "", err
	}
	return refused.Reason(), nil
}

// actionsOf converts the actions that the guard found in a call. Services get their canonical names, as in a verdict.
func actionsOf(catalog *escalation.Catalog, found []guard.Action) []escalation.CallAction {
	var actions []escalation.CallAction
	for _, action := range found {
		actions = append(actions, escalation.CallAction{
			Kind: escalation.ActionKind(action.Kind), Service: catalog.Canonical(action.Service),
		})
	}
	return actions
}

// Return implements hook.Ledger.
func (c charges) Return(ctx context.Context, act string) error {
	return c.records.ReturnCharge(ctx, c.run.SessionID, act)
}
