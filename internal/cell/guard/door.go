package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// Act is the start of a program: by the agents' shell, or by another program that starts a command for the agent.
type Act struct {
	Tier int
	// Place says where the program starts, in Place.Dir.
	Place Place
	// Words are the program and its arguments. There is at least one word.
	Words []string
	// Set lists variables, as NAME=value, that differ from those of the session. NAME alone is one that the session has
	// and the program would lack.
	Set []string
}

// Start is the decision on an act.
type Start struct {
	Decision

	// Path is the file of the program, without symbolic links; empty if no such program is found.
	Path string
	// Words are the words with which to start the program.
	Words []string
	// Inner lists the indexes of words that the program starts as a command. The executable that asks for each start
	// must be put in front of these words.
	Inner []int
	// EmptyInput reports that the program must get an empty standard input.
	EmptyInput bool
	// Offline reports that the program must not open sockets.
	Offline bool
	// Variables lists the variables that only this program and the others that the policy names for them get. A name
	// that ends in "*" is a prefix.
	Variables []string
	// Script is the script to interpret in place of the program.
	Script *Script
}

// Script is a script in the words of a program: bash -c SCRIPT.
type Script struct {
	Text string
	// Input reports that the script is on the standard input, and not in Text.
	Input   bool
	POSIX   bool
	Options []string
	// Params are the words after the script: $0, $1 and so on.
	Params []string
}

// Start decides on the start of a program.
func (g *Guard) Start(act Act) Start {
	j := judge{policy: g.policy, files: g.files, tier: act.Tier, place: act.Place}
	result, err := j.run(Command{Words: act.Words, Set: act.Set, Dir: act.Place.Dir})
	if err != nil {
		return Start{Decision: refusal(err)}
	}
	start := Start{
		Decision: result.decision(), Script: result.script, EmptyInput: result.emptyInput, Offline: result.offline,
		Path: j.located(act.Words[0]),
	}
	start.Words, start.Inner = apply(result.edits, act.Words)
	if result.words != nil {
		start.Words = result.words
	}
	switch {
	case !j.isSystem(start.Path): // its name says nothing
		start.Inner = nil
	case start.Script == nil:
		start.Variables = j.policy.VariablesOf(filepath.Base(act.Words[0]))
	}
	if name := filepath.Base(act.Words[0]); len(start.Inner) == 0 && !j.limits().Anything {
		start.Words = slices.Insert(start.Words, 1, firstWords[name]...)
	}
	return start
}

// firstWords maps programs to options that stand in front of those of the agent. curl guesses a protocol from the name
// of a host.
var firstWords = map[string][]string{"curl": {"-q", "--proto", "=http,https"}}

// located returns the file of a program, with symbolic links resolved; "" if there is none.
func (j judge) located(name string) string {
	path := name
	if !strings.Contains(name, "/") {
		path = j.files.LookPath(name, j.place.Path)
	} else if !filepath.IsAbs(name) {
		path = filepath.Join(j.place.Dir, name)
	}
	return path
}

// Opening is the decision on the opening of a file.
type Opening struct {
	Decision

	// Path is the file to open, without symbolic links; empty for one of the shell's own streams.
	Path string
}

// Open decides whether the shell of a tier may open a file. The path must be absolute.
func (g *Guard) Open(tier int, place Place, path string, write bool) Opening {
	j := judge{policy: g.policy, files: g.files, tier: tier, place: place}
	check := j.read
	if write {
		check = j.write
	}
	if err := check(path); err != nil {
		return Opening{Decision: refusal(withRule(err, "paths"))}
	}
	resolved, err := g.files.Resolve(path)
	if err != nil {
		return Opening{Decision: refusal(denied("%s cannot be resolved: %v", path, err))}
	}
	if slices.Contains(streams, path) {
		resolved = ""
	}
	return Opening{allowedBy("paths").decision(), resolved}
}

// edit changes the words of a command at an index.
type edit struct {
	at int
	// text replaces the word. If it is empty and nothing is added, the word is one that the program starts as a
	// command.
	text string
	// added are words to put behind the word.
	added []string
}

// moved returns the edit of a command that begins at an index of another one.
func (e edit) moved(by int) edit {
	e.at += by
	return e
}

// apply returns the words with the edits made, and the indexes of the words that are started as commands.
func apply(edits []edit, words []string) (edited []string, inner []int) {
	for i, word := range words {
		added, starts := []string(nil), false
		for _, e := range edits {
			switch {
			case e.at != i:
			case e.added != nil:
				added = e.added
			case e.text == "":
				starts = true
			default:
				word = e.text
			}
		}
		if starts {
			inner = append(inner, len(edited))
		}
		edited = append(append(edited, word), added...)
	}
	return edited, inner
}
