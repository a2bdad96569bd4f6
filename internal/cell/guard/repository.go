package guard

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// harmlessGit lists keys of git's configuration that run no program and redirect nothing (git-config(1)). The guard
// refuses git in a repository whose configuration has another key, apart from the exceptions in the function harmless.
// Other keys could configure a filter, textconv, fsmonitor or an ssh command.
var harmlessGit = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode",
	"core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf", "core.quotepath", "core.abbrev", "core.sharedrepository",
	"core.longpaths",
	"remote.*.url", "remote.*.fetch", "remote.*.pushurl", "remote.*.prune", "remote.*.tagopt", "remote.*.gh-resolved",
	"branch.*.remote", "branch.*.merge", "branch.*.rebase", "branch.*.description", "branch.*.vscode-merge-base", "branch.*.gh-merge-base",
	"user.name", "user.email", "init.defaultbranch", "pull.rebase", "pull.ff", "push.autosetupremote", "fetch.prune",
	"merge.conflictstyle", "rebase.autostash", "rerere.enabled", "color.*", "advice.*", "gc.*", "submodule.*.url", "submodule.*.active",
	"submodule.active", "extensions.objectformat", "extensions.refstorage", "lfs.repositoryformatversion", "lfs.*.access", "index.version",
	"commit.gpgsign", "tag.gpgsign", "log.date", "diff.renames", "status.showuntrackedfiles",
}

// lfs holds the settings of `git lfs install`. These settings run programs of Git LFS, and no other programs.
var lfs = map[string]string{
	"filter.lfs.clean": "git-lfs clean -- %f", "filter.lfs.smudge": "git-lfs smudge -- %f",
	"filter.lfs.process": "git-lfs filter-process", "filter.lfs.required": "true",
}

var (
	gitSection = regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?:\s+"([^"\\]*)")?\]$`)
	gitKey     = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$`)
	// gitTransport matches URLs that make git run a program, such as ext::COMMAND, or that pass an option to ssh.
	gitTransport = regexp.MustCompile(`(?i)^[a-z0-9+.-]+::|^-|^[a-z+]*://-|:-`)
)

// inRepository accepts commands in a working directory whose git configuration runs no program.
func (j judge) inRepository(dir string) error {
	if err := j.inWork(dir); err != nil {
		return err
	}
	return j.configured(dir)
}

// configured accepts commands in a directory whose git configuration runs no program.
func (j judge) configured(dir string) error {
	if dir == "" {
		return errAtRun
	}
	files, err := j.gitConfigurations(filepath.Clean(dir))
	if err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(j.place.Home, ".gitconfig"), filepath.Join(j.place.Home, ".config/git/config")) {
		content, err := j.files.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return denied("%s cannot be read: %v", file, err)
		}
		if key := HarmfulGit(string(content)); err == nil && key != "" {
			return &DeniedError{Rule: "repository", Reason: file + " sets " + key + ", which may run a program: git is not used there"}
		}
	}
	return nil
}

// gitConfigurations returns the paths of the configuration files that git could read in a directory and in all
// directories above it. The files need not exist. It fails if a .git is a link to a place outside of the working
// directory. It fails if a .git is a file that does not belong to the session's own worktree. It also fails if a
// directory looks like a bare repository.
func (j judge) gitConfigurations(at string) (files []string, err error) {
	for ; ; at = filepath.Dir(at) {
		repository := filepath.Join(at, ".git")
		resolved, err := j.files.Resolve(repository)
		if err != nil || resolved != repository && !isBelow(resolved, j.roots([]string{"."})) {
			return nil, denied("%s leads elsewhere", repository)
		}
		if own, is, err := j.ownWorktree(resolved); is {
			return append(files, own...), err
		}
		// In another worktree, .git is a file that names a directory. The configuration in that directory would have to
		// be checked, too.
		if content, err := j.files.ReadFile(repository); err == nil {
			return nil, denied("%s names another directory (%.40q): work in the repository itself", repository, content)
		}
		if _, err := j.files.ReadFile(filepath.Join(at, "HEAD")); err == nil {
			return nil, denied("%s looks like a repository without a working directory", at)
		}
		files = append(files, filepath.Join(repository, "config"), filepath.Join(repository, "config.worktree"))
		if at == filepath.Dir(at) {
			return files, nil
		}
	}
}

// HarmfulGit returns the first harmful setting of a git configuration; "" if there is none. A setting is harmful if it
// is not known to be harmless, or if its line cannot be read.
func HarmfulGit(content string) string {
	section := ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if head := gitSection.FindStringSubmatch(line); head != nil {
			section = strings.ToLower(head[1])
			if head[2] != "" {
				section += "." + head[2]
			}
			continue
		}
		pair := gitKey.FindStringSubmatch(line)
		if pair == nil || section == "" || strings.HasSuffix(line, `\`) {
			return "a line that cannot be read (" + line + ")"
		}
		key := section + "." + strings.ToLower(pair[1])
		if !harmless(key, pair[2]) {
			return key
		}
	}
	return ""
}

func harmless(key, value string) bool {
	if want, is := lfs[key]; is {
		return value == want
	}
	if strings.HasSuffix(key, "url") && gitTransport.MatchString(value) {
		return false
	}
	if key == "push.default" {
		return slices.Contains([]string{"simple", "current", "nothing"}, value)
	}
	first, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	return slices.ContainsFunc(harmlessGit, func(pattern string) bool {
		if prefix, is := strings.CutSuffix(pattern, ".*"); is {
			return first == prefix
		}
		if start, end, is := strings.Cut(pattern, ".*."); is {
			return first == start && last == end && strings.Count(key, ".") > 1
		}
		return key == pattern
	})
}
