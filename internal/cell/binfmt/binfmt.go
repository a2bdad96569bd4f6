// Package binfmt finds the files that are executed together with a program: the interpreter of a script, and the loader
// of a dynamically linked program.
package binfmt

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// headSize is the number of bytes that are read of a program. The kernel reads 256 bytes of a script. The table of
// program headers and the path of the loader are in the first bytes of usual ELF files.
const headSize = 4096

// maxDepth limits how many interpreters are scripts themselves. The kernel has the same limit.
const maxDepth = 5

// Programs finds interpreters. It looks at each path once. The zero value is ready to use.
type Programs struct {
	// Search lists the directories in which /usr/bin/env finds an interpreter.
	Search []string

	// found maps each path to the result of With.
	found map[string][]string
}

// With returns path without symbolic links, and after it the files that are executed together with it: for a script the
// interpreter, for a dynamically linked program the loader. It returns nil if path is no file that someone may execute.
func (p *Programs) With(path string) []string { return p.with(path, 0) }

func (p *Programs) with(path string, depth int) []string {
	if depth > maxDepth {
		return nil
	}
	if known, is := p.found[path]; is {
		return known
	}
	if p.found == nil {
		p.found = map[string][]string{}
	}
	p.found[path] = p.look(path, depth)
	return p.found[path]
}

// look is with for a path that was not looked at before.
func (p *Programs) look(path string, depth int) []string {
	file := resolve(path)
	if file == "" {
		return nil
	}
	files := []string{file}
	for _, other := range p.interpreters(file) {
		files = append(files, p.with(other, depth+1)...)
	}
	slices.Sort(files[1:])
	return slices.Compact(files)
}

// IsScript reports whether another program runs the file at path: the interpreter that its first line names.
func IsScript(path string) bool { return strings.HasPrefix(headOf(path), "#!") }

// resolve returns path without symbolic links; "" if it is not an executable file.
func resolve(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(file) {
		return ""
	}
	return file
}

// interpreters returns the interpreter or the loader that the file names. For a script that starts with /usr/bin/env it
// also returns the program that env starts.
func (p *Programs) interpreters(file string) []string {
	head := headOf(file)
	line, script := strings.CutPrefix(head, "#!")
	if !script {
		return loaderOf(head)
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	interpreters := words[:1]
	if filepath.Base(words[0]) == "env" {
		return append(interpreters, p.startedByEnv(words[1:])...)
	}
	return interpreters
}

// startedByEnv returns the program that env starts with these words.
func (p *Programs) startedByEnv(words []string) []string {
	at := slices.IndexFunc(words, func(word string) bool {
		return !strings.HasPrefix(word, "-") && !strings.Contains(word, "=")
	})
	if at < 0 {
		return nil
	}
	for _, dir := range p.Search {
		if path := filepath.Join(dir, words[at]); resolve(path) != "" {
			return []string{path}
		}
	}
	return nil
}

// headOf returns the first bytes of a file; "" if it cannot be read.
func headOf(path string) string {
	file, err := os.Open(path) //nolint:gosec // a program of the policy or its interpreter
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, headSize)
	n, _ := io.ReadFull(file, head)
	return string(head[:n])
}

// loaderOf returns the loader that the first bytes of an ELF file name; nil if they name none. It does not use
// elf.NewFile, which reads the whole table of sections.
func loaderOf(head string) []string {
	const interp = uint32(elf.PT_INTERP)
	if len(head) < elf.EI_NIDENT || !strings.HasPrefix(head, elf.ELFMAG) ||
		elf.Class(head[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return nil
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	var header elf.Header64
	if binary.Read(strings.NewReader(head), order, &header) != nil {
		return nil
	}
	for i := range uint64(header.Phnum) {
		var program elf.Prog64
		at := header.Phoff + i*uint64(header.Phentsize)
		if at > uint64(len(head)) || binary.Read(strings.NewReader(head[at:]), order, &program) != nil {
			return nil
		}
		if program.Type == interp && program.Off <= uint64(len(head)) &&
			program.Filesz <= uint64(len(head))-program.Off {
			path, _, _ := bytes.Cut([]byte(head[program.Off:program.Off+program.Filesz]), []byte{0})
			return []string{string(path)}
		}
	}
	return nil
}
