// Package setup holds the commands that begin, show and check an installation, and those that try the policy of its
// agents.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	processes "github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
)

// finding is the result of one check of `doctor`.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	// Note reports that it works, and that the detail says something to know or to improve.
	Note bool `json:"note,omitempty"`
	// Detail describes the result and, if the check failed, how to repair the problem.
	Detail string `json:"detail"`
}

// app implements the commands of this package.
type app struct {
	*console.Console

	steps Steps
}

// Commands returns `init`, `doctor`, `config` and `notify`.
func Commands(c *console.Console, steps Steps) []*cobra.Command {
	a := &app{c, steps}
	return []*cobra.Command{a.initCommand(), a.doctorCommand(), a.configCommand(), a.notifyCommand()}
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything a worker needs is there",
		Long:  "Doctor checks the installation, says how to mend what is broken, and ends with 1 if anything is.",
		Args:  console.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	findings := a.examine(ctx)
	if err := a.Print(findings, func(w io.Writer) { writeFindings(w, a.Width(), findings) }); err != nil {
		return err
	}
	broken := 0
	for _, f := range findings {
		if !f.OK {
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d checks failed", broken, len(findings))
	}
	return nil
}

// examine runs the checks. If a check has failed, examine omits the checks that depend on it.
func (a *app) examine(ctx context.Context) []finding {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return []finding{failed("configuration", err)}
	}
	findings := []finding{checkSettings(cfg), checkPolicy(cfg.Guard), checkNotifications(cfg)}
	if err := cfg.MakeDirs(); err != nil {
		findings = append(findings, failed("state directory", err))
	} else {
		findings = append(findings, passed("state directory", cfg.State.Dir+" is writable"),
			checkDatabase(ctx, cfg), checkTranscripts(ctx, cfg))
	}
	findings = append(findings, checkServices(cfg.Services), checkAlerts(cfg), checkEncryption(cfg.Encryption),
		checkContainment(cfg.Claude.Containment), a.checkSandbox(ctx, cfg), a.checkCell(ctx, cfg),
		a.checkWorktrees(cfg), a.checkAgentUser(ctx, cfg),
		a.checkClaude(ctx, cfg), a.checkCredentials(ctx, cfg), a.checkPrograms(cfg), a.checkVariables(cfg),
		checkPrices(cfg))
	return append(findings, a.checkTemporal(ctx, cfg)...)
}

// checkSettings names the file of settings.
func checkSettings(cfg config.Config) finding {
	if cfg.State.EnvFile == "" {
		return passed("configuration", "valid; all of it is from the environment")
	}
	return passed("configuration", "valid; the file of settings is "+cfg.State.EnvFile)
}

// checkPolicy names the policy. A full copy of the built-in policy lacks the rules that later versions of the program
// have got.
func checkPolicy(settings config.Guard) finding {
	const check = "policy"
	policy, err := settings.LoadPolicy()
	if err != nil {
		return failed(check, err)
	}
	builtIn, err := config.Guard{}.LoadPolicy()
	if err != nil {
		return failed(check, err)
	}
	switch lacking := policy.Lacks(builtIn); {
	case settings.PolicyFile == "":
		return passed(check, "the built-in one")
	case policy.Own() != nil:
		return passed(check, fmt.Sprintf("the built-in one, changed by %s; `claudeops policy explain` says how",
			settings.PolicyFile))
	case len(lacking) > 0:
		return noted(check, fmt.Sprintf("%s, which lacks rules of the built-in one (%d, such as %s): keep only your "+
			"changes in it, with "+
			"`extends: default`", settings.PolicyFile, len(lacking), lacking[0]))
	default:
		return passed(check, settings.PolicyFile)
	}
}

func checkDatabase(ctx context.Context, cfg config.Config) finding {
	const check = "database"
	records, err := supervisor.OpenExisting(ctx, cfg.State)
	switch {
	case errors.Is(err, store.ErrUnmigrated):
		return noted(check, "it has no tables of this release: the next worker makes them")
	case errors.Is(err, fs.ErrNotExist):
		return passed(check, "none yet; the first worker makes "+cfg.State.DatabaseFile())
	case err != nil:
		return failed(check, err)
	}
	if err := errors.Join(records.CheckWritable(ctx), records.Close()); err != nil {
		return failed(check, err)
	}
	return passed(check, "open, schema up to date, takes writes")
}

// checkTranscripts reports whether the archive of conversations can be read. It writes no test file, because nothing
// ever deletes files in the archive.
func checkTranscripts(ctx context.Context, cfg config.Config) finding {
	const check = "transcripts"
	if cfg.State.Transcripts == config.NoTranscripts {
		return passed(check, "not archived: a chain whose host is lost goes on from a summary")
	}
	archive, err := supervisor.OpenArchive(ctx, cfg)
	if err != nil {
		return failed(check, err)
	}
	if err := errors.Join(archive.Check(ctx), archive.Close()); err != nil {
		return failed(check, err)
	}
	return passed(check, "archived at "+cfg.State.Transcripts)
}

// checkServices reports how many services the operator has described.
func checkServices(settings config.Services) finding {
	const check = "services"
	if settings.Catalog == nil {
		return passed(check, "none are described: CLAUDEOPS_SERVICES_FILE is not set")
	}
	return passed(check, fmt.Sprintf("%d described in %s", len(settings.Catalog.Services()), settings.File))
}

// checkEncryption reports whether chains are encrypted, and with which key.
func checkEncryption(settings config.Encryption) finding {
	const check = "encryption"
	if settings.Keys == nil {
		return passed(check, "off: Temporal stores chains in clear; CLAUDEOPS_ENCRYPTION_KEYS_FILE turns it on")
	}
	return passed(check, fmt.Sprintf("on: %s encrypts, %d keys decrypt", settings.Keys.Current(),
		len(settings.Keys.IDs())))
}

// checkNotifications reports which services get notifications, and what came of their last test. It sends no test
// notification, because people would receive it.
func checkNotifications(cfg config.Config) finding {
	const check = "notifications"
	targets, err := cfg.Notify.Targets()
	if err != nil {
		return failed(check, err)
	}
	if len(targets) == 0 {
		return noted(check, "nobody is notified: CLAUDEOPS_NOTIFY_URLS is not set")
	}
	services := make([]string, len(targets))
	for i, target := range targets {
		services[i] = target.Service()
	}
	all := strings.Join(services, ", ")
	last, tried := lastNotifyTest(cfg)
	if !tried {
		return noted(check, all+": nobody has tried them here; run: claudeops notify test")
	}
	for _, attempt := range last.Attempts {
		if !attempt.OK {
			return failed(check, fmt.Errorf("%s: the test of %s failed: %s; correct CLAUDEOPS_NOTIFY_URLS, then run: "+
				"claudeops notify test", all, calendar.Of(last.At), attempt.Error))
		}
	}
	return passed(check, fmt.Sprintf("%s; the test of %s was taken", all, calendar.Of(last.At)))
}

func (a *app) checkClaude(ctx context.Context, cfg config.Config) finding {
	const check = "claude"
	cli, err := claude.Locate(ctx, supervisor.ClaudeOptions(cfg.Claude, a.Environ))
	if err != nil {
		return failed(check, err)
	}
	if file, key := claude.HooksOff(claude.ManagedSettings); file != "" {
		return failed(check, fmt.Errorf("the managed settings %s switch off hooks (%s), so the CLI does not ask the "+
			"guard and "+
			"sessions fail: remove that there", file, key))
	}
	detail := fmt.Sprintf("version %s at %s", cli.Version(), cli.Path())
	if warning := cli.Warning(); warning != "" {
		return noted(check, detail+"; "+warning)
	}
	return passed(check, detail)
}

// checkCredentials reports whether agents find credentials for the model in this environment, whether the API refuses
// them, as far as that shows without paying, and who holds them: the worker or the agents.
func (a *app) checkCredentials(ctx context.Context, cfg config.Config) finding {
	const check = "credentials"
	options := supervisor.ClaudeOptions(cfg.Claude, a.Environ)
	if problem := cell.CheckAccess(ctx, options); problem != "" {
		return failed(check, errors.New(problem))
	}
	where, _ := claude.Credentials(options)
	_, withWorker, err := cell.APIUpstream(options)
	if err != nil {
		return failed(check, err)
	}
	if !withWorker {
		return noted(check, "agents use "+where+" themselves, and their commands can read it: "+
			"set ANTHROPIC_API_KEY to keep the credential with the worker")
	}
	return passed(check, where+" stays with the worker: each session gets a key of its own")
}

// checkPrograms reports which programs of the policy agents find where it grants none.
func (a *app) checkPrograms(cfg config.Config) finding {
	const check = "programs"
	outside, err := supervisor.ProgramsOutside(cfg, a.Environ)
	switch {
	case err != nil:
		return failed(check, err)
	case len(outside) > 0:
		return noted(check, supervisor.DescribeOutside(outside))
	}
	return passed(check, "those of the policy that agents find are in its directories")
}

// checkVariables reports which variables for agents no program gets.
func (a *app) checkVariables(cfg config.Config) finding {
	const check = "variables"
	problem, err := supervisor.CheckVariables(cfg, a.Environ)
	switch {
	case err != nil:
		return failed(check, err)
	case problem != "":
		return noted(check, problem)
	case len(cfg.Claude.PassEnv) == 0:
		return passed(check, "agents' programs get none of the worker's ("+config.Prefix+"PASS_ENV)")
	}
	return passed(check, "each of "+config.Prefix+"PASS_ENV goes to the programs that are named for it")
}

// checkPrices reports whether the costs of the configured models are known.
func checkPrices(cfg config.Config) finding {
	const check = "prices"
	var guessed []string
	for _, model := range []string{
		cfg.Tiers.Tier1.Model, cfg.Tiers.Tier2.Model, cfg.Tiers.Tier3.Model, cfg.Talk.Model,
		cfg.Review.Reviewer.Model, cfg.Author.Role.Model,
	} {
		if model != "" && !claude.Listed(model) && !slices.Contains(guessed, model) {
			guessed = append(guessed, model)
		}
	}
	if len(guessed) > 0 {
		return noted(check, strings.Join(guessed,
			", ")+": not known, so the CLI takes those of another model; costs are guesses "+
			"(\"about\"), and budgets end sessions by them: compare with the bill")
	}
	return passed(check, "those of the models are known")
}

// checkContainment reports the method with which a worker on this host finds and ends all processes of an agent.
func checkContainment(choice config.Containment) finding {
	const check = "containment"
	found, err := processes.Probe(processes.Mode(choice))
	if err != nil {
		return failed(check, fmt.Errorf("%w; set CLAUDEOPS_CONTAINMENT=auto to take the best that is to be had", err))
	}
	return passed(check, found.String())
}

// checkSandbox reports which sandbox this host's kernel provides for agents.
func (a *app) checkSandbox(ctx context.Context, cfg config.Config) finding {
	const check = "sandbox"
	found, err := supervisor.ProbeSandbox(ctx, cfg, a.Environ)
	if err != nil {
		return failed(check, fmt.Errorf("%w; set %sSANDBOX=auto to run agents without one where there is none", err,
			config.Prefix))
	}
	if !strings.HasPrefix(found, "full") {
		return noted(check, found)
	}
	return passed(check, found)
}

// checkCell reports whether checks and previews can run on this host.
func (a *app) checkCell(ctx context.Context, cfg config.Config) finding {
	const check = "checks"
	found, err := supervisor.ProbeCell(ctx, cfg, a.Environ)
	if err != nil {
		return noted(check, err.Error())
	}
	return passed(check, found)
}

// checkWorktrees reports where sessions may not commit, or nothing can be pushed, although each commit is reviewed.
func (a *app) checkWorktrees(cfg config.Config) finding {
	const check = "worktrees"
	problems, err := supervisor.ProbeRepositories(cfg, a.Environ)
	switch {
	case err != nil:
		return failed(check, err)
	case len(problems) > 0:
		return noted(check, "commits are reviewed, and "+strings.Join(problems, "; "))
	}
	return passed(check, "sessions that repair in a repository get a worktree")
}

// checkAgentUser tests whether agents can run as the configured user.
func (a *app) checkAgentUser(ctx context.Context, cfg config.Config) finding {
	const check = "agents' user"
	if err := supervisor.CheckUser(ctx, cfg, a.Environ); err != nil {
		return failed(check, err)
	}
	switch {
	case supervisor.RootAlone(cfg):
		return noted(check,
			"agents run as root, like the worker; this is much more than they need, see "+config.Prefix+"AGENT_USER")
	case !cfg.Claude.HasAgentUser():
		return passed(check, "agents run as the worker's user")
	case cfg.Claude.Account == nil:
		return passed(check, "agents will run as "+cfg.Claude.AgentUser+", which the worker creates at its start")
	}
	return passed(check, "agents run as "+cfg.Claude.AgentUser)
}

func passed(check, detail string) finding { return finding{Check: check, OK: true, Detail: detail} }

func noted(check, detail string) finding {
	return finding{Check: check, OK: true, Note: true, Detail: detail}
}

func failed(check string, err error) finding { return finding{Check: check, Detail: err.Error()} }

// writeFindings writes the findings, on a terminal of the given width. The sign ! is for what works, and is worth
// knowing.
func writeFindings(w io.Writer, width int, findings []finding) {
	for _, f := range findings {
		sign := "✓"
		switch {
		case !f.OK:
			sign = "✗"
		case f.Note:
			sign = "!"
		}
		console.WriteLabelled(w, fmt.Sprintf("%s %-18s ", sign, f.Check), f.Detail, width)
	}
}
