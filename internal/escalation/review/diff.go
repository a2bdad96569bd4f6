package review

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// File is one changed file.
type File struct {
	Path string `json:"path"`
	// Added and Removed count lines; both are 0 for a binary file.
	Added   int  `json:"added,omitempty"`
	Removed int  `json:"removed,omitempty"`
	Binary  bool `json:"binary,omitempty"`
	// Deleted reports whether the file was removed.
	Deleted bool `json:"deleted,omitempty"`
	// Special reports whether the file is, or was, a symbolic link or a submodule.
	Special bool `json:"special,omitempty"`
	// Listed reports that the policy's review.paths name the file for the author's tier: it may change without a
	// person.
	Listed bool `json:"listed,omitempty"`
	// Unread says why a reviewer cannot read the change of the file as it is; empty if it can.
	Unread string `json:"unread,omitempty"`
}

// ParseDiff reads the output of `git diff --raw --numstat --no-renames -z`, which lists each file twice.
func ParseDiff(output string) ([]File, error) {
	var files []File
	at := map[string]int{}
	fields := strings.Split(strings.TrimSuffix(output, "\x00"), "\x00")
	if output == "" {
		return nil, nil
	}
	for i := 0; i < len(fields); i++ {
		if raw, is := strings.CutPrefix(fields[i], ":"); is {
			i++
			if i == len(fields) {
				return nil, errors.New("the list of changed files ends in the middle of an entry")
			}
			file, err := parseRaw(raw, fields[i])
			if err != nil {
				return nil, err
			}
			at[file.Path] = len(files)
			files = append(files, file)
			continue
		}
		if err := parseCount(fields[i], files, at); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// parseRaw reads one entry of --raw, such as "100644 100644 1234567 89abcde M", and its path.
func parseRaw(raw, name string) (File, error) {
	parts := strings.Fields(raw)
	if len(parts) != 5 || name == "" {
		return File{}, fmt.Errorf("%q is no entry of a list of changed files", raw)
	}
	special := func(mode string) bool { return mode == "120000" || mode == "160000" }
	return File{Path: name, Deleted: parts[4] == "D", Special: special(parts[0]) || special(parts[1])}, nil
}

// parseCount reads one entry of --numstat, such as "3\t1\tcompose.yaml", into the file with its path.
func parseCount(entry string, files []File, at map[string]int) error {
	const columns = 3
	parts := strings.SplitN(entry, "\t", columns)
	if len(parts) != columns {
		return fmt.Errorf("%q is no entry of a list of changed lines", entry)
	}
	index, known := at[parts[2]]
	if !known {
		return fmt.Errorf("the changed lines of %q belong to no changed file", parts[2])
	}
	if parts[0] == "-" {
		files[index].Binary = true
		return nil
	}
	added, err := strconv.Atoi(parts[0])
	removed, removedErr := strconv.Atoi(parts[1])
	if err = errors.Join(err, removedErr); err != nil {
		return fmt.Errorf("the changed lines of %q: %w", parts[2], err)
	}
	files[index].Added, files[index].Removed = added, removed
	return nil
}

// Scope limits what a change may contain without a person.
type Scope struct {
	// Within is the directory, or the only file, in the repository that the change may touch; empty or "." for the
	// whole repository.
	Within string `json:"within,omitempty"`
	// Listed means that a person must look at each file that review.paths do not name.
	Listed bool `json:"listed,omitempty"`
	// MaxFiles and MaxLines limit the size of a change that is reviewed at all.
	MaxFiles int `json:"max_files"`
	MaxLines int `json:"max_lines"`
}

// TooLarge returns why a change is too large for a review; empty if it is not.
func (s Scope) TooLarge(files []File) string {
	lines := Lines(files)
	switch {
	case len(files) > s.MaxFiles:
		return fmt.Sprintf("the change has %d files, and at most %d are reviewed", len(files), s.MaxFiles)
	case lines > s.MaxLines:
		return fmt.Sprintf("the change has %d lines, and at most %d are reviewed", lines, s.MaxLines)
	default:
		return ""
	}
}

// Lines counts the added and removed lines of a change.
func Lines(files []File) int {
	var lines int
	for _, file := range files {
		lines += file.Added + file.Removed
	}
	return lines
}

// maxNamed limits the files that one reason names.
const maxNamed = 3

// ForPerson lists the reasons why a person must look at the change, one for each kind; empty if there is none. The
// names of files are quoted, because an author chooses them.
func (s Scope) ForPerson(files []File) []string {
	var reasons []string
	add := func(what string, matches func(File) bool, name func(File) string) {
		var named []string
		for _, file := range files {
			if matches(file) {
				named = append(named, name(file))
			}
		}
		if left := len(named) - maxNamed; left > 0 {
			named = append(named[:maxNamed], fmt.Sprintf("and %d more", left))
		}
		if len(named) > 0 {
			reasons = append(reasons, fmt.Sprintf("%s: %s", what, strings.Join(named, ", ")))
		}
	}
	named := func(f File) string { return plaintext.Name(f.Path) }
	add("it changes files outside of "+plaintext.Name(s.Within), func(f File) bool { return !s.holds(f.Path) }, named)
	if s.Listed {
		add("it changes files that the policy's review.paths do not name",
			func(f File) bool { return s.holds(f.Path) && !f.Listed }, named)
	}
	add("the reviewer cannot read all of it as it is", func(f File) bool { return f.Unread != "" },
		func(f File) string { return fmt.Sprintf("%s (%s)", plaintext.Name(f.Path), f.Unread) })
	return reasons
}

// The reasons why a reviewer cannot read a change as it is.
const (
	unreadLink    = "a link or a submodule"
	unreadBinary  = "not text"
	unreadPointer = "a pointer of Git LFS, whose content is elsewhere"
	unreadHidden  = "characters that cannot be seen"
	unreadMasked  = "a secret, which is masked"
	unreadUnknown = "its place in the change is unknown"
)

// lfsPointer is in each file with which Git LFS replaces a large one.
const lfsPointer = "version https://git-lfs.github.com/spec/"

// sectionHeader begins the section of a file in a patch. No line of a patch's content begins like this.
const sectionHeader = "\ndiff --git "

// Shown returns a patch as reviewers see it. The function shown gets the section of each file on its own, so that what
// one file contains does not hide another.
func Shown(patch string, shown func(string) string) string {
	sections := strings.Split("\n"+patch, sectionHeader)
	for i := range sections {
		sections[i] = shown(sections[i])
	}
	return strings.TrimPrefix(strings.Join(sections, sectionHeader), "\n")
}

// MarkUnread notes in files why a reviewer cannot read their change as it is. The patch is in git's format, with the
// files in the same order; the function shown returns a text as reviewers see it.
func MarkUnread(files []File, patch string, shown func(string) string) {
	sections := strings.Split("\n"+patch, sectionHeader)[1:]
	for i := range files {
		file := &files[i]
		switch {
		case len(sections) != len(files):
			file.Unread = unreadUnknown
		case file.Special:
			file.Unread = unreadLink
		case file.Binary:
			file.Unread = unreadBinary
		case strings.Contains(sections[i], lfsPointer):
			file.Unread = unreadPointer
		case Hidden(sections[i]) || Hidden(file.Path):
			file.Unread = unreadHidden
		case shown(sections[i]) != sections[i] || shown(file.Path) != file.Path:
			file.Unread = unreadMasked
		}
	}
}

// holds reports whether the change may touch a path.
func (s Scope) holds(name string) bool {
	return s.Within == "" || s.Within == "." || s.Within == name ||
		strings.HasPrefix(name, strings.TrimSuffix(s.Within, "/")+"/")
}

// Hidden reports whether a text has something that a reader cannot see as it is, such as marks that change the
// direction of text, or characters that end a line for some programs only. The reviewer's prompt does not contain them
// (see plaintext.Block), so only a person can judge what they do.
func Hidden(text string) bool {
	return plaintext.Block(text) != strings.ReplaceAll(text, "\r\n", "\n") ||
		strings.ContainsFunc(text, func(r rune) bool {
			return unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
		})
}

// ChecksFile is the file at the top of a repository that lists the commands with which changes are checked, one for
// each line. It counts as it is in the commit on which a change is based.
const ChecksFile = ".claudeops-checks"
