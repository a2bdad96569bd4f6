package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/guard"
)

// recorder is a Visitor that records the steps of a script, one line for each step.
type recorder struct{ lines []string }

func (r *recorder) Run(c guard.Command) (guard.Output, error) {
	var words []string
	for _, word := range append(c.Env, c.Words...) {
		words = append(words, word.String())
	}
	r.lines = append(r.lines, strings.Join(words, "|"))
	return guard.Anything, nil
}

func (r *recorder) Open(a guard.Access) error {
	kind := "<"
	if a.Write {
		kind = ">"
	}
	r.lines = append(r.lines, kind+a.Path.String())
	return nil
}

func read(script string) ([]string, error) {
	r := &recorder{}
	exported := map[string]bool{"TERM": true, "HOME": true, "PATH": true}
	err := guard.Walk(script, guard.Environment{
		Dir: "/work", Variables: map[string]string{"HOME": "/home/agent"}, Exported: func(name string) bool { return exported[name] },
	}, r)
	return r.lines, err
}

func TestWalk(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]string{
		{`docker logs x 2>&1 | tail -50`, "docker|logs|x tail|-50"},
		{`curl -s -o /dev/null -w '%{http_code}' http://x:80/`, "curl|-s|-o|/dev/null|-w|%{http_code}|http://x:80/"},
		{`for s in a b; do systemctl is-active $s; done`, "systemctl|is-active|a systemctl|is-active|b"},
		{`docker ps --format '{{.Names}}' | grep jelly`, "docker|ps|--format|{{.Names}} grep|jelly"},
		{`journalctl -u x --since '1 hour ago' | grep -i error || true`, "journalctl|-u|x|--since|1 hour ago grep|-i|error"},
		{`kubectl get sEcrets; l\s -l"a"`, "kubectl|get|sEcrets ls|-la"},
		{`(cd /tmp && ls) > out`, ">out </tmp ls"},
		{`cat <<EOF | wc -l` + "\n$(id -u)\nEOF\n", "id|-u cat wc|-l"},
		{`cat <<'EOF'` + "\n$(id -u)\nEOF\n", "cat"},
		{`diff <(sort a) <(sort b)`, "sort|a sort|b diff|/dev/fd/63|/dev/fd/63"},
		{`f() { rm -rf "$1"; }; f /etc`, "rm|-rf|/etc"},
		{`x=/var/log; tail $x/syslog`, "tail|/var/log/syslog"},
		{`if grep -q a b; then c=1; else c=2; fi; echo $c; ps $c`, "grep|-q|a|b ps|…"},
		{`while read -r line; do ping -c 1 "$line"; done < hosts`, "<hosts ping|-c|1|…"},
		{`ls /var/log/*.log ~/x ~`, "ls|/var/log/….log|/home/agent/x|/home/agent"},
		{`rm {a,b}.txt`, "rm|a.txt|b.txt"},
		{`X=1 Y="a b" env`, "X=1|Y=a b|env"},
		{`eval "docker stop x"`, "docker|stop|x"},
		{`command -v docker && command docker ps`, "docker|ps"},
		{`echo $((1 + 2)) $?; n=3; echo $((n * 2)); for ((i=0; i<3; i++)); do ls $i; done`, "ls|…"},
		{`case "$(uname)" in Linux) ps;; *) top;; esac`, "uname ps top"},
		{`! grep a b & wait`, "grep|a|b"},
		{`[[ -f /etc/x && $a == b* ]] && cat /etc/x`, "cat|/etc/x"},
		{`[ "$x" -gt 5 ] && ls`, "ls"},
		{`c="docker ps"; $c`, "docker|ps"},
		{`$'ls' "-l"`, "ls|-l"},
	} {
		script, want := row[0], row[1]
		got, err := read(script)
		require.NoError(t, err, script)
		require.Equal(t, want, strings.Join(got, " "), script)
	}
}

// TestWalkRefuses checks that Walk refuses constructs that it cannot analyse.
func TestWalkRefuses(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		`$x`, `$(echo ls)`, "`id`", `"$cmd" -l`, `PATH=. ls; PATH=.; ls`, `TERM=x`, `export A=b`, `declare -x A=b`, `declare -i x=1`, `declare -n r=PATH`,
		`x=$(cat f); echo $((x))`, `echo $((a[$(id)]))`, `[[ $x -gt 5 ]]`, `[[ -v a[0] ]]`, `test -v 'a[$(id)]'`, `[ $x = y ]`,
		`echo ${!x}`, `echo ${x@P}`, `printf -v x %s y`, `printf "$f"`, `read 'a[$(id)]'`, `read -a PATH`, `unset PATH`, `let x=1`, `. ./x`, `source x`,
		`alias ls=rm`, `trap 'id' EXIT`, `enable -f x y`, `eval "$x"`, `exec -a x ls`, `coproc ls`, `select x in a; do ls; done`,
		`cd "$x"`, `cd -`, `cd`, `ls !(a)`, `echo $"x"`, `echo $'\x41'`, "ls \x01", "ls \x7f", `if`, `shopt -s extglob`,
		`{fd}<x`, `mapfile -C id x`, `f() { f; }; f`, `set -a`, `set -o allexport`, `~root/x`, strings.Repeat("ls;", 30_000),
		`if a; then f() { ls; }; else f() { rm x; }; fi; f`,
	} {
		_, err := read(script)
		var unclear *guard.UnclearError
		require.ErrorAs(t, err, &unclear, script)
	}
}
