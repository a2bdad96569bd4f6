package claude

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/binfmt"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// ProbeSandbox starts an empty process tree with the settings of o, and returns the tree's sandbox. It fails if a
// required sandbox is not available, or if the CLI cannot run as the user of o.
func ProbeSandbox(ctx context.Context, o Options, sandbox *Sandbox) (process.Sandboxed, error) {
	return process.ProbeSandbox(ctx, o.Containment, sandbox, o.User)
}

// AsUser calls fn with the file access rights of user, as process.AsUser does.
func AsUser(user *User, fn func() error) error { return process.AsUser(user, fn) }

// MayRun returns an error if user may not run the program at path, as process.MayRun does.
func MayRun(user *User, path string) error { return process.MayRun(user, path) }

// AsUser calls fn with the file access rights of the CLI's user. Use AsUser for files that agents can change. With the
// rights of this process, fn could follow an agent's symbolic link to a file of another user. fn must not start
// goroutines that use files.
func (c *CLI) AsUser(fn func() error) error { return c.asUser(fn) }

// asUser calls fn with the file access rights of the CLI's user.
func (c *CLI) asUser(fn func() error) error { return process.AsUser(c.options.User, fn) }

// sandbox returns the invocation's sandbox. It adds the paths that the CLI itself must read and write.
func (c *CLI) sandbox(i Invocation, environ []string) *Sandbox {
	if i.Sandbox == nil {
		return nil
	}
	all := *i.Sandbox
	named := namedFiles(environ)
	all.Readable = slices.Concat(all.Readable, c.programs(all.Hidden, environ), named, namedFiles(c.passed()))
	all.Writable = slices.Concat(all.Writable, c.ownPlaces(i))
	if all.Executable != nil {
		all.Executable = slices.Concat(all.Executable, c.executables(environ))
	}
	if all.Opens != nil {
		all.Opens = c.opens(*all.Opens, i)
		all.Opens.HeldRead = slices.Concat(all.Opens.HeldRead, i.Sandbox.Readable, named) // certificates of curl
	}
	return &all
}

// opens returns the rules for the files of an invocation. The CLI itself may use its own files, which hold its login.
func (c *CLI) opens(rules process.Opens, i Invocation) *process.Opens {
	var own []string
	for _, place := range c.ownPlaces(i) {
		own = append(own, place, place+"/**")
	}
	if path, err := filepath.EvalSymlinks(c.path); err == nil && len(own) > 0 {
		rules.Programs = append(slices.Clone(rules.Programs),
			process.ProgramOpens{Program: path, Read: own, Write: own})
	}
	if api, is := c.ownAPI(i); is {
		rules.Addresses = append(slices.Clone(rules.Addresses), api)
	}
	return &rules
}

// ownAPI returns the rule that only the CLI connects to the endpoint of an invocation's API. If a shell script starts
// the CLI, nobody knows which program that is in the end, so there is no rule.
func (c *CLI) ownAPI(i Invocation) (rule process.Address, is bool) {
	if i.API == nil {
		return rule, false
	}
	endpoint, err := url.Parse(i.API.URL)
	if err != nil {
		return rule, false
	}
	port, err := strconv.Atoi(endpoint.Port())
	if err != nil || endpoint.Hostname() != "127.0.0.1" {
		return rule, false
	}
	rule = process.Address{
		Here: true, Port: port,
		Reason: "only the CLI itself uses the session's key of the model's API",
	}
	programs := binfmt.Programs{Search: filepath.SplitList(lookupVariable(c.options.Environ, "PATH"))}
	for _, file := range programs.With(c.path) {
		switch name := filepath.Base(file); {
		case slices.Contains([]string{"sh", "bash", "dash", "zsh", "busybox"}, name):
			return rule, false
		case !strings.HasPrefix(name, "ld-"): // the loader, which runs any program
			rule.Except = append(rule.Except, file)
		}
	}
	return rule, len(rule.Except) > 0
}

// executables returns the files that the CLI executes in every session: its own file, the files that run it, and this
// program. The CLI also tries to execute programs that it can do without: bash, git, ps and sh.
func (c *CLI) executables(environ []string) []string {
	programs := binfmt.Programs{Search: filepath.SplitList(lookupVariable(environ, "PATH"))}
	files := slices.Clone(programs.With(c.path))
	if self, err := os.Executable(); err == nil {
		files = append(files, programs.With(self)...)
	}
	return files
}

// ownPlaces returns the existing files and directories that the CLI writes. If the CLI uses an existing login, these
// include files in HOME. Directories of the invocation's own are the caller's.
func (c *CLI) ownPlaces(i Invocation) []string {
	if _, given := i.Env[configVariable]; given {
		return nil
	}
	if c.options.ConfigDir != "" {
		return resolved(c.options.ConfigDir)
	}
	home := lookupVariable(c.options.Environ, "HOME")
	places := resolved(filepath.Join(home, ".claude.json"), filepath.Join(home, ".claude.json.backup"))
	if dir, err := c.transcriptHome(); err == nil {
		places = append(places, resolved(dir)...)
	}
	return places
}

// programs returns the paths of the CLI, of this program and of the directories on PATH. The sandbox must show them,
// because they can be below a hidden home directory. A directory on PATH that is itself hidden, such as a whole home,
// is left out.
func (c *CLI) programs(hidden, environ []string) []string {
	path := c.path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	places := append([]string{path}, packageDir(path))
	if self, err := os.Executable(); err == nil { // hooks run it
		places = append(places, resolved(self)...)
	}
	concealed := resolved(hidden...)
	for _, dir := range append(filepath.SplitList(lookupVariable(environ, "PATH")), filepath.Dir(path),
		filepath.Dir(c.path)) {
		for _, place := range resolved(dir) {
			if !slices.Contains(concealed, place) && !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	return places
}

// packageDir returns the node_modules directory that contains the path, because npm can install one program as several
// packages there. If no such directory contains the path, packageDir returns the path itself.
func packageDir(path string) string {
	const modules = "/node_modules/"
	if at := strings.Index(path, modules); at >= 0 {
		return path[:at+len(modules)-1]
	}
	return path
}

// namedFiles returns the files whose absolute paths are the values of variables in environ, such as certificates. The
// CLI must be able to read these files.
func namedFiles(environ []string) []string {
	var files []string
	for _, variable := range environ {
		_, value, _ := strings.Cut(variable, "=")
		if !filepath.IsAbs(value) {
			continue
		}
		if info, err := os.Stat(value); err == nil && info.Mode().IsRegular() {
			files = append(files, resolved(value)...)
		}
	}
	return files
}

// resolved returns paths with symbolic links resolved. It leaves out paths that do not exist or are not absolute.
func resolved(paths ...string) []string {
	var found []string
	for _, path := range paths {
		if place, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(place) {
			found = append(found, place)
		}
	}
	return found
}
