package alert

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Rules are the operator's settings for alerts: the section alerts of the services file.
type Rules struct {
	// Wait is how long alerts are gathered before a chain starts. Alerts of an urgent severity do not wait.
	Wait time.Duration `yaml:"wait"`
	// Again is the time after which an alert that still fires is looked at again.
	Again time.Duration `yaml:"again"`
	// Resolved says what a claim that an alert has resolved does.
	Resolved Claim `yaml:"resolved"`
	// Default is the service of alerts that match none; empty if there is no such service.
	Default string `yaml:"default"`
	// Unmapped reports whether alerts without a service are looked at, too, as one chain without a service.
	Unmapped bool `yaml:"look_at_unmapped"`
	// PerHour and PerDay limit how many chains alerts start.
	PerHour int `yaml:"max_per_hour"`
	PerDay  int `yaml:"max_per_day"`
	// PerDelivery limits the alerts of one delivery.
	PerDelivery int `yaml:"max_per_delivery"`
	// MaxTier gives the highest tier for a severity. Other severities have the tier of the configuration.
	MaxTier map[string]escalation.Tier `yaml:"max_tier"`
	// Urgent lists the severities that do not wait.
	Urgent []string `yaml:"urgent"`
	// Ignore selects alerts that are recorded and start nothing.
	Ignore []escalation.AlertMatcher `yaml:"ignore"`
	// Sources lists the monitoring systems.
	Sources []Source `yaml:"sources"`
}

// Claim says what a claim that an alert has resolved does.
type Claim string

// The effects of a claim.
const (
	ClaimLook   Claim = "look"   // Tier 1 looks whether it is true
	ClaimIgnore Claim = "ignore" // nothing
)

// The limits that apply if the services file sets none.
const (
	defaultWait        = 30 * time.Second
	defaultAgain       = 24 * time.Hour
	defaultPerHour     = 20
	defaultPerDay      = 100
	defaultPerDelivery = 1_000
)

// Source describes a monitoring system.
type Source struct {
	// Name is the last part of the hook's path, and the name of the token that may use the hook.
	Name string `yaml:"name"`
	// Kind is the format of its deliveries.
	Kind Kind `yaml:"kind"`
	// SecretFile is the absolute path of the file with the secret of its signatures; empty if it sends none.
	SecretFile string `yaml:"secret_file"`
	// SignatureHeader and TimestampHeader are the headers of Grafana's signature.
	SignatureHeader string `yaml:"signature_header"`
	TimestampHeader string `yaml:"timestamp_header"`
	// Template says where the parts of an alert are, for the kind template.
	Template *Template `yaml:"template"`
}

// Kind is a format of deliveries.
type Kind string

// The kinds.
const (
	Alertmanager Kind = "alertmanager"
	Grafana      Kind = "grafana"
	UptimeKuma   Kind = "uptime-kuma"
	PagerDuty    Kind = "pagerduty"
	Templated    Kind = "template"
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{Alertmanager, Grafana, UptimeKuma, PagerDuty, Templated} }

// Template says where a JSON document has the parts of an alert. Each is a path such as data.items: names of fields,
// separated by points; a number is the place in a list.
type Template struct {
	// Items is the path of the list of alerts; empty if the document is one alert. The other paths begin at an alert.
	Items string `yaml:"items"`
	// Identity is a list of paths, whose values together tell alerts apart.
	Identity []string `yaml:"identity"`
	Name     string   `yaml:"name"`
	Status   string   `yaml:"status"`
	// Resolved lists the values at Status that mean that the alert has resolved.
	Resolved []string `yaml:"resolved"`
	Severity string   `yaml:"severity"`
	StartsAt string   `yaml:"starts_at"`
	// Labels and Annotations give names to the values at paths. A path to an object takes all of its fields.
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Complete checks r, and returns it with the defaults. An error names the setting.
func (r Rules) Complete(catalog *escalation.Catalog) (Rules, error) {
	r.Wait, r.Again = cmp.Or(r.Wait, defaultWait), cmp.Or(r.Again, defaultAgain)
	r.Resolved = cmp.Or(r.Resolved, ClaimLook)
	r.PerHour, r.PerDay = cmp.Or(r.PerHour, defaultPerHour), cmp.Or(r.PerDay, defaultPerDay)
	r.PerDelivery = cmp.Or(r.PerDelivery, defaultPerDelivery)
	if r.Urgent == nil {
		r.Urgent = []string{"critical"}
	}
	switch {
	case r.Wait < time.Second || r.Wait > time.Hour:
		return r, errors.New("wait must be between 1s and 1h")
	case r.Again < time.Minute:
		return r, errors.New("again must be at least 1m")
	case r.Resolved != ClaimLook && r.Resolved != ClaimIgnore:
		return r, fmt.Errorf("resolved is %q, and must be look or ignore", r.Resolved)
	case r.PerHour < 1 || r.PerDay < 1 || r.PerDelivery < 1:
		return r, errors.New("max_per_hour, max_per_day and max_per_delivery must be positive")
	case r.Default != "" && !catalog.Known(r.Default):
		return r, fmt.Errorf("default names %q, and no service has that name", r.Default)
	}
	if err := escalation.CheckAlertMatchers(r.Ignore); err != nil {
		return r, fmt.Errorf("ignore: %w", err)
	}
	tiers := map[string]escalation.Tier{}
	for severity, tier := range r.MaxTier {
		if !tier.Valid() {
			return r, fmt.Errorf("max_tier: %q must have the tier 1, 2 or 3", severity)
		}
		tiers[strings.ToLower(severity)] = tier
	}
	r.MaxTier, r.Default = tiers, catalog.Canonical(r.Default)
	names := map[string]bool{}
	for i, source := range r.Sources {
		if names[source.Name] {
			return r, fmt.Errorf("sources: the name %q is there twice", source.Name)
		}
		names[source.Name] = true
		if err := source.check(); err != nil {
			return r, fmt.Errorf("source %d: %w", i+1, err)
		}
	}
	return r, nil
}

// check returns the first mistake in s.
func (s Source) check() error {
	switch {
	case !namePattern.MatchString(s.Name):
		return fmt.Errorf("name %q must be a lower-case word of letters, digits and . _ -", s.Name)
	case !slices.Contains(Kinds(), s.Kind):
		return fmt.Errorf("kind is %q, and must be one of %v", s.Kind, Kinds())
	case (s.Kind == Templated) != (s.Template != nil):
		return errors.New("the kind template needs a template, and no other kind has one")
	case s.SecretFile != "" && s.Kind != Grafana && s.Kind != PagerDuty:
		return errors.New("secret_file is for grafana and pagerduty; the others have only their token")
	case (s.SignatureHeader != "" || s.TimestampHeader != "") && s.Kind != Grafana:
		return errors.New("signature_header and timestamp_header are for grafana")
	case s.Template != nil && len(s.Template.Identity) == 0:
		return errors.New("template.identity must name at least one path")
	case s.Template != nil && (s.Template.Status == "") != (len(s.Template.Resolved) == 0):
		return errors.New("template.status and template.resolved need each other")
	}
	return nil
}

// Source returns the source with a name.
func (r Rules) Source(name string) (Source, bool) {
	at := slices.IndexFunc(r.Sources, func(s Source) bool { return s.Name == name })
	if at < 0 {
		return Source{}, false
	}
	return r.Sources[at], true
}

// SecretFiles lists the files with secrets of the sources, which agents must not read or change.
func (r Rules) SecretFiles() []string {
	var files []string
	for _, source := range r.Sources {
		if source.SecretFile != "" {
			files = append(files, source.SecretFile)
		}
	}
	return files
}

// Ruling says what an alert that fires is about, and what may follow.
type Ruling struct {
	// Service is the canonical name of the service; empty if the alert maps to none.
	Service string
	// MaxTier is the highest tier of the chain; 0 for that of the configuration.
	MaxTier escalation.Tier
	// Wait is how long to gather other alerts.
	Wait time.Duration
	// Outcome is OutcomeWaiting if a chain is to follow; otherwise Reason says why none does.
	Outcome Outcome
	Reason  string
}

// serviceLabels are the labels whose value can be the name or an alias of a service, the most telling first.
var serviceLabels = []string{
	"service", "service_name", "app", "app_kubernetes_io_name", "application", "deployment", "statefulset", "unit",
	"container", "monitor", "job",
}

// Rule decides on an alert that fires.
func (r Rules) Rule(catalog *escalation.Catalog, a Alert) Ruling {
	ruling := Ruling{
		Service: r.service(catalog, a.Labels), MaxTier: r.MaxTier[a.Severity], Wait: r.Wait, Outcome: OutcomeWaiting,
	}
	if slices.ContainsFunc(r.Urgent, func(urgent string) bool { return strings.EqualFold(urgent, a.Severity) }) {
		ruling.Wait = 0
	}
	switch {
	case a.Test:
		ruling.Outcome, ruling.Reason = OutcomeFiltered, "it is a test message"
	case slices.ContainsFunc(r.Ignore, func(m escalation.AlertMatcher) bool { return m.Matches(a.Labels) }):
		ruling.Outcome, ruling.Reason = OutcomeFiltered, "alerts.ignore of the services file selects it"
	case ruling.Service == "" && !r.Unmapped:
		ruling.Outcome, ruling.Reason = OutcomeUnmapped, "no service has its labels, and there is no default"
	}
	return ruling
}

// service returns the service of an alert with the given labels; empty if there is none.
func (r Rules) service(catalog *escalation.Catalog, labels map[string]string) string {
	for _, service := range catalog.Services() {
		for _, matcher := range service.Alerts {
			if matcher.Matches(labels) {
				return service.Name
			}
		}
	}
	for _, label := range serviceLabels {
		if value := labels[label]; catalog.Known(value) {
			return catalog.Canonical(value)
		}
	}
	return r.Default
}
