//go:build linux

package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/guard"
)

// The tests of this file run allowed scripts with a real bash. All programs are stand-ins that log how they are
// called. The guard must allow each logged call on its own, and no file may change that the tier must not write.

const (
	// generated is the number of scripts that TestAllowedRunsOnlyWhatIsGranted generates.
	generated = 300
	// scriptLimit bounds the running time of a script. A script that exceeds it is stopped, and its effects until then
	// are checked.
	scriptLimit = time.Second
	// nobody is the id of the user that runs the scripts.
	nobody = 65534
	key    = "LEAKED-KEY"
)

// FuzzAllowedRunsOnlyWhatIsGranted searches for scripts that do more than the guard has recognized.
func FuzzAllowedRunsOnlyWhatIsGranted(f *testing.F) {
	for _, r := range seeds(f, 200) {
		f.Add(r.Tier, r.Command)
	}
	f.Fuzz(func(t *testing.T, tier int, script string) {
		if tier == 1 || tier == 2 {
			p := newProving(t)
			p.prove(t, tier, p.here.Replace(script))
		}
	})
}

// TestAllowedRunsOnlyWhatIsGranted is a bounded fuzz run over the corpus and over generated scripts. It uses the same
// scripts each time.
func TestAllowedRunsOnlyWhatIsGranted(t *testing.T) {
	t.Parallel()
	p := newProving(t)
	corpus := seeds(t, 4)
	for _, r := range corpus {
		p.prove(t, r.Tier, p.here.Replace(r.Command))
	}
	count, start := generated, uint64(1)
	if text := os.Getenv("GUARD_SCRIPTS"); text != "" { // a longer run with another seed, as in GUARD_SCRIPTS=100000
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
		start = uint64(count) //nolint:gosec // the number is not negative
	}
	g := generator{rand: rand.New(rand.NewPCG(start, 2)), corpus: corpus} //nolint:gosec // reproducible on purpose
	for range count {
		p.prove(t, 1+g.rand.IntN(2), p.here.Replace(g.script()))
	}
	t.Logf("%d scripts, %d allowed and run, %d calls of programs", count+len(corpus), p.ran, p.calls)
}

// seeds returns a sample of the rows for Tiers 1 and 2: every n-th line of two files of the corpus, where n is each. The
// files hold the attacks that were found, and the calls that must be allowed.
func seeds(t testing.TB, each int) []row {
	t.Helper()
	var all []row
	for _, file := range []string{"attacks-found.jsonl", "wanted.jsonl"} {
		content, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		for i, line := range strings.Split(string(content), "\n") {
			var r row
			if !strings.HasPrefix(line, "{") {
				continue
			}
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			if r.Tier < 3 && i%each == 0 {
				all = append(all, r)
			}
		}
	}
	return all
}

// proving holds the directories in which scripts run, and the stand-ins for the programs.
type proving struct {
	guard *guard.Guard
	place guard.Place
	here  *strings.Replacer
	// root contains the agent's directories. bin contains the stand-ins, and log is the log of their calls. before
	// holds the initial files below root.
	root, bin, log string
	before         map[string]string
	ran, calls     int
}

// newProving creates the directories. It must run as root: otherwise the scripts would run as the owner of this
// repository.
func newProving(t *testing.T) *proving {
	t.Helper()
	if testing.Short() {
		t.Skip("the scripts really run: not with -short")
	}
	if os.Getuid() != 0 {
		t.Skip("scripts run as another user: root is needed")
	}
	place, here := stage(t)
	root := filepath.Dir(place.Home)
	p := &proving{guard: guard.New(policy(t), guard.Host{}), place: place, here: here, root: root, bin: root + "/bin", log: root + "/log"}
	p.standIns(t)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody)) //nolint:gosec // only the test writes there
	}))
	for _, dir := range []string{root, filepath.Dir(root)} {
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the other user must be able to enter it
	}
	p.before = p.snapshot(t)
	return p
}

// genuine lists the programs that are not replaced by stand-ins. They run other programs, or the guard predicts their
// output.
var genuine = []string{
	"xargs", "env", "timeout", "nice", "ionice", "nohup", "stdbuf", "find", "bash", "sh", "dash", "sort", "head", "tail", "uniq", "grep", "wc",
}

// strangers lists programs that the policy does not name.
var strangers = []string{"rm", "python3", "perl", "id", "cc", "make", "dd", "ln", "kill", "reboot", "rsync", "tar", "scp", "node", "a", "foo"}

// standIn is the script of a stand-in. It logs its arguments, its directory and its exported variables.
const standIn = `#!/bin/sh
printf '%%s\0' CALL "$PWD" "$#" %s "$@" "$(export -p)" >> %s
%s
`

// hostile is the part of most stand-ins that prints hostile output.
const hostile = `case $(($# % 4)) in
0) echo -v;;
1) echo 'a[$(id)]';;
2) echo '. -delete';;
*) printf '%s\n' -rf '*' 'a b' '$(id)' /proc/self/environ '{a,b}' '~root' ';id' "'" '"' '\' '-o x' 1;;
esac`

func (p *proving) standIns(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Mkdir(p.bin, 0o755)) //nolint:gosec // the other user must be able to run them
	content, err := os.ReadFile("../../deploy/policy.yaml")
	require.NoError(t, err)
	granted, err := guard.ParsePolicy(content)
	require.NoError(t, err)
	for _, name := range slices.Concat(slices.Collect(maps.Keys(granted.Programs)), strangers) {
		prints := hostile
		switch {
		case slices.Contains(genuine, name):
			path, err := exec.LookPath(name)
			if err != nil {
				continue
			}
			prints = `exec ` + path + ` "$@"`
		case slices.Contains([]string{"docker", "podman", "docker-compose", "kubectl"}, name):
			prints = "echo web-1; echo db"
		case slices.Contains([]string{"nproc", "date", "stat"}, name):
			prints = "echo 4"
		}
		text := fmt.Sprintf(standIn, name, p.log, prints)
		require.NoError(t, os.WriteFile(filepath.Join(p.bin, name), []byte(text), 0o755))
	}
}

// snapshot returns the files below the agent's directories, except those that every tier may write.
func (p *proving) snapshot(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(p.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == p.place.Temp || path == p.bin:
			return fs.SkipDir
		case path == p.log:
			return nil
		case entry.IsDir():
			files[path] = kindDir
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			files[path] = kindLink + target
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // no other process writes there any more
		files[path] = string(content)
		return err
	}))
	return files
}

// restore resets the files to their initial state.
func (p *proving) restore(t testing.TB) {
	t.Helper()
	for path := range p.snapshot(t) {
		if p.before[path] == "" || p.before[path] != kindDir {
			require.NoError(t, os.RemoveAll(path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.before)) {
		content := p.before[path]
		target, isLink := strings.CutPrefix(content, kindLink)
		switch {
		case content == kindDir:
			require.NoError(t, os.MkdirAll(path, 0o700))
		case isLink:
			require.NoError(t, os.Symlink(target, path))
		default:
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		}
		require.NoError(t, os.Lchown(path, nobody, nobody))
	}
}

// The values by which a snapshot records directories and symbolic links.
const (
	kindDir  = "\x00dir"
	kindLink = "\x00link "
)

func (p *proving) decide(tier int, script string) guard.Decision {
	input, err := json.Marshal(map[string]string{"command": script})
	if err != nil {
		return guard.Decision{}
	}
	return p.guard.Decide(guard.Call{Tier: tier, Tool: "Bash", Input: input, Place: p.place})
}

// prove runs the script if the guard allows it. It fails the test if the script did more than is granted.
func (p *proving) prove(t *testing.T, tier int, script string) {
	t.Helper()
	if strings.ContainsRune(script, 0) || absolute.MatchString(script) || !p.decide(tier, script).Allowed {
		return
	}
	p.ran++
	require.NoError(t, os.RemoveAll(p.place.Temp))
	require.NoError(t, os.Mkdir(p.place.Temp, 0o700))
	require.NoError(t, os.Chown(p.place.Temp, nobody, nobody))
	require.NoError(t, os.WriteFile(p.log, nil, 0o600))
	require.NoError(t, os.Chown(p.log, nobody, nobody))
	if why := p.beyond(t, tier, script); why != "" {
		t.Errorf("tier %d: %q %s", tier, p.plain(script), p.plain(why))
	}
}

// plain replaces the test's directories in a text by the directories of the corpus.
func (p *proving) plain(text string) string {
	return strings.NewReplacer(p.place.Work[0], "/srv/repo", p.place.Home, "/home/agent", p.place.Temp, "/tmp/session").Replace(text)
}

// beyond runs a script and describes an effect beyond its grants; "" if there is none.
func (p *proving) beyond(t *testing.T, tier int, script string) string {
	t.Helper()
	output := p.run(script)
	changed := p.changed(t, tier)
	content, err := os.ReadFile(p.log)
	require.NoError(t, err)
	for _, c := range recorded(content) {
		p.calls++
		if why := p.extra(tier, c); why != "" {
			return fmt.Sprintf("runs %q in %s: %s", c.words, c.dir, why)
		}
	}
	if changed != "" {
		return "changes " + changed
	}
	if strings.Contains(output, key) {
		return "shows the key"
	}
	return ""
}

// absolute matches scripts that run a program by its path. Such a program would not be a stand-in.
var absolute = regexp.MustCompile(`/s?bin/[a-z]`)

// run runs a script as the CLI does, and returns its output.
func (p *proving) run(script string) string {
	ctx, cancel := context.WithTimeout(context.Background(), scriptLimit)
	defer cancel()
	quoted := "ulimit -c 0 -f 256 -n 64; eval " + quote(script) + " < /dev/null"
	command := exec.CommandContext(ctx, "/bin/bash", "-c", quoted)
	command.Dir = p.place.Work[0]
	command.Env = []string{
		"PATH=" + p.bin, "HOME=" + p.place.Home, "TMPDIR=" + p.place.Temp, "TERM=dumb", "ANTHROPIC_API_KEY=" + key,
	}
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: false}, Setpgid: true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC, // the end of the first process kills all others
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.WaitDelay = scriptLimit
	_ = command.Run() // scripts may fail
	return output.String()
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// call is one logged call of a stand-in.
type call struct {
	dir   string
	words []string
	env   string
}

// recorded parses the log of the stand-ins. It skips an incomplete last entry.
func recorded(content []byte) []call {
	var calls []call
	fields := strings.Split(string(content), "\x00")
	for len(fields) > 4 && fields[0] == "CALL" {
		count, err := strconv.Atoi(fields[2])
		if err != nil || len(fields) < count+6 {
			break
		}
		calls = append(calls, call{dir: fields[1], words: fields[3 : count+4], env: fields[count+4]})
		fields = fields[count+5:]
	}
	return calls
}

var exported = regexp.MustCompile(`(?m)^export ([A-Za-z_][A-Za-z0-9_]*)=`)

// lacking matches the guard's reasons for refusing calls in which a variable was empty. The program itself would refuse
// these calls, too.
var lacking = regexp.MustCompile(`is missing$|is without its value$|it is granted only with`)

// extra says why a call exceeds the grants; "" if it does not.
func (p *proving) extra(tier int, c call) string {
	for _, name := range exported.FindAllStringSubmatch(c.env, -1) {
		if !slices.Contains([]string{"PATH", "HOME", "TMPDIR", "TERM", "ANTHROPIC_API_KEY", "PWD", "OLDPWD", "SHLVL", "LANG", "TZ", "NO_COLOR", "COLUMNS", "LINES", "_"}, name[1]) && !strings.HasPrefix(name[1], "LC_") {
			return "with the variable " + name[1]
		}
	}
	if !strings.Contains(c.env, "export PATH='"+p.bin+"'") && strings.Contains(c.env, "export PATH=") {
		return "with another PATH"
	}
	switch c.words[0] {
	case "xargs", "time": // the commands that they run are logged, too; the input of xargs is unknown here
		return ""
	}
	words := make([]string, 0, len(c.words))
	for _, word := range c.words {
		words = append(words, quote(word))
	}
	script := strings.Join(words, " ")
	if strings.ContainsFunc(script, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
		return ""
	}
	there := *p
	there.place.Work = append([]string{c.dir}, p.place.Work...)
	if !slices.ContainsFunc(p.place.Work, func(dir string) bool { return c.dir == dir || strings.HasPrefix(c.dir, dir+"/") }) {
		there.place.Work, script = p.place.Work, "cd "+quote(c.dir)+" && "+script
	}
	decision := there.decide(tier, script)
	if decision.Allowed || lacking.MatchString(decision.Reason) || slices.Contains(c.words, "") {
		return ""
	}
	return decision.Reason
}

// changed returns a file that the tier must not change but that has changed; "" if there is none. Tier 1 must not change
// any file.
func (p *proving) changed(t *testing.T, tier int) string {
	t.Helper()
	after := p.snapshot(t)
	if maps.Equal(p.before, after) {
		return ""
	}
	defer p.restore(t)
	for _, path := range slices.Sorted(maps.Keys(maps.Collect(both(p.before, after)))) {
		content, is := after[path]
		was, there := p.before[path]
		mine := tier == 2 && strings.HasPrefix(path, p.place.Work[0]+"/") && !kept.MatchString(path)
		if !mine && (content != was || is != there) {
			return path
		}
	}
	return ""
}

// kept matches the files of the working directory that Tier 2 must not change.
var kept = regexp.MustCompile(`/\.git|compose|\.env|vms`)

func both(a, b map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, files := range []map[string]string{a, b} {
			for path, content := range files {
				if !yield(path, content) {
					return
				}
			}
		}
	}
}

// generator generates scripts.
type generator struct {
	rand   *rand.Rand
	corpus []row
	depth  int
}

func (g *generator) pick(from ...string) string { return from[g.rand.IntN(len(from))] }

// script generates a script from the grammar, from a mutated script of the corpus, or from both.
func (g *generator) script() string {
	switch g.rand.IntN(4) {
	case 0:
		return g.mutate(g.corpus[g.rand.IntN(len(g.corpus))].Command)
	case 1:
		return g.mutate(g.corpus[g.rand.IntN(len(g.corpus))].Command) + g.pick("; ", "\n", " && ", " || ", " | ", " & ") + g.statement()
	default:
		var lines []string
		for range 1 + g.rand.IntN(4) {
			lines = append(lines, g.statement())
		}
		return strings.Join(lines, g.pick("; ", "\n", " && ", "\n"))
	}
}

// mutate changes a script in one to three places.
func (g *generator) mutate(script string) string {
	for range 1 + g.rand.IntN(3) {
		at := g.rand.IntN(len(script) + 1)
		fields := strings.Split(script, " ")
		field := g.rand.IntN(len(fields))
		switch g.rand.IntN(8) {
		case 0:
			script = script[:at] + "\\\n" + script[at:]
		case 1:
			script = script[:at] + g.pick(`"`, `'`, "`", "$", "#", ";", "|", ">", "<", "{", "}", "(", ")", "\n", "\t", "&", "!", "*", "=", "--") + script[at:]
		case 2, 3:
			fields[field] = g.word()
			script = strings.Join(fields, " ")
		case 4:
			fields[field] += " " + g.word()
			script = strings.Join(fields, " ")
		case 5:
			script = g.wrap(script)
		case 6:
			script = strings.Join(slices.Delete(fields, field, field+1), " ")
		default:
			script = g.assignment() + "; " + script
		}
	}
	return script
}

func (g *generator) wrap(script string) string {
	switch g.rand.IntN(9) {
	case 0:
		return "{ " + script + "\n}"
	case 1:
		return "( " + script + "\n)"
	case 2:
		return "bash -c " + quote(script)
	case 3:
		return "sh -c " + quote(script)
	case 4:
		return "for i in 1 2; do " + script + "\ndone"
	case 5:
		return "f() { " + script + "\n}; f " + g.word()
	case 6:
		return "if " + g.command() + "; then " + script + "\nfi"
	case 7:
		return "x=$(" + script + "\n); " + g.command()
	default:
		return "eval " + quote(script)
	}
}

func (g *generator) assignment() string {
	name := g.pick("x", "y", "_", "a", "IFS", "REPLY", "n", "PWD", "uptime", "DIRSTACK", "SECONDS", "FUNCNAME")
	switch g.rand.IntN(8) {
	case 0:
		return name + "=(" + g.word() + " " + g.word() + ")"
	case 1:
		return name + "+=" + g.pick("1", g.word(), "("+g.word()+")")
	case 2:
		return g.pick("readonly", "local", "declare", "declare -r", "unset", "read -r") + " " + name
	case 3:
		return g.pick("readonly", "local", "declare") + " " + name + "=" + g.word()
	case 4:
		return "((" + name + "=" + g.pick("1", "x", "n+1", "2") + "))"
	default:
		return name + "=" + g.word()
	}
}

func (g *generator) statement() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 4 {
		return g.command()
	}
	switch g.rand.IntN(22) {
	case 0:
		return g.statement() + " | " + g.statement()
	case 1:
		return g.statement() + g.pick(" && ", " || ") + g.statement()
	case 2:
		return "{ " + g.statement() + "; " + g.statement() + "; }"
	case 3:
		return "(" + g.statement() + ")"
	case 4:
		return "if " + g.statement() + "; then " + g.statement() + "; else " + g.statement() + "; fi"
	case 5:
		return "for " + g.pick("x", "i", "_") + " in " + g.word() + " " + g.word() + "; do " + g.statement() + "; " + g.statement() + "; done"
	case 6:
		return g.command() + " | while read -r " + g.pick("x", "x y", "_") + "; do " + g.statement() + "; done"
	case 7:
		return "case " + g.word() + " in " + g.pick("*", "a", "'-v'") + ") " + g.statement() + ";; *) " + g.statement() + g.pick("", ";;", ";&", ";;&") + " esac"
	case 8:
		return g.pick("f", "g", "uptime", "cat", "docker", "command_not_found_handle") + "() { " + g.statement() + "; " + g.statement() + "; }"
	case 9:
		return g.pick("f", "g") + " " + g.word() + " " + g.word()
	case 10:
		return "cat <<" + g.pick("EOF", "'EOF'", "-EOF", "\"EOF\"", "\\EOF") + "\n" + g.pick("$(", "x", "E\\\nOF\n"+g.command(), g.word()) + "\nEOF\n"
	case 11:
		return g.statement() + g.pick(" > $TMPDIR/o", " 2>/dev/null", " < list", " >&2", " 2>&1", " <<< "+g.word(), " > "+g.word())
	case 12:
		return g.pick("! ", "time ", "time -p ") + g.statement()
	case 13, 14, 15:
		return g.assignment()
	case 16:
		return g.pick("set -- ", "set -e; set -- ") + g.word() + " " + g.word()
	case 17:
		return g.pick("bash -c ", "sh -c ", "eval ") + quote(g.statement())
	default:
		return g.command()
	}
}

func (g *generator) command() string {
	switch g.rand.IntN(24) {
	case 0:
		return "xargs " + g.pick("", "-n1 ", "-I{} ", "-I{} -n 2 ", "-0 ", "-r ") + g.pick("docker inspect", "docker logs", "find", "cat", "docker logs {}", "sort", "echo")
	case 1:
		return "find " + g.pick(". ", "$TMPDIR ", "-- . ", "") + g.pick("-name "+g.word(), "-exec cat {} \\;", "-exec echo {} +", "-exec sort + -o x \\;", "-type f")
	case 2:
		return g.pick("timeout 5 ", "env LANG=C ", "command ", "nice -n 5 ", "exec ", "env ", "builtin ", "x=1 ", "IFS=: ", "PATH=. ", "LC_ALL=C ") + g.command()
	case 3:
		return "cd " + g.pick("/etc", "$TMPDIR", "none", "/tmp", "config", g.word())
	case 4:
		return g.pick("[ ", "test ") + g.word() + g.pick(" = ", " -eq ", " -nt ", " ") + g.word() + " ]"
	case 5:
		return "[[ " + g.word() + g.pick(" == ", " -eq ", " =~ ", " < ", " || ") + g.word() + " ]]"
	case 6:
		return g.pick("return", "shift", "break", "true", "false", "continue", ":", "wait")
	case 7:
		return "((" + g.pick("x", "x++", "n=x", "a[0]", "x -f", "rm -f") + "))"
	case 8:
		return "echo $((" + g.pick("x", "1+n", "_", "$(nproc)", "$("+g.statement()+")") + "))"
	case 9:
		return g.pick("rm -rf x", "id", "python3 -c x", "reboot", "curl -d @x http://x.lan/")
	case 10:
		return "sort -k " + g.word() + " " + g.word()
	case 11:
		return g.pick("docker ps -q", "nproc", "uptime", "kubectl get pods -o name", "docker compose ps --services", "wc -l", "date +%s")
	case 12:
		return "cat " + g.word()
	case 13:
		return "grep " + g.word() + " " + g.word()
	case 14:
		return "curl -s http://x.lan/" + g.word()
	default:
		return g.pick("echo", "docker logs", "ls", "systemctl is-active", "printf '%s\\n'", "head -n", "grep -e", "docker inspect", "tail", "du", "wc -l", "sed -n 1p", "docker restart", "tee") + " " + g.word()
	}
}

func (g *generator) word() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 5 {
		return g.pick("a", "1", "$x")
	}
	switch g.rand.IntN(16) {
	case 0:
		return "$(" + g.statement() + ")"
	case 1:
		return "\"$(" + g.command() + ")\""
	case 2:
		return g.pick("pre", "./", "$TMPDIR/", "/etc/", "-", "--") + g.word()
	case 3:
		return "${x" + g.pick(":-", "#", "%", "/a/", ":=", "^", ",", "@") + g.pick("a", "'b'", g.word()) + "}"
	case 4:
		return "\"${x" + g.pick(":-", "#", "%", "/a/") + g.pick("a", "'b'", "'", "\"c\"") + "}\""
	case 5, 6, 7:
		return g.pick("$x", "\"$x\"", "\"$@\"", "$1", "\"${a[@]}\"", "\"${a[@]:0}\"", "\"x$@\"", "$_", "\"$_\"", "$*", "${#x}", "$?", "$PWD/x", "$REPLY", "\"${@:1}\"", "$i")
	case 8, 9:
		return g.pick("'a[$(id)]'", "-v", "-delete", "-o", "/proc/self/environ", "'a b'", "\"a b\"", "-rf", "$'a\\nb'", "$'\\''", "~", "~+", "*.yaml", "*", "{a,b}", "{1..3}", "config/*", "compose.yaml", ".env", "\\-x", "a\\ b", "--", "''")
	case 10:
		return "<(" + g.command() + ")"
	default:
		return g.pick("a", "1", "web", "/etc/hostname", "x", "$TMPDIR/x", "5", "foo.log", "/var/log/syslog", "nginx.service")
	}
}
