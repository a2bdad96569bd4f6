package treeinit

import "slices"

// Opens says which files the programs of a tree may open, and to which addresses they connect. It adds to the grants of
// the sandbox: both must permit the file. All patterns match the real path of a file: absolute and without symbolic
// links. The function matches describes them.
type Opens struct {
	// Secret lists files that no program reads.
	Secret []string
	// Kept lists files that no program changes. Upper and lower case count as the same, because some file systems
	// ignore the case.
	Kept []string
	// Clear lists directories in which nothing but Keys is secret: those of the system's programs and of the agent
	// itself.
	Clear, Keys []string
	// Programs lists what single programs open nevertheless.
	Programs []ProgramOpens
	// Held lists the absolute paths of the executables of programs that open only what is below the paths in HeldRead
	// and HeldWrite, and devices.
	Held, HeldRead, HeldWrite []string
	// Addresses lists the addresses to which no program connects.
	Addresses []Address
	// Sockets lists sockets to which no program connects, except for OwnSockets and those below directories that the
	// tree can write.
	Sockets, OwnSockets []string
	// Filter holds the filter of the system calls that are judged, in the kernel's form. FileFilter is the same without
	// connections.
	Filter, FileFilter string
}

// ProgramOpens lists files that one program needs although they are secret or kept.
type ProgramOpens struct {
	// Program is the absolute path of an executable, or its file name. A name stands for no file that the tree can
	// write.
	Program string
	// Read and Write are patterns of files.
	Read, Write []string
}

func (o *Opens) encode(e *encoder) {
	e.texts(o.Secret)
	e.texts(o.Kept)
	e.texts(o.Clear)
	e.texts(o.Keys)
	e.number(len(o.Programs))
	for _, program := range o.Programs {
		e.text(program.Program)
		e.texts(program.Read)
		e.texts(program.Write)
	}
	e.texts(o.Held)
	e.texts(o.HeldRead)
	e.texts(o.HeldWrite)
	e.number(len(o.Addresses))
	for i := range o.Addresses {
		o.Addresses[i].encode(e)
	}
	e.texts(o.Sockets)
	e.texts(o.OwnSockets)
	e.text(o.Filter)
	e.text(o.FileFilter)
}

// decodeOpens is the reverse of encode.
func decodeOpens(d *decoder) *Opens {
	o := &Opens{Secret: d.texts(), Kept: d.texts(), Clear: d.texts(), Keys: d.texts()}
	for range d.length() {
		o.Programs = append(o.Programs, ProgramOpens{Program: d.text(), Read: d.texts(), Write: d.texts()})
	}
	o.Held, o.HeldRead, o.HeldWrite = d.texts(), d.texts(), d.texts()
	for range d.length() {
		o.Addresses = append(o.Addresses, decodeAddress(d))
	}
	o.Sockets, o.OwnSockets, o.Filter, o.FileFilter = d.texts(), d.texts(), d.text(), d.text()
	return o
}

// access is what a program wants to do with a file.
type access int

const (
	toRead access = 1 << iota
	toWrite
)

// fileRules are the rules of one tree, prepared for quick answers.
type fileRules struct {
	// granted holds the rights of each granted path: toRead, or both. A right holds for everything below the path.
	granted map[string]access
	clear   []string
	held    map[string]bool
	// heldRead and heldWrite are the paths below which the programs in held read and change files.
	heldRead, heldWrite []string
	secret, kept, keys  patterns
	programs            []program
	addresses           []Address
	sockets             patterns
	ownSockets          []string
}

type program struct {
	name        string
	read, write patterns
}

func newFileRules(s *Sandbox) *fileRules {
	rules := &fileRules{
		granted: map[string]access{}, clear: s.Opens.Clear, addresses: s.Opens.Addresses,
		ownSockets: s.Opens.OwnSockets, held: map[string]bool{},
		heldRead: slices.Concat(s.Opens.HeldRead, devices()), heldWrite: slices.Concat(s.Opens.HeldWrite, devices()),
	}
	for _, program := range s.Opens.Held {
		rules.held[program] = true
	}
	rules.secret, rules.kept, rules.sockets = newPatterns(s.Opens.Secret), newPatterns(nil),
		newPatterns(s.Opens.Sockets)
	rules.keys = newPatterns(s.Opens.Keys)
	for _, pattern := range s.Opens.Kept {
		rules.kept.add(folded(pattern))
	}
	for _, grant := range s.Grants {
		rights := toRead
		if grant.Write {
			rights |= toWrite
		}
		rules.granted[grant.Path] |= rights
	}
	for _, device := range devices() {
		rules.granted[device] |= toRead | toWrite
	}
	for _, each := range s.Opens.Programs {
		rules.programs = append(rules.programs, program{each.Program, newPatterns(each.Read), newPatterns(each.Write)})
	}
	return rules
}

// grants reports whether the sandbox grants the access, as Landlock would: by the path or a directory above it.
func (r *fileRules) grants(path string, wanted access) bool {
	held := r.granted["/"]
	for at := 1; at <= len(path); at++ {
		if at == len(path) || path[at] == '/' {
			held |= r.granted[path[:at]]
		}
	}
	return held&wanted == wanted
}

// refuses returns the reason for which a program may not use the file at a real path; "" if it may. The function
// executable returns the path of the program, and is called only if the answer depends on it.
func (r *fileRules) refuses(path string, wanted access, executable func() string) string {
	if wanted&toWrite != 0 && r.kept.match(folded(path)) && !r.opens(path, toWrite, executable) {
		return "it is changed by people only"
	}
	if wanted&toWrite != 0 && r.isOutside(path, r.heldWrite, executable) {
		return "the program changes no files there"
	}
	if wanted&toRead != 0 && !r.isClear(path) && r.secret.match(path) && !r.opens(path, toRead, executable) {
		return "it may hold secrets"
	}
	if wanted&toRead != 0 && r.isOutside(path, r.heldRead, executable) {
		return "the program reads no files there"
	}
	return ""
}

// isOutside reports whether the program is held to other paths than the real path of the file.
func (r *fileRules) isOutside(path string, paths []string, executable func() string) bool {
	if len(r.held) == 0 || isBelow(path, paths) || isPipe(path) {
		return false
	}
	file := executable()
	return file == "" || r.held[file]
}

// isSystem reports whether a path is one of a file of the system by its spelling, if it has no links: every program of
// the tree may read that file, and none may change its directory.
func (r *fileRules) isSystem(path string) bool {
	return r.isClear(path) && isPlain(path) && r.grants(path, toRead) && !r.grants(path, toWrite)
}

func (r *fileRules) isClear(path string) bool { return isBelow(path, r.clear) && !r.keys.match(path) }

// isBelow reports whether a path is that of one of the directories, or below it.
func isBelow(path string, dirs []string) bool {
	for _, dir := range dirs {
		if hasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/') {
			return true
		}
	}
	return false
}

// opens reports whether the program is one that needs the file.
func (r *fileRules) opens(path string, wanted access, executable func() string) bool {
	file := ""
	for i := range r.programs {
		each := &r.programs[i]
		list := &each.read
		if wanted == toWrite {
			list = &each.write
		}
		if !list.match(path) {
			continue
		}
		if file == "" {
			file = executable()
		}
		if file == each.name || baseOf(file) == each.name && !r.grants(file, toWrite) {
			return true
		}
	}
	return false
}

// patterns are patterns of real paths. Most patterns name a file or a directory wherever it is, so a path is looked up
// by its parts before the rest is matched one by one.
type patterns struct {
	// files and dirs hold the last part of patterns such as **/NAME, and the directory of patterns such as **/NAME/**.
	files, dirs map[string]bool
	// bases are patterns of file names: **/*.key.
	bases []string
	// others are whole patterns, each with the text with which every match begins.
	others []prefixed
}

type prefixed struct{ prefix, pattern string }

func newPatterns(list []string) patterns {
	p := patterns{files: map[string]bool{}, dirs: map[string]bool{}}
	for _, pattern := range list {
		p.add(pattern)
	}
	return p
}

func (p *patterns) add(pattern string) {
	rest := pattern
	if hasPrefix(pattern, "**/") {
		rest = pattern[len("**/"):]
	}
	dir := trimSuffix(rest, "/**")
	anywhere := rest != pattern
	switch {
	case anywhere && dir != rest && isName(dir):
		p.dirs[dir] = true
	case anywhere && isName(rest):
		p.files[rest] = true
	case anywhere && baseOf(rest) == rest:
		p.bases = append(p.bases, rest)
	default:
		p.others = append(p.others, prefixed{trimSuffix(pattern[:literal(pattern)], "/"), pattern})
	}
}

// literal returns the length of the text before the first character with a meaning in patterns.
func literal(pattern string) int {
	for at := range len(pattern) {
		switch pattern[at] {
		case '*', '?', '[', '\\':
			return at
		}
	}
	return len(pattern)
}

// isName reports whether a pattern is a single name.
func isName(pattern string) bool {
	return literal(pattern) == len(pattern) && baseOf(pattern) == pattern
}

// match reports whether a pattern matches the path.
func (p *patterns) match(path string) bool {
	base := baseOf(path)
	if p.files[base] {
		return true
	}
	for _, pattern := range p.bases {
		if matchesName(pattern, base) {
			return true
		}
	}
	if len(p.dirs) > 0 {
		for rest := path; rest != ""; {
			var part string
			part, rest, _ = cutPath(rest)
			if p.dirs[part] {
				return true
			}
		}
	}
	for _, other := range p.others {
		if hasPrefix(path, other.prefix) && matches(other.pattern, path) {
			return true
		}
	}
	return false
}
