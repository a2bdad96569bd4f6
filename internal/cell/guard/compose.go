package guard

import (
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// This file judges projects of Docker Compose.

// project reads a compose file: its name, and its services with the files from which they come.
type project struct {
	Name     string `yaml:"name"`
	Services map[string]struct {
		ContainerName string `yaml:"container_name"`
		DependsOn     any    `yaml:"depends_on"`
		Extends       any    `yaml:"extends"`
		EnvFile       any    `yaml:"env_file"`
	} `yaml:"services"`
	Include []any `yaml:"include"`
}

// composeFiles returns the compose files in a directory that docker compose would read, in its order.
func (j judge) composeFiles(dir string) (files []string) {
	for _, name := range []string{"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"} {
		if path := filepath.Join(dir, name); j.files.Exists(path) {
			return []string{path}
		}
	}
	return nil
}

// readProject reads a compose file. A file that is missing, or that nobody may read, has no services.
func (j judge) readProject(path string) (read project, err error) {
	content, missing := j.files.ReadFile(path)
	if missing == nil {
		err = yaml.Unmarshal(content, &read)
	}
	if err == nil && (!utf8.Valid(content) || anotherDocument.Match(firstDocument.ReplaceAll(content, nil))) {
		err = errors.New("it must be one YAML document in UTF-8: docker compose joins several")
	}
	if err != nil {
		err = denied("%s cannot be read: %v", path, err)
	}
	return read, err
}

var (
	// firstDocument matches the beginning of the first document of a YAML file, with what can stand in front of it.
	firstDocument = regexp.MustCompile(`^\x{FEFF}?(?:[ \t]*(?:[#%][^\r\n\x{85}\x{2028}\x{2029}]*)?\r?\n)*---`)
	// anotherDocument matches the beginning of another, after any of YAML's line breaks.
	anotherDocument = regexp.MustCompile(`(?:^|[\r\n\x{85}\x{2028}\x{2029}])\x{FEFF}?(?:---|\.{3})`)
)

// composed returns the names of the services in the compose file of a directory. If the directory has no readable
// compose file, composed returns nil.
func (j judge) composed(dir string) []string {
	for _, file := range j.composeFiles(dir) {
		if read, err := j.readProject(file); err == nil {
			return slices.Sorted(maps.Keys(read.Services))
		}
	}
	return nil
}

// withDependents adds the services that docker compose restarts with others: those that depend on them and say
// restart: true.
func (j judge) withDependents(services []string, words []typed, dir string) []string {
	dependents := map[string][]string{}
	for _, file := range j.projectFiles(words, dir) {
		read, _ := j.readProject(file) // without services if it cannot be read
		for _, name := range slices.Sorted(maps.Keys(read.Services)) {
			needed, _ := read.Services[name].DependsOn.(map[string]any)
			for on, how := range needed {
				options, _ := how.(map[string]any)
				if restart, is := options["restart"]; is && restart != any(false) {
					dependents[on] = append(dependents[on], name)
				}
			}
		}
	}
	for i := 0; i < len(services); i++ {
		for _, name := range dependents[services[i]] {
			if !slices.Contains(services, name) {
				services = append(services, name)
			}
		}
	}
	return services
}

// isComposed reports whether a project that the agent can use has a service or a container of that name.
func (j judge) isComposed(name, dir string) bool {
	for _, each := range j.projectDirs(dir) {
		if slices.Contains(j.composed(each), name) {
			return true
		}
	}
	return j.composedName(name, dir) != name
}

// projectDirs returns the directories of the projects that the agent can use.
func (j judge) projectDirs(dir string) []string {
	dirs := make([]string, len(j.policy.Projects))
	for i, entry := range j.policy.Projects {
		dirs[i], _ = projectOf(entry)
	}
	return unique(slices.Concat([]string{dir}, j.roots([]string{"."}), j.origin(), j.roots(dirs)))
}

// projectFlags are the options with the name of a project.
var projectFlags = []string{"-p", "--project-name"}

// projectName matches the names that docker compose accepts.
var projectName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// projectOf splits an entry of the policy's projects, "DIR" or "DIR -p NAME", into the directory and the name, which is
// empty if docker compose needs none.
func projectOf(entry string) (dir, name string) {
	if at := strings.LastIndex(entry, " -p "); at >= 0 && projectName.MatchString(entry[at+len(" -p "):]) {
		return entry[:at], entry[at+len(" -p "):]
	}
	return entry, ""
}

// project accepts the name of a project, or its absence, for a use that may act on projects only. Several projects can
// have one directory: each is granted under exactly the name that the policy has for it.
func (j judge) project(use *Use, got given, dir string) error {
	if use.In != "project" || len(use.form.without) == 0 || j.limits().Anything {
		return nil
	}
	name := ""
	for _, value := range got.values {
		if slices.Contains(projectFlags, value.flag) {
			name = value.word
		}
	}
	named := got.flags["-p"] || got.flags["--project-name"]
	for _, dir := range j.dirsOf(got, dir) {
		if dir == "" {
			return errAtRun
		}
		names := j.namesAt(dir)
		if named && (name == "" || !slices.Contains(names, name)) {
			return denied("it is not granted with the name of another project: %s has %s in the policy", dir,
				listed(names))
		}
		if !named && len(names) > 0 && !slices.Contains(names, "") {
			return denied("%s has several projects: it is granted with -p %s", dir, listed(names))
		}
	}
	return nil
}

// dirsOf returns the directories of the files of a project, or dir if it has none.
func (j judge) dirsOf(got given, dir string) (dirs []string) {
	if dir == "" && !slices.ContainsFunc(got.values, func(value typed) bool { return value.kind == "COMPOSE" }) {
		return []string{""}
	}
	for _, file := range j.projectFiles(got.values, dir) {
		dirs = append(dirs, filepath.Dir(file))
	}
	if dirs == nil {
		dirs = []string{dir}
	}
	return dirs
}

// listed joins names of projects for a sentence.
func listed(names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " or ")
}

// composedName returns the name of the service that runs in a container, if it is a service of a project that the agent
// can use, so that both names count as one. Otherwise it returns the container's name.
func (j judge) composedName(container, dir string) string {
	for _, each := range j.projectDirs(dir) {
		for _, file := range j.composeFiles(each) {
			read, _ := j.readProject(file) // without services if it cannot be read
			name := read.Name
			if name == "" {
				name = notInProject.ReplaceAllString(strings.ToLower(filepath.Base(each)), "")
			}
			names := []string{name}
			names = append(names, j.namesAt(each)...)
			for service, one := range read.Services {
				numbered := regexp.MustCompile("^(" + alternatives(names) + ")[-_]" + regexp.QuoteMeta(service) +
					"[-_][0-9]+$")
				if one.ContainerName == container || numbered.MatchString(container) {
					return service
				}
			}
		}
	}
	return container
}

// alternatives returns a pattern that matches one of several names.
func alternatives(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return strings.Join(quoted, "|")
}

// notInProject matches the characters that docker compose leaves out of the name of a project.
var notInProject = regexp.MustCompile(`[^a-z0-9_-]`)

// compose accepts a compose file in the working directory, or in the directory of one of the policy's projects. If the
// session has a worktree, the working directory is the one from which the worktree was made. The built-in policy
// forbids Tiers 1 and 2 to write compose files. Docker compose takes other words for the address of a project, which
// would run as root.
func (j judge) compose(word string, command Command) error {
	first, _, deeper := strings.Cut(word, "/")
	if strings.ContainsAny(word, ":#") || deeper && strings.Contains(strings.Trim(first, "."), ".") {
		return denied("%s can be the address of a project elsewhere: write the path of a file, beginning with / or ./",
			word)
	}
	path, err := at(word, command.Dir)
	if err != nil {
		return err
	}
	paths, err := j.resolve(path)
	if err != nil {
		return err
	}
	base, from := filepath.Base(paths[1]), []string{"."}
	if j.place.Origin != "" {
		from = j.origin()
	}
	if !composeFile.MatchString(base) || !isBelow(paths[1], j.roots(from)) && !j.isProject(filepath.Dir(paths[1])) {
		return denied("%s is no compose file of the working directory or of a project in the policy", word)
	}
	return nil
}

var composeFile = regexp.MustCompile(`compose.*\.ya?ml$`)

// unwritten refuses a project that takes services or their variables from a file that the tier may write, or services
// from elsewhere: they run as root. The argument words has the files that are named.
func (j judge) unwritten(words []typed, dir string) error {
	files := j.projectFiles(words, dir)
	given := len(files)
	const most = 100
	for i := 0; i < len(files); i++ {
		if i == most {
			return denied("the project has too many files")
		}
		read, err := j.readProject(files[i])
		if err != nil {
			return err
		}
		services, variables := read.taken()
		for number, named := range slices.Concat(services, variables) {
			base := files[i]
			if i < given {
				base = files[0] // docker compose starts from the directory of the first file that is named
			}
			path, err := at(named, filepath.Dir(base))
			unknown := number < len(services) && strings.ContainsAny(named, ":#$")
			if err != nil || unknown || j.write(path) == nil {
				return denied("%s takes services or their variables from %s, which is elsewhere or which agents may "+
					"write: a person must "+
					"start them", files[i], named)
			}
			if number < len(services) {
				files = append(files, path)
			}
		}
	}
	return nil
}

// projectFiles returns the files of a project: those that the words name, or those that docker compose finds from the
// directory.
func (j judge) projectFiles(words []typed, dir string) (files []string) {
	for _, word := range words {
		if path, err := at(word.word, dir); word.kind == "COMPOSE" && err == nil {
			files = append(files, path)
		}
	}
	if len(files) > 0 {
		return files
	}
	for ; ; dir = filepath.Dir(dir) { // docker compose looks in the directories above, too
		if files = j.composeFiles(dir); len(files) > 0 || dir == filepath.Dir(dir) {
			break
		}
	}
	for _, name := range []string{
		"compose.override.yml", "compose.override.yaml", "docker-compose.override.yml", "docker-compose.override.yaml",
	} {
		if path := filepath.Join(dir, name); j.files.Exists(path) {
			files = append(files, path)
		}
	}
	return files
}

// taken returns the names of the files from which a compose file takes services, and of those with variables of
// services.
func (p *project) taken() (services, variables []string) {
	for _, include := range p.Include {
		with, is := include.(map[string]any)
		if !is {
			with = map[string]any{"path": include}
		}
		services = append(services, fileNamesIn(with["path"])...)
		variables = append(variables, fileNamesIn(with["env_file"])...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		service := p.Services[name]
		if extends, is := service.Extends.(map[string]any); is {
			services = append(services, fileNamesIn(extends["file"])...)
		}
		variables = append(variables, fileNamesIn(service.EnvFile)...)
	}
	return services, variables
}

// fileNamesIn returns the names of files in a value of a compose file: a name, a mapping with a path, or a list of
// these.
func fileNamesIn(value any) (names []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case map[string]any:
		return fileNamesIn(v["path"])
	case []any:
		for _, one := range v {
			names = append(names, fileNamesIn(one)...)
		}
	}
	return names
}
