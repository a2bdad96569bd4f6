package process

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// DeletedBytes returns the space of files without a name that marked processes have open. Such files take space until
// the last process closes them, and no directory shows them.
func DeletedBytes(mark string) (total int64) {
	const blockSize = 512
	seen := map[[2]uint64]bool{}
	for _, entry := range marked(mark) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", entry.PID)) // empty for a process that has ended
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			stat, is := info.Sys().(*syscall.Stat_t)
			if !is || stat.Nlink > 0 || seen[[2]uint64{stat.Dev, stat.Ino}] {
				continue
			}
			seen[[2]uint64{stat.Dev, stat.Ino}] = true
			total += stat.Blocks * blockSize
		}
	}
	return total
}
