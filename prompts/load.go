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

// Overrides holds the paths of files that replace the built-in instructions of the tiers. If the path for a tier is
// empty, the tier keeps its built-in instructions.
type Overrides struct {
	Tier1, Tier2, Tier3 string
}

// Set holds the parsed templates. Load has already rendered the operator's overrides as a test. A Set is safe for
// concurrent use.
type Set struct {
	builtIn *template.Template
	// overrides holds the operator's instructions by tier. Each file is a separate template set, so that the
	// definitions in one file do not affect other prompts.
	overrides map[escalation.Tier]*template.Template
}

// Load reads the files named by overrides and renders them as a test. The returned error joins one error for each
// unusable file. Each of these errors names the file and, if known, the line.
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

// maxOverride limits the size of an override file, in bytes. Any sensible prompt is far smaller. A larger file was
// probably named by mistake, and would fill the model's context window.
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

// bracesHint explains the most frequent mistake in a prompt file: a command that contains a template, such as
// docker ps --format.
const bracesHint = `the file is a template: write {{"{{"}} for two plain braces`

// try renders the complete and the resumed form of the prompt for tier, to find errors. It renders each form with all
// fields empty and with all fields set, in both cases with and without a dry run. It returns the first error.
func (s *Set) try(tier escalation.Tier) error {
	bare := Launch{Tier: tier}
	full := Launch{
		Tier: tier, Brief: "- look", Services: []string{"web"}, Issue: "It is slow.", Alert: "Down",
		Request: "Look.", Guidance: "Look closer.", Handoff: "Found.",
		Incidents: []escalation.Incident{{ID: "incident-1"}}, Leave: []escalation.ChainIncident{{ID: "incident-2"}},
		Repairs: []escalation.PastRepair{{Tier: escalation.TierSafeRepair}}, Memories: "- late",
	}
	for _, launch := range []Launch{bare, full} {
		for _, dryRun := range []bool{false, true} {
			launch.Policy = escalation.Policy{
				DryRun: dryRun,
				Tiers:  make([]escalation.TierPolicy, len(escalation.Tiers())),
			}
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

// role returns the template with the instructions for tier. An override has precedence over the built-in template.
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

// sections returns the built-in templates with the given names.
func (s *Set) sections(names ...string) []*template.Template {
	found := make([]*template.Template, len(names))
	for i, name := range names {
		found[i] = s.builtIn.Lookup(name)
	}
	return found
}

// join renders the lead template and the section templates with data. It omits empty sections, and separates the
// remaining sections with an empty line. If the lead is blank or begins with a slash, join returns an error. The CLI
// refuses a blank prompt, and takes a leading slash for a command.
func join(data any, lead *template.Template, sections ...*template.Template) (string, error) {
	text, err := render(lead, data)
	if err != nil {
		return "", err
	}
	switch {
	case text == "":
		return "", fmt.Errorf("%s: it renders to nothing", lead.Name())
	case strings.HasPrefix(text, "/"):
		return "", fmt.Errorf("%s:1: it begins with a slash, which the CLI takes for a command; begin with words",
			lead.Name())
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

// render executes t. An error names the file and line. Only an override can cause an error.
func render(t *template.Template, data any) (string, error) {
	var text strings.Builder
	if err := t.Execute(&text, data); err != nil {
		return "", fmt.Errorf("%w (%s)", err, bracesHint)
	}
	return strings.TrimSpace(text.String()), nil
}
