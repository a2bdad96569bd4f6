package shell

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unsupported returns why a script does not run, with a spelling that does, or "". It names the parts that the
// interpreter would carry out differently than bash without saying so.
func unsupported(file *syntax.File, text string) (reason string) {
	if strings.Contains(text, "$\\\n") || strings.Contains(text, "(\\\n(") {
		return "a line break within an operator is not supported: write it on one line"
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		if node != nil && reason == "" {
			reason = unsupportedNode(node, text)
		}
		return reason == ""
	})
	return reason
}

func unsupportedNode(node syntax.Node, text string) string {
	switch n := node.(type) {
	case syntax.Command:
		return unsupportedCommand(n)
	case *syntax.ParamExp:
		return unsupportedExpansion(n, text)
	case *syntax.ArithmExp:
		if strings.Contains(source(n, text), "\\\n") {
			return "a line break within $((...)) is not supported: write it on one line"
		}
	case *syntax.Comment:
		if line, _, _ := strings.Cut(text[min(n.Hash.Offset(), uint(len(text))):], "\n"); strings.HasSuffix(line, `\`) {
			return "a backslash at the end of a comment is not supported: remove it"
		}
	case *syntax.Assign:
		if n.Name != nil && n.Name.Value != "_" {
			return unsupportedVariable(n.Name.Value)
		}
	case *syntax.Redirect:
		if n.Hdoc == nil && hasPattern(n.Word) {
			return "a pattern as the name of a file is not supported: write the name"
		}
	}
	return ""
}

func unsupportedExpansion(expansion *syntax.ParamExp, text string) string {
	switch {
	case strings.Contains(source(expansion, text), "\\\n"):
		return "a line break within ${...} is not supported: write it on one line"
	case expansion.Exp != nil && expansion.Exp.Op == syntax.OtherParamOps && expansion.Exp.Word.Lit() == "P":
		return "${NAME@P} is not supported: write eval echo"
	case expansion.Param != nil:
		return unsupportedVariable(expansion.Param.Value)
	}
	return ""
}

func unsupportedCommand(command syntax.Command) string {
	switch n := command.(type) {
	case *syntax.CallExpr:
		if len(n.Args) > 1 && n.Args[0].Lit() == "hash" && n.Args[1].Lit() == "-p" {
			return "hash -p is not supported: write the path of the program"
		}
		// echo prints the same
		if len(n.Args) > 0 && n.Args[0].Lit() != "echo" && slices.ContainsFunc(n.Args, joinsAll) {
			return `text beside $@ in the same quotes is not supported: write "$@" apart, or "$*" for one word`
		}
	case *syntax.FuncDecl:
		if _, is := n.Body.Cmd.(*syntax.BinaryCmd); is {
			return "an operator after the body of a function is not supported: end the line after the body"
		}
	case *syntax.BinaryCmd:
		if _, is := n.Y.Cmd.(*syntax.TimeClause); is && n.Op != syntax.AndStmt && n.Op != syntax.OrStmt {
			return "time after a pipe is not supported: put it before the pipe"
		}
	case *syntax.ForClause:
		if n.Select {
			return "select is not supported, because nobody can answer"
		}
	}
	return ""
}

// source returns the text of a node.
func source(node syntax.Node, text string) string {
	from, to := node.Pos().Offset(), node.End().Offset()
	if !node.Pos().IsValid() || from > to || to > uint(len(text)) {
		return ""
	}
	return text[from:to]
}

// unsupportedVariable refuses the variables that only bash sets.
func unsupportedVariable(name string) string {
	switch {
	case name == "_":
		return "$_ is not supported: repeat the word"
	case name == "-":
		return "$- is not supported: write [[ -o errexit ]] to look at an option"
	case name == "PIPESTATUS":
		return "PIPESTATUS is not supported: write set -o pipefail, and look at $?"
	case name == "SECONDS" || name == "EPOCHSECONDS" || name == "EPOCHREALTIME":
		return name + " is not supported: write $(date +%s)"
	case strings.HasPrefix(name, "BASH") || slices.Contains([]string{"FUNCNAME", "DIRSTACK", "SHELLOPTS", "PS4"}, name):
		return fmt.Sprintf("the variable %s is not supported", name)
	}
	return ""
}

// joinsAll reports whether a word contains text beside $@ in the same quotes. The interpreter makes one word of it.
func joinsAll(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(part syntax.WordPart) bool {
		quoted, is := part.(*syntax.DblQuoted)
		return is && (len(quoted.Parts) > 1 || len(word.Parts) > 1) && slices.ContainsFunc(quoted.Parts, isAll)
	})
}

// isAll reports whether a part of a word is $@ or ${NAME[@]}.
func isAll(part syntax.WordPart) bool {
	expansion, is := part.(*syntax.ParamExp)
	if !is || expansion.Length || expansion.Param == nil {
		return false
	}
	index, is := expansion.Index.(*syntax.Word)
	return expansion.Param.Value == "@" || is && index.Lit() == "@"
}
