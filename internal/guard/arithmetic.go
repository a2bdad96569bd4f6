package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// subscript reads the index of an array: it is arithmetic, which runs what is in its variables. One that is out of
// range ends the line, so that only plain numbers are read.
func (s *shell) subscript(index syntax.ArithmExpr) error {
	if word, ok := index.(*syntax.Word); ok {
		if lit := word.Lit(); lit == "@" || lit == "*" || isDecimal(lit) {
			return nil
		}
	}
	return unclear("this index of an array", "use a plain number, or @")
}

// isDecimal reports whether a text is a number that bash reads without an error: digits, not begun with a zero.
func isDecimal(text string) bool {
	return text == "0" || text != "" && text[0] != '0' && strings.Trim(text, "0123456789") == "" && len(text) < 18
}

// arithmetic reads an arithmetic expression. bash evaluates what is in its variables, and what is in those,
// and runs the commands that it finds: x='a[$(id)]'; echo $((x)). So all of them must be numbers. An error, such as a
// division by zero, skips the rest of the line and goes on with the next one, so that none may happen.
func (s *shell) arithmetic(expression syntax.ArithmExpr) error {
	switch e := expression.(type) {
	case nil:
		return nil
	case *syntax.BinaryArithm:
		if assigning(e.Op) && e.Op != syntax.QuoAssgn && e.Op != syntax.RemAssgn {
			return s.assignNumber(e.X, e.Y)
		}
		if err := mayFail(e); err != nil {
			return err
		}
		if err := s.arithmetic(e.X); err != nil {
			return err
		}
		return s.arithmetic(e.Y)
	case *syntax.UnaryArithm:
		if e.Op == syntax.Inc || e.Op == syntax.Dec {
			return s.assignNumber(e.X, e.X)
		}
		return s.arithmetic(e.X)
	case *syntax.ParenArithm:
		return s.arithmetic(e.X)
	case *syntax.Word:
		return s.number(e)
	default:
		return unclear("this arithmetic", "use whole numbers")
	}
}

// mayFail refuses what ends with an error for some numbers.
func mayFail(e *syntax.BinaryArithm) error {
	switch {
	case slices.Contains([]syntax.BinAritOperator{syntax.QuoAssgn, syntax.RemAssgn, syntax.Pow, syntax.TernQuest}, e.Op):
		return unclear("this arithmetic", "use + - * / and comparisons")
	case e.Op != syntax.Quo && e.Op != syntax.Rem:
		return nil
	}
	if word, is := e.Y.(*syntax.Word); !is || !isDecimal(word.Lit()) || word.Lit() == "0" {
		return unclear("a division by what may be zero", "divide by a plain number, or use awk")
	}
	return nil
}

// assignNumber reads name = expression, and its like.
func (s *shell) assignNumber(target, value syntax.ArithmExpr) error {
	word, ok := target.(*syntax.Word)
	if !ok || !isName(word.Lit()) || !s.maySet(word.Lit()) {
		return unclear("this assignment in arithmetic", "assign with NAME=$((…))")
	}
	for _, part := range []syntax.ArithmExpr{target, value} {
		if _, set := s.vars[word.Lit()]; part == target && !set {
			continue
		}
		if err := s.arithmetic(part); err != nil {
			return err
		}
	}
	s.vars[word.Lit()] = Word(anyNumber)
	return nil
}

// number wants a word of an arithmetic expression to be a number, or a variable that has one.
func (s *shell) number(word *syntax.Word) error {
	text, err := s.text(word)
	if err != nil {
		return err
	}
	if isName(string(text)) {
		text = s.variable(string(text))
	}
	if known, is := text.Known(); is && isDecimal(known) || text == Word(anyNumber) {
		return nil
	}
	return unclear("arithmetic with "+text.String()+", which may be no number", "compare with [ … -gt … ], or use awk")
}
