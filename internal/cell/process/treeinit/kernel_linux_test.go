package treeinit

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestConstants compares the constants with those of golang.org/x/sys/unix.
func TestConstants(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]uint64{
		"SYS_CLOSE_RANGE":             {sysCloseRange, unix.SYS_CLOSE_RANGE},
		"SYS_OPENAT2":                 {sysOpenat2, unix.SYS_OPENAT2},
		"SYS_LANDLOCK_CREATE_RULESET": {sysLandlockCreateRuleset, unix.SYS_LANDLOCK_CREATE_RULESET},
		"SYS_LANDLOCK_ADD_RULE":       {sysLandlockAddRule, unix.SYS_LANDLOCK_ADD_RULE},
		"SYS_LANDLOCK_RESTRICT_SELF":  {sysLandlockRestrictSelf, unix.SYS_LANDLOCK_RESTRICT_SELF},

		"SYS_SECCOMP":          {sysSeccomp, unix.SYS_SECCOMP},
		"SYS_RENAMEAT2":        {sysRenameat2, unix.SYS_RENAMEAT2},
		"SYS_PROCESS_VM_READV": {sysReadMemory, unix.SYS_PROCESS_VM_READV},

		"NOTIF_RECV":         {notifReceive, unix.SECCOMP_IOCTL_NOTIF_RECV},
		"NOTIF_SEND":         {notifSend, unix.SECCOMP_IOCTL_NOTIF_SEND},
		"NOTIF_ID_VALID":     {notifIDValid, unix.SECCOMP_IOCTL_NOTIF_ID_VALID},
		"NOTIF_ADDFD":        {notifAddFD, unix.SECCOMP_IOCTL_NOTIF_ADDFD},
		"NOTIF_SET_FLAGS":    {notifSetFlags, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS},
		"FD_SYNC_WAKE_UP":    {syncWakeUp, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP},
		"SET_MODE_FILTER":    {seccompSetModeFilter, unix.SECCOMP_SET_MODE_FILTER},
		"NEW_LISTENER":       {seccompFlagNewListener, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER},
		"WAIT_KILLABLE_RECV": {seccompFlagWaitKillable, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV},
		"O_TMPFILE":          {tmpFile | unix.O_DIRECTORY, unix.O_TMPFILE},

		"AT_EMPTY_PATH":         {atEmptyPath, unix.AT_EMPTY_PATH},
		"AT_SYMLINK_FOLLOW":     {atSymlinkFollow, unix.AT_SYMLINK_FOLLOW},
		"RESOLVE_NO_MAGICLINKS": {resolveNoMagicLinks, unix.RESOLVE_NO_MAGICLINKS},

		"-AT_FDCWD":                  {-atFDCWD, -unix.AT_FDCWD},
		"O_PATH":                     {oPath, unix.O_PATH},
		"RESOLVE_NO_SYMLINKS":        {resolveNoSymlinks, unix.RESOLVE_NO_SYMLINKS},
		"CLOSE_RANGE_CLOEXEC":        {closeRangeCloexec, unix.CLOSE_RANGE_CLOEXEC},
		"SECCOMP_MODE_FILTER":        {seccompModeFilter, unix.SECCOMP_MODE_FILTER},
		"PR_SET_CHILD_SUBREAPER":     {prSetChildSubreaper, unix.PR_SET_CHILD_SUBREAPER},
		"PR_SET_NO_NEW_PRIVS":        {prSetNoNewPrivs, unix.PR_SET_NO_NEW_PRIVS},
		"PR_CAP_AMBIENT":             {prCapAmbient, unix.PR_CAP_AMBIENT},
		"PR_CAP_AMBIENT_CLEAR_ALL":   {prCapAmbientClearAll, unix.PR_CAP_AMBIENT_CLEAR_ALL},
		"LINUX_CAPABILITY_VERSION_3": {linuxCapabilityVersion3, unix.LINUX_CAPABILITY_VERSION_3},

		"CAP_SETPCAP":   {capSetpcap, unix.CAP_SETPCAP},
		"CAP_SYS_ADMIN": {capSysAdmin, unix.CAP_SYS_ADMIN},

		"CREATE_RULESET_VERSION":     {landlockCreateRulesetVersion, unix.LANDLOCK_CREATE_RULESET_VERSION},
		"RULE_PATH_BENEATH":          {landlockRulePathBeneath, unix.LANDLOCK_RULE_PATH_BENEATH},
		"SCOPE_ABSTRACT_UNIX_SOCKET": {landlockScopeAbstractSocket, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		"SCOPE_SIGNAL":               {landlockScopeSignal, unix.LANDLOCK_SCOPE_SIGNAL},

		"ACCESS_FS_EXECUTE":     {accessExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE},
		"ACCESS_FS_WRITE_FILE":  {accessWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		"ACCESS_FS_READ_FILE":   {accessReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE},
		"ACCESS_FS_READ_DIR":    {accessReadDir, unix.LANDLOCK_ACCESS_FS_READ_DIR},
		"ACCESS_FS_REMOVE_DIR":  {accessRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR},
		"ACCESS_FS_REMOVE_FILE": {accessRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
		"ACCESS_FS_MAKE_CHAR":   {accessMakeChar, unix.LANDLOCK_ACCESS_FS_MAKE_CHAR},
		"ACCESS_FS_MAKE_DIR":    {accessMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR},
		"ACCESS_FS_MAKE_REG":    {accessMakeReg, unix.LANDLOCK_ACCESS_FS_MAKE_REG},
		"ACCESS_FS_MAKE_SOCK":   {accessMakeSock, unix.LANDLOCK_ACCESS_FS_MAKE_SOCK},
		"ACCESS_FS_MAKE_FIFO":   {accessMakeFifo, unix.LANDLOCK_ACCESS_FS_MAKE_FIFO},
		"ACCESS_FS_MAKE_BLOCK":  {accessMakeBlock, unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK},
		"ACCESS_FS_MAKE_SYM":    {accessMakeSym, unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
		"ACCESS_FS_REFER":       {accessRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		"ACCESS_FS_TRUNCATE":    {accessTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		"ACCESS_FS_IOCTL_DEV":   {accessIoctlDev, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		require.Equal(t, pair[1], pair[0], name)
	}
}

// TestStructs compares the structs that the kernel reads with those of golang.org/x/sys/unix.
func TestStructs(t *testing.T) {
	t.Parallel()
	require.Equal(t, unsafe.Sizeof(unix.OpenHow{}), unsafe.Sizeof(openHow{}))
	require.Equal(t, unsafe.Offsetof(unix.OpenHow{}.Resolve), unsafe.Offsetof(openHow{}.resolve))
	require.Equal(t, unsafe.Offsetof(unix.LandlockRulesetAttr{}.Scoped), unsafe.Offsetof(rulesetAttributes{}.scoped))
	require.Equal(t, unsafe.Offsetof(unix.LandlockPathBeneathAttr{}.Parent_fd), unsafe.Offsetof(pathBeneath{}.parent))
	require.Equal(t, unsafe.Sizeof(unix.CapUserHeader{}), unsafe.Sizeof(capabilityHeader{}))
	require.Equal(t, unsafe.Sizeof(unix.CapUserData{}), unsafe.Sizeof(capabilityData{}))
}

// TestRemark checks that the remark joins the restrictions that the kernel cannot enforce and the paths that could not
// be granted.
func TestRemark(t *testing.T) {
	t.Parallel()
	require.Empty(t, (&Sandbox{}).remark(6))
	require.Equal(t, "not granted", (&Sandbox{Remark: "not granted"}).remark(6))
	require.Equal(t, "this kernel cannot withhold signals", (&Sandbox{}).remark(5))
	require.Equal(t, "this kernel cannot withhold signals; not granted", (&Sandbox{Remark: "not granted"}).remark(5))
}
