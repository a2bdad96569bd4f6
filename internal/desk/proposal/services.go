package proposal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/discover"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// Service is a proposed entry of the services file.
type Service struct {
	Name string
	// Alias is another name of it; empty if it has none.
	Alias string
	// Look tells agents how to look at it, and Origin tells people where it was found.
	Look, Origin string
}

// serviceName matches the names that engines and systemd accept. No other name is proposed, because agents read the
// file.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@:-]{0,99}$`)

// Services proposes a service for each container and for each unit of the machine's own. A service of a Compose project
// gets the name that it has there, if no other project uses that name, too.
// Tasks of a service of a swarm are one service.
func Services(machine discover.Machine) (services []Service) {
	times := map[string]int{}
	for _, container := range machine.Containers {
		times[escalation.ServiceKey(container.Service)]++
	}
	for _, container := range machine.Containers {
		if container.Swarm != "" { // its tasks have names of their own, which change
			services = append(services, Service{
				Name: container.Swarm, Origin: "service " + container.Swarm + " of the swarm",
				Look: fmt.Sprintf("docker service ls shows all replicas of %s; docker service logs --tail 50 %[1]s "+
					"has no new errors", container.Swarm),
			})
			continue
		}
		one := Service{
			Name:   container.Name,
			Origin: "container " + container.Name,
			Look: fmt.Sprintf("%s ps shows %s as running; %[1]s logs --tail 50 %[2]s has no new errors",
				machine.Engine, container.Name),
		}
		if container.Service != "" && times[escalation.ServiceKey(container.Service)] == 1 {
			one.Name, one.Alias = container.Service, container.Name
			one.Origin += " of the project " + container.Project
		}
		services = append(services, one)
	}
	for _, unit := range machine.OwnUnits {
		services = append(services, Service{
			Name: unit, Origin: "unit " + unit + ".service",
			Look: "systemctl is-active " + unit + " says active, or it is a job that has ended well",
		})
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(services, func(s Service) bool {
		twice := seen[escalation.ServiceKey(s.Name)] || s.Alias != "" && seen[escalation.ServiceKey(s.Alias)]
		seen[escalation.ServiceKey(s.Name)] = true
		if s.Alias == s.Name {
			s.Alias = ""
		}
		if s.Alias != "" {
			seen[escalation.ServiceKey(s.Alias)] = true
		}
		return twice || !serviceName.MatchString(s.Name) || s.Alias != "" && !serviceName.MatchString(s.Alias)
	})
}

// Unknown returns the services that a catalog does not list under one of their names.
func Unknown(services []Service, catalog *escalation.Catalog) []Service {
	listed := map[string]bool{}
	for _, known := range catalog.Services() {
		for _, name := range append(known.Aliases, known.Name) {
			listed[escalation.ServiceKey(name)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(services), func(s Service) bool {
		return listed[escalation.ServiceKey(s.Name)] || s.Alias != "" && listed[escalation.ServiceKey(s.Alias)]
	})
}

// servicesHead begins a new services file.
const servicesHead = `# Your services (docs/services.md). claudeops init has listed what it found:
# complete it, and remove what is none of yours. Agents read this list, so
# write no credentials. claudeops doctor checks it.
version: 1
services:
`

// listItem matches the first line of an entry of a list.
var listItem = regexp.MustCompile(`(?m)^( *)- +name:`)

func planServices(path string, add []Service) (Change, error) {
	change, err := read(path, 0o600)
	if err == nil && change.exists {
		catalog, problem := config.ParseServices([]byte(change.Old), filepath.Dir(path))
		if problem != nil {
			return change, fmt.Errorf("%s: %w", path, problem)
		}
		add = Unknown(add, catalog)
	}
	if err != nil || len(add) == 0 {
		return change, err
	}
	indent := "  "
	if change.exists {
		if found := listItem.FindStringSubmatch(change.Old); found != nil {
			indent = found[1]
		}
		change.New = strings.TrimRight(change.Old, "\n") + "\n\n"
	} else {
		change.New = servicesHead
	}
	entries := make([]string, len(add))
	for i, service := range add {
		entries[i] = service.entry(indent)
	}
	change.New += strings.Join(entries, "\n")
	catalog, err := config.ParseServices([]byte(change.New), filepath.Dir(path))
	if err != nil || len(Unknown(add, catalog)) > 0 {
		return change, fmt.Errorf("%s cannot be extended by this program: add the services yourself, or select "+
			"none:\n%s",
			path, strings.Join(entries, "\n"))
	}
	return change, nil
}

// entry returns the service as an entry of the services file.
func (s Service) entry(indent string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s\n%[1]s- name: %[3]s\n", indent, s.Origin, yamlText(s.Name))
	if s.Alias != "" && s.Alias != s.Name {
		fmt.Fprintf(&b, "%s  aliases: [%s]\n", indent, yamlText(s.Alias))
	}
	fmt.Fprintf(&b, "%s  look: %s\n%[1]s  criticality: normal # low, normal, high or critical\n", indent,
		yamlText(s.Look))
	return b.String()
}

// unquoted matches texts that YAML reads as themselves. It leaves out short words, because some are numbers or truth
// values.
var unquoted = regexp.MustCompile(`^[a-z][a-z-]{5,}$`)

// yamlText returns a text as a scalar in YAML. A string of JSON is one.
func yamlText(text string) string {
	if unquoted.MatchString(text) {
		return text
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // cannot fail for a text
	return strings.TrimSpace(b.String())
}
