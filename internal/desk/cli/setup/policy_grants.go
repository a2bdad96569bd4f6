package setup

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// Suggestion is a grant that would have let denied commands pass.
type Suggestion struct {
	Tier int `json:"tier"`
	// What names the grant: a program with its subcommand, or what a tier may reach.
	What string `json:"what"`
	// Section is the path in the policy of the list to which the grant belongs, such as "programs", "docker" or
	// "tiers", "1", "read".
	Section []string `json:"section"`
	// Grant is the narrowest entry that would have let the commands pass, in YAML on one line. Wider is an entry that
	// also passes similar commands; empty if there is none.
	Grant string `json:"grant"`
	Wider string `json:"wider,omitempty"`
	// Risk says in a sentence what the grant permits.
	Risk string `json:"risk"`
	// Calls holds the indexes of the denied calls.
	Calls []int `json:"-"`
	// Example is one of the denied commands.
	Example string `json:"example"`

	words map[string]bool // the arguments of all commands, for the narrowest grant
	grant grantOf
}

// grantOf holds the parts of a use of a program.
type grantOf struct {
	program string
	command []string
	flags   string
	args    string // types of the arguments
	narrow  bool   // the arguments are names, which a narrower grant can list
	action  string
}

// suggester finds grants for denied calls.
type suggester struct {
	guard  *guard.Guard
	policy *guard.Policy
}

// suggestions returns grants that would have let denied calls of Tiers 1 and 2 pass, the most frequent first. Each was
// tried: with it, this guard allows the commands. It suggests nothing that never, secrets, private or protected denies,
// and at Tier 1 nothing that acts on services.
func (s suggester) suggestions(calls []guard.Call) []Suggestion {
	found := map[string]*Suggestion{}
	for i, call := range calls {
		if s.policy.Tiers[call.Tier].Anything || s.guard.Decide(call).Allowed {
			continue
		}
		for _, words := range commandsOf(call) {
			suggestion := s.suggest(call, words)
			if suggestion == nil {
				continue
			}
			key := fmt.Sprint(suggestion.Tier, suggestion.What, suggestion.grant.flags, suggestion.grant.args)
			if known := found[key]; known != nil {
				maps.Copy(known.words, suggestion.words)
				if known.Calls[len(known.Calls)-1] != i {
					known.Calls = append(known.Calls, i)
				}
				known.Example = suggestion.Example
				continue
			}
			suggestion.Calls = []int{i}
			found[key] = suggestion
		}
	}
	var all []Suggestion
	for _, key := range slices.Sorted(maps.Keys(found)) {
		found[key].narrow()
		all = append(all, *found[key])
	}
	slices.SortStableFunc(all, func(a, b Suggestion) int { return len(b.Calls) - len(a.Calls) })
	return all
}

// commandsOf returns the commands of a call whose words are known. For a tool that reads or writes a file it returns a
// command that does the same.
func commandsOf(call guard.Call) (commands [][]string) {
	var input struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
		Path     string `json:"path"`
	}
	if json.Unmarshal(call.Input, &input) != nil {
		return nil
	}
	switch call.Tool {
	case "Read":
		return [][]string{{"cat", input.FilePath}}
	case "Grep", "Glob":
		return [][]string{{"ls", input.Path}}
	case "Bash":
	default:
		return nil
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(input.Command), "")
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		if c, is := node.(*syntax.CallExpr); is && len(c.Args) > 0 && len(c.Assigns) == 0 {
			if words := literals(c.Args); words != nil {
				commands = append(commands, words)
			}
		}
		return true
	})
	return commands
}

// literals returns the words of a command; nil if one is known only when the command runs.
func literals(args []*syntax.Word) (words []string) {
	for _, arg := range args {
		known := true
		syntax.Walk(arg, func(node syntax.Node) bool {
			switch node.(type) {
			case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
				known = false
			}
			return known
		})
		if !known {
			return nil
		}
		// it changes the configuration, and nil stands for one that all share
		word, err := expand.Literal(new(expand.Config), arg)
		if err != nil || strings.ContainsAny(word, "\n\t") {
			return nil
		}
		words = append(words, word)
	}
	return words
}

// suggest returns a grant that lets a command pass; nil if the command is allowed, or nothing but never or the like
// denies it.
func (s suggester) suggest(call guard.Call, words []string) *Suggestion {
	if allows(s.policy, call, words) || !programName.MatchString(words[0]) {
		return nil
	}
	example := strings.Join(words, " ")
	if _, granted := s.policy.Programs[words[0]]; granted {
		for _, try := range reaches(call.Tier, words[1:]) {
			if extended, err := s.policy.With(try.part(try.Grant)); err == nil && allows(extended, call, words) {
				try.Tier, try.Example = call.Tier, example
				return &try
			}
		}
	}
	if unsuggested.MatchString(words[0]) {
		return nil
	}
	grant := grantFor(s.policy, words)
	if grant.action != "" && call.Tier == 1 {
		return nil // Tier 1 changes nothing
	}
	found := &Suggestion{
		Tier: call.Tier, What: strings.Join(append([]string{grant.program}, grant.command...), " "), Example: example,
		Section: []string{"programs", grant.program}, Grant: grant.yaml(call.Tier, grant.args),
		words: map[string]bool{}, grant: grant,
	}
	extended, err := s.policy.With(found.part(found.Grant))
	if err != nil || !allows(extended, call, words) {
		return nil
	}
	if grant.narrow {
		found.words[words[len(words)-1]] = true
	}
	switch _, known := s.policy.Programs[grant.program]; {
	case grant.action != "":
		found.Risk = fmt.Sprintf(
			"Tier %d and higher act on any service this way; each time counts against the service's limit of "+
				"restarts.", call.Tier)
	case known:
		found.Risk = fmt.Sprintf("Another use of %s. If it changes something, Tier %d changes it.", grant.program,
			call.Tier)
	default:
		found.Risk = fmt.Sprintf("The guard knows nothing of %s, and does not see what it does inside the sandbox.",
			grant.program)
	}
	return found
}

// allows reports whether a policy allows a command at the tier and place of a call.
func allows(policy *guard.Policy, call guard.Call, words []string) bool {
	quoted := make([]string, len(words))
	for i, word := range words {
		text, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return false
		}
		quoted[i] = text
	}
	input, err := json.Marshal(map[string]string{"command": strings.Join(quoted, " ")})
	if err != nil {
		return false
	}
	return guard.New(policy, guard.Host{}).Decide(guard.Call{
		Tier: call.Tier, Tool: "Bash", Input: input,
		Place: call.Place,
	}).Allowed
}

// reaches returns what a tier could get to reach the files and hosts among the arguments of a granted program.
func reaches(tier int, args []string) (tries []Suggestion) {
	for _, arg := range args {
		if _, value, is := strings.Cut(arg, "="); is && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if address, err := url.Parse(arg); err == nil && address.Host != "" {
			host := address.Hostname()
			tries = append(tries, Suggestion{
				What: "asks " + host, Section: []string{"tiers", strconv.Itoa(tier), "hosts"}, Grant: yamlText(host),
				Risk: fmt.Sprintf("Tier %d sends what it puts into the address to %s.", tier, host),
			})
		}
		if filepath.IsAbs(arg) && filepath.Clean(arg) != "/" {
			path := filepath.Clean(arg)
			try := Suggestion{
				What: "reads " + path, Section: []string{"tiers", strconv.Itoa(tier), "read"}, Grant: yamlText(path),
				Risk: fmt.Sprintf("Tier %d reads %s; look for credentials there first.", tier, path),
			}
			if above := filepath.Dir(path); above != "/" {
				try.Wider = yamlText(above)
			}
			tries = append(tries, try)
		}
	}
	return tries
}

// serviceTypes gives the type of a service for the programs that act on services.
var serviceTypes = map[string]string{
	"docker": "SERVICE", "podman": "SERVICE", "systemctl": "UNIT",
	"kubectl": "WORKLOAD",
}

// unsuggested matches programs that run what they are given, here or elsewhere, or print the environment: a person
// writes their grants.
var unsuggested = regexp.MustCompile(`^(` +
	`(ba|da|z|k|fi|a|c)?sh|(python|perl|ruby|node|php|lua|deno|bun)[0-9.]*|busybox|.*[.](sh|py)|env|printenv|` +
	`sudo|doas|su|runuser|ssh|scp|sftp|rsync|nc|ncat|netcat|socat|telnet|xargs|parallel|make|eval|exec|source|watch|script|` +
	`screen|tmux|expect|at|batch|crontab|systemd-run|nsenter|unshare|chroot|gdb|strace|ld(-linux.*)?` +
	`)$`)

var (
	programName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.+-]*$`)

	subcommand = regexp.MustCompile(`^[a-z][a-z-]*$`)
	plainName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@:-]*$`)
	isNumber   = regexp.MustCompile(`^\d+$`)
)

// grantFor returns what a command needs.
func grantFor(p *guard.Policy, words []string) grantOf {
	grant := grantOf{program: words[0]}
	uses := p.Programs[words[0]]
	var flags, args []string
	atSubcommand := true
	for i, word := range words[1:] {
		name, _, hasValue := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "--") && hasValue:
			flags = append(flags, name+"=TEXT")
		case strings.HasPrefix(word, "--"):
			flags = append(flags, word)
		case len(word) > 1 && word[0] == '-' && isNumber.MatchString(word[1:]):
			flags = append(flags, "-INT")
		case len(word) > 1 && word[0] == '-':
			for _, letter := range word[1:] {
				flags = append(flags, "-"+string(letter))
			}
		case atSubcommand && subcommand.MatchString(word) && (i < len(words)-2 || len(uses) > 0):
			grant.command = append(grant.command, word)
			uses, atSubcommand = subcommandOf(uses, word)
		default:
			atSubcommand = false
			kind := kindFor(word)
			grant.narrow = kind == "NAME"
			args = append(args, kind)
		}
	}
	slices.Sort(flags)
	grant.flags = strings.Join(slices.Compact(flags), " ")
	changes := []string{"start", "stop", "restart", "reload", "kill"}
	kind, last := serviceTypes[grant.program], len(grant.command)-1
	if kind != "" && last >= 0 && slices.Contains(changes, grant.command[last]) {
		grant.action, grant.args, grant.narrow = "restart", kind+"+", false
		return grant
	}
	grant.narrow = grant.narrow && len(args) == 1
	grant.args = strings.Join(args, " ")
	return grant
}

// subcommandOf returns the uses of a subcommand, and whether it has subcommands.
func subcommandOf(uses guard.Uses, name string) (below guard.Uses, more bool) {
	for i := range uses {
		for _, use := range uses[i].Commands[name] {
			below = append(below, use)
			more = more || len(use.Commands) > 0
		}
	}
	return below, more
}

func kindFor(word string) string {
	switch {
	case isNumber.MatchString(word):
		return "INT"
	case strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://"):
		return "URL"
	case strings.Contains(word, "/"):
		return "FILE"
	case plainName.MatchString(word):
		return "NAME"
	}
	return "TEXT"
}

// yaml returns the grant as a use of the program.
func (g grantOf) yaml(tier int, args string) string {
	use := fmt.Sprintf("tier: %d", tier)
	if g.flags != "" {
		use += ", flags: " + yamlText(g.flags)
	}
	if args != "" {
		use += ", args: " + yamlText(args)
	}
	if g.action != "" {
		use += ", action: " + g.action
	}
	use = "{" + use + "}"
	for _, name := range slices.Backward(g.command) {
		use = "{commands: {" + yamlText(name) + ": " + use + "}}"
	}
	return use
}

// part returns a policy that extends another one by an entry of the suggestion's section.
func (s *Suggestion) part(entry string) string {
	text := "[" + entry + "]"
	for _, key := range slices.Backward(s.Section) {
		text = "{" + yamlText(key) + ": " + text + "}"
	}
	return "{version: 1, extends: default, " + text[1:]
}

// narrow limits the grant to the names that the commands had.
func (s *Suggestion) narrow() {
	if len(s.words) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(s.words))
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	s.Wider, s.Grant = s.Grant, s.grant.yaml(s.Tier, "/"+strings.Join(names, "|")+"/")
}

// yamlText returns a text as a scalar in YAML.
func yamlText(text string) string {
	if subcommand.MatchString(text) || isNumber.MatchString(text) {
		return text
	}
	quoted, _ := json.Marshal(text) // cannot fail for a text
	return string(quoted)
}
