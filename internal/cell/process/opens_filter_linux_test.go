package process

import (
	"encoding/binary"
	"testing"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestWhichOpensAreJudged runs the filter on calls with different flags.
func TestWhichOpensAreJudged(t *testing.T) {
	t.Parallel()
	native, err := arch.GetInfo("")
	require.NoError(t, err)
	encoded, err := fileFilter()
	require.NoError(t, err)
	var raw []bpf.RawInstruction
	for step := range len(encoded) / 8 {
		each := []byte(encoded[8*step : 8*step+8])
		raw = append(raw, bpf.RawInstruction{
			Op: binary.NativeEndian.Uint16(each), Jt: each[2], Jf: each[3], K: binary.NativeEndian.Uint32(each[4:]),
		})
	}
	steps, whole := bpf.Disassemble(raw)
	require.True(t, whole)
	filter, err := bpf.NewVM(steps)
	require.NoError(t, err)
	// judged runs the filter on a call as the kernel describes it. The machine reads numbers with the first byte first.
	judged := func(name string, at int, flags uint64) bool {
		call := make([]byte, 64)
		binary.BigEndian.PutUint32(call, uint32(native.SyscallNames[name])) //nolint:gosec // a number of a call
		binary.BigEndian.PutUint32(call[4:], uint32(native.ID))
		binary.BigEndian.PutUint32(call[16+8*at:], uint32(flags)) //nolint:gosec // the lower half
		binary.BigEndian.PutUint32(call[20+8*at:], uint32(flags>>32))
		action, err := filter.Run(call)
		require.NoError(t, err)
		return seccomp.Action(action) == seccomp.ActionUserNotify //nolint:gosec // 32 bits
	}
	for name, at := range map[string]int{"open": 1, "openat": 2} {
		if _, is := native.SyscallNames[name]; !is {
			continue
		}
		for _, flags := range []uint64{
			unix.O_DIRECTORY, unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK, unix.O_PATH, unix.O_PATH | unix.O_DIRECTORY,
		} {
			require.False(t, judged(name, at, flags), "%s %#x", name, flags)
		}
		for _, flags := range []uint64{
			0, unix.O_RDWR, unix.O_WRONLY, unix.O_CREAT, unix.O_CLOEXEC, unix.O_TMPFILE | unix.O_RDWR, unix.O_TMPFILE, unix.O_DIRECTORY | unix.O_CREAT,
			unix.O_DIRECTORY | unix.O_RDWR, unix.O_DIRECTORY | unix.O_WRONLY, unix.O_DIRECTORY | unix.O_TRUNC, unix.O_DIRECTORY << 32, unix.O_PATH << 32,
		} {
			require.True(t, judged(name, at, flags), "%s %#x", name, flags)
		}
	}
	for _, name := range judgedCalls() {
		if _, is := native.SyscallNames[name]; is {
			require.True(t, judged(name, 5, 0), name)
		}
	}
	require.False(t, judged("read", 0, 0))
}
