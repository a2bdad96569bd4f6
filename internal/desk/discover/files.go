package discover

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

const (
	// maxDepth limits how deep below a place Compose files are looked for, and maxDirs how many directories are read.
	maxDepth, maxDirs = 3, 5_000
)

// composeNames are the names under which Compose finds the file of a project.
var composeNames = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// composeFiles looks for Compose files below the home directory, /opt, /srv and /etc, and as root below /home.
func (l *look) composeFiles(ctx context.Context) error {
	places := []string{"opt", "srv", "etc"}
	if home := l.host.home(); home != "" {
		places = append(places, home)
	}
	if l.host.UID == 0 {
		people, _ := fs.ReadDir(l.host.Files, "home") // often there is none
		for _, person := range people {
			places = append(places, "home/"+person.Name())
		}
	}
	w := walk{files: l.host.Files, left: maxDirs}
	slices.Sort(places)
	var err error
	for _, place := range slices.Compact(places) {
		if err = w.enter(ctx, place, "", maxDepth); err != nil {
			break
		}
	}
	l.add(w.projects...)
	l.found.Repositories = w.repositories
	return err
}

// walk looks for Compose files in directories.
type walk struct {
	files fs.FS
	// left is the number of directories that may still be read.
	left         int
	projects     []Project
	repositories []string
}

// enter looks at a directory, and at directories below it down to a depth. The argument repository is the git
// repository around it.
func (w *walk) enter(ctx context.Context, dir, repository string, depth int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.left--
	if w.left < 0 {
		return errors.New("there are too many directories to look at all")
	}
	entries, err := fs.ReadDir(w.files, dir)
	if err != nil || !usable("/"+dir) {
		return nil //nolint:nilerr // not there, or not for this user
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == name })
	}
	if has("go.mod") && w.isOurs(dir) {
		return nil
	}
	if has(".git") {
		repository = dir
	}
	if slices.ContainsFunc(composeNames, has) {
		w.projects = append(w.projects, Project{Name: path.Base(dir), Dir: "/" + dir})
		if repository != "" {
			w.repositories = append(w.repositories, "/"+repository)
		}
	}
	for _, entry := range entries {
		name := entry.Name()
		if depth == 0 || !entry.IsDir() || strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor" {
			continue
		}
		if err := w.enter(ctx, dir+"/"+name, repository, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// isOurs reports whether a directory is a checkout of this program. Its Compose files are examples.
func (w *walk) isOurs(dir string) bool {
	text, err := fs.ReadFile(w.files, dir+"/go.mod")
	return err == nil && strings.HasPrefix(string(text), "module github.com/claudeops/claudeops\n")
}

// contexts reads the contexts of kubectl.
func (l *look) contexts(context.Context) error {
	files := filepath.SplitList(l.host.variable("KUBECONFIG"))
	if home := l.host.home(); len(files) == 0 && home != "" {
		files = []string{"/" + home + "/.kube/config"}
	}
	var problem error
	for _, file := range files {
		text, err := fs.ReadFile(l.host.Files, strings.TrimPrefix(filepath.Clean(file), "/"))
		if err != nil {
			continue // kubectl ignores it, too
		}
		var config struct {
			Contexts []struct {
				Name string `yaml:"name"`
			} `yaml:"contexts"`
		}
		if yaml.Unmarshal(text, &config) != nil {
			problem = errors.New(file + " cannot be read") // not the library's error, which can show a part of the file
			continue
		}
		for _, one := range config.Contexts {
			if usable(one.Name) {
				l.found.Contexts = append(l.found.Contexts, one.Name)
			}
		}
	}
	return problem
}

// hostName matches names of hosts that need no quotes anywhere.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// maxInclude limits how deep files of ssh's configuration include others. It is the limit of ssh.
const maxInclude = 16

// sshHosts reads the names of hosts in ~/.ssh/config, and in the files that it includes. It leaves out patterns.
func (l *look) sshHosts(context.Context) error {
	if home := l.host.home(); home != "" {
		l.readSSH(home, home+"/.ssh/config", 0)
	}
	return nil
}

// readSSH reads a file of ssh's configuration (ssh_config(5)). Most people have none.
func (l *look) readSSH(home, file string, depth int) {
	text, err := fs.ReadFile(l.host.Files, file)
	if err != nil || depth > maxInclude {
		return
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if comment := slices.IndexFunc(words, func(word string) bool { return word[0] == '#' }); comment >= 0 {
			words = words[:comment]
		}
		if len(words) == 0 {
			continue
		}
		for _, word := range words[1:] {
			name := strings.Trim(word, `"`)
			switch {
			case strings.EqualFold(words[0], "include"):
				for _, included := range l.included(home, name) {
					l.readSSH(home, included, depth+1)
				}
			case strings.EqualFold(words[0], "host") && hostName.MatchString(name) && usable(name):
				l.found.SSHHosts = append(l.found.SSHHosts, name)
			}
		}
	}
}

// included returns the files that a pattern of Include names. A relative one is below ~/.ssh.
func (l *look) included(home, pattern string) []string {
	switch rest, ofHome := strings.CutPrefix(pattern, "~/"); {
	case ofHome:
		pattern = home + "/" + rest
	case strings.HasPrefix(pattern, "/"):
		pattern = pattern[1:]
	default:
		pattern = home + "/.ssh/" + pattern
	}
	files, _ := fs.Glob(l.host.Files, path.Clean(pattern)) // a pattern that cannot be read names none
	return files
}

// IsHostName reports whether a text is the name of a host that needs no quotes anywhere.
func IsHostName(text string) bool { return hostName.MatchString(text) && usable(text) }
