package treeinit

import "strconv"

// Sandbox describes the Landlock domain that a launcher enters, the filter of system calls that it installs, and the
// rights that it gives up first.
type Sandbox struct {
	// Required makes the launcher refuse the program if the sandbox is not available.
	Required bool
	// Judged makes the launcher refuse the program unless its files and connections are judged by Opens.
	Judged bool
	// Grants lists the files that the program may use, besides the usual devices.
	Grants []Grant
	// Executable lists the only files that the program may execute. A directory stands for all files below it. If
	// Executable is nil, the program may execute all files in Grants.
	Executable []string
	// Capabilities holds the capabilities that the program keeps, one bit each.
	Capabilities uint64
	// Filter holds the filter of system calls, in the kernel's form.
	Filter string
	// Remark names the paths that could not be granted. It is empty if there are none.
	Remark string
	// Signals allows the program to send signals to processes outside of its tree.
	Signals bool
	// Setuid allows programs such as sudo to change the user.
	Setuid bool
	// Opens says which of the granted files are judged when they are opened; nil means none.
	Opens *Opens
}

// Grant allows the use of a path and of everything below it.
type Grant struct {
	// Path is absolute. If a part of it is a symbolic link, nothing is granted.
	Path string
	// Write allows changes, too.
	Write bool
}

// Sandboxed describes the sandbox that a program runs in.
type Sandboxed struct {
	// ABI is the version of Landlock's interface in use; 0 means no sandbox.
	ABI int
	// Remark says why there is no sandbox, or what the sandbox cannot enforce or grant. It is empty if neither applies.
	Remark string
	// Opens reports that files are judged when they are opened, and Connects that connections are.
	Opens, Connects bool
}

func (s *Sandbox) encode(e *encoder) {
	e.flag(s.Required)
	e.flag(s.Judged)
	e.number(len(s.Grants))
	for _, grant := range s.Grants {
		e.text(grant.Path)
		e.flag(grant.Write)
	}
	e.flag(s.Executable != nil)
	e.texts(s.Executable)
	e.text(strconv.FormatUint(s.Capabilities, 10))
	e.text(s.Filter)
	e.text(s.Remark)
	e.flag(s.Signals)
	e.flag(s.Setuid)
	e.flag(s.Opens != nil)
	if s.Opens != nil {
		s.Opens.encode(e)
	}
}

// decodeSandbox is the reverse of encode.
func decodeSandbox(d *decoder) *Sandbox {
	s := &Sandbox{Required: d.flag(), Judged: d.flag()}
	for range d.length() {
		s.Grants = append(s.Grants, Grant{Path: d.text(), Write: d.flag()})
	}
	if limited, paths := d.flag(), d.texts(); limited {
		s.Executable = append([]string{}, paths...)
	}
	s.Capabilities, s.Filter, s.Remark, s.Signals, s.Setuid = d.bits(), d.text(), d.text(), d.flag(), d.flag()
	if d.flag() {
		s.Opens = decodeOpens(d)
	}
	return s
}
