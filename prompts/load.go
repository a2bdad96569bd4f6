package prompts

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/claudeops/claudeops/internal/escalation"
)

//go:embed *.md
var files embed.FS

// Overrides are the paths of files that replace the built-in instructions of a tier;
// empty keeps the built-in ones.
type Overrides struct {
	Tier1, Tier2, Tier3 string
}

// Set holds every template, parsed and tried out. It is safe for concurrent use.
type Set struct {
	builtIn *template.Template
	// overrides are the operator's instructions, by tier. Each is a set of its own, so
	// that what one file defines reaches no other prompt.
	overrides map[escalation.Tier]*template.Template
}

// Load reads the files that overrides names and renders each of them once. Its error
// joins one for each file that cannot be used, which names the file and, where there is
// one, the line.
func Load(overrides Overrides) (*Set, error) {
	builtIn, err := newTemplate("built-in prompts").ParseFS(files, "*.md")
	if err != nil {
		return nil, fmt.Errorf("built-in prompts: %w", err)
	}
	set := &Set{builtIn: builtIn, overrides: map[escalation.Tier]*template.Template{}}
	paths := map[escalation.Tier]string{
		escalation.TierObserve:    overrides.Tier1,
		escalation.TierSafeRepair: overrides.Tier2,
		escalation.TierFullRepair: overrides.Tier3,
	}
	var failures []error
	for _, tier := range escalation.Tiers() {
		if paths[tier] == "" {
			continue
		}
		if err := set.override(tier, paths[tier]); err != nil {
			failures = append(failures, err)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return set, nil
}

func newTemplate(name string) *template.Template {
	return template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"fence": fence, "quote": quote})
}

// maxOverride is far above any sensible prompt, in bytes, and far below a file that was
// named by mistake and would fill the model's window.
const maxOverride = 256 << 10

func (s *Set) override(tier escalation.Tier, path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file, that is its purpose
	if err != nil {
		return fmt.Errorf("prompt file: %w", err)
	}
	if len(text) > maxOverride {
		return fmt.Errorf("prompt file %s: %d bytes, and at most %d are allowed", path, len(text), maxOverride)
	}
	parsed, err := newTemplate(path).Parse(string(text))
	if err != nil {
		return fmt.Errorf("prompt file: %w (%s)", err, bracesHint)
	}
	s.overrides[tier] = parsed
	if err := s.try(tier); err != nil {
		return fmt.Errorf("prompt file: %w", err)
	}
	return nil
}

// bracesHint helps with what goes wrong most: a command in a prompt file that has a
// template of its own, such as docker ps --format.
const bracesHint = `the file is a template: write {{"{{"}} for two plain braces`

// try renders both forms of tier in the situations that its override can tell apart.
func (s *Set) try(tier escalation.Tier) error {
	bare := Launch{Tier: tier}
	full := Launch{
		Tier: tier, Brief: "- look", Services: []string{"web"}, Issue: "It is slow.",
		Request: "Look.", Guidance: "Look closer.", Handoff: "Found.",
	}
	for _, launch := range []Launch{bare, full} {
		for _, dryRun := range []bool{false, true} {
			launch.Policy = escalation.Policy{DryRun: dryRun, Tiers: make([]escalation.TierPolicy, len(escalation.Tiers()))}
			if _, err := s.complete(launch); err != nil {
				return err
			}
			if _, err := s.Resumed(launch); err != nil {
				return err
			}
		}
	}
	return nil
}

// role returns the template that tells tier its work.
func (s *Set) role(tier escalation.Tier, resumed bool) *template.Template {
	if own := s.overrides[tier]; own != nil {
		return own
	}
	name := fmt.Sprintf("tier%d", int(tier))
	if resumed {
		name += "-resumed"
	}
	return s.builtIn.Lookup(name + ".md")
}

// sections returns the built-in templates of these names.
func (s *Set) sections(names ...string) []*template.Template {
	found := make([]*template.Template, len(names))
	for i, name := range names {
		found[i] = s.builtIn.Lookup(name)
	}
	return found
}

// join renders the lead and the sections over data, leaves out the sections that come to
// nothing, and puts an empty line between the others. It never returns a prompt that the
// CLI would refuse as blank or take for a slash command.
func join(data any, lead *template.Template, sections ...*template.Template) (string, error) {
	text, err := render(lead, data)
	if err != nil {
		return "", err
	}
	switch {
	case text == "":
		return "", fmt.Errorf("%s: it renders to nothing", lead.Name())
	case strings.HasPrefix(text, "/"):
		return "", fmt.Errorf("%s:1: it begins with a slash, which the CLI takes for a command; begin with words", lead.Name())
	}
	parts := []string{text}
	for _, section := range sections {
		part, err := render(section, data)
		if err != nil {
			return "", err
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n"), nil
}

// render executes t. Its errors name file and line; only an override can cause one.
func render(t *template.Template, data any) (string, error) {
	var text strings.Builder
	if err := t.Execute(&text, data); err != nil {
		return "", fmt.Errorf("%w (%s)", err, bracesHint)
	}
	return strings.TrimSpace(text.String()), nil
}
