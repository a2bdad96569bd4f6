package guard

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The texts of awk, sed, jq and yq are programs. Where the kernel holds a program to its own executables, files and
// connections (Place.Confined), their texts start, open and show nothing that the tier may not. Elsewhere only plain
// texts are granted.

var (
	// awkLoads matches what makes gawk load code from a file.
	awkLoads = regexp.MustCompile(`@[\s\\]*(load|include)\b`)
	// awkReaches matches what starts programs, opens files and shows the environment. Only print has a file or a pipe
	// behind it. A number can stand directly before a word, as in 1getline.
	awkReaches = regexp.MustCompile(`@|(?s:print.*[|>])|\\\n|(system|getline|ARG[VC]|PROCINFO|ENVIRON|SYMTAB|FUNCTAB)\b`)
	// jqReaches does the same for jq and yq.
	jqReaches = regexp.MustCompile(`(?i)env|import|include|load|eval`)
	// jqField matches the name env of a field, on the line of what makes it one.
	jqField = regexp.MustCompile(`(^|[^.])\.env([^\w(]|$)|\{[ \t]*env[ \t]*[,:}]`)
	// pathThere matches words that can be the path of a file.
	pathThere = regexp.MustCompile(`^[\w.-]*/[\w./-]*$`)
	// sedPlain matches scripts that print, delete and replace lines.
	sedPlain = regexp.MustCompile(`^[ \t]*` + sedCommand + `(?:[ \t]*;[ \t]*` + sedCommand + `)*[ \t]*$`)
	// jqEnvironment matches what shows the environment.
	jqEnvironment = regexp.MustCompile(`ENV|(^|[^.\w"]|\.\.)env\b`)
)

const (
	sedCommand = `(?:` + sedAddress + `(?:,` + sedAddress + `)?)?!?(?:[pdq=]|s(?:/` +
		sedPart + `/` + sedPart + `/|\|[^\\\n\[|]*\|[^\\\n\[|]*\|)[gpI0-9]*)`
	sedAddress = `(?:[0-9]+|\$|/` + sedPart + `/)`
	// In sedPart, a bracket does not begin with ] or ^: programs differ in where such a bracket ends.
	sedPart = `(?:[^/\\\n\[]|\\[^\n]|\[\^?(?:\[:[a-z]+:\]|[^]^/\\\n\[])(?:\[:[a-z]+:\]|[^]/\\\n\[])*\])*`
)

// confined reports whether the kernel judges what a program does.
func (j judge) confined() bool { return j.place.Confined && !j.remote }

// holds reports whether the kernel judges what a program of texts does.
func (j judge) holds(program string) bool {
	return j.confined() && !slices.Contains(j.place.Unheld, program)
}

// isText reports whether a word is a text whose program needs no network. A text of gawk can connect to any address.
func (t typed) isText() bool { return t.isProgram() && t.kind != "JQ" }

// isProgram reports whether a word is a text that a program runs.
func (t typed) isProgram() bool { return slices.Contains([]string{"AWK", "SED", "JQ", "YQ"}, t.kind) }

// awk accepts an awk program.
func (j judge) awk(text string, _ Command) error {
	if found := awkLoads.FindString(text); found != "" {
		return denied("awk: %q can load code: leave it out", found)
	}
	return j.plain("awk", awkReaches.FindString(text))
}

// sed accepts a sed script.
func (j judge) sed(text string, _ Command) error {
	if sedPlain.MatchString(text) {
		return nil
	}
	return j.plain("sed", text)
}

// filter accepts a program of jq or yq. In other programs, which run it with a token of their own, it must not show the
// environment.
func (j judge) filter(text string, command Command) error {
	program := filepath.Base(command.Words[0])
	if program != "jq" && program != "yq" && jqEnvironment.MatchString(text) {
		return denied("jq: it shows the environment: write the name of a field as .env or \"env\"")
	}
	// it can be a command of yq, which takes the next word for the program
	if program == "yq" && !strings.HasPrefix(text, ".") {
		return j.plain(program, text)
	}
	if program == "yq" && !j.holds(program) { // it takes a word that is a file for one
		if j.remote && pathThere.MatchString(text) {
			return j.plain(program, text)
		}
		if err := reads(judge.read)(j, text, command); err != nil {
			return err
		}
	}
	return j.plain(program, jqReaches.FindString(jqField.ReplaceAllString(text, "$1.$2")))
}

// plain refuses a part of a text where the kernel does not judge what the program does.
func (j judge) plain(program, part string) error {
	switch {
	case part == "" || j.holds(program) || j.limits().Anything:
		return nil
	case j.remote:
		return denied("there nobody judges what %s does by %.40q: pipe the file to %[1]s here, as in docker exec "+
			"NAME cat FILE | %[1]s …",
			program, part)
	}
	return denied("on this host nobody judges what %s does by %.40q: write it without", program, part)
}
