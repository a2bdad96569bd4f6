package guard

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeops/claudeops/internal/cell/binfmt"
)

// Executables lists the files that the programs of a tier may execute. All paths are without symbolic links.
type Executables struct {
	// of maps the file of each granted program to the files that the program may execute. These include its own file.
	of map[string][]string
	// unlimited contains the files of the programs that start any command. They may execute the files of all programs.
	unlimited map[string]bool
	all       []string
	held      []string
	// unheld lists the programs of texts that are scripts.
	unheld []string
	// texts reports that no program of texts may execute a shell.
	texts bool
}

// executableSearch finds the files of a tier's programs.
type executableSearch struct {
	policy   *Policy
	tier     int
	programs binfmt.Programs
	dirs     []string
}

// Executables finds the granted programs of a tier in the policy's directories. It returns nil if the tier may execute
// everything.
func (p *Policy) Executables(tier int) *Executables {
	if p.Tiers[tier].Anything {
		return nil
	}
	search := executableSearch{
		policy: p, tier: tier, programs: binfmt.Programs{Search: p.Directories}, dirs: realDirectories(p.Directories),
	}
	found := &Executables{of: map[string][]string{}, unlimited: map[string]bool{}}
	for name, uses := range p.Programs {
		if !p.Runs(tier, name) || slices.Contains(shells, name) { // their scripts are interpreted
			continue
		}
		files := search.ofProgram(name, map[string]bool{})
		for _, file := range search.named(name) {
			found.of[file] = append(found.of[file], files...) // one file can have several names
			found.unlimited[file] = found.unlimited[file] || uses.startCommands()
		}
		found.all = append(found.all, files...)
	}
	for file, files := range found.of {
		found.of[file] = sortedSet(files)
	}
	found.all = sortedSet(found.all)
	found.texts = !search.shellOf(found)
	for _, name := range []string{"awk", "sed", "jq", "yq", "curl"} {
		files := search.named(name)
		found.held = append(found.held, files...)
		if slices.ContainsFunc(files, binfmt.IsScript) {
			found.unheld = append(found.unheld, name)
		}
	}
	return found
}

// HoldTexts reports whether the limit keeps the texts of awk, sed, jq and yq from starting commands. It does not where
// one of them is the same file as a shell, as with busybox.
func (e *Executables) HoldTexts() bool { return e != nil && e.texts }

// shellOf reports whether a program of texts may execute a shell.
func (s *executableSearch) shellOf(found *Executables) bool {
	var known []os.FileInfo
	for _, shell := range shells {
		for _, file := range s.named(shell) {
			if info, err := os.Stat(file); err == nil {
				known = append(known, info)
			}
		}
	}
	isShell := func(file string) bool {
		info, err := os.Stat(file)
		return shellName.MatchString(filepath.Base(file)) ||
			err == nil && slices.ContainsFunc(known, func(shell os.FileInfo) bool { return os.SameFile(shell, info) })
	}
	for _, name := range []string{"awk", "sed", "jq", "yq"} {
		for _, file := range s.named(name) {
			if slices.ContainsFunc(found.Of(file), isShell) {
				return true
			}
		}
	}
	return false
}

// shellName matches the file names of shells, and of programs that are one among others.
var shellName = regexp.MustCompile(`^((ba|rba|da|a|z|k|mk|fi)?sh|busybox|toybox)([.-].*)?$`)

// All returns the files that at least one program of the tier may execute.
func (e *Executables) All() []string { return e.all }

// Of returns the files that a program may execute. The parameter is the program's file. For a file that is no program
// of the tier the result is empty.
func (e *Executables) Of(file string) []string {
	if e.unlimited[file] {
		return e.all
	}
	return e.of[file]
}

// Held returns the files of programs that open what none of their options and arguments names: texts name files, as do
// formats and data of curl.
func (e *Executables) Held() []string {
	if e == nil {
		return nil
	}
	return e.held
}

// Unheld returns the names of those programs of Held that are scripts. The kernel sees their interpreter instead, which
// runs other programs, too.
func (e *Executables) Unheld() []string {
	if e == nil {
		return nil
	}
	return e.unheld
}

// Programs returns the number of granted programs that were found.
func (e *Executables) Programs() int { return len(e.of) }

// ofProgram returns the files that a program with the name may execute: its own, with interpreters and loaders, and
// those of the programs that it starts. The set seen contains the names that the search has visited.
func (s *executableSearch) ofProgram(name string, seen map[string]bool) (files []string) {
	if seen[name] {
		return nil
	}
	seen[name] = true
	for _, dir := range s.dirs {
		files = append(files, s.programs.With(filepath.Join(dir, name))...)
	}
	for _, started := range s.policy.Programs[name].starts(s.tier) {
		if filepath.IsAbs(started) {
			files = append(files, s.matching(started)...)
		} else {
			files = append(files, s.ofProgram(started, seen)...)
		}
	}
	return files
}

// named returns the files of the program with the name, one for each directory that has the program.
func (s *executableSearch) named(name string) (files []string) {
	for _, dir := range s.dirs {
		if found := s.programs.With(filepath.Join(dir, name)); found != nil {
			files = append(files, found[0])
		}
	}
	return files
}

// matching returns the executable files that match a pattern, with their interpreters and loaders.
func (s *executableSearch) matching(pattern string) (files []string) {
	found, err := doublestar.FilepathGlob(pattern)
	if err != nil { // Policy.check has refused invalid patterns, so a directory cannot be read
		return nil
	}
	for _, path := range found {
		files = append(files, s.programs.With(path)...)
	}
	return files
}

// realDirectories returns the existing directories without symbolic links, each once.
func realDirectories(dirs []string) (found []string) {
	for _, dir := range dirs {
		if place, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(found, place) {
			found = append(found, place)
		}
	}
	return found
}

// starts returns what the granted uses of a program start: names of programs, and patterns of files.
func (u Uses) starts(tier int) (started []string) {
	for _, use := range u {
		if !use.reaches(tier) {
			continue
		}
		if use.Tier <= tier {
			started = append(started, use.Starts...)
		}
		for _, name := range slices.Sorted(maps.Keys(use.Commands)) {
			started = append(started, use.Commands[name].starts(tier)...)
		}
	}
	return started
}

// startCommands reports whether a use of the program starts a command of the call, as xargs does.
func (u Uses) startCommands() bool {
	return slices.ContainsFunc(u, func(use Use) bool {
		for _, argument := range use.form.args {
			if startsCommand(argument.kind) {
				return true
			}
		}
		for _, option := range use.form.flags {
			if startsCommand(option.value) {
				return true
			}
		}
		return false
	})
}

// startsCommand reports whether a word of the kind is a command that the program starts on this host.
func startsCommand(kind string) bool {
	return slices.Contains([]string{kindCommand, kindEnv, kindXargs, kindExec, kindScript, kindPOSIXScript}, kind)
}

// checkStarts checks the names and patterns in Starts.
func (u *Use) checkStarts() error {
	for _, started := range u.Starts {
		if filepath.IsAbs(started) && doublestar.ValidatePathPattern(started) ||
			started != "" && !strings.ContainsRune(started, '/') {
			continue
		}
		return fmt.Errorf("starts: %q is neither the name of a program nor the pattern of an absolute path", started)
	}
	return nil
}

// sortedSet returns the distinct paths in order.
func sortedSet(paths []string) []string { return slices.Compact(slices.Sorted(slices.Values(paths))) }
