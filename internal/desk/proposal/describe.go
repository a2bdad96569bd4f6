package proposal

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/discover"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// maxDescription limits the description in characters, and maxListed the things of one kind in it.
	maxDescription, maxListed = 1_500, 25
)

// word matches names that cannot be taken for a sentence. The description is part of every prompt, and names come from
// others.
var word = regexp.MustCompile(`^[A-Za-z0-9/_.][A-Za-z0-9/_.@:+-]*$`)

// Describe describes a machine for agents, on one line.
func Describe(machine discover.Machine) string {
	var parts []string
	say := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+": "+list(names)+".")
		}
	}
	host := "This host"
	if word.MatchString(machine.Hostname) {
		host += " is " + machine.Hostname
	}
	if machine.System != "" {
		host += ", with " + machine.System
	}
	parts = append(parts, host+".")
	var alone, swarm []string
	in := map[string][]string{}
	for _, container := range machine.Containers {
		switch {
		case container.Swarm != "":
			swarm = append(swarm, container.Swarm)
		case container.Project == "":
			alone = append(alone, container.Name)
		case word.MatchString(container.Service):
			in[container.Project] = append(in[container.Project], container.Service)
		}
	}
	for _, project := range machine.Projects {
		if text := describeProject(project); text != "" {
			services := in[project.Name]
			if len(services) == 0 {
				services = []string{"stopped"}
			}
			say(text, services)
		}
	}
	slices.Sort(swarm)
	say("Services of the swarm", words(slices.Compact(swarm)))
	say("Other containers", words(alone))
	say("Own systemd services", words(machine.OwnUnits))
	var ports []string
	for _, port := range machine.Ports {
		name := strconv.Itoa(port.Number)
		if word.MatchString(port.Program) {
			name += " (" + port.Program + ")"
		}
		if !port.Local {
			ports = append(ports, name)
		}
	}
	say("Ports open to others", ports)
	say("Contexts of kubectl", words(machine.Contexts))
	say("Repositories with Compose files", words(machine.Repositories))
	return plaintext.Cut(strings.Join(parts, " "), maxDescription)
}

// describeProject describes a project that runs; "" if it does not run, or has a name that could be a sentence.
func describeProject(project discover.Project) string {
	switch {
	case !project.Running || !word.MatchString(project.Name):
		return ""
	case project.Dir == "":
		return "Compose project " + project.Name + " without files here"
	case !word.MatchString(project.Dir):
		return ""
	case project.Named:
		return fmt.Sprintf("Compose project %s in %s (-p %[1]s)", project.Name, project.Dir)
	}
	return fmt.Sprintf("Compose project %s in %s", project.Name, project.Dir)
}

// words returns the names that are single words.
func words(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !word.MatchString(name) })
}

// list joins names for a sentence.
func list(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
