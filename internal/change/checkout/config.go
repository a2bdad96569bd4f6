package checkout

import (
	"regexp"
	"slices"
	"strings"
)

// harmlessGit lists keys of git's configuration that run no program and redirect nothing (git-config(1)). The worker
// uses no git in a repository whose configuration has another key, apart from the exceptions in the function harmless.
// Other keys could configure a filter, textconv, fsmonitor or an ssh command.
var harmlessGit = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase",
	"core.precomposeunicode", "core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf", "core.quotepath",
	"core.abbrev", "core.sharedrepository", "core.longpaths",
	"remote.*.url", "remote.*.fetch", "remote.*.pushurl", "remote.*.prune", "remote.*.tagopt", "remote.*.gh-resolved",
	"branch.*.remote", "branch.*.merge", "branch.*.rebase", "branch.*.description", "branch.*.vscode-merge-base",
	"branch.*.gh-merge-base", "user.name", "user.email", "init.defaultbranch", "pull.rebase", "pull.ff",
	"push.autosetupremote", "fetch.prune", "merge.conflictstyle", "rebase.autostash", "rerere.enabled", "color.*",
	"advice.*", "gc.*", "submodule.*.url", "submodule.*.active", "submodule.active", "extensions.objectformat",
	"extensions.refstorage", "lfs.repositoryformatversion", "lfs.*.access", "index.version", "commit.gpgsign",
	"tag.gpgsign", "log.date", "diff.renames", "status.showuntrackedfiles",
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

// harmfulSetting returns the first harmful setting of a git configuration; "" if there is none. A setting is harmful if
// it is not known to be harmless, or if its line cannot be read.
func harmfulSetting(content string) string {
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
