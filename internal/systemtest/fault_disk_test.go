//go:build linux

package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// disk is a file system of a few megabytes. how says how it was mounted.
type disk struct{ dir, how string }

// smallDisk mounts a small file system. This requires root, or sudo without a password. Without these rights, smallDisk
// skips the test, or fails it if CI is "true" in the environment. No other limit produces the error of a full disk.
func smallDisk(t *testing.T) disk {
	t.Helper()
	dir, options := t.TempDir(), fmt.Sprintf("size=4m,mode=0700,uid=%d,gid=%d", os.Getuid(), os.Getgid())
	refused := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	if refused == nil {
		t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
		return disk{dir, "tmpfs"}
	}
	said, err := sudo("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir)
	if err == nil {
		t.Cleanup(func() {
			said, err := sudo("umount", "-l", dir)
			require.NoError(t, err, "%s", said)
		})
		return disk{dir, "tmpfs by sudo"}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("cannot mount a small disk: %v; nor with sudo: %v: %s; run the tests as root", refused, err, said)
	}
	t.Skipf("NOT TESTED: a full disk. Cannot mount a small one: %v; nor with sudo: %v: %s; run the tests as root", refused, err, said)
	return disk{}
}

// sudo runs a program as root. It never asks for a password.
func sudo(arguments ...string) (said []byte, err error) {
	return exec.CommandContext(context.Background(), "sudo", append([]string{"-n"}, arguments...)...).CombinedOutput()
}

// fill writes a file that leaves no room on the disk.
func (d disk) fill(t *testing.T) {
	t.Helper()
	filler, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { require.NoError(t, filler.Close()) }()
	for size := 64 << 10; size > 0; {
		_, err := filler.Write(make([]byte, size))
		if errors.Is(err, syscall.ENOSPC) {
			size /= 2
			continue
		}
		require.NoError(t, err)
	}
}

// makeRoom removes the file that fill has written.
func (d disk) makeRoom(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Remove(d.filler()))
}

func (d disk) filler() string { return filepath.Join(d.dir, "filler") }

// climbing returns a scenario of two tiers. The first tier creates the file atIt in a tool call, and then waits until
// the file goOn exists.
func climbing(atIt, goOn string) claudesim.Scenario {
	return claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"},
			claudesim.Bash("touch "+atIt+"; while ! [ -e "+goOn+" ]; do sleep 0.05; done; echo seen by tier 1"), claudesim.Conclude(asksFor(2))),
		concluding("sonnet", resolved()))
}

// TestFaultDiskFullForTheArchive fills the disk of the archive while Tier 1 runs. The chain must continue without the
// archive and log that. Once there is room, the next chain must use the archive again.
func TestFaultDiskFullForTheArchive(t *testing.T) {
	t.Parallel()
	d, dir := smallDisk(t), t.TempDir()
	atIt, goOn := filepath.Join(dir, "at-it"), filepath.Join(dir, "go-on")
	claude := simtest.Install(t, climbing(atIt, goOn))
	archive := filepath.Join(d.dir, "archive")
	s, book := startWorkingSite(t, startTemporal(t), newHost(t, claude, "file://"+archive).environ(t))
	run := s.start(nil)
	require.Eventually(t, exists(atIt), testTimeout, 20*time.Millisecond)
	d.fill(t)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Equal(t, []int{1, 1}, []int{chain.Sessions[0].Attempts, chain.Sessions[1].Attempts}, "no tier was repeated for it")
	requests := simtest.Requests(t, claude)
	require.Contains(t, requests[len(requests)-1].ToolResults(), "seen by tier 1", "the conversation itself goes on")
	requireRecorded(t, s, chain)
	warnings := book.count("the conversation could not be archived")
	require.GreaterOrEqual(t, warnings, 2, "each tier's")
	require.GreaterOrEqual(t, book.count("no space left on device"), 2, "and why")
	lost := len(objects(archive))

	d.makeRoom(t)
	_, err = s.finish(s.startAs("with-room", nil))
	require.NoError(t, err)
	require.Len(t, objects(archive), lost+2, "there is an archive again")
	t.Logf("faults: disk full (%s) for the archive: chain %s in 2 attempts, %d conversations archived, %d warnings; with room again 2 of 2",
		d.how, chain.Outcome, lost, warnings)
}

// TestFaultDiskFullForTheCLI fills the disk of the state directory, which holds the sessions' directories and output,
// and not the records. The tier cannot continue there, and another process would fail, too. The chain must end at once
// with an error that says what to do.
func TestFaultDiskFullForTheCLI(t *testing.T) {
	t.Parallel()
	d, dir := smallDisk(t), t.TempDir()
	atIt, goOn := filepath.Join(dir, "at-it"), filepath.Join(dir, "go-on")
	claude := simtest.Install(t, climbing(atIt, goOn))
	own := filepath.Join(d.dir, "state")
	environ := environment(t, claude, append(toolsAllowed(), "CLAUDEOPS_STATE_DIR="+own,
		"CLAUDEOPS_DATABASE_URL=sqlite://"+filepath.Join(dir, "records.db"), "CLAUDEOPS_TRANSCRIPTS=file://"+filepath.Join(dir, "archive"))...)
	s, _ := startWorkingSite(t, startTemporal(t), environ)
	run := s.start(nil)
	require.Eventually(t, exists(atIt), testTimeout, 20*time.Millisecond)
	d.fill(t)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Empty(t, processesOf(t, chain.Sessions[0].SessionID), "left behind")
	require.Equal(t, escalation.OutcomeFailed, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 1)
	require.Equal(t, escalation.SessionFailed, chain.Sessions[0].Status)
	require.Contains(t, chain.Sessions[0].Error, "the disk of "+own+" is full; make room there")
	require.Equal(t, 1, chain.Sessions[0].Attempts, "nothing was done twice")
	requireRecorded(t, s, chain)

	d.makeRoom(t)
	again, err := s.finish(s.startAs("with-room-again", nil))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, again.Outcome, again.Reason)
	t.Logf("faults: disk full (%s) for the CLI: chain %s after 1 attempt, told to make room; with room again %s", d.how, chain.Outcome, again.Outcome)
}

// TestFaultDiskFullForTheRecords fills the disk of the database while Tier 1 runs. Recording the end of Tier 1 must
// wait until there is room.
func TestFaultDiskFullForTheRecords(t *testing.T) {
	t.Parallel()
	d, dir := smallDisk(t), t.TempDir()
	atIt, goOn := filepath.Join(dir, "at-it"), filepath.Join(dir, "go-on")
	claude := simtest.Install(t, climbing(atIt, goOn))
	environ := environment(t, claude, append(toolsAllowed(), "CLAUDEOPS_DATABASE_URL=sqlite://"+filepath.Join(d.dir, "records.db"))...)
	s, _ := startWorkingSite(t, startTemporal(t), environ)
	run := s.start(nil)
	require.Eventually(t, exists(atIt), testTimeout, 20*time.Millisecond)
	// Truncate the write-ahead log, because the database could write to the existing space in the log.
	_, err := openDatabase(t, s).ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	d.fill(t)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	requireWaiting(t, s, run, "OpenSession") // this activity also closes the record of Tier 1
	said := lastFailure(t, s, run)
	require.Contains(t, said, "full")
	full := time.Now()
	d.makeRoom(t)
	waited := time.Since(full)

	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Len(t, simtest.Launches(t, claude), 2, "each tier ran once")
	requireRecorded(t, s, chain)
	t.Logf("faults: disk full (%s) for the records: waited %.1f s (%s), chain %s, 2 tiers in 2 processes",
		d.how, waited.Seconds(), said, chain.Outcome)
}

// lastFailure returns the last failure of a run's pending activity.
func lastFailure(t *testing.T, s *site, run client.WorkflowRun) string {
	t.Helper()
	described, err := s.client.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	require.Len(t, described.GetPendingActivities(), 1)
	return described.GetPendingActivities()[0].GetLastFailure().GetMessage()
}
