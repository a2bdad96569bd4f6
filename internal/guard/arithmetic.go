package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// subscript checks the index of an array. It accepts only plain numbers, @ and *. bash evaluates any other index as
// arithmetic, which can run commands in the values of variables. The value of such an index can also be out of range,
// and bash then skips the rest of the line.
func (s *shell) subscript(index syntax.ArithmExpr) error {
	if word, ok := index.(*syntax.Word); ok {
		if lit := word.Lit(); lit == "@" || lit == "*" || isDecimal(lit) {
			return nil
		}
	}
	return unclear("this index of an array", "use a plain number, or @")
}

// isDecimal reports whether bash reads text as a decimal number without an error. It accepts at most 17 digits without
// a leading zero.
func isDecimal(text string) bool {
	return text == "0" || text != "" && text[0] != '0' && strings.Trim(text, "0123456789") == "" && len(text) < 18
}

// arithmetic checks an arithmetic expression. Every variable in it must hold a number. bash evaluates the value of a
// variable as a further expression, and this can run commands. An example is x='a[$(id)]'; echo $((x)).
//
// arithmetic refuses expressions that can fail. After an error, such as a division by zero, bash skips the rest of the
// line and continues with the next line.
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

// mayFail refuses operations that fail for some numbers.
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

// assignNumber checks an assignment within arithmetic, such as name = expression.
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

// number checks that a word of an arithmetic expression is a number, or a variable that holds a number.
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
