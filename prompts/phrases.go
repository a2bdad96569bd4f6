package prompts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// workFiles is the scope of a permission rule that covers the files of the working directory.
const workFiles = "./**"

// phrases describes permission rules of the CLI in a few lines. The order is: tools with their files, commands that are
// given by their beginning, commands that are given by a part of them, and all other commands.
func phrases(rules []string) []string {
	var tools, whole []string
	var files, beginnings, parts groups
	for _, rule := range rules {
		tool, scope, scoped := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
		switch {
		case !scoped:
			tools = append(tools, quote(tool))
		case tool != "Bash":
			files.add(scope, quote(tool))
		default:
			describeCommand(scope, &beginnings, &parts, &whole)
		}
	}
	lines := fileLines(tools, files)
	if items := beginnings.join("|"); len(items) > 0 {
		lines = append(lines, "commands that begin with "+strings.Join(items, ", "))
	}
	for _, part := range parts.list {
		program := "any command"
		if part.key != "" {
			program = quote(part.key)
		}
		lines = append(lines, program+" with "+strings.Join(part.items, ", "))
	}
	if len(whole) > 0 {
		lines = append(lines, "the commands "+strings.Join(whole, ", "))
	}
	return lines
}

// describeCommand adds the pattern of a Bash rule to one of three lists. The list beginnings is for the beginning of a
// command, parts is for a part of a command, and whole is for all other patterns.
func describeCommand(pattern string, beginnings, parts *groups, whole *[]string) {
	beginning := strings.TrimSuffix(pattern, ":*")
	open := beginning != pattern
	if !open {
		beginning, open = strings.CutSuffix(pattern, "*")
	}
	program, part, inner := strings.Cut(beginning, "*")
	// Remove quotes, because quotes do not change which commands the rule permits.
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(beginning))
	switch {
	case !inner && open && len(words) > 0:
		last := len(words) - 1
		beginnings.add(strings.Join(words[:last], " "), words[last])
	case inner && !strings.Contains(part, "*"):
		parts.add(strings.TrimSpace(program), quote(strings.ReplaceAll(part, `\\`, `\`)))
	default:
		*whole = append(*whole, quote(pattern))
	}
}

// fileLines lists first the tools without a scope. Then it lists the other tools, grouped by the files in their scope.
func fileLines(tools []string, files groups) []string {
	var lines []string
	if len(tools) > 0 {
		lines = append(lines, strings.Join(tools, ", "))
	}
	var byTools groups
	for _, scope := range files.list {
		where := "files in the working directory"
		if scope.key != workFiles {
			where = quote(scope.key)
		}
		byTools.add(strings.Join(scope.items, ", "), where)
	}
	for _, group := range byTools.list {
		lines = append(lines, group.key+": "+strings.Join(group.items, ", "))
	}
	return lines
}

// groups collects items under keys. Keys and items keep their order. An item is kept only once under a key.
type groups struct {
	list []group
}

type group struct {
	key   string
	items []string
}

func (g *groups) add(key, item string) {
	i := slices.IndexFunc(g.list, func(have group) bool { return have.key == key })
	if i < 0 {
		g.list = append(g.list, group{key: key, items: []string{item}})
		return
	}
	if !slices.Contains(g.list[i].items, item) {
		g.list[i].items = append(g.list[i].items, item)
	}
}

// join formats each group as one code span: its key, then its items. If the key is empty, each item gets a code span of
// its own.
func (g *groups) join(separator string) []string {
	var spans []string
	for _, group := range g.list {
		if group.key == "" {
			for _, item := range group.items {
				spans = append(spans, quote(item))
			}
			continue
		}
		spans = append(spans, quote(group.key+" "+strings.Join(group.items, separator)))
	}
	return spans
}

// howOften describes in words how many actions a limit allows, such as "2 restarts in 4 hours".
func howOften(limit escalation.Limit, thing string) string {
	switch {
	case !limit.IsSet():
		return "any number of " + thing + "s"
	case limit.Max == 0:
		return "no " + thing
	case limit.Max == 1:
		return "1 " + thing + " in " + span(limit.Window)
	default:
		return fmt.Sprintf("%d %ss in %s", limit.Max, thing, span(limit.Window))
	}
}

// span formats a duration in the largest unit that divides the duration without a remainder, such as "90 minutes".
func span(d escalation.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch count := d.Std() / unit.length; {
		case d.Std()%unit.length != 0:
		case count == 1:
			return "1 " + unit.name
		default:
			return fmt.Sprintf("%d %ss", count, unit.name)
		}
	}
	return d.String()
}
