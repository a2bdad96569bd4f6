package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Limits on a catalog. Any sensible catalog is far smaller. The limits keep lookups fast and messages small.
const (
	maxCatalog     = 1_000 // services
	maxAliases     = 50    // of one service
	maxServiceText = 1_000 // characters of one text
)

// Criticality states how important a service is for the systems and people that depend on it.
type Criticality string

// The criticalities.
const (
	CriticalityLow      Criticality = "low"
	CriticalityNormal   Criticality = "normal"
	CriticalityHigh     Criticality = "high"
	CriticalityCritical Criticality = "critical"
)

// criticalities orders the criticalities, highest first.
var criticalities = []Criticality{CriticalityCritical, CriticalityHigh, CriticalityNormal, CriticalityLow}

// Service is one service of a catalog, as an operator describes it.
type Service struct {
	// Name is the canonical name of the service. Records, locks and limits use this name.
	Name string `json:"name" yaml:"name"`
	// Aliases lists other names of the service.
	Aliases []string `json:"aliases,omitempty" yaml:"aliases"`
	// Look tells agents how to look at the service: an address, a command, a sentence.
	Look string `json:"look,omitempty" yaml:"look"`
	// Criticality says how important the service is; CriticalityNormal if the operator has set none.
	Criticality Criticality `json:"criticality,omitempty" yaml:"criticality"`
	// DependsOn lists the services of the catalog that this service needs.
	DependsOn []string `json:"depends_on,omitempty" yaml:"depends_on"`
	// Owner is the person or team to ask about the service.
	Owner string `json:"owner,omitempty" yaml:"owner"`
	// Runbook is the instruction for repairing the service, or the address of the instruction.
	Runbook string `json:"runbook,omitempty" yaml:"runbook"`
	// RunbookFile and LookFile are paths of files in Markdown: how to repair the service, and how to look at it. In the
	// services file the paths are relative to that file; in a Catalog they are absolute.
	RunbookFile string `json:"runbook_file,omitempty" yaml:"runbook_file"`
	LookFile    string `json:"look_file,omitempty" yaml:"look_file"`
	// Alerts selects the alerts of monitoring systems that are about the service.
	Alerts []AlertMatcher `json:"alerts,omitempty" yaml:"alerts"`
}

// Catalog lists the services that an operator has described. It finds a service by its name or an alias. A nil Catalog
// is valid and has no service. With a nil Catalog, names are compared only by ServiceKey.
type Catalog struct {
	services []Service
	// index maps the key of each name and alias to the position of the service in services.
	index map[string]int
}

// NewCatalog returns the catalog of services. Its error describes the first mistake and names the service.
func NewCatalog(services []Service) (*Catalog, error) {
	if len(services) > maxCatalog {
		return nil, fmt.Errorf("%d services, and at most %d are allowed", len(services), maxCatalog)
	}
	c := &Catalog{services: make([]Service, len(services)), index: map[string]int{}}
	for i, service := range services {
		if problem := nameProblem(service.Name); problem != "" {
			return nil, fmt.Errorf("service %d has %s", i+1, problem)
		}
		service.Name = plaintext.Compact(service.Name)
		if err := service.complete(); err != nil {
			return nil, fmt.Errorf("service %q: %w", service.Name, err)
		}
		c.services[i] = service
		if err := c.enter(i); err != nil {
			return nil, fmt.Errorf("service %q: %w", service.Name, err)
		}
	}
	for i := range c.services {
		if err := c.resolve(&c.services[i]); err != nil {
			return nil, fmt.Errorf("service %q: %w", c.services[i].Name, err)
		}
	}
	if err := c.checkCircles(); err != nil {
		return nil, err
	}
	return c, nil
}

// complete checks the fields of s that concern no other service, and fills in the default criticality.
func (s *Service) complete() error {
	s.Criticality = cmp.Or(s.Criticality, CriticalityNormal)
	if !slices.Contains(criticalities, s.Criticality) {
		return fmt.Errorf("criticality is %q, and must be low, normal, high or critical", s.Criticality)
	}
	if len(s.Aliases) > maxAliases {
		return fmt.Errorf("%d aliases, and at most %d are allowed", len(s.Aliases), maxAliases)
	}
	for i, alias := range s.Aliases {
		if problem := nameProblem(alias); problem != "" {
			return fmt.Errorf("alias %d has %s", i+1, problem)
		}
	}
	for _, text := range []struct{ key, value string }{{"look", s.Look}, {"owner", s.Owner}, {"runbook", s.Runbook}} {
		if utf8.RuneCountInString(text.value) > maxServiceText {
			return fmt.Errorf("%s has more than %d characters", text.key, maxServiceText)
		}
	}
	if err := CheckAlertMatchers(s.Alerts); err != nil {
		return fmt.Errorf("alerts: %w", err)
	}
	return nil
}

// enter adds the name and the aliases of the service at position at to the index.
func (c *Catalog) enter(at int) error {
	service := c.services[at]
	for _, name := range slices.Concat([]string{service.Name}, service.Aliases) {
		key := ServiceKey(name)
		other, taken := c.index[key]
		switch {
		case taken && other == at:
			return fmt.Errorf("%q is there twice, and case and blanks make no difference", name)
		case taken:
			return fmt.Errorf("%q is already a name of service %q, and case and blanks make no difference", name,
				c.services[other].Name)
		}
		c.index[key] = at
	}
	return nil
}

// resolve replaces the names in the service's DependsOn with canonical names.
func (c *Catalog) resolve(service *Service) error {
	for _, name := range service.DependsOn {
		if !c.Known(name) {
			return fmt.Errorf("depends_on names %q, and no service has that name",
				plaintext.Cut(plaintext.Compact(name), MaxServiceName))
		}
	}
	service.DependsOn = c.CanonicalAll(service.DependsOn)
	return nil
}

// checkCircles returns an error if a service depends on itself, directly or through other services.
func (c *Catalog) checkCircles() error {
	done := make([]bool, len(c.services))
	for i := range c.services {
		if circle := c.circle(i, nil, done); circle != nil {
			return fmt.Errorf("service %q: depends_on leads back to it: %s", circle[0], strings.Join(circle, " → "))
		}
	}
	return nil
}

// circle searches for a circle of dependencies that can be reached from the service at position at. It returns the
// names along the circle; nil if there is no circle. The names on the way from the start of the search to this service
// are in path. Services from which no circle can be reached are marked in done.
func (c *Catalog) circle(at int, path []string, done []bool) []string {
	name := c.services[at].Name
	if start := slices.Index(path, name); start >= 0 {
		return append(slices.Clone(path[start:]), name)
	}
	if done[at] {
		return nil
	}
	for _, needed := range c.services[at].DependsOn {
		if circle := c.circle(c.index[ServiceKey(needed)], append(path, name), done); circle != nil {
			return circle
		}
	}
	done[at] = true
	return nil
}

// Services returns the services in the order of the catalog.
func (c *Catalog) Services() []Service {
	if c == nil {
		return nil
	}
	return slices.Clone(c.services)
}

// Known reports whether the catalog has a service of this name or alias.
func (c *Catalog) Known(name string) bool {
	if c == nil {
		return false
	}
	_, known := c.index[ServiceKey(name)]
	return known
}

// Canonical returns the canonical name of the service with this name or alias. An unknown name is returned on one line,
// without superfluous blanks.
func (c *Catalog) Canonical(name string) string {
	if c != nil {
		if at, known := c.index[ServiceKey(name)]; known {
			return c.services[at].Name
		}
	}
	return plaintext.Compact(name)
}

// CanonicalAll returns the canonical names of services, each once, in the same order.
func (c *Catalog) CanonicalAll(names []string) []string {
	if names == nil {
		return nil
	}
	canonical := make([]string, len(names))
	for i, name := range names {
		canonical[i] = c.Canonical(name)
	}
	return UniqueServices(canonical)
}

// Unknown returns those names that the catalog does not have, each once. A nil Catalog returns none, because there is
// nothing to compare the names with.
func (c *Catalog) Unknown(names []string) []string {
	if c == nil {
		return nil
	}
	return UniqueServices(slices.DeleteFunc(slices.Clone(names), c.Known))
}
