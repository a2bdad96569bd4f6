package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// Container is a container of Docker or Podman.
type Container struct {
	Name, Image string
	// Running reports that it runs.
	Running bool
	// Project and Service are its names in a Compose project; empty if it belongs to none.
	Project, Service string
}

// Project is a Compose project.
type Project struct {
	// Name is the project's name; for a project that does not run, the name of its directory.
	Name string
	// Dir is the directory of its files, as an absolute path.
	Dir string
	// Running reports that the engine knows its containers.
	Running bool
}

// labels of Compose on its containers.
const (
	projectLabel = "com.docker.compose.project"
	serviceLabel = "com.docker.compose.service"
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
		l.add(projectsIn(projects)...)
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
func projectsIn(listed string) (projects []Project) {
	var all []struct {
		Name        string `json:"Name"`
		ConfigFiles string `json:"ConfigFiles"`
	}
	if json.Unmarshal([]byte(listed), &all) != nil {
		return nil
	}
	for _, one := range all {
		first, _, _ := strings.Cut(one.ConfigFiles, ",")
		project := Project{Name: one.Name, Dir: filepath.Dir(first), Running: true}
		if filepath.IsAbs(first) && usable(project.Name) && usable(project.Dir) && project.Dir != "/" {
			projects = append(projects, project)
		}
	}
	return projects
}

// merged returns one project for each directory, sorted. A project that runs replaces one whose files were found.
func merged(projects []Project) []Project {
	slices.SortStableFunc(projects, func(a, b Project) int {
		if byDir := cmp.Compare(a.Dir, b.Dir); byDir != 0 || a.Running == b.Running {
			return byDir
		}
		if a.Running {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(projects, func(a, b Project) bool { return a.Dir == b.Dir })
}
