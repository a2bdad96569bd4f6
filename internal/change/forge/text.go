package forge

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Description is what a pull request, or a comment on it, says about a change. Texts can come from agents.
type Description struct {
	// ChainID is the ID of the chain's workflow. Link is the address of its page; empty if there is none.
	ChainID, Link string
	// ReviewID is the conversation of the reviewer; empty if there is none.
	ReviewID       string
	Branch, Commit string
	Files, Lines   int
	// Problem says why there is a change; empty if that is not known.
	Problem string
	// Phases describes the phases of a plan, one line each; empty if there is no plan. Phase is the number of the phase
	// that Decision, Checks and Previews are about; empty if they are about all of the change.
	Phases []string
	Phase  string
	// Decision says in a sentence what was decided about the change. Status, Summary and Findings are the reviewer's
	// verdict.
	Decision, Status, Summary string
	Findings                  []string
	// Checks is the result of the checks of the repository, and CheckOutput what they printed.
	Checks, CheckOutput string
	Previews            []Preview
}

// Preview is the output of a program that says what a change would do.
type Preview struct{ Command, Output string }

const (
	// maxTitle limits a title, in characters. GitHub and GitLab accept about 255.
	maxTitle = 120
	// maxProse limits the text of one agent, and maxOutput the output of one command, in characters.
	maxProse, maxOutput = 4000, 3000
	// maxFindings limits the findings, and maxFinding each of them, in characters.
	maxFindings, maxFinding = 30, 400
	// maxPhases limits the phases, and maxPhase each of them, in characters.
	maxPhases, maxPhase = 60, 160
	// maxPreviews limits the previews.
	maxPreviews = 5
	// maxText limits a whole text, in characters. GitHub accepts 65,536.
	maxText = 60_000
	// width is the length at which lines of prose are wrapped.
	width = 110
)

// Title returns the title of a pull request.
func Title(subject string) string { return plaintext.Cut(plaintext.Compact(subject), maxTitle) }

// Marker returns a line that nobody sees, by which the text of a review is found again. An author cannot know it in
// advance, because it names the reviewer's conversation.
func (d Description) Marker() string {
	return fmt.Sprintf("<!-- claudeops chain=%s commit=%s review=%s -->",
		url.PathEscape(d.ChainID), url.PathEscape(d.Commit), url.PathEscape(d.ReviewID))
}

// Markdown returns the text in Markdown, with the marker as its first line. Text of agents and the output of commands
// are in quoted code blocks: neither markup nor mentions, references to issues or commands for bots have an effect
// there. Of output with very many short lines, Markdown leaves out what is too long.
func (d Description) Markdown() string {
	shorter := d
	shorter.Previews = nil
	shortest := shorter
	shortest.CheckOutput = ""
	for _, one := range []Description{d, shorter} {
		if text := one.whole(); utf8.RuneCountInString(text) <= maxText {
			return text
		}
	}
	return shortest.whole()
}

func (d Description) whole() string {
	var b strings.Builder
	section := func(title, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(&b, "\n## %s\n\n%s", title, text)
		}
	}
	_, _ = fmt.Fprintf(&b, "%s\n\n", d.Marker())
	_, _ = fmt.Fprintf(&b, "An agent of Claude Ops has made this change. Its latest review is about %s in %s.\n",
		plaintext.Count(d.Lines, "changed line"), plaintext.Count(d.Files, "file"))
	section("Why", quoted(wrapped(plaintext.Cut(plaintext.Block(d.Problem), maxProse))))
	section("Phases", d.phases())
	of := ""
	if d.Phase != "" {
		of = " of phase " + codeSpan(d.Phase)
	}
	section("Review"+of, d.review())
	section("Checks"+of, d.checks())
	section("Previews"+of, d.previews())
	chain := codeSpan(d.ChainID)
	if d.Link != "" {
		chain = fmt.Sprintf("[%s](%s)", chain, d.Link)
	}
	_, _ = fmt.Fprintf(&b, "\n---\nChain %s, branch %s, commit %s\n", chain, codeSpan(d.Branch), codeSpan(d.Commit))
	return b.String()
}

// phases returns the phases of the plan, one a line.
func (d Description) phases() string {
	var lines []string
	for _, phase := range d.Phases[:min(len(d.Phases), maxPhases)] {
		lines = append(lines, plaintext.Cut(plaintext.Compact(phase), maxPhase))
	}
	if left := len(d.Phases) - maxPhases; left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return quoted(strings.Join(lines, "\n"))
}

// review returns the decision and the reviewer's verdict.
func (d Description) review() string {
	status := "There is no verdict."
	if d.Status != "" {
		status = "Verdict: " + codeSpan(d.Status) + "."
	}
	var verdict []string
	if summary := strings.TrimSpace(plaintext.Block(d.Summary)); summary != "" {
		verdict = append(verdict, plaintext.Cut(summary, maxProse))
	}
	for _, finding := range d.Findings[:min(len(d.Findings), maxFindings)] {
		verdict = append(verdict, "- "+plaintext.Cut(plaintext.Compact(finding), maxFinding))
	}
	if left := len(d.Findings) - maxFindings; left > 0 {
		verdict = append(verdict, fmt.Sprintf("and %d more", left))
	}
	decision := wrapped(plaintext.Cut(plaintext.Compact(d.Decision), maxProse))
	return status + "\n\n" + quoted(decision+"\n\n"+wrapped(strings.Join(verdict, "\n")))
}

func (d Description) checks() string {
	if d.Checks == "" {
		return ""
	}
	return "Result: " + codeSpan(d.Checks) + ".\n\n" + quoted(end(plaintext.Block(d.CheckOutput), maxOutput))
}

func (d Description) previews() string {
	var blocks []string
	for _, preview := range d.Previews[:min(len(d.Previews), maxPreviews)] {
		blocks = append(blocks, quoted("$ "+plaintext.Line(preview.Command)+"\n"+end(plaintext.Block(preview.Output),
			maxOutput)))
	}
	return strings.Join(blocks, "\n")
}

// codeSpan returns text as code on one line.
func codeSpan(text string) string {
	text = strings.ReplaceAll(plaintext.Compact(text), "`", "'")
	if text == "" {
		return "none"
	}
	return "`" + text + "`"
}

var backticks = regexp.MustCompile("`+")

// quoted returns text as a code block in a quotation; "" for empty text. No line of text can end the block, because the
// fence is longer than any run of backticks in it. No line begins with what bots take for a command.
func quoted(text string) string {
	text = strings.Trim(text, "\n")
	if text == "" {
		return ""
	}
	longest := 2
	for _, run := range backticks.FindAllString(text, -1) {
		longest = max(longest, len(run))
	}
	fence := strings.Repeat("`", longest+1)
	return "> " + fence + "text\n> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n> " + fence + "\n"
}

// wrapped breaks lines between words at the usual width, because code blocks do not wrap.
func wrapped(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		column := 0
		for i, word := range strings.Split(strings.TrimSuffix(line, "\n"), " ") {
			length := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case column+1+length > width:
				_ = b.WriteByte('\n')
				column = 0
			default:
				_ = b.WriteByte(' ')
				column++
			}
			_, _ = b.WriteString(word)
			column += length
		}
		if strings.HasSuffix(line, "\n") {
			_ = b.WriteByte('\n')
		}
	}
	return b.String()
}

// end returns the end of text, with at most limit characters.
func end(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return "…" + string(runes[len(runes)-limit+1:])
}
