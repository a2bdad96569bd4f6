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

// prefixVariable is an environment variable that names a program. The CLI runs this program instead of each shell, with
// the script as the program's only argument.
const prefixVariable = "CLAUDE_CODE_SHELL_PREFIX"

// shellCommand is a command of the Bash tool.
type shellCommand struct {
	*exec.Cmd
	output bytes.Buffer
	// cwdFile is the file to which the shell writes its last working directory; "" if the directory is not needed.
	cwdFile string
}

// shell prepares a command of the Bash tool.
func (s *session) shell(line string) *shellCommand {
	c := &shellCommand{}
	if s.env[prefixVariable] != "" {
		temp := orElse(s.env["TMPDIR"], "/tmp")
		c.cwdFile = filepath.Join(temp, "claude-"+strings.ToLower(rand.Text()[:8])+"-cwd")
		line = s.prefixed(s.script(line, c.cwdFile))
	}
	c.Cmd = s.child(s.bashPath(), "-c", line)
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

// lookPath returns the path of a program that is on the PATH of the CLI. If there is none, it returns the name.
func (s *session) lookPath(name string) string {
	for _, dir := range filepath.SplitList(s.env["PATH"]) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && !strings.ContainsRune(name, '/') {
			return path
		}
	}
	return name
}

// child prepares a program with the environment of the CLI's child processes. The program gets a process session of its
// own, so that it survives the CLI. If the stand-in receives a signal, the caller decides whether to kill that session.
func (s *session) child(program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(context.Background(), program, args...)
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

// prefixed returns a shell command that runs the script. If prefixVariable names a program, the command runs that
// program with the script as its argument.
func (s *session) prefixed(script string) string {
	prefix := s.env[prefixVariable]
	if prefix == "" {
		return script
	}
	return quoted(prefix) + " " + quoted(script)
}

// script returns the script that the CLI builds around the model's command. The script sets options of the shell, runs
// the command, and saves the working directory for the next call.
func (s *session) script(line, cwdFile string) string {
	parts := []string{
		"source " + quoted(s.configDir()+"/shell-snapshots/snapshot-bash.sh") + " 2>/dev/null || true",
		s.release.shellOptions + " >/dev/null 2>&1 || true",
		"eval " + quoted(line),
		"pwd -P >| " + quoted(cwdFile),
	}
	if !strings.Contains(line, "<") { // a command with its own input redirection keeps it
		parts[2] += " < /dev/null"
	}
	return strings.Join(parts, " && ")
}

// plainWord matches words that need no quotes in a shell.
var plainWord = regexp.MustCompile(`^[\w./-]+$`)

// quoted returns text quoted as one word for a shell.
func quoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}

// changeDir makes the directory in which c ended the directory of the next command. If c ended outside of the session's
// working directory, changeDir resets the directory of the next command and returns a message for the model.
func (s *session) changeDir(c *shellCommand) string {
	if c.cwdFile == "" {
		return ""
	}
	dir, err := os.ReadFile(c.cwdFile)
	if err != nil {
		return "" // the command failed before writing it
	}
	_ = os.Remove(c.cwdFile)
	left := strings.TrimSuffix(string(dir), "\n")
	if below, err := filepath.Rel(s.dir, left); err != nil || !filepath.IsLocal(below) {
		s.shellDir = s.dir
		return "\nShell cwd was reset to " + s.dir
	}
	s.shellDir = left
	return ""
}
