package review

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// maxPhases limits the phases of a plan.
	maxPhases = 50
	// maxStrays limits how many places one error names, and maxQuoted the characters that it quotes of each.
	maxStrays, maxQuoted = 5, 60
)

var (
	markdown = goldmark.New(goldmark.WithExtensions(extension.TaskList, extension.Table)).Parser()

	// phasePattern matches the heading of a phase: its number and, in the second or third group, its title.
	phasePattern = regexp.MustCompile(`(?i)^phase (\d{1,5}(?:\.\d{1,5}){0,5})(?:[–—](\PN.*)|(?: ?: ?| ?[.–—-](?: |$)| |$)(.*))$`)
	// likePattern matches headings that a reader takes for those of a phase.
	likePattern = regexp.MustCompile(`(?i)^phase(?:\PL|$)|^(?:\PL|:[a-z0-9_+-]+:)*phase[^\pL\pN]{0,3}\pN`)
	// strayPattern matches a line of a text, of HTML or of code that looks like a heading: what stands before the word
	// Phase, its number, and a character that ends the name.
	strayPattern = regexp.MustCompile(`(?im)^((?:[^\pL\pN\n<` + "`" + `]|<[^>\n]*>|:[a-z_]+:|\[[\^x][^\]\n]*\]:?)*)` +
		`phase[ \t\x{a0}_-]*#?(\d[\w.]*|[ivx]+|[a-z]|one|two|three|four|five|six|seven|eight|nine|ten)\b([ \t]*(?:[^\s\w]|$))?`)
	// fencePattern matches the characters that begin a block of code.
	fencePattern = regexp.MustCompile("```+|~~~+")
	// underlinePattern matches the rest of a heading that the line below it underlines.
	underlinePattern = regexp.MustCompile(`\A.*\n[ \t]*(?:=+|--+)[ \t]*(?:\n|\z)`)
	// markup in front of the word Phase shows that it is more than the beginning of a sentence.
	markup = regexp.MustCompile(`[*_#<~]`)

	commentPattern     = regexp.MustCompile(`(?s)<!--(?:-?>|.*?--!?>)`)
	htmlHeadingPattern = regexp.MustCompile(`(?i)</?h[1-6][\s/>]`)
	// tagPattern matches whole tags and declarations, and openTagPattern the beginning of one.
	tagPattern         = regexp.MustCompile(`<(?:/?[a-zA-Z](?:[^<>"']|"[^"]*"|'[^']*')*|[?!][^>]*)>`)
	openTagPattern     = regexp.MustCompile(`<[?!/a-zA-Z]`)
	escapePattern      = regexp.MustCompile(`\\[[:punct:]]|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]*);`)
	frontMatterPattern = regexp.MustCompile(`\A---[ \t]*\n(?s:.*?)\n---[ \t]*(?:\n|\z)`)
)

// planReader reads a plan.
type planReader struct {
	source []byte
	plan   Plan
	// headings has the level and the place of each phase's heading.
	headings []planHeading
	// within holds the indexes of the phases to whose section the current place belongs, from the outermost.
	within []int
	// ticks lists where the characters of the check boxes are.
	ticks  []int
	strays []stray
}

type planHeading struct{ level, at int }

// stray is a place that looks like a phase, or hides phases, and is none.
type stray struct {
	at int
	// number is the number that a phase would have; empty if the place is wrong whatever phases the plan has.
	number, problem string
}

// ParsePlan reads a plan as GitHub shows it. A phase reaches to the next heading of its level or a higher one. If
// something looks like a phase and is none, the error names its line and says what to write.
func ParsePlan(given string) (Plan, error) {
	r := planReader{source: []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(given))}
	r.read()
	unticked := slices.Clone(r.source)
	for _, at := range r.ticks {
		unticked[at] = ' '
	}
	digest := sha256.Sum256(unticked)
	r.plan.Digest = hex.EncodeToString(digest[:])
	return r.plan, r.problem()
}

// read finds the phases, their entries, and what only looks like a phase.
func (r *planReader) read() {
	const end = "\n\nx" // a block that contains it is never closed
	shown := append(slices.Clone(r.source), end...)
	if front := frontMatterPattern.Find(shown); front != nil { // GitHub shows it as a table
		r.look(0, front, "stands in the lines between --- at the beginning, which are no part of the text")
		for i := range r.strays {
			r.strays[i].number = "" // also if the text has this phase
		}
		blank(front)
	}
	root := markdown.Parse(text.NewReader(shown))
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			r.heading(node, shown)
			return ast.WalkSkipChildren, nil
		case *ast.HTMLBlock:
			r.html(node, shown)
		case *ast.Paragraph, *ast.TextBlock, *extast.TableCell:
			r.lines(node, shown, "is no heading")
		case *ast.CodeBlock:
			r.lines(node, shown, "is indented so far that it is code")
		case *ast.FencedCodeBlock:
			r.code(node, shown)
		case *ast.RawHTML:
			if first := node.Segments.At(0); htmlHeadingPattern.Match(first.Value(shown)) {
				r.stray(first.Start, "", "is a heading in HTML")
			}
		case *extast.TaskCheckBox:
			r.entry(node.Parent(), node.IsChecked)
		}
		return ast.WalkContinue, nil
	})
	switch last := root.LastChild().(type) {
	case *ast.FencedCodeBlock:
		r.unclosed(last.Lines().At(0).Start-1, "the block of code")
	case *ast.HTMLBlock:
		if last.HTMLBlockType != ast.HTMLBlockType2 { // comments are looked at where they begin
			r.unclosed(last.Lines().At(0).Start, "the HTML")
		}
	}
}

// heading begins or ends phases.
func (r *planReader) heading(node *ast.Heading, shown []byte) {
	if node.Lines().Len() == 0 {
		return
	}
	name, at := wordsOf(node, shown), node.Lines().At(0).Start
	top := node.Parent().Kind() == ast.KindDocument
	if top {
		for len(r.within) > 0 && r.headings[r.within[len(r.within)-1]].level >= node.Level {
			r.within = r.within[:len(r.within)-1]
		}
	}
	phase := phasePattern.FindStringSubmatch(name)
	switch {
	case phase != nil && hasHTML(node, shown):
		r.stray(at, "", "has HTML in it")
	case phase != nil && top:
		r.within = append(r.within, len(r.plan.Phases))
		r.plan.Phases = append(r.plan.Phases, Phase{Number: phase[1], Title: strings.TrimSpace(phase[2] + phase[3])})
		r.headings = append(r.headings, planHeading{node.Level, at})
	case phase != nil:
		r.stray(at, "", "is a heading within a quote or a list")
	case likePattern.MatchString(name):
		r.stray(at, "", "has no number such as 2 or 2.1 after the word Phase, or nothing separates the number from "+
			"the title")
	case top && r.plan.Title == "" && node.Level == 1:
		r.plan.Title = name
	}
}

// hasHTML reports whether a heading has a tag of HTML, which can end it early.
func hasHTML(heading ast.Node, source []byte) (found bool) {
	_ = ast.Walk(heading, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if raw, is := node.(*ast.RawHTML); is && entering {
			first := raw.Segments.At(0)
			found = found || !bytes.HasPrefix(first.Value(source), []byte("<!--"))
		}
		return ast.WalkContinue, nil
	})
	return found
}

// entry adds an entry of a checklist to the phase in whose section it stands.
func (r *planReader) entry(block ast.Node, done bool) {
	var parts []string
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		parts = append(parts, string(bytes.TrimSpace(line.Value(r.source))))
	}
	mark, at := strings.Join(parts, " "), block.Lines().At(0).Start
	if len(mark) < len("[x] ?") || mark[3] != ' ' && mark[3] != '\t' { // GitHub shows no box
		return
	}
	r.ticks = append(r.ticks, at+1)
	if len(r.within) > 0 {
		last := &r.plan.Phases[r.within[len(r.within)-1]]
		last.Items = append(last.Items, Item{Text: strings.TrimSpace(mark[3:]), Done: done})
	}
}

// html looks for phases in a block of HTML, in which Markdown counts as text.
func (r *planReader) html(node *ast.HTMLBlock, shown []byte) {
	start, block := blockText(node, shown)
	for _, comment := range commentPattern.FindAllIndex(block, -1) {
		blank(block[comment[0]:comment[1]])
	}
	if at := bytes.Index(block, []byte("<!--")); at >= 0 {
		r.unclosed(start+at, "the comment")
	} else if open := openTagPattern.FindIndex(tagPattern.ReplaceAllFunc(block, spaces)); open != nil {
		r.unclosed(start+open[0], "the tag")
	}
	for _, match := range htmlHeadingPattern.FindAllIndex(block, -1) {
		r.stray(start+match[0], "", "is a heading in HTML")
	}
	r.look(start, block, "stands in HTML")
}

// lines looks for phases in the lines of a block.
func (r *planReader) lines(node ast.Node, shown []byte, problem string) {
	if node.Lines().Len() > 0 {
		start, block := blockText(node, shown)
		r.look(start, block, problem)
	}
}

// code looks for phases in a block of code with a line that was to close it, and does not, because text follows its
// fence. Such a line hides what follows up to the next fence.
func (r *planReader) code(node *ast.FencedCodeBlock, shown []byte) {
	if node.Lines().Len() == 0 {
		return
	}
	start, block := blockText(node, shown)
	opening := shown[bytes.LastIndexByte(shown[:max(0, bytes.LastIndexByte(shown[:start], '\n'))], '\n')+1 : start]
	fence := fencePattern.Find(opening)
	closes := slices.ContainsFunc(bytes.Split(block, []byte{'\n'}), func(line []byte) bool {
		return len(fence) > 0 && bytes.HasPrefix(bytes.TrimLeft(line, " \t>"), fence)
	})
	if !closes {
		return
	}
	for _, match := range strayPattern.FindAllSubmatchIndex(block, -1) {
		if bytes.ContainsRune(block[match[2]:match[3]], '#') || underlinePattern.Match(block[match[5]:]) {
			r.stray(start+match[0], string(block[match[4]:match[5]]), "stands in a block of code")
		}
	}
}

// look looks for phases in a text that has no headings.
func (r *planReader) look(start int, block []byte, problem string) {
	for _, match := range strayPattern.FindAllSubmatchIndex(block, -1) {
		if before := block[match[2]:match[3]]; match[6] >= 0 || markup.Match(before) {
			r.stray(start+match[0], string(block[match[4]:match[5]]), problem)
		}
	}
}

// stray keeps a place that looks like a phase.
func (r *planReader) stray(at int, number, problem string) {
	line, _, _ := bytes.Cut(r.source[bytes.LastIndexByte(r.source[:at], '\n')+1:], []byte{'\n'})
	r.strays = append(r.strays, stray{at, number, fmt.Sprintf("%q %s",
		plaintext.Cut(strings.TrimSpace(string(line)), maxQuoted), problem)})
}

// unclosed keeps the beginning of something that hides all that follows.
func (r *planReader) unclosed(at int, what string) {
	r.strays = append(r.strays, stray{at, "", what + " that begins here is never closed, and hides what follows"})
}

// problem returns the defects of the plan.
func (r *planReader) problem() error {
	phases, seen, levels := r.plan.Phases, map[string]bool{}, map[int]int{}
	for i, phase := range phases {
		heading, depth := r.headings[i], strings.Count(phase.Number, ".")
		if seen[phase.Number] {
			return fmt.Errorf("the plan has phase %s twice, the second time in line %d", phase.Number,
				r.line(heading.at))
		}
		seen[phase.Number] = true
		if level := cmp.Or(levels[depth], heading.level); heading.level != level ||
			depth > 0 && heading.level < levels[0] {
			r.stray(heading.at, "", fmt.Sprintf("is a heading of level %d, and the phases before it have level %d",
				heading.level, max(level, levels[0])))
		}
		levels[depth] = cmp.Or(levels[depth], heading.level)
	}
	var found []string
	slices.SortStableFunc(r.strays, func(a, b stray) int { return a.at - b.at })
	for _, stray := range r.strays {
		if !seen[stray.number] && len(found) < maxStrays { // otherwise it only mentions a phase
			found = append(found, fmt.Sprintf("line %d: %s", r.line(stray.at), stray.problem))
		}
	}
	places := strings.Join(found, "; ")
	switch none := `the plan has no phases: write headings such as "## Phase 1: what to do"`; {
	case len(phases) == 0 && places == "":
		return errors.New(none)
	case len(phases) == 0:
		return errors.New(none + "; " + places)
	case places != "":
		return fmt.Errorf("the plan has what looks like a phase and is none: %s. Write phases as headings at the "+
			"beginning "+
			"of a line, such as %q, and begin everything else with another word", places,
			strings.Repeat("#", r.headings[0].level)+" Phase 2: what to do")
	case len(phases) > maxPhases:
		return fmt.Errorf("the plan has %d phases, and at most %d are allowed", len(phases), maxPhases)
	}
	return nil
}

// line returns the number of the line of a place, from 1.
func (r *planReader) line(at int) int {
	return 1 + bytes.Count(r.source[:min(at, len(r.source))], []byte{'\n'})
}

// blockText returns a copy of the lines of a block as they are written, and where it begins.
func blockText(node ast.Node, source []byte) (start int, block []byte) {
	lines := node.Lines()
	start, end := lines.At(0).Start, lines.At(lines.Len()-1).Stop
	if of, is := node.(*ast.HTMLBlock); is && of.HasClosure() {
		end = max(end, of.ClosureLine.Stop)
	}
	return start, slices.Clone(source[start:end])
}

// wordsOf returns the text of a heading as a reader sees it, in one line.
func wordsOf(parent ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(parent, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Text:
			value := node.Value(source)
			if !node.IsRaw() && node.Parent().Kind() != ast.KindCodeSpan {
				value = escapePattern.ReplaceAllFunc(value, unescape)
			}
			b.Write(value)
			if node.SoftLineBreak() || node.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(node.Value)
		case *ast.AutoLink:
			b.Write(node.Label(source))
		case *ast.Image:
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, b.String())
	return strings.Join(strings.Fields(visible), " ")
}

// unescape returns what an escaped character or an entity stands for.
func unescape(block []byte) []byte {
	if block[0] == '\\' {
		return block[1:]
	}
	return []byte(html.UnescapeString(string(block)))
}

// spaces returns as many spaces as a text has bytes, and its lines.
func spaces(block []byte) []byte {
	blanked := slices.Clone(block)
	blank(blanked)
	return blanked
}

// blank replaces a text by spaces, and keeps its lines.
func blank(block []byte) {
	for i, c := range block {
		if c != '\n' {
			block[i] = ' '
		}
	}
}
