package guard

import (
	"slices"
	"strings"
)

// Brief tells an agent what its tier may do, how to write it, and what is refused whatever it writes: a list in Markdown, at
// most 25 lines long for the built-in policy.
func (p *Policy) Brief(tier int) string {
	explained := p.Explain(tier)
	explained.Never = explained.relevant()
	explained.Grants = explained.Merged()
	var lines []string
	if explained.Anything {
		lines = append(lines, "You may run any program, and read and write any file. Refused in any case (`a b|c` is `a b` and `a c`):")
		lines = append(append(lines, explained.refused()...), explained.reasons()...)
		return strings.Join(lines, "\n") + "\n"
	}
	lines = append(lines, "You may do this, and nothing else (`a b|c` is `a b` and `a c`):")
	lines = append(lines, explained.granted()...)
	lines = append(lines, "", "Write it so that it can be read before it runs:")
	lines = append(lines, explained.spelling()...)
	lines = append(lines, "", "Refused in any case:")
	lines = append(lines, explained.refused()...)
	if reasons := explained.reasons(); len(reasons) > 0 { // few of them are about what such a tier is granted
		lines = append(lines, strings.Join(reasons, "; "))
	}
	return strings.Join(lines, "\n") + "\n"
}

// granted lists what the tier may do, a line for each group.
func (e Explanation) granted() []string {
	var lines []string
	add := func(what, text string) {
		if text != "" {
			lines = append(lines, "- "+what+": "+text)
		}
	}
	plain := func(g Grant) bool { return g.Action == "" && !g.Changes() && !g.Runs() }
	add("look with", ticked(e.names(func(g Grant) bool { return plain(g) && g.Command == "" })))
	add("look with", ticked(e.names(func(g Grant) bool { return plain(g) && g.Command != "" })))
	add("restart, each counted for its service", ticked(e.names(func(g Grant) bool { return g.Action == "restart" })))
	add("redeploy, each counted for its service", ticked(e.names(func(g Grant) bool { return g.Action == "redeployment" })))
	add("change", ticked(e.names(func(g Grant) bool { return g.Action == "" && g.Changes() && !g.Runs() })))
	add("run one of these commands through", ticked(e.names(Grant.Runs)))
	add("only with one of these options", ticked(e.needy()))
	add("read files, also with Read and Grep", "below "+places(e.Read)+"; write them, also with Edit and Write, below "+places(e.Write))
	add("ask HTTP services by", strings.Join(e.Methods, ", ")+hosts(e.Hosts))
	add("use the tools", ticked(e.MCP))
	return lines
}

// spelling lists how calls are written so that they pass.
func (e Explanation) spelling() []string {
	lines := []string{
		"- pipes, `&&`, `||`, `;`, `2>&1`, `if`, `while read` and `for` over words that are written out are fine; " +
			"options may stand anywhere",
		"- write programs, subcommands, options, services, hosts and paths out: what a variable or `$(…)` holds there cannot be judged",
		"- put `--` in front of names that come from another call: `docker ps -q | xargs docker inspect --`",
		"- name programs without their path; put scripts for `bash -c`, `awk`, `sed` and `jq` into single quotes",
	}
	if slices.ContainsFunc(e.Grants, func(g Grant) bool { return g.is("curl") }) {
		lines = append(lines, "- `curl`: one address a call, host and port written out, no `-L`: "+
			"ask the address of a redirect in a call of its own")
	}
	return append(lines, "- a refusal says why, and often which spelling passes; if none does, say in your verdict what you could not do")
}

// refused lists what is refused whatever the spelling.
func (e Explanation) refused() []string {
	lines := []string{
		"- the supervisor's own files and ports, Temporal and its Web UI, `starter`, `claude`; environment and memory of processes",
	}
	if len(e.Secrets) > 0 {
		lines = append(lines, "- reading what may hold secrets: `.env`, `.ssh`, private keys, "+
			"files named after passwords, tokens or secrets, `/etc/shadow`, Kubernetes Secrets")
	}
	if files := slices.Concat(e.Protected, e.Keep); len(files) > 0 {
		lines = append(lines, "- changing "+ticked(files))
	}
	pushes := func(g Grant) bool { return g.is("git") && g.Command == "push" }
	if len(e.Branches) > 0 && (e.Anything || slices.ContainsFunc(e.Grants, pushes)) {
		lines = append(lines, "- pushing to "+ticked(e.Branches)+": push a branch of your own, and open a pull request")
	}
	return lines
}

// reasons groups the never list by its reasons.
func (e Explanation) reasons() []string {
	uses := map[string][]string{}
	var whys []string
	for _, never := range e.Never {
		if uses[never.Why] == nil {
			whys = append(whys, never.Why)
		}
		uses[never.Why] = append(uses[never.Why], never.short())
	}
	texts := make([]string, len(whys))
	for i, why := range whys {
		texts[i] = ticked(unique(uses[why])) + " where " + why
		if i == 0 || e.Anything {
			texts[i] = "- " + texts[i]
		}
	}
	return texts
}

// relevant returns the rules of the never list that are about what the tier is granted: all else is refused anyhow.
func (e Explanation) relevant() []Never {
	if e.Anything {
		return e.Never
	}
	var relevant []Never
	for _, never := range e.Never {
		programs := strings.Split(never.Program, "|")
		programs = slices.DeleteFunc(programs, func(program string) bool {
			return !slices.ContainsFunc(e.Grants, func(g Grant) bool { return g.Program == program && begins(never.Command, g.Command) })
		})
		if len(programs) > 0 {
			never.Program = strings.Join(programs, "|")
			relevant = append(relevant, never)
		}
	}
	return relevant
}

// begins reports whether a granted subcommand begins with that of a rule, of which each word may be one of several.
func begins(rule, granted string) bool {
	words := strings.Fields(granted)
	for i, word := range strings.Fields(rule) {
		if i >= len(words) || !slices.Contains(strings.Split(word, "|"), words[i]) {
			return false
		}
	}
	return true
}

// is reports whether a grant is one of the program's.
func (g Grant) is(program string) bool {
	return slices.Contains(strings.Split(g.Program, "|"), program)
}

// short is the program with its subcommand and options.
func (n Never) short() string {
	text := n.Program
	if n.Command != "" {
		text += " " + n.Command
	}
	if n.Flags != "" {
		text += " " + strings.Join(strings.Fields(n.Flags), "|")
	}
	return text
}

// names lists programs with their subcommands, as in "docker ps|logs", of the grants that want reports.
func (e Explanation) names(want func(Grant) bool) []string {
	var items []string
	verbs := map[string][]string{}
	var prefixes []string
	for _, grant := range e.Grants {
		words := strings.Fields(grant.Name())
		last := words[len(words)-1]
		prefix := strings.Join(words[:len(words)-1], " ")
		switch {
		case !want(grant):
		case prefix == "" && !slices.Contains(items, last):
			items = append(items, last)
		case prefix != "" && verbs[prefix] == nil:
			prefixes = append(prefixes, prefix)
			fallthrough
		case prefix != "" && !slices.Contains(verbs[prefix], last):
			verbs[prefix] = append(verbs[prefix], last)
		}
	}
	for _, prefix := range prefixes {
		items = append(items, prefix+" "+strings.Join(verbs[prefix], "|"))
	}
	return items
}

// needy lists what is granted only with an option, as in "top -b".
func (e Explanation) needy() []string {
	free := map[string]bool{}
	for _, grant := range e.Grants {
		if len(grant.Needs) == 0 || grant.Runs() {
			free[grant.Name()] = true
		}
	}
	var items []string
	for _, grant := range e.Grants {
		if free[grant.Name()] {
			continue
		}
		words := []string{grant.Name()}
		for _, options := range grant.Needs {
			words = append(words, few(options))
		}
		items = append(items, strings.Join(words, " "))
	}
	return items
}

// few returns the first of several options: who knows one of a program needs not all.
func few(options string) string {
	const shown = 3
	all := strings.Split(options, "|")
	if len(all) <= shown {
		return options
	}
	return strings.Join(all[:shown], "|") + "|…"
}

// ticked lists items as code.
func ticked(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return "`" + strings.Join(items, "`, `") + "`"
}

// places says what the names of directories stand for.
func places(names []string) string {
	spelled := make([]string, len(names))
	for i, name := range names {
		spelled[i] = map[string]string{".": "the working directory", "~": "`$HOME`"}[name]
		if spelled[i] == "" {
			spelled[i] = "`" + name + "`"
		}
	}
	return strings.Join(spelled, ", ")
}

func hosts(patterns []string) string {
	if slices.Contains(patterns, "**") {
		return ", on any host"
	}
	return ", on " + ticked(patterns)
}
