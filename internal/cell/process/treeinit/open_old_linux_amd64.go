package treeinit

import "syscall"

// System call numbers that differ between architectures and are missing in package syscall.
const (
	sysSeccomp    = 317
	sysRenameat2  = 316
	sysReadMemory = 310 // process_vm_readv
)

// judgeOld carries out the calls that newer architectures no longer have.
func (c *call) judgeOld() error {
	const lower = 1<<32 - 1
	args := c.asked.arguments
	switch c.asked.number {
	case syscall.SYS_OPEN:
		return c.open(atFDCWD, args[0], openHow{flags: args[1] & lower, mode: args[2] & lower})
	case syscall.SYS_CREAT:
		flags := uint64(syscall.O_CREAT | syscall.O_WRONLY | syscall.O_TRUNC)
		return c.open(atFDCWD, args[0], openHow{flags: flags, mode: args[1] & lower})
	case syscall.SYS_RENAME:
		return c.rename(atFDCWD, args[0], atFDCWD, args[1], 0)
	case syscall.SYS_LINK:
		return c.link(atFDCWD, args[0], atFDCWD, args[1], 0)
	case syscall.SYS_SYMLINK:
		return c.symlink(args[0], atFDCWD, args[1])
	case syscall.SYS_UNLINK:
		return c.unlink(atFDCWD, args[0], 0)
	case syscall.SYS_RMDIR:
		const removeDir = 0x200
		return c.unlink(atFDCWD, args[0], removeDir)
	case syscall.SYS_MKDIR:
		return c.create(atFDCWD, args[0], args[1]&lower&^syscall.S_IFMT|syscall.S_IFDIR)
	case syscall.SYS_MKNOD:
		return c.createNode(atFDCWD, args[0], args[1]&lower)
	}
	return syscall.ENOSYS
}
