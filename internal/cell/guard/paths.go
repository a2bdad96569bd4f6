package guard

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Place describes where an agent's commands run.
type Place struct {
	// Work lists the directories that the agent works in.
	Work []string
	// Origin is the directory that the session's git worktree in Work replaces; empty without a worktree. The agent may
	// read Origin, but not change it. In Origin the agent may also run commands such as docker compose, which act on
	// services and use the files of a directory.
	Origin string
	// Dir is the directory in which commands start. If it is empty, commands start in the first directory of Work.
	Dir string
	// Home and Temp are the agent's own directories.
	Home string
	Temp string
	// Path lists the directories of the variable PATH.
	Path []string
	// Variables is the environment of the commands.
	Variables map[string]string
	// Own lists the supervisor's files and directories, which agents may not use. Each is listed twice: by its
	// configured name, and with symbolic links resolved. Agents may nevertheless use Work, Home and Temp, even if these
	// lie within the supervisor's directories.
	Own []string
	// Doors lists the supervisor's ports, to which agents may not connect.
	Doors []Door
	// Services lists the supervisor's own unit and container, on which agents may not act.
	Services []string
	// Confined reports that the kernel holds each program to its own executables and to the files and connections of
	// the tier.
	Confined bool
	// Unheld lists programs for which Confined does not hold (see Executables.Unheld).
	Unheld []string
	// Asked lists files that the agent is asked to write. Each is listed twice: by its name, and with symbolic links
	// resolved. The agent may write these files at every tier.
	Asked []string
}

// dir returns the directory in which commands start.
func (p Place) dir() string {
	switch {
	case p.Dir != "":
		return p.Dir
	case len(p.Work) == 0:
		return "/"
	}
	return p.Work[0]
}

// secretName matches names of variables whose values are credentials.
var secretName = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSW|CREDENTIAL|_PAT\b)`)

// gitSetting matches the variables with the names of settings that hold for git. They are named like keys.
var gitSetting = regexp.MustCompile(`^GIT_CONFIG_KEY_\d+$`)

// IsSecret reports whether agents may not use the value of a variable of their environment, because of its name.
func IsSecret(variable string) bool {
	return secretName.MatchString(variable) && !gitSetting.MatchString(variable)
}

// at returns the absolute path that a word names for a program in the directory dir. The path can contain ".." and
// double slashes. If the path depends on an unknown directory, the error is errAtRun.
func at(word, dir string) (string, error) {
	switch {
	case word == "":
		return "", denied("the name of a file is empty")
	case strings.HasPrefix(word, "/"):
		return word, nil
	case dir == "":
		return "", errAtRun
	}
	return dir + "/" + word, nil
}

// streams are names of a program's own streams.
var streams = []string{"/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2"}

// read accepts files that the tier may read.
func (j judge) read(path string) error {
	if path == "/dev/null" || slices.Contains(streams, path) {
		return nil
	}
	return j.reach(path, j.readable(), j.secret)
}

// readable returns the paths that the tier may read. If the tier may read the worktree, it may also read the directory
// from which the worktree was made.
func (j judge) readable() []string {
	names := slices.Concat(j.limits().Read, j.limits().Write)
	if slices.Contains(names, ".") {
		names = append(names, j.origin()...)
	}
	return names
}

// list accepts paths that the tier may list: every path that is neither private nor secret. The tier may list paths
// that it may not read.
func (j judge) list(path string) error {
	return j.reach(path, []string{"/"}, j.secret)
}

// write accepts files that the tier may write.
func (j judge) write(path string) error {
	if slices.Contains([]string{"/dev/null", "/dev/tty"}, path) || slices.Contains(streams, path) || j.asked(path) {
		return nil
	}
	return j.reach(path, j.limits().Write, j.protected)
}

// asked reports whether path is a file that the agent is asked to write. It checks path as written and with symbolic
// links resolved.
func (j judge) asked(path string) bool {
	if len(j.place.Asked) == 0 {
		return false
	}
	paths, err := j.resolve(path)
	return err == nil && !slices.ContainsFunc(paths,
		func(one string) bool { return !slices.Contains(j.place.Asked, one) })
}

// source accepts a file to copy. The tier must be permitted to read the file. A protected file is refused, because its
// copy would have the same name.
func (j judge) source(path string) error {
	if err := j.read(path); err != nil {
		return err
	}
	return j.protected(filepath.Clean(path))
}

// writePlain accepts a file to write that is no directory.
func (j judge) writePlain(path string) error {
	if j.files.Exists(path + "/.") {
		return denied("%s is a directory: name the files", path)
	}
	return j.write(path)
}

// certificate accepts a file of which the program shows certificates only.
func (j judge) certificate(path string) error {
	return j.reach(path, j.readable(), func(string) error { return nil })
}

// reach checks a path, both as written and with symbolic links resolved. The path must not be private, and the function
// refuse must accept it. Unless the tier has anything: true, the resolved path must also be below one of the roots.
func (j judge) reach(path string, roots []string, refuse func(path string) error) error {
	paths, err := j.resolve(path)
	if err != nil {
		return err
	}
	for _, resolved := range paths {
		if err := j.private(resolved); err != nil {
			return err
		}
		if err := refuse(resolved); err != nil {
			return err
		}
	}
	if j.limits().Anything {
		return nil
	}
	allowed := j.roots(roots)
	for _, final := range paths[1:] {
		if !isBelow(final, allowed) {
			return denied("%s is outside of what Tier %d may reach", final, j.tier)
		}
	}
	return nil
}

// resolve returns two paths for one: as written, and with symbolic links resolved. On another host nothing is resolved.
// There the first is also what a relative path names in the root directory, in which many containers start.
func (j judge) resolve(path string) ([]string, error) {
	clean := filepath.Clean(path)
	if j.remote {
		if !j.limits().Anything && slices.Contains(strings.Split(path, "/"), "..") {
			return nil, denied("%s: write the path there without ..", path)
		}
		return []string{strings.TrimPrefix(clean, unknownDir), clean}, nil
	}
	resolved, err := j.files.Resolve(path)
	if err != nil {
		return nil, denied("%s cannot be resolved: %v", path, err)
	}
	return []string{clean, resolved}, nil
}

// isBelow reports whether a path is one of the roots, or lies below one of the roots.
func isBelow(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || root == "/" || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
	})
}

// roots expands ".", "~" and "$TMPDIR", and adds the resolved path of each root.
func (j judge) roots(names []string) []string {
	var roots []string
	for _, name := range names {
		expanded := []string{name}
		switch {
		case name == ".":
			expanded = j.place.Work
		case name == "~" || strings.HasPrefix(name, "~/"):
			expanded = []string{j.place.Home + name[1:]}
		case name == "$TMPDIR":
			expanded = []string{j.place.Temp}
		}
		for _, one := range expanded {
			if one == "" {
				continue
			}
			roots = append(roots, one)
			if resolved, err := j.files.Resolve(one); err == nil && resolved != one {
				roots = append(roots, resolved)
			}
		}
	}
	return roots
}

// private refuses the supervisor's own files and the policy's private files. Private files include some that show the
// memory and the environment of processes.
func (j judge) private(path string) error {
	if j.own(path) || matchesAny(j.policy.Private, path) {
		return &DeniedError{Rule: "private", Reason: path + " is for no agent"}
	}
	return nil
}

// own reports whether a path belongs to the supervisor. The agent's directories can lie within the supervisor's
// directories, and the supervisor's within the agent's. So the innermost directory that contains the path decides.
func (j judge) own(path string) bool {
	mine := j.nearest(path, j.place.Own)
	return mine > 0 && mine > j.nearest(path, j.roots(append([]string{".", "~", "$TMPDIR"}, j.origin()...)))
}

// nearest finds the innermost directory in dirs that contains the path, and returns the length of the directory's own
// path. If no directory contains the path, nearest returns 0.
func (j judge) nearest(path string, dirs []string) int {
	longest := 0
	for _, dir := range dirs {
		if isBelow(path, []string{dir}) {
			longest = max(longest, len(dir))
		}
	}
	return longest
}

// secret refuses files that possibly hold secrets, unless the tier has anything: true.
func (j judge) secret(path string) error {
	if j.limits().Anything || !j.isSecret(path) {
		return nil
	}
	return &DeniedError{Rule: "secrets", Reason: path + " may hold secrets, which agents do not read"}
}

func (j judge) isSecret(path string) bool { return matchesAny(j.policy.Secrets, path) }

// protected refuses changes to files that match the policy's protected patterns or the tier's keep patterns.
func (j judge) protected(path string) error {
	if kept(j.policy.Protected, path) || kept(j.limits().Keep, path) {
		return &DeniedError{Rule: "protected", Reason: path + " is changed by people only"}
	}
	return nil
}

// kept reports whether one of the patterns matches a path, whatever the case of the letters: some file systems ignore
// it.
func kept(patterns []string, path string) bool {
	fold := func(text string) string { return strings.ToLower(strings.ToUpper(text)) }
	folded := fold(path)
	return slices.ContainsFunc(patterns,
		func(pattern string) bool { return doublestar.MatchUnvalidated(fold(pattern), folded) })
}

// matchesAny reports whether one of the patterns matches a path.
func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns,
		func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, path) })
}
