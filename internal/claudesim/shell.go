package claudesim

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// prefixVariable names a program that the CLI runs in place of every shell, with the script as its one argument.
const prefixVariable = "CLAUDE_CODE_SHELL_PREFIX"

// shellCommand is a command of the Bash tool.
type shellCommand struct {
	*exec.Cmd
	output bytes.Buffer
	// leftIn is a file to which the shell writes the directory that it ends in; "" if nobody asks for it.
	leftIn string
}

// shell prepares a command of the Bash tool.
func (s *session) shell(line string) *shellCommand {
	c := &shellCommand{}
	if s.env[prefixVariable] != "" {
		temp := orElse(s.env["TMPDIR"], "/tmp")
		c.leftIn = filepath.Join(temp, "claude-"+strings.ToLower(rand.Text()[:8])+"-cwd")
		line = s.prefixed(s.script(line, c.leftIn))
	}
	c.Cmd = s.child(s.bashPath(), line)
	c.Stdout, c.Stderr = &c.output, &c.output
	return c
}

// bashPath returns the shell of the Bash tool.
func (s *session) bashPath() string {
	if shell := s.env["SHELL"]; filepath.Base(shell) == "bash" {
		return shell
	}
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// child prepares a shell with the environment that the CLI gives its children. It leads a session of its own, so that
// the CLI's death leaves it running. A signal to the stand-in kills all of it, or none: the caller decides.
func (s *session) child(shell, line string) *exec.Cmd {
	command := exec.CommandContext(context.Background(), shell, "-c", line)
	command.Dir = s.shellDir
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Env = []string{"CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=" + s.id}
	for name, value := range s.env {
		if name != "CLAUDE_CODE_SESSION_ID" && name != "CLAUDECODE" {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	return command
}

// prefixed returns the shell command that runs a script through the prefix, if there is one.
func (s *session) prefixed(script string) string {
	prefix := s.env[prefixVariable]
	if prefix == "" {
		return script
	}
	return quoted(prefix) + " " + quoted(script)
}

// script returns what the CLI makes of the model's command: its settings of the shell, the command, and the directory
// for the next call.
func (s *session) script(line, leftIn string) string {
	parts := []string{
		"source " + quoted(s.configDir()+"/shell-snapshots/snapshot-bash.sh") + " 2>/dev/null || true",
		s.release.shellOptions + " >/dev/null 2>&1 || true",
		"eval " + quoted(line),
		"pwd -P >| " + quoted(leftIn),
	}
	if !strings.Contains(line, "<") { // a command that redirects its input keeps it
		parts[2] += " < /dev/null"
	}
	return strings.Join(parts, " && ")
}

// plainWord is what needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[\w./-]+$`)

// quoted returns text as one word of a shell.
func quoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}

// follow goes on in the directory that the command ended in, and returns what to tell the model if that is not allowed.
func (s *session) follow(c *shellCommand) string {
	if c.leftIn == "" {
		return ""
	}
	dir, err := os.ReadFile(c.leftIn)
	if err != nil {
		return "" // it failed before that
	}
	_ = os.Remove(c.leftIn)
	left := strings.TrimSuffix(string(dir), "\n")
	if below, err := filepath.Rel(s.dir, left); err != nil || !filepath.IsLocal(below) {
		s.shellDir = s.dir
		return "\nShell cwd was reset to " + s.dir
	}
	s.shellDir = left
	return ""
}
