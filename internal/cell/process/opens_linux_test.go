package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// judged returns a sandbox whose programs read no file named .env or *.key and nothing below a directory named secrets,
// and change no file named compose.yaml.
func (s site) judged() *process.Sandbox {
	sandbox := s.sandbox()
	sandbox.Opens = &process.Opens{
		Secret: []string{"**/{.env,*.key}", "**/secrets/**", "/etc/{shadow,gshadow}", "/proc/**/{environ,mem}"},
		Kept:   []string{"**/compose.yaml"},
		Clear:  []string{"/usr", "/lib"},
	}
	return sandbox
}

const hiddenText = "the password of the database"

// secretsIn writes secret files into the workspace.
func (s site) secretsIn(t testing.TB) {
	t.Helper()
	for _, name := range []string{".env", "tls.key", "secrets/token", "sub/deep/.env"} {
		path := filepath.Join(s.workspace, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(hiddenText+"\n"), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.workspace, "compose.yaml"), []byte("services: {}\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.workspace, "notes"), []byte("notes\n"), 0o644))
}

// openAttempts returns scripts that try to print a secret, or to change a kept file.
func openAttempts() map[string]string {
	return map[string]string{
		"by its name":                       `cat .env`,
		"by its whole path":                 `cat "$PWD/.env"`,
		"through dots":                      `cat sub/../.env ./././.env sub/deep/../../.env`,
		"through a link":                    `ln -s .env l; cat l`,
		"through a link to its directory":   `ln -s . l; cat l/.env`,
		"through a chain of links":          `ln -s .env a; ln -s a b; ln -s b c; cat c`,
		"through an absolute link":          `ln -s "$PWD/.env" l; cat l`,
		"by all options of grep":            `grep -r '' . --exclude='*' --include=.env; grep -r '' --include='[!x]env' .; ln -s . lnk; grep -r x lnk; grep -R '' .`,
		"from standard input":               `cat < .env`,
		"through a descriptor":              `exec 9< .env && cat <&9`,
		"relative to a descriptor":          `exec 9< .; cat /proc/self/fd/9/.env; cat /dev/fd/9/.env`,
		"through /proc/self/cwd":            `cat /proc/self/cwd/.env; cat /proc/$$/cwd/.env; cat /proc/thread-self/cwd/.env`,
		"through /proc/self/root":           `cat /proc/self/root"$PWD"/.env`,
		"through a link to /proc/self":      `ln -s /proc/self/cwd l; cat l/.env`,
		"under another name":                `mv .env other; cat other`,
		"under a second name":               `ln .env other; cat other`,
		"after its directory has moved":     `mv secrets s; cat s/token`,
		"after a directory above has moved": `mkdir up; mv sub up/sub; mv secrets up/x; cat up/x/token`,
		"exchanged with another":            `perl -e '$a = ".env\0"; $b = "notes\0"; syscall(316, -100, $a, -100, $b, 2)'; cat notes`,
		"copied":                            `cp .env copy; cat copy`,
		"in an archive":                     `tar cf - . | strings`,
		"by awk":                            `awk '{print}' .env; awk 'BEGIN { while ((getline line < ".env") > 0) print line }'`,
		"by sed":                            `sed -n p .env; echo x | sed 'r .env'`,
		"by perl with sysopen":              `perl -e 'open(F, "<", ".env"); print <F>'`,
		"by perl with openat":               `perl -e '$p = ".env\0"; $f = syscall(257, -100, $p, 0); open(F, "<&=", $f); print <F>'`,
		"by perl with open":                 `perl -e '$p = ".env\0"; $f = syscall(2, $p, 0); open(F, "<&=", $f); print <F>'`,
		"by perl with openat2":              `perl -e '$p = ".env\0"; $h = pack("QQQ", 0, 0, 0); $f = syscall(437, -100, $p, $h, 24); open(F, "<&=", $f); print <F>'`,
		"by perl with openat2 and a limit":  `perl -e '$p = ".env\0"; $h = pack("QQQ", 0, 0, 8); $f = syscall(437, -100, $p, $h, 24); open(F, "<&=", $f); print <F>'`,
		"by perl with O_PATH":               `perl -e '$p = ".env\0"; $f = syscall(257, -100, $p, 0x200000); system("cat /proc/self/fd/$f </dev/null; cat /dev/fd/$f"); open(F, "<", "/proc/self/fd/$f"); print <F>'`,
		"with the 32-bit numbers of x32":    `perl -e '$p = ".env\0"; $f = syscall(0x40000000 + 257, -100, $p, 0); open(F, "<&=", $f); print <F>'`,
		"by many programs": `cp .env c; install .env i; dd if=.env; od -An -c .env | tr -d ' \n'; base64 .env | base64 -d; tail -n 1 .env; head .env
			xargs -a .env echo; grep -f .env .env; sort .env; wc --files0-from=.env; diff .env notes; split .env p; find . -name .env -exec cat {} +
			rev .env | rev; paste .env; date -f .env; nl .env; cut -c 1- .env; tee t < .env; cat c i p* t`,
		"by a list of files":                     `printf '.env\0' > list; sort --files0-from=list; printf '.env' > list; xargs cat < list; tar cf - -T list`,
		"with the shell's own words":             `while read -r line; do echo "$line"; done < .env; bash -c 'mapfile -t l < .env; echo "${l[@]}"; echo "$(<.env)"'`,
		"by another process's directory":         `(cd sub && exec sleep 60) & until [ "$(readlink /proc/$!/cwd)" = "$PWD/sub" ]; do sleep 0.1; done; cat /proc/$!/cwd/deep/.env /proc/$!/root"$PWD"/.env; kill $!`,
		"by another process's descriptor":        `sleep 60 9<. & until [ -e /proc/$!/fd/9 ]; do sleep 0.1; done; cat /proc/$!/fd/9/.env; kill $!`,
		"under a second name, by its descriptor": `perl -e '$p = ".env\0"; $f = syscall(257, -100, $p, 0x200000); $d = "/proc/self/fd/$f\0"; $o = "other\0"; syscall(265, -100, $d, -100, $o, 0x400)'; cat other`,
		"in a list of directories":               `mkdir d; cp -r sub secrets d; find d -type f -exec cat {} +`,
		"a kept file elsewhere, made empty":      `cd sub; perl -e '$p = "compose.yaml\0"; syscall(259, -100, $p, 0100644, 0)'; [ -e compose.yaml ] && echo '` + hiddenText + `'`,
		"a kept file elsewhere, made by creat":   `cd sub; perl -e '$p = "compose.yaml\0"; syscall(85, $p, 0644)'; [ -e compose.yaml ] && echo '` + hiddenText + `'`,
		"a kept file elsewhere, by old renames":  `cd sub; cp ../notes n; cp n m; perl -e '$o = "n\0"; $q = "m\0"; $p = "compose.yaml\0"; syscall(82, $o, $p); syscall(264, -100, $q, -100, $p)'; [ -e compose.yaml ] && echo '` + hiddenText + `'`,
		"a kept file elsewhere, by old links":    `cd sub; perl -e '$o = "../notes\0"; $p = "compose.yaml\0"; syscall(86, $o, $p); syscall(88, $o, $p)'; [ -e compose.yaml ] && echo '` + hiddenText + `'`,
		"a kept file elsewhere, as a pipe":       `cd sub; mkfifo compose.yaml; [ -e compose.yaml ] && echo '` + hiddenText + `'`,
		"a kept file elsewhere, as a directory":  `cd sub; mkdir compose.yaml; [ -e compose.yaml ] && echo '` + hiddenText + `'`,
		"the environment of the shell":           `export X=` + "'" + hiddenText + "'" + `; tr '\0' '\n' < /proc/$$/environ | grep 'X=the' | cut -c3-; cat /proc/self/environ`,
		"the kept file":                          `echo '` + hiddenText + `' >> compose.yaml; cat compose.yaml`,
		"the kept file, truncated":               `: > compose.yaml; truncate -s 0 compose.yaml; perl -e 'truncate("compose.yaml", 0)'; [ -s compose.yaml ] || echo '` + hiddenText + `'`,
		"the kept file, replaced":                `echo '` + hiddenText + `' > new; mv new compose.yaml; ln -f new compose.yaml; cp new compose.yaml; cat compose.yaml`,
		"the kept file, removed":                 `rm -f compose.yaml; perl -e 'unlink("compose.yaml")'; [ -e compose.yaml ] || echo '` + hiddenText + `'`,
		"the kept file, as a link":               `rm -f compose.yaml; echo '` + hiddenText + `' > new; ln -sf new compose.yaml; cat compose.yaml`,
		"a kept file elsewhere":                  `cd sub; echo '` + hiddenText + `' > compose.yaml; cat compose.yaml`,
		"a kept file through a dangling link":    `ln -s sub/compose.yaml l; echo '` + hiddenText + `' > l; cat sub/compose.yaml`,
	}
}

// TestOpensRefuses runs the attempts in a sandbox that judges files. None prints a secret or changes a kept file.
func TestOpensRefuses(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	for name, script := range openAttempts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.secretsIn(t)
			_, printed := inside(t, process.ModeSubreaper, s.judged(), "cd "+s.workspace+"\n"+script)
			require.NotContains(t, printed, hiddenText)
			kept, err := os.ReadFile(filepath.Join(s.workspace, "compose.yaml"))
			require.NoError(t, err)
			require.Equal(t, "services: {}\n", string(kept))
		})
	}
}

// TestOpensAttemptsSucceedOtherwise runs the attempts without judging. Each one succeeds, so that TestOpensRefuses can
// fail.
func TestOpensAttemptsSucceedOtherwise(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	for name, script := range openAttempts() {
		if strings.Contains(name, "x32") { // the kernel may know no such numbers
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.secretsIn(t)
			sandbox := s.judged()
			sandbox.Opens = nil
			_, printed := inside(t, process.ModeSubreaper, sandbox, "cd "+s.workspace+"\n"+script)
			require.Contains(t, printed, hiddenText)
		})
	}
}

// TestOpensLets runs scripts with what agents do. Each one must succeed, with the same output as without judging.
func TestOpensLets(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	for name, script := range map[string]string{
		"read a file":                   `cat notes /etc/passwd /etc/hostname`,
		"search all files":              `grep -rs notes . || true`,
		"list":                          `ls -a . sub; ls -lR /etc/apt >/dev/null`,
		"write files":                   `echo 1 > a; echo 2 >> a; cat a; truncate -s 1 a; wc -c a; mkdir -p d/e; mv a d/e/b; cat d/e/b; ln d/e/b c; cat c; rm -r d c; ls`,
		"keep the mask":                 `umask 027; : > a; mkdir d; stat -c %a a d; umask 077; : > b; stat -c %a b`,
		"own new files":                 `: > a; stat -c %U a | grep -q "$(id -un)"`,
		"create once":                   `set -C; : > a; (: > a) 2>/dev/null || echo refused`,
		"exclusive create at a link":    `ln -s nowhere l; (set -C; : > l) 2>/dev/null || echo refused; ls`,
		"create through a link":         `ln -s made l; echo 1 > l; cat made`,
		"links":                         `ln -s notes l; ln -s l m; cat m; readlink m; rm m l`,
		"a missing file":                `cat missing 2>&1; cat notes/x 2>&1; cat sub/missing/x 2>&1; true`,
		"a loop of links":               `ln -s a b; ln -s b a; cat a 2>&1; true`,
		"standard streams":              `echo x | cat /dev/stdin; echo y > /dev/stdout; echo z | tee /dev/fd/1; echo w > /dev/null`,
		"a link to a stream":            `ln -s /dev/stdin l; echo x | cat l; ln -s /proc/self/fd/0 m; echo y | cat m`,
		"descriptors":                   `exec 9<notes; cat /dev/fd/9; cat /proc/self/fd/9`,
		"process substitution":          `bash -c 'diff <(echo a) <(echo a) && echo same'`,
		"named pipes":                   `mkfifo p; (echo through > p) & cat p; wait; (cat p > got) & echo back > p; wait; cat got`,
		"many named pipes":              `mkfifo p; for i in $(seq 100); do (cat p > got) & echo $i > p; wait; cat got; done`,
		"a pipe whose reader is first":  `mkfifo p q; (exec 3>p; read x <q; echo $x >&3) & exec 4<p; echo back > q; cat <&4; wait`,
		"a named pipe without a peer":   `mkfifo p q; timeout 0.3 cat p; echo $?; timeout 0.3 sh -c "echo x > q"; echo $?`,
		"a named pipe read and written": `mkfifo p; exec 3<>p; echo x >&3; read line <&3; echo $line`,
		"here documents":                "cat <<END\ntext\nEND\n",
		"temporary files":               `f=$(mktemp -p .); echo x > $f; cat $f; rm $f`,
		"itself in /proc":               `cat /proc/self/comm; grep -c . /proc/self/maps >/dev/null && echo maps; head -c 4 /proc/self/exe | tail -c 3; cat /proc/self/cmdline | tr '\0' ' '`,
		"the host in /proc":             `head -1 /proc/meminfo | cut -c1-8; cat /proc/1/comm >/dev/null; cat /etc/mtab >/dev/null; cat /proc/mounts >/dev/null; cat /proc/net/tcp > /dev/null; ls -d /proc/self/fd`,
		"a directory's descriptor":      `cd sub && cat ../notes; cd /; cat ` + "$OLDPWD/../notes",
		"many files":                    `for i in $(seq 200); do echo $i > f$i; done; cat f* | wc -l; rm f*`,
		"perl":                          `perl -e 'open(F, "<", "notes"); print <F>; opendir(D, "."); print join(" ", sort grep { !/^\./ } readdir D), "\n"'`,
		"threads":                       `seq 2000 > n; sort --parallel=4 -S 1M n | wc -l; xz -T2 -c n | xz -dc | wc -l`,
		"a removed file":                `echo x > a; exec 9<a; rm a; cat /proc/self/fd/9`,
		"long paths":                    `d=$(printf 'd%.0s' $(seq 200)); p=.; for i in $(seq 15); do p=$p/$d; done; mkdir -p $p; echo x > $p/f; cat $p/f`,
		"too long a path":               `p=$(printf 'd/%.0s' $(seq 3000)); cat "$p" 2>&1 | tail -c 20`,
		"an empty path":                 `cat '' 2>&1; true`,
		"remove directories":            `mkdir -p a/b; rmdir a/b a; rmdir missing 2>&1; rmdir . 2>&1; ls`,
		"rename over":                   `echo 1 > a; echo 2 > b; mv a b; cat b; mkdir d; mv b d/; ls d; mv d e; ls e; mv e/ f; ls f`,
		"unnamed temporary files":       `perl -e '$p = ".\0"; $f = syscall(257, -100, $p, 0x410002, 0600); print $f > 0 ? "ok\n" : "failed $!\n"'`,
		"create what exists":            `mkdir sub 2>&1; mkdir . 2>&1; mkdir / 2>&1; mkdir -p "$PWD/sub/new" . /; mkfifo notes 2>&1; ln -s x notes 2>&1; ln notes sub 2>&1; ln ./notes notes 2>&1; ls -R`,
		"kinds of files":                `mkfifo -m 640 p; umask 022; mkdir -m 750 d; stat -c '%a %F' p d; perl -e '$p = "f\0"; syscall(133, $p, 0100666, 0) == 0 or die $!'; stat -c '%a %F' f`,
		"files created at once": `for i in $(seq 40); do for j in 1 2 3; do echo $i >> made$i & done
done; wait; cat made* | wc -l`,
		"openat2 within a directory": `perl -e '$p = "sub/new\0"; for $r (0, 1, 2, 4, 8, 16) { $h = pack("QQQ", 0x42, 0644, $r); print syscall(437, -100, $p, $h, 24) >= 0 ? "ok $r\n" : "$! $r\n" } $p = "../x\0"; $h = pack("QQQ", 0x42, 0644, 8); print syscall(437, -100, $p, $h, 24), "$!\n"'`,
		"git":                        `git init -q r 2>&1 && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --format=%s`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed := map[bool]string{}
			for _, judge := range []bool{false, true} {
				s := newSite(t)
				s.secretsIn(t)
				sandbox := s.judged()
				if !judge {
					sandbox.Opens = nil
				}
				exit, text := inside(t, process.ModeSubreaper, sandbox, "cd "+s.workspace+"\nexec 2>&1\n"+script)
				require.Zero(t, exit.Code, text)
				printed[judge] = strings.ReplaceAll(strings.ReplaceAll(text, s.root, "ROOT"), filepath.Base(s.root), "ROOT")
			}
			if name == "search all files" {
				require.Contains(t, printed[true], "./notes:notes")
				return
			}
			require.Equal(t, printed[false], printed[true])
		})
	}
}

// TestOpensTellsOfRefusedFiles checks what is reported: the real path, the program, and why.
func TestOpensTellsOfRefusedFiles(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	s := newSite(t)
	s.secretsIn(t)
	sandbox := s.judged()
	var mutex sync.Mutex
	told := map[string]bool{}
	sandbox.Opens.Refused = func(r process.Refused) {
		mutex.Lock()
		defer mutex.Unlock()
		told[fmt.Sprintf("%s %s %t %s", strings.TrimPrefix(r.Path, s.workspace), filepath.Base(r.Program), r.Write, r.Reason)] = true
	}
	_, printed := inside(t, process.ModeSubreaper, sandbox, "cd "+s.workspace+"\nexec 2>&1; ln -s .env l; cat l; perl -e 'open(F, \">\", \"compose.yaml\")'; cat notes missing")
	require.Contains(t, printed, "cat: l: Permission denied")
	require.Equal(t, map[string]bool{
		"/.env cat false it may hold secrets":                  true,
		"/compose.yaml perl true it is changed by people only": true,
	}, told)
}

// TestOpensOfPrograms checks that a program opens the secret files that it needs, and that another program with its
// name does not.
func TestOpensOfPrograms(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	s := newSite(t)
	s.secretsIn(t)
	sandbox := s.judged()
	sandbox.Opens.Programs = []process.ProgramOpens{{Program: "head", Read: []string{"**/.env"}, Write: []string{"**/compose.yaml"}}}
	script := "cd " + s.workspace + "\nhead -n 1 .env; head -n 1 tls.key; cp /usr/bin/cat head; ./head .env; cat .env"
	_, printed := inside(t, process.ModeSubreaper, sandbox, script)
	require.Equal(t, 1, strings.Count(printed, hiddenText), printed)
}

// TestOpensBesideAnotherListener probes the sandbox where another filter asks already, as in some containers.
func TestOpensBesideAnotherListener(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	type probe struct {
		found    process.Sandboxed
		err      error
		listener int
	}
	probed := make(chan probe)
	go func() {
		runtime.LockOSThread() // never unlocked: the filter is the thread's
		p := probe{listener: listen()}
		p.found, p.err = process.ProbeSandbox(t.Context(), process.ModeSubreaper, &process.Sandbox{Opens: &process.Opens{}}, nil)
		probed <- p
	}()
	p := <-probed
	require.Positive(t, p.listener)
	require.NoError(t, unix.Close(p.listener))
	require.NoError(t, p.err)
	found := p.found
	require.False(t, found.Opens)
	require.Contains(t, found.String(), "asks already")
}

// requireOpens skips the test where the kernel does not ask. The kernel of CI does.
func requireOpens(t testing.TB) {
	t.Helper()
	requireLandlock(t)
	found, err := process.ProbeSandbox(t.Context(), process.ModeAuto, &process.Sandbox{Opens: &process.Opens{}}, nil)
	require.NoError(t, err)
	if !found.Opens {
		require.Empty(t, os.Getenv("CI"), found)
		t.Skip(found)
	}
}

// TestUnjudgedTreeDoesNotStart starts trees that rely on the judging of their files, where nothing can judge them. The
// program does not run.
func TestUnjudgedTreeDoesNotStart(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	for name, changed := range map[string]struct {
		mode   process.Mode
		change func(*process.Sandbox)
		why    string
	}{
		"no rules":  {process.ModeSubreaper, func(s *process.Sandbox) { s.Opens = nil }, ""},
		"sudo":      {process.ModeSubreaper, func(s *process.Sandbox) { s.Setuid = true }, "the tier's rules grant"},
		"group":     {process.ModeGroup, func(*process.Sandbox) {}, "it takes a containment other than group"},
		"namespace": {process.ModeNamespace, func(*process.Sandbox) {}, "the containment is a namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			sandbox := s.judged()
			sandbox.Judged, sandbox.Required = true, false
			changed.change(sandbox)
			spec := shell(t, changed.mode, "echo started > "+filepath.Join(s.workspace, "made"))
			spec.Sandbox = sandbox
			_, err := process.Run(t.Context(), spec)
			refused, is := errors.AsType[*process.SandboxError](err)
			require.True(t, is, err)
			require.ErrorContains(t, refused, "the kernel does not judge the files and connections of this session")
			require.ErrorContains(t, refused, changed.why)
			require.NoFileExists(t, filepath.Join(s.workspace, "made"))
		})
	}
	s := newSite(t)
	sandbox := s.judged()
	sandbox.Judged = true
	_, printed := inside(t, process.ModeSubreaper, sandbox, "echo started")
	require.Equal(t, "started\n", printed)
}
