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
		place := "in " + project.Dir
		switch {
		case project.Dir == "":
			place = "without files here"
		case project.Named:
			place += fmt.Sprintf(" (-p %s)", project.Name)
		}
		if word.MatchString(project.Name) && (project.Dir == "" || word.MatchString(project.Dir)) && project.Running {
			services := in[project.Name]
			if len(services) == 0 {
				services = []string{"stopped"}
			}
			say(fmt.Sprintf("Compose project %s %s", project.Name, place), services)
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
