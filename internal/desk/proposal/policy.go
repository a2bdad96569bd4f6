package proposal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// Grants holds what agents may use beside the built-in policy.
type Grants struct {
	// Projects lists directories of Compose projects.
	Projects []string
	// SSHHosts lists hosts on which agents may run what they may run here.
	SSHHosts []string
	// Sudo lets Tier 2 and higher run with sudo what they may run without.
	Sudo bool
}

// mark begins the comment of an entry in the policy that this package has written. Only such entries are changed.
const mark = "# init: "

// policyHead begins a new policy.
const policyHead = `# What agents may do beside the built-in policy (docs/policy.md).
# claudeops policy explain --tier 2 lists all of it in words. claudeops init changes
# only entries whose comment begins with "init:". Everything else is yours.
version: 1
extends: default
`

// ReadGrants returns the grants that this package has written into a policy, and the directories of projects that are
// the operator's own.
func ReadGrants(text string) (grants Grants, own []string) {
	var policy struct {
		Projects []string `yaml:"projects"`
	}
	if yaml.Unmarshal([]byte(text), &policy) != nil {
		return Grants{}, nil
	}
	written := entriesIn(text)
	for _, dir := range policy.Projects {
		if _, ours := written["- "+yamlText(dir)]; ours {
			grants.Projects = append(grants.Projects, dir)
		} else {
			own = append(own, dir)
		}
	}
	for item := range written {
		if hosts := sshItem.FindStringSubmatch(item); hosts != nil {
			grants.SSHHosts = strings.Split(strings.ReplaceAll(hosts[1], `\.`, "."), "|")
		}
		grants.Sudo = grants.Sudo || item == sudoItem
	}
	return grants, own
}

const sudoItem = `sudo: {tier: 2, flags: "-n", args: OTHER_COMMAND, style: posix}`

var sshItem = regexp.MustCompile(`^ssh: \{.* args: '/([^/]+)/ THERE_SCRIPT'`)

// entry is an entry of a section of the policy, with its comment.
type entry struct{ section, comment, item string }

// entries returns the entries of the grants, in the order in which a new file has them.
func (g Grants) entries() (all []entry) {
	for _, dir := range slices.Sorted(slices.Values(g.Projects)) {
		all = append(all, entry{
			"projects",
			"docker compose, after cd and with -f. Tier 1 sees containers and\n" +
				"their logs, Tier 2 starts and restarts services.\n" +
				"Risk: logs can hold secrets. Compose reads .env there, agents do not.",
			"- " + yamlText(dir),
		})
	}
	if len(g.SSHHosts) > 0 {
		hosts := make([]string, len(g.SSHHosts))
		for i, host := range slices.Sorted(slices.Values(g.SSHHosts)) {
			hosts[i] = regexp.QuoteMeta(host)
		}
		all = append(all, entry{
			"programs",
			"each tier runs on these hosts what it may run here. Agents have a\n" +
				"home of their own: put a key and a config for them into home/.ssh of\n" +
				"the directory CLAUDEOPS_CLAUDE_CONFIG_DIR.\n" +
				"Risk: no sandbox holds there. Let the key open an account of few rights.",
			`ssh: {tier: 1, flags: "-T -n -q -o=/BatchMode=yes/", args: '/` + strings.Join(hosts, "|") +
				`/ THERE_SCRIPT', style: posix}`,
		})
	}
	if g.Sudo {
		all = append(all, entry{
			"programs",
			"Tier 2 runs with sudo -n, as root, what it may run without. Tier 1\n" +
				"does not.\n" +
				"Risk: it costs Tier 2 the kernel's sandbox, in which sudo cannot work.\n" +
				"Only the guard holds it then.",
			sudoItem,
		})
	}
	return all
}

func planPolicy(path string, want Grants) (Change, error) {
	change, err := read(path, 0o600)
	if err != nil {
		return change, err
	}
	entries := want.entries()
	if !change.exists && len(entries) == 0 {
		return change, nil
	}
	if !change.exists {
		change.New = policyHead
	}
	wanted := map[string]bool{}
	for _, one := range entries {
		wanted[one.item] = true
	}
	there := entriesIn(change.New)
	change.New = without(change.New, there, wanted)
	for _, one := range entries {
		if _, written := there[one.item]; !written {
			change.New = one.addTo(change.New)
		}
	}
	if change.New == change.Old {
		return change, nil
	}
	return change, checkPolicy(path, change.New, want)
}

// checkPolicy checks that the policy has the grants.
func checkPolicy(path, text string, want Grants) error {
	policy, err := guard.ParsePolicyOver(deploy.Policy, []byte(text))
	got, own := ReadGrants(text)
	slices.Sort(want.Projects)
	slices.Sort(got.Projects)
	complete := err == nil && extends(text) && slices.Equal(got.Projects, want.Projects) && got.Sudo == want.Sudo &&
		len(got.SSHHosts) == len(want.SSHHosts) && len(policy.Projects) == len(got.Projects)+len(own)
	if complete {
		return nil
	}
	var lines []string
	for _, one := range want.entries() {
		lines = append(lines, one.section+":", one.text("  "))
	}
	return fmt.Errorf("%s cannot be changed by this program: add the grants yourself, or select none:\n%s", path,
		strings.Join(lines, "\n"))
}

// extends reports whether a policy extends the built-in one. A full copy is the operator's own, and has no entries of
// ours.
func extends(text string) bool {
	var policy struct {
		Extends string `yaml:"extends"`
	}
	return yaml.Unmarshal([]byte(text), &policy) == nil && policy.Extends != ""
}

// lineRange is a range of lines, the last one excluded.
type lineRange struct{ from, to int }

// entriesIn finds the entries that this package has written, by their items.
func entriesIn(text string) map[string]lineRange {
	found := map[string]lineRange{}
	start := -1
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, mark):
			start = i
		case strings.HasPrefix(trimmed, "#"):
		case start >= 0:
			found[trimmed] = lineRange{start, i + 1}
			start = -1
		}
	}
	return found
}

// without removes the entries that are not wanted.
func without(text string, entries map[string]lineRange, wanted map[string]bool) string {
	lines := strings.Split(text, "\n")
	var out []lineRange
	for item, lines := range entries {
		if !wanted[item] {
			out = append(out, lines)
		}
	}
	slices.SortFunc(out, func(a, b lineRange) int { return b.from - a.from })
	for _, one := range out {
		lines = slices.Delete(lines, one.from, one.to)
	}
	if len(out) == 0 {
		return text
	}
	return withoutEmpty(strings.Join(lines, "\n"))
}

// emptySection matches the head of a section without entries.
var emptySection = regexp.MustCompile(`(?m)^(projects|programs):[ \t]*\n(\n*)(\S|\z)`)

// withoutEmpty removes the heads of sections that have lost their last entry.
func withoutEmpty(text string) string {
	for emptySection.MatchString(text) {
		text = emptySection.ReplaceAllString(text, "$3")
	}
	return text
}

func (e entry) text(indent string) string {
	return indent + mark + strings.ReplaceAll(e.comment, "\n", "\n"+indent+"# ") + "\n" + indent + e.item
}

// addTo adds the entry as the first of its section. If there is no such section, addTo adds one at the end.
func (e entry) addTo(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	head := slices.IndexFunc(lines, func(line string) bool {
		before, after, is := strings.Cut(line, ":")
		after = strings.TrimSpace(after)
		return is && before == e.section && (after == "" || strings.HasPrefix(after, "#"))
	})
	if head < 0 {
		return strings.Join(append(lines, "", e.section+":", e.text("  ")), "\n") + "\n"
	}
	indent := "  "
	for _, line := range lines[head+1:] {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			indent = line[:len(line)-len(strings.TrimLeft(line, " "))]
			break
		}
	}
	return strings.Join(slices.Insert(lines, e.end(lines, head), e.text(indent)), "\n") + "\n"
}

// end returns the index behind the last line of the section that begins at head.
func (e entry) end(lines []string, head int) int {
	end := head + 1
	for i := head + 1; i < len(lines); i++ {
		line := lines[i]
		if line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "-") &&
			!strings.HasPrefix(line, "#") {
			break
		}
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			end = i + 1
		}
	}
	return end
}
