package systemtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/door"
)

// standBy is the prompt of the other session, whose guard is attacked.
const standBy = "stand by until the others are done"

// grantedCommand is a command that the guard of the other session has allowed and that has not run.
const grantedCommand = "uptime"

// doorAttacks returns attacks on the guard of another session.
func doorAttacks() []attack {
	return []attack{
		{at: onDoors, name: "ask another session's guard about a call", act: askOther(hookQuestion("docker restart web"))},
		{at: onDoors, name: "use a grant of another session", act: askOther(door.Question{Script: "eval '" + grantedCommand + "'"})},
		{at: onServers, name: "connect to Temporal", act: connectTo("tcp", func(v victim) string { return v.Temporal })},
		{at: onServers, name: "connect to Temporal by another address", act: connectTo("tcp", func(v victim) string {
			_, port, _ := net.SplitHostPort(v.Temporal)
			return "[::ffff:0.0.0.0]:" + port
		})},
		{at: onServers, name: "connect to a terminal of tmux", act: connectTo("unix", func(v victim) string { return v.Tmux })},
		{at: onServers, name: "open a socket of virtual machines", act: func(victim) error {
			_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
			return err
		}},
	}
}

// connectTo returns an attack that connects to a server of the victim.
func connectTo(network string, address func(victim) string) func(victim) error {
	return func(v victim) error {
		conn, err := new(net.Dialer).DialContext(context.Background(), network, address(v))
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// askOther returns an attack that puts a question to the guard of the other session.
func askOther(question door.Question) func(victim) error {
	return func(v victim) error {
		answer, err := (&door.Door{Socket: v.Door}).Ask(question)
		if err == nil && !answer.Allowed && len(answer.Output) == 0 {
			err = errors.New(answer.Reason)
		}
		return err
	}
}

// hookQuestion returns the question of the CLI's hook about a command.
func hookQuestion(command string) door.Question {
	input, _ := json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": command, "tool_input": map[string]string{"command": command},
	})
	return door.Question{Hook: input}
}

// playBystander is the task of the other session. It has a command granted, says where its guard is, and waits for the
// end of the connection.
func playBystander() error {
	brief, err := readBrief()
	if err != nil {
		return err
	}
	socket := os.Getenv(door.SocketVariable)
	if err := askOther(hookQuestion(grantedCommand))(victim{Door: socket}); err != nil {
		return err
	}
	line, err := new(net.Dialer).DialContext(context.Background(), "tcp", brief.Bystander)
	if err != nil {
		return err
	}
	defer func() { _ = line.Close() }()
	if _, err = io.WriteString(line, socket+"\n"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, line)
	return err
}

// awaitBystander waits until the other session runs, and tells the attacker about it. The returned function ends the
// other session, also if it has begun again meanwhile: Temporal repeats a session whose worker cannot report for long,
// as on a busy machine.
func (s *hellStage) awaitBystander(t *testing.T) (leave func()) {
	t.Helper()
	lines, left := make(chan net.Conn), make(chan struct{})
	go func() {
		defer close(lines)
		for {
			line, err := s.arrivals.Accept()
			if err != nil {
				return
			}
			go func() {
				<-left
				_ = line.Close()
			}()
			select {
			case lines <- line:
			case <-left:
			}
		}
	}()
	leave = sync.OnceFunc(func() {
		_ = s.arrivals.Close() // whoever comes later goes at once
		close(left)
	})
	t.Cleanup(leave)
	select {
	case line, open := <-lines:
		require.True(t, open)
		socket, err := bufio.NewReader(line).ReadString('\n')
		require.NoError(t, err)
		s.brief.Victim.Door = strings.TrimSpace(socket)
		s.writeBrief(t)
	case <-time.After(testTimeout):
		require.Fail(t, "the other session does not run", s.worker.said.last())
	}
	return leave
}
