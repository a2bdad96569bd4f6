package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
)

// servicesVersion is the version of the format of a services file.
const servicesVersion = 1

// servicesFile is the content of a services file. deploy/services.schema.json describes the format.
type servicesFile struct {
	Version  int                  `yaml:"version"`
	Services []escalation.Service `yaml:"services"`
	Alerts   alert.Rules          `yaml:"alerts"`
}

// ParseServices parses the content of a services file in the directory dir, and checks the files that it names. An
// error describes the first mistake in one sentence, and names the line or the service.
func ParseServices(text []byte, dir string) (*escalation.Catalog, error) {
	catalog, _, err := parseServices(text, dir)
	return catalog, err
}

// parseServices returns the rules for alerts, too.
func parseServices(text []byte, dir string) (*escalation.Catalog, alert.Rules, error) {
	file, err := decodeServices(text)
	if err != nil {
		return nil, alert.Rules{}, err
	}
	for i := range file.Services {
		if err := placeInstructions(&file.Services[i], dir); err != nil {
			return nil, alert.Rules{}, err
		}
	}
	catalog, err := escalation.NewCatalog(file.Services)
	if err != nil {
		return nil, alert.Rules{}, err
	}
	for i, source := range file.Alerts.Sources {
		if source.SecretFile != "" && !filepath.IsAbs(source.SecretFile) {
			file.Alerts.Sources[i].SecretFile = filepath.Join(dir, source.SecretFile)
		}
	}
	rules, err := file.Alerts.Complete(catalog)
	if err != nil {
		return nil, alert.Rules{}, fmt.Errorf("alerts: %w", err)
	}
	return catalog, rules, nil
}

// decodeServices parses the YAML of a services file.
func decodeServices(text []byte) (servicesFile, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField())
	var file servicesFile
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return file, malformed(err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return file, errors.New("there is a second document, and only one is read")
	}
	switch {
	case file.Version != servicesVersion:
		return file, fmt.Errorf("version must be %d, and is %d", servicesVersion, file.Version)
	case len(file.Services) == 0:
		return file, errors.New("there are no services: list at least one")
	}
	return file, nil
}

// malformed describes an error of the YAML library in one sentence.
func malformed(err error) error {
	line, problem := guard.DescribeYAML(err)
	if line == 0 {
		return errors.New(problem)
	}
	return fmt.Errorf("in line %d: %s", line, problem)
}

// load reads the services file, if File is set.
func (s *Services) load(p *problems) {
	if s.File == "" {
		return
	}
	text, err := os.ReadFile(s.File)
	if err == nil {
		s.Catalog, s.Alerts, err = parseServices(text, filepath.Dir(s.File))
	}
	p.must("SERVICES_FILE", err == nil, "name a list of services that can be used: %s", errorText(err))
}

// validateOverrides checks that no service has limits under two of its names.
func (c Config) validateOverrides(p *problems) {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Limits.Overrides)) {
		canonical := c.Services.Catalog.Canonical(name)
		other, twice := seen[canonical]
		p.must("COOLDOWN_OVERRIDES", !twice,
			"name each service once, and %q and %q are the same one (%sSERVICES_FILE)", other, name, Prefix)
		seen[canonical] = name
	}
}
