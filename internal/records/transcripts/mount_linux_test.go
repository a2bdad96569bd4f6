package transcripts

import "golang.org/x/sys/unix"

// mountSmall mounts a file system of 256 kB at dir.
func mountSmall(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0700") }

func unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }
