package guard_test

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

func policy(t *testing.T) *guard.Policy {
	t.Helper()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	return policy
}

// row is one call of the corpus.
type row struct {
	Tier    int    `json:"tier"`
	Command string `json:"command"`
	Allowed bool   `json:"allowed"`
	Note    string `json:"note"`
}

func rows(t *testing.T, path string) []row {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var all []row
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var r row
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		all = append(all, r)
	}
	require.NoError(t, lines.Err())
	return all
}

// stage creates the directories that the corpus mentions. It returns a replacer that puts them into the commands.
func stage(t *testing.T) (guard.Place, *strings.Replacer) {
	t.Helper()
	root := t.TempDir()
	repository, home, temp := root+"/repo", root+"/agent", root+"/session"
	state := home + "/.local/state/claudeops"
	for _, dir := range []string{repository + "/.git", repository + "/config", repository + "/infra", repository + "/sub", repository + "/d", state, temp} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for path, content := range map[string]string{
		repository + "/.git/config":       "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@git.lan:ops/repo.git\n",
		repository + "/compose.yaml":      "services:\n  jellyfin: {image: jellyfin}\n  sonarr: {image: sonarr}\n",
		repository + "/.env":              "PASSWORD=x\n",
		repository + "/config/nginx.conf": "events {}\n",
		repository + "/vms.yaml":          "vms: []\n",
		repository + "/infra/vms.yaml":    "vms: []\n",
		repository + "/sub/README":        "",
		state + "/claudeops.db":           "",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	for link, target := range map[string]string{
		"shadow-link": "/etc/shadow", "env-link": "/proc/self/environ", "etc-link": "/etc", "home-link": home, "volumes-link": "/volumes",
		"d/authorized_keys": home + "/.ssh/authorized_keys",
	} {
		require.NoError(t, os.Symlink(target, repository+"/"+link))
	}
	return guard.Place{
		Work: []string{repository}, Home: home, Temp: temp, Path: []string{"/usr/local/bin", "/usr/bin", "/bin"},
		Variables: map[string]string{"PATH": "", "TERM": "", "HOME": "", "TMPDIR": "", "ANTHROPIC_API_KEY": ""},
		Own:       []string{state, state + "-transcripts"},
		Confined:  true,
		Doors:     []guard.Door{{Host: "127.0.0.1", Port: 7233}, {Host: "127.0.0.1", Port: 8233}},
	}, strings.NewReplacer("/srv/repo", repository, "/home/agent", home, "/tmp/session", temp)
}

// TestCorpus checks the guard's decisions before a call runs. Calls that must be denied are denied, or decided while
// they run. TestCorpus of internal/cell/shell runs the corpus.
func TestCorpus(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, here := stage(t)
	harmless := rows(t, "testdata/harmless.jsonl")
	for _, file := range []string{"testdata/attacks.jsonl", "testdata/attacks-found.jsonl", "testdata/wanted.jsonl", "testdata/kernel.jsonl"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			decided := map[guard.Verdict]int{}
			for _, r := range rows(t, file) {
				input, err := json.Marshal(map[string]string{"command": here.Replace(r.Command)})
				require.NoError(t, err)
				got := g.Decide(guard.Call{Tier: r.Tier, Tool: "Bash", Input: input, Place: place})
				decided[got.Verdict()]++
				expected := got.Verdict() != guard.Denied
				if !r.Allowed && file != "testdata/kernel.jsonl" {
					expected = got.Verdict() != guard.Allowed ||
						slices.ContainsFunc(harmless, func(h row) bool { return h.Tier == r.Tier && h.Command == r.Command })
				}
				if !expected {
					t.Errorf("%s: tier %d: %q (%s) %s: %s", got.Verdict(), r.Tier, r.Command, r.Note, got.Rule, got.Reason)
				}
			}
			t.Log(decided)
		})
	}
}

// textProgram matches the programs whose arguments are programs.
var textProgram = regexp.MustCompile(`\b(awk|sed|jq|yq) `)

// namesFile matches the calls of which an argument names the file.
var namesFile = regexp.MustCompile(`--rawfile|^yq /`)

// TestTextsWithoutTheKernel checks that texts of awk, sed, jq and yq are refused where the kernel does not judge what
// they do, and in containers. Plain ones are granted.
func TestTextsWithoutTheKernel(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, here := stage(t)
	place.Dir, place.Confined = place.Work[0], false
	decide := func(tier int, command string) guard.Decision {
		input, err := json.Marshal(map[string]string{"command": here.Replace(command)})
		require.NoError(t, err)
		return g.Decide(guard.Call{Tier: tier, Tool: "Bash", Input: input, Place: place})
	}
	refused := 0
	for _, r := range rows(t, "testdata/kernel.jsonl") {
		if textProgram.MatchString(r.Command) && !namesFile.MatchString(r.Command) {
			got := decide(r.Tier, r.Command)
			require.False(t, got.Allowed, "%s: %s", r.Command, got.AtRun)
			refused++
		}
	}
	require.Greater(t, refused, 70)
	for _, command := range []string{
		"awk '{print $1 > 80}' app.log", "awk '/a/{print \n|\"sh\"}' app.log", "awk '{printf(\"%s\", $1) > f}' app.log", "jq -n env",
		"jq -n '#{\nenv, 1'", "jq -n '$ENV'", "jq -n '{a: env}'", "jq -n '[1,env,2]'", "jq -n '{env} | env'", "yq -n '.env(HOME)' x.yaml",
		"jq -n '..env'",
		"yq .ssh/id_ed25519", "yq ./a.pem", "yq .netrc x.yaml", "docker exec web yq ./run/secrets/db", "docker exec web yq .ssh/id_ed25519",
		// what a sed or awk does that takes options after the first argument for files, and one that does not
		"sed 'w sub/x' -e p", "sed 's/a/b/w sub/x' -n -e p app.log", "docker exec web sed 'w tmp/x' -e p", "docker exec web awk '{print}' x -f prog.awk",
		"docker exec web sed app.log -e p", `docker exec web awk --assign 'BEGIN{system("id")}' x`,
	} {
		require.False(t, decide(1, command).Allowed, command)
	}
	require.Contains(t, decide(1, "docker exec web sed 'w tmp/x' -e p").Reason, "put the options in front")
	require.False(t, decide(2, "sed 's/a/b/w sub/x' sub/README -i -e p").Allowed)
	for _, command := range []string{"sed -i s/a/b/ sub/README", "sed -Ei s/a/b/ sub/README"} {
		require.Equal(t, runtime.GOOS == "linux", decide(2, command).Allowed, "BSD takes sub/README for the script")
	}
	require.True(t, decide(2, "sed -i.bak s/a/b/ sub/README").Allowed)
	for _, command := range []string{
		"awk -F: '{print $1, NR}' app.log", "sed -n '1,20p' app.log", "sed 's/a/b/g; s|/x|/y|; /^#/d' app.log", "sed -n '/start/,/end/p;$p' app.log",
		"sed p app.log -n", "sed 's/(a|b)/c/' app.log -E", "awk '{print}' app.log -", "sed -- p -n", "sed 's/[0-9]*$//' app.log", "sed 's/[^[:space:]a-z]*$//' app.log", "jq -r '.a[] | select(.b > 1) | .c' x.json",
		"awk 'NR>1 && $5+0 > 80 {print $6}' app.log", "awk '/a|b/ || $1 > 2' app.log", "jq '{env}' x.json", "jq '.spec.env[] | {env: .name}' x.json", "yq '.services | keys' compose.yaml", "yq '.a / .b' x.yaml",
	} {
		require.True(t, decide(1, command).Allowed, command)
		require.True(t, decide(1, "docker exec web "+command).Allowed, command)
	}
}

// TestTextsOfScripts checks that texts are plain where the program is a script, whose interpreter the kernel sees in its
// place.
func TestTextsOfScripts(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, _ := stage(t)
	place.Dir, place.Unheld = place.Work[0], []string{"yq"}
	for command, allowed := range map[string]bool{
		"yq .a+load(\"x\") a.yaml": false, "yq ./a.pem": false, "yq .a a.yaml": true, "sed r.x a.yaml": true, "jq env": true,
	} {
		require.Equal(t, allowed, g.Start(guard.Act{Tier: 1, Place: place, Words: strings.Fields(command)}).Allowed, command)
	}
}

// TestTextsThereAreASCII checks that a text that another locale reads as another one is refused where the locale is not
// known.
func TestTextsThereAreASCII(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, _ := stage(t)
	place.Dir = place.Work[0]
	for _, program := range []string{"sed", "awk", "jq", "yq"} {
		for text, allowed := range map[string]bool{"s/\x83/x/": false, ".\x83": false, "/\xe9/": false, "/ü/": false, "/u/": true} {
			got := g.Start(guard.Act{Tier: 1, Place: place, Words: []string{"docker", "exec", "web", program, text}})
			switch {
			case !allowed:
				require.False(t, got.Allowed, "%s %q", program, text)
				require.Contains(t, got.Reason, "ASCII", "%s %q", program, text)
			case program == "awk":
				require.True(t, got.Allowed, got.Reason)
			}
		}
	}
}

// TestWithPlainLocales checks that locales in which other bytes can be a quote are replaced.
func TestWithPlainLocales(t *testing.T) {
	t.Parallel()
	given := []string{"LANG=zh_CN.GBK", "LC_ALL=ja_JP", "LC_TIME=de_DE.UTF-8", "LC_CTYPE=C", "PATH=/x"}
	require.Equal(t, []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "LC_TIME=de_DE.UTF-8", "LC_CTYPE=C", "PATH=/x"},
		guard.WithPlainLocales(given))
	require.Equal(t, "LANG=zh_CN.GBK", given[0], "the worker keeps its own")
}

// TestTextsAreOffline checks that programs of texts, of which gawk connects to any address, are started without
// sockets, and no others.
func TestTextsAreOffline(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, _ := stage(t)
	place.Dir = place.Work[0]
	offline := func(tier int, command string) bool {
		start := g.Start(guard.Act{Tier: tier, Place: place, Words: strings.Fields(command)})
		require.True(t, start.Allowed, "%s: %s", command, start.Reason)
		return start.Offline
	}
	for _, command := range []string{"awk {print|&s}", "awk -F: {print} app.log", "sed -n p app.log", "sed -e p app.log", "yq .a x.yaml"} {
		require.True(t, offline(1, command), command)
		require.False(t, offline(3, command), command)
		require.False(t, offline(1, "timeout 5 "+command), "%s: it asks when it starts", command)
	}
	for _, command := range []string{
		"docker exec web awk {print}", "curl http://a.lan/", "gh pr list --json x -q .x", "find . -name x -exec awk {print} x ;",
	} {
		require.False(t, offline(1, command), command)
	}
}

// TestReasons checks that a refusal gives the reason that helps: what the best fitting use lacks, or what to use in its
// place.
func TestReasons(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, _ := stage(t)
	for command, want := range map[string]string{
		"sed -i s/a/b/ sub/README":                  "Tier 2 only",
		"git checkout -b fix/b":                     "Tier 2 only",
		"grep -r x /etc/shadow":                     "may hold secrets",
		"grep -rY x .":                              "option -Y",
		"grep -e x -rY .":                           "option -Y",
		"curl -d x http://media.lan/":               "only with -G",
		"docker compose up jellyfin":                "only with -d",
		"docker compose stop jellyfin":              "Tier 2 only",
		"python3 -c 'import json'":                  "use jq",
		"echo 1 | python -m json.tool":              "use jq",
		"find . -exec perl -ne print {} +":          "awk",
		"sudo systemctl status nginx":               "leave it out",
		"ssh nas.lan uptime":                        "curl",
		"(: </dev/tcp/127.0.0.1/80) && echo":        "nc -z",
		"cat < /dev/tcp/nas.lan/22":                 "nc -z",
		"terraform validate":                        "terraform fmt -check",
		"ansible-inventory --list":                  "yq",
		"ansible-lint site.yml":                     "yq",
		"docker exec web awk '{print > 5}' app.log": "pipe the file to awk here",
		"docker exec web sh -c 'curl -sL http://a'": "localhost",
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
		got := g.Decide(guard.Call{Tier: 1, Tool: "Bash", Input: input, Place: place})
		require.False(t, got.Allowed, command)
		require.Contains(t, got.Reason, want, command)
	}
}

// TestAdds checks the options with which a program is always started.
func TestAdds(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, _ := stage(t)
	place.Dir = place.Work[0]
	const curl = "curl -q --proto =http,https "
	for command, want := range map[string]string{
		"curl -s http://a.lan/":                              curl + "-s http://a.lan/",
		"curl -sL http://a.lan/":                             curl + "--proto-redir =https -sL http://a.lan/",
		"curl -sL --proto-redir =https http://a.lan/":        curl + "--proto-redir =https -sL --proto-redir =https http://a.lan/",
		"wget -O - http://a.lan/":                            "wget --max-redirect=0 -O - http://a.lan/",
		"docker exec web curl -L http://localhost/x":         "docker exec web curl -L http://localhost/x", // nobody adds them there
		"timeout 5 curl -L http://a.lan/":                    "timeout 5 curl -L http://a.lan/",            // curl asks when it starts
		"docker exec web timeout 5 wget -O - http://[::1]/x": "docker exec web timeout 5 wget -O - http://[::1]/x",
	} {
		start := g.Start(guard.Act{Tier: 1, Place: place, Words: strings.Fields(command)})
		require.True(t, start.Allowed, "%s: %s", command, start.Reason)
		require.Equal(t, want, strings.Join(start.Words, " "), command)
		free := g.Start(guard.Act{Tier: 3, Place: place, Words: strings.Fields(command)})
		require.Equal(t, command, strings.Join(free.Words, " "), "a tier that may do anything")
	}
}

// TestProgramsByOtherPaths checks that a path with .. and a file of an agent with the name of a granted program are not
// taken for it.
func TestProgramsByOtherPaths(t *testing.T) {
	t.Parallel()
	own := policy(t).WithPassed([]guard.Passed{{Variable: "KUBE_TOKEN", Program: "kubectl"}})
	g := guard.New(own, guard.Host{})
	place, _ := stage(t)
	place.Dir = place.Work[0]
	start := func(tier int, words ...string) guard.Start {
		return g.Start(guard.Act{Tier: tier, Place: place, Words: words})
	}
	require.Contains(t, start(3, "/usr/bin/kubectl", "version").Variables, "KUBE_TOKEN")
	require.NotEmpty(t, start(3, "/usr/bin/timeout", "5", "kubectl", "version").Inner)
	for _, path := range []string{"/proc/self/cwd/../usr/bin/kubectl", "/usr/bin/../bin/kubectl", "/usr//bin/kubectl"} {
		require.False(t, start(1, path, "version").Allowed, path)
		require.Empty(t, start(3, path, "version").Variables, path)
	}
	for _, path := range []string{"./timeout", place.Dir + "/timeout", place.Dir + "/../../usr/bin/timeout"} {
		require.Empty(t, start(3, path, "5", "kubectl", "version").Inner, path)
	}
}
