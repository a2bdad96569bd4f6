package guard

import (
	"slices"
	"strings"
)

// Brief returns a description of the rules for an agent: what its tier may do, how to write calls, and what is always
// refused. The text is a list in Markdown, of at most 25 lines for the built-in policy.
func (p *Policy) Brief(tier int) string {
	explained := p.Explain(tier)
	explained.Never = explained.relevant()
	explained.Grants = explained.Merged()
	var lines []string
	if explained.Anything {
		lines = append(lines, "You may run any program, and read and write any file, but for this (`a b|c` stands "+
			"for `a b` and `a c`):")
		lines = append(append(lines, explained.refused()...), explained.neverByReason()...)
		return strings.Join(append(lines, "", refusals), "\n") + "\n"
	}
	lines = append(lines,
		"You may do this, and nothing else (`a b|c` stands for `a b` and `a c`; of options that are shown one must "+
			"be given):")
	lines = append(lines, explained.granted()...)
	lines = append(lines, "",
		"Each command is judged when it starts, by its real words. What is certain to be refused is refused before "+
			"the call runs. So:")
	lines = append(lines, explained.spelling()...)
	lines = append(lines, "", "Refused in any case:")
	lines = append(lines, explained.refused()...)
	if reasons := explained.neverReasons(); len(reasons) > 0 {
		lines = append(lines, "- any call where "+strings.Join(reasons, "; "))
	}
	return strings.Join(lines, "\n") + "\n"
}

const refusals = "A refusal says why. Try another spelling only if it names one; else leave it, and say in your " +
	"verdict what you could not do."

// granted lists the grants of the tier, one line for each group.
func (e Explanation) granted() []string {
	var lines []string
	add := func(what, text string) {
		if text != "" {
			lines = append(lines, "- "+what+": "+text)
		}
	}
	with := func(want func(Grant) bool) string {
		if names := e.names(want); len(names) > 0 {
			return ticked([]string{strings.Join(names, ", ")}) // one pair of ticks: prompts are short
		}
		return ""
	}
	add("look with", with(func(g Grant) bool { return g.Action == "" && !g.Changes() && !g.Runs() }))
	add("restart services (each counts against the service's limit)",
		with(func(g Grant) bool { return g.Action == "restart" }))
	add("redeploy services (each counts against the service's limit)",
		with(func(g Grant) bool { return g.Action == "redeployment" }))
	add("change", with(func(g Grant) bool { return g.Action == "" && g.Changes() && !g.Runs() && !g.Writes() }))
	add("run one of these commands through", with(Grant.Runs))
	if len(e.Read) > 0 {
		add("read files, also with the tools Read, Grep and Glob, below", places(e.Read))
	}
	if len(e.Write) > 0 {
		programs := with(func(g Grant) bool { return g.Action == "" && !g.Runs() && g.Writes() })
		if programs != "" {
			programs += " and "
		}
		add("write files, with "+programs+"the tools Edit and Write if you have them, below", places(e.Write))
	}
	if len(e.Methods) > 0 {
		add("ask HTTP services by", strings.Join(e.Methods, ", ")+hosts(e.Hosts))
	}
	add("use `docker compose` after `cd`, or with `-f FILE`, also in", ticked(e.Projects))
	add("use the tools", ticked(e.MCP))
	return lines
}

// spelling lists rules for writing calls so that the guard accepts them.
func (e Explanation) spelling() []string {
	lines := []string{
		"- scripts are fine: pipes, loops, functions, variables, `$(…)`, background jobs; not supported are " +
			"descriptors above 2, coprocesses and `<>`",
		"- a command that is refused ends with 126, and the script goes on: use `set -e` where it must not",
		"- put `--` in front of names that come from another call: `docker ps -q | xargs docker inspect --`",
		"- call programs by their names, not by paths; a script for a container (`docker exec NAME sh -c '…'`) is " +
			"written out, without variables",
	}
	if slices.ContainsFunc(e.Grants, func(g Grant) bool { return g.is("curl") }) {
		lines = append(lines, "- `curl`: one address a call, with its host and port written out; `-L` follows to "+
			"https only, "+
			"`wget` nowhere")
	}
	return append(lines, "- "+strings.ToLower(refusals[:1])+strings.TrimSuffix(refusals[1:], "."))
}

// refused lists calls that are refused in any spelling.
func (e Explanation) refused() []string {
	lines := []string{
		"- the supervisor's own files and ports, Temporal and its Web UI, `claudeops`, `claude`; environment and " +
			"memory of processes",
	}
	if len(e.Secrets) > 0 {
		lines = append(lines, "- reading what may hold secrets: `.env`, `.ssh`, private keys, "+
			"files named after passwords, tokens or secrets, `/etc/shadow`, Kubernetes Secrets")
	}
	const listed = 6
	switch files := slices.Concat(e.Protected, e.Keep); {
	case len(files) == 0:
	case len(files) <= listed:
		lines = append(lines, "- changing "+ticked(fileNames(files)))
	default:
		lines = append(lines, "- changing "+ticked(fileNames(e.Protected))+", and what programs, editors, CI systems "+
			"and agents run or "+
			"obey by themselves: `.git`, `.github` and the like, `.vscode` and the like, compose files, `.env`, "+
			"`.envrc`, `CLAUDE.md` "+
			"and the like")
	}
	pushes := func(g Grant) bool { return g.is("git") && g.Command == "push" }
	if len(e.Branches) > 0 && (e.Anything || slices.ContainsFunc(e.Grants, pushes)) {
		lines = append(lines, "- pushing to "+ticked(e.Branches)+": push a branch of your own, and open a pull request")
	}
	return lines
}

// fileNames spells patterns of files out, and leaves out that a file can be in any directory.
func fileNames(patterns []string) (names []string) {
	for _, pattern := range patterns {
		for _, name := range withoutBraces(pattern) {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(name, "**/"), "**"))
		}
	}
	return unique(names)
}

// neverReasons lists the distinct reasons of the never list.
func (e Explanation) neverReasons() []string {
	whys := make([]string, len(e.Never))
	for i, never := range e.Never {
		whys[i] = never.Why
	}
	return unique(whys)
}

// neverByReason lists the rules of the never list, grouped by reason.
func (e Explanation) neverByReason() []string {
	uses := map[string][]string{}
	for _, never := range e.Never {
		uses[never.Why] = append(uses[never.Why], never.spell(examples))
	}
	whys := e.neverReasons()
	texts := make([]string, len(whys))
	for i, why := range whys {
		texts[i] = "- " + ticked(unique(uses[why])) + ": " + why
	}
	return texts
}

// relevant returns the rules of the never list that restrict a grant of the tier. All other rules forbid programs that
// the tier may not run in any case.
func (e Explanation) relevant() []Never {
	if e.Anything {
		return e.Never
	}
	var relevant []Never
	for _, never := range e.Never {
		programs := strings.Split(never.Program, "|")
		programs = slices.DeleteFunc(programs, func(program string) bool {
			return !slices.ContainsFunc(e.Grants, func(g Grant) bool {
				return g.Program == program &&
					begins(never.Command, g.Command)
			})
		})
		if len(programs) > 0 {
			never.Program = strings.Join(programs, "|")
			relevant = append(relevant, never)
		}
	}
	return relevant
}

// begins reports whether a granted subcommand begins with the subcommand of a rule. A word of the rule can list
// alternatives, as in "a|b".
func begins(rule, granted string) bool {
	words := strings.Fields(granted)
	for i, word := range strings.Fields(rule) {
		if i >= len(words) || !slices.Contains(strings.Split(word, "|"), words[i]) {
			return false
		}
	}
	return true
}

// is reports whether the grant is for program.
func (g Grant) is(program string) bool {
	return slices.Contains(strings.Split(g.Program, "|"), program)
}

// names lists the grants that the function want accepts: programs with their subcommands, as in "docker ps|logs", and
// the options that they need, as in "top -b".
func (e Explanation) names(want func(Grant) bool) (items []string) {
	free := map[string]bool{} // without an option
	for _, grant := range e.Grants {
		if want(grant) && (len(grant.Needs) == 0 || grant.Runs()) {
			free[grant.Name()] = true
		}
	}
	var programs []string // with subcommands, as in "docker" and "docker network"
	verbs, at := map[string][]string{}, map[string]int{}
	for _, grant := range slices.DeleteFunc(slices.Clone(e.Grants), func(g Grant) bool { return !want(g) }) {
		name := grant.Name()
		space := strings.LastIndexByte(name, ' ')
		switch {
		case !free[name]:
			name = grant.withNeeds()
			// with fewer options
			if !slices.ContainsFunc(items, func(item string) bool { return strings.HasPrefix(name, item+" -") }) {
				items = append(items, name)
			}
		case space < 0:
			items = append(items, name)
		default:
			program := name[:space]
			if verbs[program] == nil {
				at[program], programs = len(items), append(programs, program)
				items = append(items, "")
			}
			verbs[program] = unique(append(verbs[program], name[space+1:]))
		}
	}
	first := map[string]int{} // the item of the same program with the same verbs
	for _, program := range programs {
		above, below := program[:strings.LastIndexByte(program, ' ')+1], " "+strings.Join(verbs[program], "|")
		if item, is := first[above+below]; is && above != "" {
			items[item] = strings.TrimSuffix(items[item], below) + "|" + strings.TrimPrefix(program, above) + below
			continue
		}
		first[above+below] = at[program]
		items[at[program]] = program + below
	}
	return slices.DeleteFunc(unique(items), func(item string) bool { return item == "" })
}

// withNeeds returns the name of a grant with the options that it needs.
func (g Grant) withNeeds() string {
	words := []string{g.Name()}
	for _, options := range g.Needs {
		words = append(words, abbreviate(strings.Split(options, "|"), examples))
	}
	return strings.Join(words, " ")
}

// examples is the number of alternatives that suffice as examples.
const examples = 2

// ticked formats items as code in Markdown.
func ticked(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return "`" + strings.Join(items, "`, `") + "`"
}

// places spells out the names of directories: "." as the working directory, and "~" as $HOME.
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
