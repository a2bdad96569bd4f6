package guard

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// committed returns the words for a git command that shows the text of files; nil for other commands. The kernel judges
// files, and not what a repository has stored of them. So git leaves out secret files by their paths, and takes
// revisions for commits only: by the hash of a file or a directory it would show them without a path.
func (j judge) committed(name string, command Command, got given, args []typed) ([]string, error) {
	if !shows(name, got) || j.limits().Anything || j.remote {
		return nil, nil
	}
	if got.flags["--follow"] {
		return nil, denied("leave out --follow, or the patch and the search: a file that was renamed can have been a " +
			"secret one")
	}
	moved := map[int]bool{len(command.Words) - got.dashes: got.dashes > 0}
	var words, revisions, paths []string
	for i, arg := range args {
		moved[len(command.Words)-got.at[i]] = true
		before := got.dashes == 0 || got.at[i] > got.dashes
		switch {
		case arg.kind == "TEXT" && name == "git grep":
			revisions = append(revisions, "-e", arg.word)
		case before && arg.kind == "REV" && len(paths) == 0 && (got.dashes > 0 || !j.isFile(arg.word, command.Dir)):
			revision, err := asCommit(name, arg.word)
			if err != nil {
				return nil, err
			}
			revisions = append(revisions, revision)
		default:
			paths = append(paths, arg.word)
		}
	}
	for at, word := range command.Words {
		if !moved[at] {
			words = append(words, word)
		}
	}
	return slices.Concat(words, revisions, []string{"--"}, paths, j.secretPaths(command.Dir)), nil
}

// shows reports whether a command of git shows the text of files, or searches it.
func shows(name string, got given) bool {
	switch name {
	case "git show", "git diff", "git grep":
		return true
	case "git log":
		return slices.ContainsFunc([]string{"-p", "--patch", "-S", "-G"},
			func(flag string) bool { return got.flags[flag] })
	}
	return false
}

func (j judge) isFile(word, dir string) bool {
	path, err := at(word, dir)
	return err == nil && j.files.Exists(path)
}

// asCommit returns a revision that stands for the same commits, or for a file of the same commit, and for nothing else
// (gitrevisions(7)).
func asCommit(name, word string) (string, error) {
	revision, path, isFile := strings.Cut(word, ":")
	switch {
	case isFile && name == "git diff": // of directories it would show all files
		return "", denied("%s: put the path behind the revisions, as in git diff HEAD~1 HEAD -- PATH", word)
	case strings.Contains(path, ":"):
		return "", denied("%s: write one colon, between the revision and the file", word)
	case isFile:
		return revision + "^{commit}:" + path, nil
	case parents.MatchString(word):
		return word, nil
	}
	for _, dots := range []string{"...", ".."} {
		first, last, isRange := strings.Cut(word, dots)
		if !isRange {
			continue
		}
		if first != "" {
			first += "^{commit}"
		}
		if last != "" {
			last += "^{commit}"
		}
		return first + dots + last, nil
	}
	return word + "^{commit}", nil
}

// parents matches revisions that only a commit has: all its parents, and itself without them.
var parents = regexp.MustCompile(`\^(!|@|-\d*)$`)

// secretPaths returns pathspecs that leave out the secret files of a repository.
func (j judge) secretPaths(dir string) (pathspecs []string) {
	top := filepath.Clean(dir)
	for top != "/" && !j.files.Exists(filepath.Join(top, ".git")) {
		top = filepath.Dir(top)
	}
	for _, pattern := range slices.Concat(j.policy.Private, j.policy.Secrets) {
		for _, one := range withoutBraces(pattern) {
			if below, is := strings.CutPrefix(one, strings.TrimSuffix(top, "/")+"/"); is {
				one = below
			}
			if !strings.HasPrefix(one, "/") {
				pathspecs = append(pathspecs, ":(top,exclude,glob,icase)"+one)
			}
		}
	}
	return unique(pathspecs)
}

// withoutBraces returns a pattern for each alternative in braces.
func withoutBraces(pattern string) (without []string) {
	word := &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: pattern}}}
	syntax.SplitBraces(word)
	for each, err := range expand.BracesSeq(nil, word) {
		if err != nil { // too many alternatives
			return []string{"**"}
		}
		without = append(without, each.Lit())
	}
	return without
}
