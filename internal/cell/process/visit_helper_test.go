package process_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

const (
	// visitTo makes the test binary connect to the Unix socket in its value.
	visitTo = "PROCESS_TEST_VISIT_TO"
	// visitUnder makes a visitor first wait until its parent has the process number in its value.
	visitUnder = "PROCESS_TEST_VISIT_UNDER"
	// visitAndLeave makes a visitor end at once. A child of it keeps the connection.
	visitAndLeave = "PROCESS_TEST_VISIT_AND_LEAVE"
)

// visit connects to a socket, prints what the server says, and returns the exit code.
func visit(path string) int {
	for parent := os.Getenv(visitUnder); parent != "" && strconv.Itoa(os.Getppid()) != parent; {
		time.Sleep(time.Millisecond)
	}
	if err := tryVisit(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func tryVisit(path string) error {
	conn, err := new(net.Dialer).DialContext(context.Background(), "unix", path)
	if err != nil {
		return err
	}
	if os.Getenv(visitAndLeave) == "" {
		_, err = io.Copy(os.Stdout, conn)
		return err
	}
	socket, _ := conn.(*net.UnixConn)
	file, err := socket.File()
	if err != nil {
		return err
	}
	heir := exec.CommandContext(context.Background(), "cat")
	heir.Stdin = file
	return heir.Start()
}
