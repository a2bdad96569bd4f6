package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Container is a container of Docker or Podman.
type Container struct {
	Name, Image string
	// Running reports that it runs.
	Running bool
	// Project and Service are its names in a Compose project; empty if it belongs to none.
	Project, Service string
	// Swarm is the service of a swarm for which it is a task; empty if it is none.
	Swarm string
}

// Project is a Compose project.
type Project struct {
	// Name is the project's name; for a project that does not run, the name of its directory.
	Name string
	// Dir is the directory of its files, as an absolute path; empty if it has none here. Other programs, such as
	// Portainer, keep the files of their projects elsewhere.
	Dir string
	// Named reports that the name is not the one that Compose would give it by its directory, because several projects
	// have it or because somebody has chosen another: Compose needs it as -p NAME.
	Named bool
	// Running reports that the engine knows its containers.
	Running bool
}

// labels of Compose on its containers.
const (
	projectLabel = "com.docker.compose.project"
	serviceLabel = "com.docker.compose.service"
	swarmLabel   = "com.docker.swarm.service.name"
)

// containers lists the containers and projects of the first engine that is installed.
func (l *look) containers(ctx context.Context) error {
	for _, engine := range []string{"docker", "podman"} {
		listed, err := l.host.Run(ctx, engine, "ps", "--all", "--no-trunc", "--format", "{{json .}}")
		if errors.Is(err, ErrMissing) {
			continue
		}
		l.found.Engine = engine
		if err != nil {
			return err
		}
		l.found.Containers = containersIn(listed)
		projects, err := l.host.Run(ctx, engine, "compose", "ls", "--all", "--format", "json")
		if err != nil {
			return nil //nolint:nilerr // the engine has no Compose
		}
		l.add(l.projectsIn(projects)...)
		return nil
	}
	return nil
}

// add adds projects. Two finders find some.
func (l *look) add(projects ...Project) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.found.Projects = append(l.found.Projects, projects...)
}

// listedContainer is a line of `docker ps`. Podman lists names as a list and labels as an object.
type listedContainer struct {
	Names  any    `json:"Names"`
	Image  string `json:"Image"`
	State  string `json:"State"`
	Labels any    `json:"Labels"`
}

// containersIn parses the output of `docker ps`, a JSON object a line. It ignores lines that are none.
func containersIn(listed string) (containers []Container) {
	for line := range strings.Lines(listed) {
		var one listedContainer
		if json.Unmarshal([]byte(line), &one) != nil {
			continue
		}
		c := Container{
			Name: firstName(one.Names), Image: one.Image, Running: one.State == "running",
			Project: label(one.Labels, projectLabel), Service: label(one.Labels, serviceLabel),
			Swarm: label(one.Labels, swarmLabel),
		}
		if !usable(c.Name) {
			continue
		}
		if !usable(c.Image) {
			c.Image = ""
		}
		if !usable(c.Project) || !usable(c.Service) {
			c.Project, c.Service = "", ""
		}
		if !usable(c.Swarm) {
			c.Swarm = ""
		}
		containers = append(containers, c)
	}
	slices.SortFunc(containers, func(a, b Container) int { return cmp.Compare(a.Name, b.Name) })
	return containers
}

func firstName(names any) string {
	switch names := names.(type) {
	case string:
		first, _, _ := strings.Cut(names, ",")
		return first
	case []any:
		if len(names) > 0 {
			first, _ := names[0].(string)
			return first
		}
	}
	return ""
}

// label returns the value of a label. Docker joins labels with commas.
func label(labels any, name string) string {
	switch labels := labels.(type) {
	case string:
		for one := range strings.SplitSeq(labels, ",") {
			if value, is := strings.CutPrefix(one, name+"="); is {
				return value
			}
		}
	case map[string]any:
		value, _ := labels[name].(string)
		return value
	}
	return ""
}

// projectsIn parses the output of `docker compose ls`.
func (l *look) projectsIn(listed string) (projects []Project) {
	var all []struct {
		Name        string `json:"Name"`
		ConfigFiles string `json:"ConfigFiles"`
	}
	if json.Unmarshal([]byte(listed), &all) != nil {
		return nil
	}
	for _, one := range all {
		first, _, _ := strings.Cut(one.ConfigFiles, ",")
		project := Project{Name: one.Name, Running: true}
		if dir := filepath.Dir(first); filepath.IsAbs(first) && usable(dir) && dir != "/" && l.exists(dir[1:]) {
			project.Dir, project.Named = dir, one.Name != l.usualName(first)
		}
		if usable(project.Name) {
			projects = append(projects, project)
		}
	}
	return projects
}

// notInName matches the characters that Compose leaves out of the name of a directory.
var notInName = regexp.MustCompile(`[^a-z0-9_-]`)

// usualName returns the name that Compose gives a project by its file: the one that it says, or else that of its
// directory.
func (l *look) usualName(file string) string {
	var read struct {
		Name string `yaml:"name"`
	}
	text, _ := fs.ReadFile(l.host.Files, file[1:]) // Compose has read it, whoever may
	if yaml.Unmarshal(text, &read) == nil && read.Name != "" {
		return read.Name
	}
	base := strings.ToLower(filepath.Base(filepath.Dir(file)))
	return strings.TrimLeft(notInName.ReplaceAllString(base, ""), "_-")
}

// Grant returns the project as the policy names it; empty if it has no files here.
func (p Project) Grant() string {
	if p.Named {
		return p.Dir + " -p " + p.Name
	}
	return p.Dir
}

// merged returns each project once, sorted by its directory and its name. Several projects that run can have the same
// directory. They replace a project whose files were found there.
func merged(projects []Project) []Project {
	runs := map[string]bool{}
	for _, project := range projects {
		runs[project.Dir] = runs[project.Dir] || project.Running
	}
	projects = slices.DeleteFunc(projects, func(p Project) bool { return !p.Running && runs[p.Dir] })
	slices.SortFunc(projects, func(a, b Project) int {
		return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(projects, func(a, b Project) bool { return a.Dir == b.Dir && a.Name == b.Name })
}
