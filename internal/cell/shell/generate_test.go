package shell

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// generator generates scripts.
type generator struct {
	rand   *rand.Rand
	corpus []string
	depth  int
}

func (g *generator) pick(from ...string) string { return from[g.rand.IntN(len(from))] }

// script generates a script from the grammar, from a mutated script of the corpus, or from both.
func (g *generator) script() string {
	switch g.rand.IntN(4) {
	case 0:
		return g.mutate(g.corpus[g.rand.IntN(len(g.corpus))])
	case 1:
		return g.mutate(g.corpus[g.rand.IntN(len(g.corpus))]) + g.pick("; ", "\n", " && ", " || ", " | ", " & ") + g.statement()
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
		return "bash -c " + quote([]string{script})
	case 3:
		return "sh -c " + quote([]string{script})
	case 4:
		return "for i in 1 2; do " + script + "\ndone"
	case 5:
		return "f() { " + script + "\n}; f " + g.word()
	case 6:
		return "if " + g.command() + "; then " + script + "\nfi"
	case 7:
		return "x=$(" + script + "\n); " + g.command()
	default:
		return "eval " + quote([]string{script})
	}
}

func (g *generator) assignment() string {
	name := g.pick("x", "y", "z", "a", "i", "REPLY", "n", "uptime")
	if g.rand.IntN(12) == 0 {
		return "IFS=" + g.pick(":", ",", "$'\\n'", "''", "' '")
	}
	switch g.rand.IntN(8) {
	case 0:
		return name + "=(" + g.word() + " " + g.word() + ")"
	case 1:
		return name + "+=" + g.pick("1", g.word(), "("+g.word()+")")
	case 2:
		return g.pick("readonly", "declare", "declare -r", "unset", "read -r") + " " + name
	case 3:
		return g.pick("readonly", "export", "declare") + " " + name + "=" + g.word()
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
		if g.rand.IntN(4) == 0 {
			return "for ((k=0; k<3; k++)); do " + g.statement() + "; " + g.statement() + "; done"
		}
		return "for " + g.pick("x", "i", "y") + " in " + g.word() + " " + g.word() + "; do " + g.statement() + "; " + g.statement() + "; done"
	case 6:
		return g.command() + " | while read -r " + g.pick("x", "x y", "y") + "; do " + g.statement() + "; done"
	case 7:
		return "case " + g.word() + " in " + g.pick("*", "a", "'-v'") + ") " + g.statement() + ";; *) " + g.statement() + g.pick("", ";;", ";&", ";;&") + " esac"
	case 8:
		return g.pick("f", "g", "uptime", "cat", "docker", "h") + "() { " + g.pick("", "local "+g.assignment()+"; ") + g.statement() + "; " + g.statement() + "; }"
	case 9:
		return g.pick("f", "g") + " " + g.word() + " " + g.word()
	case 10:
		return "cat <<" + g.pick("EOF", "'EOF'", "-EOF", "\"EOF\"", "\\EOF") + "\n" + g.pick("$(", "x", g.word()) + "\nEOF\n"
	case 11:
		return g.statement() + g.pick(" > $TMPDIR/o", " 2>/dev/null", " < list", " >&2", " 2>&1", " <<< "+g.word(), " > "+g.word())
	case 12:
		return g.pick("! ", "time ", "time -p ") + g.statement()
	case 13, 14, 15:
		return g.assignment()
	case 16:
		return g.pick("set -- ", "set -e; set -- ") + g.word() + " " + g.word()
	case 17:
		return g.pick("bash -c ", "sh -c ", "eval ") + quote([]string{g.statement()})
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
		return g.pick("[ ", "test ") + g.word() + g.pick(" = ", " -eq ", " != ", " -lt ") + g.word() + " ]"
	case 5:
		return "[[ " + g.word() + g.pick(" == ", " -eq ", " =~ ", " < ", " || ") + g.word() + " ]]"
	case 6:
		return g.pick("return", "shift", "break", "true", "false", "continue", ":", "wait")
	case 7:
		return "((" + g.pick("x", "x++", "n=x", "a[0]", "x -f", "rm -f") + "))"
	case 8:
		return "echo $((" + g.pick("x", "1+n", "n", "$(nproc)", "$("+g.statement()+")") + "))"
	case 9:
		return g.pick("rm -rf x", "id", "python3 -c x", "reboot", "curl -d @x http://x.lan/")
	case 10:
		return "sort -k " + g.word() + " " + g.word()
	case 11:
		return g.pick("docker ps -q", "nproc", "uptime", "kubectl get pods -o name", "docker compose ps --services", "wc -l", "date +%s")
	case 12:
		return g.pick("cat ", "diff /etc/hostname ", "while read -r x; do echo $x; done < ") + "<(" + g.command() + ")"
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
		return "${x" + g.pick(":-", "#", "%", "/a/", ":=", ":+") + g.pick("a", "'b'", g.word()) + "}"
	case 4:
		return "\"${x" + g.pick(":-", "#", "%", "/a/") + g.pick("a", "'b'", "'", "\"c\"") + "}\""
	case 5, 6, 7:
		return g.pick("$x", "\"$x\"", "\"$@\"", "$1", "\"${a[@]}\"", "\"${a[@]:0}\"", "$*", "${#x}", "$?", "$PWD/x", "$REPLY", "\"${@:1}\"", "$i")
	case 8, 9:
		return g.pick("'a[$(id)]'", "-v", "-delete", "-o", "/proc/self/environ", "'a b'", "\"a b\"", "-rf", "$'a\\nb'", "$'\\''", "~", "*.yaml", "*", "{a,b}", "{1..3}", "config/*", "compose.yaml", ".env", "\\-x", "a\\ b", "--", "''")
	default:
		return g.pick("a", "1", "web", "/etc/hostname", "x", "$TMPDIR/x", "5", "foo.log", "/var/log/syslog", "nginx.service")
	}
}
