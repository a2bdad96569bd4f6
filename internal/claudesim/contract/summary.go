package contract

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// Summary collects the cases of a run of contract tests, with their differences.
type Summary struct {
	subjects map[string]bool
	cases    map[string]*contractCase
	packages map[string]*testedPackage
	builds   map[string]string // output of the compiler, by import path
}

func newSummary() *Summary {
	return &Summary{
		subjects: map[string]bool{}, cases: map[string]*contractCase{},
		packages: map[string]*testedPackage{}, builds: map[string]string{},
	}
}

// testedPackage is the result of a package as a whole.
type testedPackage struct{ ended, output string }

// contractCase is a test with its subtests for the stand-in and the real CLI.
type contractCase struct {
	pkg, name string
	tests     []*testRun
	parent    bool // whether the test has subtests that are cases themselves
}

// testRun is one test or subtest.
type testRun struct {
	name, ended, output string
	differences         []Difference
}

// ending is the way in which a case ended.
type ending int

const (
	endedWell ending = iota
	endedSkipped
	endedNever
	endedDifferent
)

func (e ending) word() string {
	return [...]string{endedWell: "ok", endedSkipped: "skipped", endedNever: "unended", endedDifferent: "DIFFERS"}[e]
}

// ended returns the worst ending among the case's tests.
func (c *contractCase) ended() ending {
	worst := endedWell
	for _, test := range c.tests {
		switch test.ended {
		case actionPass:
		case actionSkip:
			worst = max(worst, endedSkipped)
		case actionFail:
			worst = max(worst, endedDifferent)
		default:
			worst = max(worst, endedNever)
		}
	}
	return worst
}

var versionShape = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// label returns the case's name for people: its package and its test. It omits the parts that all names share.
func (c *contractCase) label(withVersion bool) string {
	elements := strings.Split(strings.TrimPrefix(c.name, "TestContract"), "/")
	elements = slices.DeleteFunc(elements, func(element string) bool {
		return element == "" || !withVersion && versionShape.MatchString(element)
	})
	if len(elements) == 0 {
		elements = []string{c.name}
	}
	return path.Base(c.pkg) + ": " + strings.Join(elements, "/")
}

// row is one line of the list of differences.
type row struct {
	label string
	Difference
}

// rows returns the differences of the case. If a test reported differences of fields, rows omits the other failures,
// because they follow from those differences.
func (c *contractCase) rows(label string) []row {
	var rows []row
	for _, test := range c.tests {
		for _, d := range test.differences {
			rows = append(rows, row{label, d})
		}
	}
	if len(rows) > 0 {
		return rows
	}
	for _, test := range c.tests {
		place := label
		if strings.HasSuffix(test.name, "/stand-in") {
			place += " (stand-in)"
		}
		switch test.ended {
		case actionPass, actionSkip:
		case actionFail:
			for _, d := range failures(test.output) {
				rows = append(rows, row{place, d})
			}
		default:
			rows = append(rows, row{place, Difference{Field: "-", Expected: "an end", Got: lastLine(test.output)}})
		}
	}
	if len(rows) == 0 && !c.parent {
		rows = append(rows, row{label, Difference{Field: "-", Expected: "-", Got: "a failure without a reason"}})
	}
	return rows
}

// verdict is the content of the list that Print writes.
type verdict struct {
	rows    []row
	skipped []string
	cases   int // without the skipped ones
	differ  int
}

// addUp evaluates all cases. A failed package without a failed case counts as a further case.
func (s *Summary) addUp() verdict {
	var v verdict
	blamed := map[string]bool{}
	withVersion := s.versions() > 1
	for _, key := range slices.Sorted(maps.Keys(s.cases)) {
		c := s.cases[key]
		label := c.label(withVersion)
		switch ended := c.ended(); {
		case ended == endedSkipped && !c.parent:
			v.skipped = append(v.skipped, label+": "+c.whySkipped())
			continue
		case ended == endedDifferent || ended == endedNever:
			blamed[c.pkg] = true
			if rows := c.rows(label); len(rows) > 0 {
				v.rows = append(v.rows, rows...)
				v.differ++
				v.cases++
			}
		case !c.parent:
			v.cases++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.packages)) {
		if p := s.packages[name]; p.ended == actionFail && !blamed[name] {
			v.rows = append(v.rows, row{path.Base(name), Difference{Field: "-", Expected: "tests that run", Got: lastLine(p.output)}})
			v.differ++
			v.cases++
		}
	}
	slices.SortStableFunc(v.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.Launch, b.Launch), cmp.Compare(a.Field, b.Field))
	})
	v.rows = slices.Compact(v.rows)
	return v
}

// versions counts the different versions in the names of the cases.
func (s *Summary) versions() int {
	found := map[string]bool{}
	for _, c := range s.cases {
		for element := range strings.SplitSeq(c.name, "/") {
			if versionShape.MatchString(element) {
				found[element] = true
			}
		}
	}
	return len(found)
}

func (c *contractCase) whySkipped() string {
	for _, test := range c.tests {
		for _, d := range failures(test.output) {
			return d.Got
		}
	}
	return "no reason given"
}

// Print writes the list of differences to w. It reports whether every case passed and at least one of them tested a
// real CLI.
func (s *Summary) Print(w io.Writer) (same bool, err error) {
	v := s.addUp()
	var text strings.Builder
	if len(v.rows) > 0 {
		text.WriteString("\n")
		writeRows(&text, v.rows)
		text.WriteString("\n")
		writeFields(&text, v.rows)
	}
	text.WriteString("\n")
	for _, skipped := range v.skipped {
		_, _ = fmt.Fprintf(&text, "skipped %s\n", skipped)
	}
	held := strings.Join(slices.Sorted(maps.Keys(s.subjects)), ", ")
	_, _ = fmt.Fprintf(&text, "held to the contract: %s\n", cmp.Or(held, "no real CLI"))
	_, _ = fmt.Fprintf(&text, "%d of %d cases differ\n", v.differ, v.cases)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return false, fmt.Errorf("print the list of what differs: %w", err)
	}
	return v.differ == 0 && v.cases > 0 && len(s.subjects) > 0, nil
}

// maxText limits the width of a column of the list in characters.
const maxText = 64

func writeRows(w io.Writer, rows []row) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "CASE\tLAUNCH\tFIELD\tEXPECTED\tGOT")
	for _, r := range rows {
		launch := "-"
		if r.Launch > 0 {
			launch = fmt.Sprint(r.Launch)
		}
		expected, got := clip(oneLine(r.Expected), oneLine(r.Got))
		field, _ := clip(oneLine(r.Field), "")
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.label, launch, field, expected, got)
	}
	_ = table.Flush() // never fails: w is a builder
}

// index matches an index of a list element.
var index = regexp.MustCompile(`\[\d+:?\]`)

// writeFields writes, for each field, the number of cases in which the field differs. The highest number comes first.
// Many differences often have one cause.
func writeFields(w io.Writer, rows []row) {
	cases := map[string]map[string]bool{}
	for _, r := range rows {
		field := index.ReplaceAllString(oneLine(r.Field), "[]")
		if cases[field] == nil {
			cases[field] = map[string]bool{}
		}
		cases[field][r.label] = true
	}
	fields := slices.SortedFunc(maps.Keys(cases), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(cases[b]), len(cases[a])), cmp.Compare(a, b))
	})
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "CASES\tDIFFER IN")
	for _, field := range fields {
		short, _ := clip(field, "")
		_, _ = fmt.Fprintf(table, "%d\t%s\n", len(cases[field]), short)
	}
	_ = table.Flush() // never fails: w is a builder
}

// oneLine returns text without characters that would break a table.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
}

// clip shortens two texts so that their first difference stays visible.
func clip(a, b string) (shortA, shortB string) {
	first, second := []rune(a), []rune(b)
	if len(first) <= maxText && len(second) <= maxText {
		return a, b
	}
	const context = maxText / 4
	common := 0
	for common < min(len(first), len(second)) && first[common] == second[common] {
		common++
	}
	return window(first, common-context), window(second, common-context)
}

// window returns at most maxText characters of text from start on, with … for omitted parts.
func window(text []rune, start int) string {
	before, after := "", ""
	if start > 0 {
		before, text = "…", text[min(start, len(text)):]
	}
	if limit := maxText - 2; len(text) > limit {
		after, text = "…", text[:limit]
	}
	return before + string(text) + after
}
