// Package forge opens pull requests with the command-line programs of forges: gh for GitHub, glab for GitLab. Merge
// requests are pull requests here.
//
// It uses the subcommand api of both programs, and not pr and mr: api takes the text from the standard input, answers
// in JSON, and means the same in all their versions. Many versions of "gh pr edit" fail
// (https://github.com/cli/cli/issues/11983), and "glab mr note" has changed its meaning in 1.93.
package forge

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Program is the command-line program of a forge.
type Program string

// The programs.
const (
	GitHub Program = "gh"
	GitLab Program = "glab"
)

// Programs lists the programs in the order in which they are tried.
func Programs() []Program { return []Program{GitHub, GitLab} }

// usualName returns a part of the names of the hosts for which the program usually is.
func (p Program) usualName() string {
	if p == GitLab {
		return "gitlab"
	}
	return "github"
}

// StatusArgs returns the arguments with which the program tells by its exit code whether it has a login at a host.
func (p Program) StatusArgs(host string) []string {
	return []string{"auth", "status", "--hostname", host}
}

// Environment returns variables that keep the programs from asking questions and from looking for updates.
func Environment() map[string]string {
	return map[string]string{
		"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "GLAB_CHECK_UPDATE": "false",
		"GLAB_SEND_TELEMETRY": "false", "NO_PROMPT": "1", "NO_COLOR": "1", "PAGER": "cat", "GH_PAGER": "cat",
		"GLAB_PAGER": "cat",
	}
}

// Project is a repository at a forge.
type Project struct {
	Program Program `json:"program"`
	Host    string  `json:"host"`
	// Path is the path of the repository at the host, such as "owner/name".
	Path string `json:"path"`
	// Base is the branch into which changes are merged; empty for the default branch of the repository.
	Base string `json:"base,omitempty"`
}

// Choose returns the program that opens pull requests at a host, one of usable; empty if there is none. A program that
// the name of the host suggests is preferred. The function knows reports whether a program has a login at the host.
func Choose(host string, usable []Program, knows func(Program) bool) Program {
	for _, program := range usable {
		if strings.Contains(strings.ToLower(host), program.usualName()) {
			return program
		}
	}
	for _, program := range usable {
		if knows(program) {
			return program
		}
	}
	return ""
}

// Locate returns the host and the path of the repository to which a remote pushes. If it pushes to a directory, Locate
// returns those of the repository from which it fetches. If it fetches from another repository, found is false: in
// which of the two a pull request belongs is not known.
func Locate(push, fetch string) (host, path string, found bool) {
	host, path, pushes := parseAddress(push)
	otherHost, otherPath, fetches := parseAddress(fetch)
	switch {
	case !pushes:
		return otherHost, otherPath, fetches && strings.HasPrefix(push, "/")
	case fetches && (withoutPort(host) != withoutPort(otherHost) || !strings.EqualFold(path, otherPath)):
		return "", "", false
	case fetches && host == withoutPort(otherHost):
		host = otherHost // SSH has no port in its address, and HTTP may have one
	}
	return host, path, true
}

func withoutPort(host string) string {
	name, _, _ := strings.Cut(host, ":")
	return name
}

var (
	// scpPattern matches the address of a remote in the form of scp.
	scpPattern = regexp.MustCompile(`^(?:[^@/:]+@)?([^@/:]+):(.+)$`)
	// hostPattern matches the full name of a host. The names of SSH's configuration need not have a dot.
	hostPattern = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?$`)
	partPattern = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)
	// besides maps hosts that only serve SSH to the hosts of their forges.
	besides = map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
)

// parseAddress returns the host and the path of the address of a remote.
func parseAddress(address string) (host, path string, ok bool) {
	if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
		switch parsed.Scheme {
		case "https", "http":
			host = parsed.Host
		case "ssh", "git+ssh", "git":
			host = parsed.Hostname()
		default:
			return "", "", false
		}
		path = parsed.Path
	} else if match := scpPattern.FindStringSubmatch(address); match != nil {
		host, path = match[1], match[2]
	}
	host = strings.ToLower(host)
	if forge, beside := besides[host]; beside {
		host = forge
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	parts := strings.Split(path, "/")
	bad := func(part string) bool { return !partPattern.MatchString(part) || part == "." || part == ".." }
	return host, path, hostPattern.MatchString(host) && len(parts) > 1 && !slices.ContainsFunc(parts, bad)
}
