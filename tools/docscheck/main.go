// Command docscheck checks the documentation: each link to a file and each anchor must exist, and the README must stay
// short.
//
//	docscheck DIRECTORY
//
// It reads all Markdown files of the git repository in DIRECTORY. It prints one line for each finding. The exit code is
// 1 if there is a finding. It does not use the network.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// maxReadme limits the README, in words as `wc -w` counts them.
const maxReadme = 1200

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docscheck DIRECTORY")
		os.Exit(2)
	}
	files, err := exec.Command("git", "-C", os.Args[1], "ls-files", "*.md").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "docscheck: list the files:", err)
		os.Exit(2)
	}
	os.Exit(run(os.Args[1], strings.Fields(string(files)), os.Stdout))
}

// run checks the files, whose names are relative to directory, and returns the exit code.
func run(directory string, files []string, out io.Writer) int {
	pages := map[string]page{}
	code := 0
	find := func(format string, args ...any) {
		code = 1
		_, _ = fmt.Fprintf(out, format+"\n", args...)
	}
	read := func(name string) (page, error) {
		if known, ok := pages[name]; ok {
			return known, nil
		}
		source, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return page{}, err
		}
		pages[name] = parse(source)
		return pages[name], nil
	}
	for _, file := range files {
		from, err := read(file)
		if err != nil {
			find("%s: %v", file, err)
			continue
		}
		if file == "README.md" && from.words > maxReadme {
			find("README.md has %d words, and at most %d are allowed: move what not every newcomer needs into docs",
				from.words, maxReadme)
		}
		for _, link := range from.links {
			target, err := url.Parse(link)
			if err != nil || target.Scheme != "" {
				continue // a page elsewhere
			}
			name := file
			if target.Path != "" {
				name = filepath.Join(filepath.Dir(file), target.Path)
			}
			if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
				find("%s: the link %s leads to no file", file, link)
				continue
			}
			if target.Fragment == "" {
				continue
			}
			if to, err := read(name); err != nil || !to.anchors[target.Fragment] {
				find("%s: the link %s leads to no heading", file, link)
			}
		}
	}
	return code
}

// page holds the parts of a Markdown file that docscheck compares.
type page struct {
	words   int
	links   []string
	anchors map[string]bool
}

func parse(source []byte) page {
	p := page{words: len(strings.Fields(string(source))), anchors: map[string]bool{}}
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.Heading:
			p.add(plain(n, source))
		}
		return ast.WalkContinue, nil
	})
	return p
}

// add adds the anchor that GitHub gives a heading. A heading that is there already gets a number.
func (p page) add(heading string) {
	slug := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
	anchor := slug
	for i := 1; p.anchors[anchor]; i++ {
		anchor = fmt.Sprintf("%s-%d", slug, i)
	}
	p.anchors[anchor] = true
}

// plain returns the text of a heading, without its markup.
func plain(node ast.Node, source []byte) string {
	var content bytes.Buffer
	_ = ast.Walk(node, func(inner ast.Node, entering bool) (ast.WalkStatus, error) {
		if part, is := inner.(*ast.Text); is && entering {
			content.Write(part.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return content.String()
}
