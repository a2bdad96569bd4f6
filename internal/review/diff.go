package review

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
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
	// Checks reports whether a command of the ChecksFile runs the file.
	Checks bool `json:"checks,omitempty"`
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

// Class says why a person must look at a change of a file.
type Class string

// The classes.
const (
	ClassOrdinary Class = ""
	ClassTest     Class = "test"   // a test, or data of tests
	ClassCI       Class = "CI"     // configuration of continuous integration
	ClassPolicy   Class = "policy" // what agents or people may do
	ClassGate     Class = "gate"   // what checks changes
	ClassSpecial  Class = "link"   // a symbolic link, a submodule, or what git makes of files
)

// classOf maps patterns of file names, and of the names of directories, to their classes. A directory's pattern ends in a
// slash, and matches at any depth.
var classOf = []struct {
	class    Class
	patterns []string
}{
	{ClassSpecial, []string{".gitattributes", ".gitmodules", ".gitignore"}},
	{ClassCI, []string{
		".github/", ".gitea/", ".forgejo/", ".circleci/", ".buildkite/", ".woodpecker/", ".gitlab/", ".gitlab-ci*", ".woodpecker*",
		"jenkinsfile*", ".travis.yml", ".drone.y*ml", "azure-pipelines*", "bitbucket-pipelines*", "renovate.json*", ".renovaterc*",
		".semaphore/", ".tekton/", "*appveyor.y*ml", "cloudbuild.y*ml", "buildspec.y*ml", "atlantis.y*ml", ".cirrus.*", "dagger.json",
	}},
	{ClassPolicy, []string{
		".claude/", ".claudeops/", "policy.y*ml", "claudeops.env", "codeowners", "claude.md", "claude.local.md", "agents.md", ".mcp.json",
		"sudoers*", "sudoers.d/",
	}},
	{ClassGate, []string{
		ChecksFile, ".husky/", ".pre-commit-config.y*ml", ".golangci.*", ".*lint*", "*lint.config.*", "eslint.config.*", ".*rc", ".*rc.*",
		".tflint.hcl", ".editorconfig", "makefile", "gnumakefile", "*.mk", "justfile", "taskfile.y*ml", "package.json", "pyproject.toml",
		"tox.ini", "pytest.ini", "mypy.ini", "setup.cfg", ".flake8", "ruff.toml", ".hadolint.y*ml", "jest.config.*", "vitest.config.*",
		"playwright.config.*", "tsconfig*.json", "kube-linter.y*ml", ".trivy*", ".checkov.y*ml", ".gitleaks.toml", "lefthook.y*ml",
		"noxfile.py", "cypress.config.*", "codecept*.js", "phpunit.xml*", "rakefile", "build.gradle*", "pom.xml",
	}},
	{ClassTest, []string{
		"test/", "tests/", "testdata/", "__tests__/", "spec/", "molecule/", "*_test.*", "*.test.*", "*.spec.*", "test_*", "*.bats",
		"conftest.py", "*_spec.*", "e2e/", "cypress/", "__snapshots__/", "tests.py", "test.*", "test-*", "*-test.*",
		"*.feature", "*.snap", "*test.java", "*tests.java", "*test.kt", "*tests.cs", "*.tests/", "*test.php", "*.tftest.hcl",
	}},
}

// Class returns the class of the file.
func (f File) Class() Class {
	if f.Special {
		return ClassSpecial
	}
	parts := strings.Split(strings.ToLower(f.Path), "/")
	name, directories := parts[len(parts)-1], parts[:len(parts)-1]
	for _, one := range classOf {
		for _, pattern := range one.patterns {
			if directory, is := strings.CutSuffix(pattern, "/"); is {
				if slices.ContainsFunc(directories, func(name string) bool { matches, _ := path.Match(directory, name); return matches }) {
					return one.class
				}
			} else if matches, _ := path.Match(pattern, name); matches {
				return one.class
			}
		}
	}
	if f.Checks {
		return ClassGate
	}
	return ClassOrdinary
}

// Scope limits what a change may contain without a person.
type Scope struct {
	// Within is the directory, or the only file, in the repository that the change may touch; empty or "." for the whole
	// repository.
	Within string `json:"within,omitempty"`
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

// ForPerson lists the reasons why a person must look at the change, one for each kind; empty if there is none.
func (s Scope) ForPerson(files []File) []string {
	var reasons []string
	add := func(what string, matches func(File) bool) {
		var named []string
		for _, file := range files {
			if matches(file) {
				named = append(named, plaintext.Name(file.Path))
			}
		}
		if left := len(named) - maxNamed; left > 0 {
			named = append(named[:maxNamed], fmt.Sprintf("and %d more", left))
		}
		if len(named) > 0 {
			reasons = append(reasons, fmt.Sprintf("it changes %s: %s", what, strings.Join(named, ", ")))
		}
	}
	add("files outside of "+plaintext.Name(s.Within), func(f File) bool { return !s.holds(f.Path) })
	for _, one := range []struct {
		class Class
		what  string
	}{
		{ClassTest, "tests"},
		{ClassCI, "continuous integration"},
		{ClassPolicy, "what is permitted"},
		{ClassGate, "how changes are checked"},
		{ClassSpecial, "links, submodules or what git makes of files"},
	} {
		add(one.what, func(f File) bool { return f.Class() == one.class })
	}
	add("files that are not text", func(f File) bool { return f.Binary && !f.Special })
	return reasons
}

// holds reports whether the change may touch a path.
func (s Scope) holds(name string) bool {
	return s.Within == "" || s.Within == "." || s.Within == name || strings.HasPrefix(name, strings.TrimSuffix(s.Within, "/")+"/")
}

// Span is a range of lines of a file, from From to To.
type Span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// ChangedLines reads a patch in git's format. It returns for each file the lines that the patch adds or changes. Lines that
// the patch only removes count as the line before and the line after. All lines of a file that is removed count.
func ChangedLines(patch string) map[string][]Span {
	changed := map[string][]Span{}
	var name, before string
	remaining := 0 // lines of the current hunk; a line of a hunk can look like a header
	for line := range strings.SplitSeq(patch, "\n") {
		if remaining > 0 {
			if !strings.HasPrefix(line, `\`) {
				remaining--
			}
			continue
		}
		if from, is := strings.CutPrefix(line, "--- "); is {
			before = unquote(from, "a/")
			continue
		}
		if after, is := strings.CutPrefix(line, "+++ "); is {
			if name = unquote(after, "b/"); name == "" && before != "" {
				changed[before] = []Span{{0, math.MaxInt32}}
			}
			continue
		}
		if !strings.HasPrefix(line, "@@ ") || name == "" {
			continue
		}
		span, lines, ok := parseHunk(line)
		if !ok {
			continue
		}
		remaining = lines
		changed[name] = append(changed[name], span)
	}
	return changed
}

// unquote returns the path in a line such as "+++ b/path" with the prefix b/; empty for /dev/null. Git quotes unusual paths.
func unquote(field, prefix string) string {
	field = strings.TrimSuffix(field, "\t")
	if strings.HasPrefix(field, `"`) {
		if plain, err := strconv.Unquote(field); err == nil {
			field = plain
		}
	}
	name, is := strings.CutPrefix(field, prefix)
	if !is {
		return ""
	}
	return name
}

// parseHunk reads the header of a hunk without context, such as "@@ -3,2 +3 @@". It returns the changed lines, and the number
// of lines of the hunk that follow in the patch.
func parseHunk(header string) (changed Span, lines int, ok bool) {
	fields := strings.Fields(header)
	const least = 4
	if len(fields) < least {
		return Span{}, 0, false
	}
	_, removed, removedOK := parseRange(fields[1], "-")
	from, count, ok := parseRange(fields[2], "+")
	changed = Span{From: from, To: from + count - 1}
	if count == 0 {
		changed.To = from + 1
	}
	return changed, removed + count, ok && removedOK
}

// parseRange reads a range such as "+3,2". Without a number of lines it has one line.
func parseRange(field, sign string) (from, count int, ok bool) {
	text, is := strings.CutPrefix(field, sign)
	first, number, several := strings.Cut(text, ",")
	from, err := strconv.Atoi(first)
	count = 1
	if several {
		var countErr error
		count, countErr = strconv.Atoi(number)
		err = errors.Join(err, countErr)
	}
	return from, count, is && err == nil
}

// Hidden reports whether a patch has characters that a reader cannot see, such as marks that change the direction of text. The
// reviewer's prompt does not contain them, so only a person can judge what they do.
func Hidden(patch string) bool {
	return strings.ContainsFunc(patch, func(r rune) bool {
		return r != '\n' && r != '\t' && r != '\r' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	})
}
