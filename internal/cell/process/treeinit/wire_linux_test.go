package treeinit

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// TestJobRoundTrip checks that an init reads the job that was written.
func TestJobRoundTrip(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]Job{
		"nothing": {},
		"plain":   {Path: "/bin/sh", Args: []string{"/bin/sh", "-c", "echo 1:2,\n"}, Env: []string{"A=\xff\x00", "B="}, Dir: "/tmp"},
		"all": {
			Path: "/bin/true", Args: []string{""},
			Sandbox: &Sandbox{
				Required: true, Judged: true, Grants: []Grant{{Path: "/a"}, {Path: "/b", Write: true}}, Executable: []string{"/a/x"}, Remark: "3:abc", Signals: true, Setuid: true,
				Opens: &Opens{
					Secret: []string{"**/.env"}, Kept: []string{"/a/**"}, Clear: []string{"/usr"}, Keys: []string{"/etc/**/*.key"}, Filter: "12345678",
					Held: []string{"/usr/bin/sed"}, HeldRead: []string{"/a"}, HeldWrite: []string{"/tmp", "/b"},
					Programs: []ProgramOpens{{Program: "git", Read: []string{"/r"}, Write: []string{"/w"}}},
				},
			},
			User: &User{UID: 1000, GID: 1001, Groups: []int{4, 27}},
		},
		"nothing is executable":  {Sandbox: &Sandbox{Executable: []string{}}},
		"empty sandbox and user": {Sandbox: &Sandbox{}, User: &User{}},
	} {
		got, err := decodeJob(string(j.Encode()))
		require.NoError(t, err, name)
		require.Equal(t, j, got, name)
	}
}

// TestJobDamaged checks that a job that was cut or changed is refused.
func TestJobDamaged(t *testing.T) {
	t.Parallel()
	j := Job{Path: "/bin/true", Args: []string{"a", "b"}, Sandbox: &Sandbox{Grants: []Grant{{Path: "/a"}}}, User: &User{Groups: []int{1}}}
	whole := string(j.Encode())
	for end := range whole {
		_, err := decodeJob(whole[:end])
		require.Error(t, err, end)
	}
	for _, damaged := range []string{":", "x:", "-1:", "99999999999999999999:", "0:2:-1", "0:7:1000000", "0:1:00:1:00:3:yes"} {
		_, err := decodeJob(damaged)
		require.Error(t, err, damaged)
	}
}

// TestAnswers checks that answers arrive complete, in order, and however the stream is cut.
func TestAnswers(t *testing.T) {
	t.Parallel()
	sent := []Answer{
		{Kind: AnswerLaunched, Sandbox: Sandboxed{ABI: 6, Remark: "a remark"}},
		{Kind: AnswerRefused, Errno: syscall.ENOENT, Reason: "a reason"},
		{Kind: AnswerEnded, Status: 0xff00, Survivors: 3},
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	for _, answer := range sent {
		require.NoError(t, answer.send(file))
	}
	stream, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.NoError(t, file.Close())
	for name, reader := range map[string]io.Reader{
		"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
	} {
		answers := NewAnswers(reader)
		for _, want := range sent {
			got, err := answers.Next()
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
		}
		_, err := answers.Next()
		require.ErrorIs(t, err, io.EOF, name)
	}
	_, err = NewAnswers(bytes.NewReader([]byte("x"))).Next()
	require.ErrorIs(t, err, errMalformed)
}
