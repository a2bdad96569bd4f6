package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// render returns a script in a spelling that every shell reads alike: each literal word is in single quotes, and the
// operators stand apart.
func render(script string) (string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script), "")
	if err != nil {
		return "", denied("the script for the other side does not parse: %v", err)
	}
	var unsafe error
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Word:
			n.Parts = quoted(n.Parts)
		case *syntax.Redirect:
			if n.Hdoc != nil {
				unsafe = denied("a here-document in a script for the other side is not granted")
			}
			// The target of 2>&1 is a number, which must not be quoted.
			if descriptor := n.Word.Lit(); (n.Op == syntax.DplOut || n.Op == syntax.DplIn) &&
				strings.Trim(descriptor, "0123456789") != "" {
				unsafe = denied("the redirection %s%s in a script for the other side is not granted", n.Op, descriptor)
			}
			return n.Op != syntax.DplOut && n.Op != syntax.DplIn
		case *syntax.ExtGlob, *syntax.ProcSubst:
			unsafe = denied("this kind of pattern in a script for the other side is not granted")
		}
		return unsafe == nil
	})
	if unsafe != nil {
		return "", unsafe
	}
	var text strings.Builder
	err = syntax.NewPrinter(syntax.SingleLine(true)).Print(&text, file)
	return strings.TrimRight(text.String(), "\n"), err
}

// quoted puts the literal parts of a word into single quotes, except for patterns and for the tilde.
func quoted(parts []syntax.WordPart) []syntax.WordPart {
	var all []syntax.WordPart
	for _, part := range parts {
		lit, is := part.(*syntax.Lit)
		if !is || strings.ContainsAny(lit.Value, "*?[]~{}\\'") {
			all = append(all, part)
			continue
		}
		all = append(all, &syntax.SglQuoted{Value: lit.Value})
	}
	return all
}
