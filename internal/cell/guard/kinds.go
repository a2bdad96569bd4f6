package guard

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kinds maps the type names of arguments and option values in a policy to their checks.
var kinds map[string]func(j judge, word string, command Command) error

func init() { //nolint:gochecknoinits // breaks an initialization cycle between the table and its functions
	kinds = map[string]func(j judge, word string, command Command) error{
		"TEXT":     func(judge, string, Command) error { return nil },
		"NAME":     matching(`[^-].*`, "a name"),
		"INT":      matching(`[-+]?[0-9]+[kKmMgGbB]*%?`, "a number"),
		"DURATION": matching(`[0-9.]+(ns|us|ms|s|m|h|d)?([0-9.]+(ms|s|m))*`, "a time"),
		"MODE":     matching(`[0-7]{3,4}|[ugoa]*[-+=][rwxX]+`, "a mode"),
		"HEADER":   judge.header,
		"FILE":     reads(judge.read),
		"LIST":     reads(judge.list),
		"OUT":      reads(judge.write),
		"OUTPUT":   judge.output,
		"PORT":     judge.port,
		"REV":      judge.revision,
		"JQ":       judge.filter,
		"YQ":       judge.filter,
		"APPRISE":  judge.apprise,
		"COMPOSE":  judge.compose,
		"SOURCE":   reads(judge.source),
		"OUTFILE":  reads(judge.writePlain),
		"REMOTE":   judge.gitName,
		"REF":      judge.gitName,
		"CERT":     reads(judge.certificate),
		"RESOLVE":  judge.resolves,
		kindDir:    reads(judge.list),
		"URL":      judge.url,
		"HOST":     judge.host,
		"METHOD":   judge.method,
		"AWK":      judge.awk,
		"SED":      judge.sed,
		"SERVICE":  judge.service,
		"UNIT":     judge.unit,
		"WORKLOAD": judge.workload,
		"BRANCH":   judge.branch,
		"RESOURCE": judge.resource,
		kindExec:   nil,
		kindMark:   matching(`\{\}|[A-Z%@_]+`, "{}"),
	}
	for _, kind := range wrappingKinds {
		kinds[kind] = nil
	}
}

// known reports whether a policy may use kind as the type of an argument. Valid types are a name in kinds, a lower-case
// word, a choice such as "start|stop", and a pattern such as "/[a-z]+/".
func known(kind string) bool {
	if _, is := kinds[kind]; is {
		return true
	}
	if pattern, is := isPattern(kind); is {
		_, err := regexp.Compile(pattern)
		return err == nil
	}
	return strings.Contains(kind, "|") || kind != "" && kind == strings.ToLower(kind)
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

func isPattern(kind string) (string, bool) {
	if len(kind) > 2 && kind[0] == '/' && kind[len(kind)-1] == '/' {
		return "^(?:" + kind[1:len(kind)-1] + ")$", true
	}
	return "", false
}

// check checks that a word has its type.
func (j judge) check(word typed, command Command) error {
	if word.isProgram() && j.remote && !isASCII(word.word) && !j.limits().Anything {
		return denied("the text %q can be another text in the locale of that place: write it in ASCII", word.word)
	}
	if check, is := kinds[word.kind]; is {
		if check == nil {
			return nil
		}
		return check(j, word.word, command)
	}
	if pattern, is := isPattern(word.kind); is {
		if matched, _ := regexp.MatchString(pattern, word.word); !matched {
			return denied("%s is not granted here", word.word)
		}
		return nil
	}
	if !slices.Contains(strings.Split(word.kind, "|"), word.word) {
		return denied("%s is not granted here; %s is", word.word, word.kind)
	}
	return nil
}

// matching returns a check that a word matches a pattern.
func matching(pattern, what string) func(judge, string, Command) error {
	compiled := regexp.MustCompile("^(?s:" + pattern + ")$")
	return func(_ judge, word string, _ Command) error {
		if !compiled.MatchString(word) {
			return denied("%q is not %s", word, what)
		}
		return nil
	}
}

// reads turns a check of a path into a check of a word.
func reads(check func(judge, string) error) func(judge, string, Command) error {
	return func(j judge, word string, command Command) error {
		path, err := at(word, command.Dir)
		if err != nil {
			return err
		}
		return check(j, path)
	}
}

// header refuses headers that change the method, or that have several lines.
func (j judge) header(word string, _ Command) error {
	name, _, _ := strings.Cut(strings.ToLower(word), ":")
	if strings.Contains(name, "method") {
		return denied("the header %s changes the method", word)
	}
	if strings.ContainsAny(word, "\r\n") {
		return denied("the header has several lines")
	}
	return nil
}

// output accepts a file that the tier may write, or - for the standard output.
func (j judge) output(word string, command Command) error {
	if word == "-" {
		return nil
	}
	return reads(judge.write)(j, word, command)
}

// port accepts ports other than the supervisor's.
func (j judge) port(word string, _ Command) error {
	first, last, isRange := strings.Cut(word, "-")
	low, err := strconv.Atoi(first)
	high := low
	if err == nil && isRange {
		high, err = strconv.Atoi(last)
	}
	if err != nil {
		return denied("the port %s is no number", word)
	}
	for _, door := range j.place.Doors {
		if low <= door.Port && door.Port <= high {
			return &DeniedError{Rule: "doors", Reason: "port " + strconv.Itoa(door.Port) +
				" is the supervisor's own: agents do not ask it"}
		}
	}
	return nil
}

// revision accepts REVISION, REVISION:PATH and PATH for files of the repository that are not secret. The kernel judges
// the files that git opens; what was committed comes from the repository itself.
func (j judge) revision(word string, command Command) error {
	if strings.ContainsAny(word, "*?[") || strings.HasPrefix(word, ":") || strings.Contains(word, ":(") {
		return denied("%s: name revision and files", word)
	}
	file := word[strings.LastIndexByte(word, ':')+1:]
	if file == "" {
		return nil
	}
	return reads(judge.list)(j, file, command)
}

// gitName accepts the name of a branch or remote. It refuses a name that is also the name of a file or directory,
// because git would use the file or directory.
func (j judge) gitName(word string, command Command) error {
	if !gitName.MatchString(word) {
		return denied("%s is not the plain name of a branch or of a remote", word)
	}
	path, err := at(word, command.Dir)
	if err == nil && j.files.Exists(path) {
		return denied("%s is a file or directory, too: git would go there", word)
	}
	return err
}

var gitName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

// method accepts an HTTP method that the tier is granted.
func (j judge) method(word string, _ Command) error {
	if !slices.Contains(j.limits().Methods, word) {
		return denied("the method %s is not granted", word)
	}
	return nil
}

// serviceOf returns the service that a word names, in the ledger's spelling. If the word's type is not a service,
// serviceOf returns false.
func serviceOf(word typed) (string, bool) {
	text := word.word
	switch word.kind {
	case "SERVICE":
		return text, true
	case "UNIT":
		return strings.TrimSuffix(text, ".service"), true
	case "WORKLOAD":
		if _, name, is := strings.Cut(text, "/"); is {
			return name, true
		}
		return text, true
	}
	return "", false
}

// branch accepts a branch to which agents may push. A person reviews the branch before it is merged. Git completes the
// name of a destination with refs/ or refs/heads/ (git-push(1)), so both are removed first.
func (j judge) branch(word string, _ Command) error {
	short := word
	for _, prefix := range []string{"refs/", "heads/"} {
		short = strings.TrimPrefix(short, prefix)
	}
	if !gitName.MatchString(short) || slices.Contains([]string{"refs", "heads", "tags", "remotes"},
		strings.SplitN(short, "/", 2)[0]) {
		return denied("%q is not the plain name of a branch", word)
	}
	if slices.ContainsFunc(j.policy.Branches,
		func(protected string) bool { return strings.EqualFold(protected, short) }) {
		return denied("%s is not pushed to by agents: push a branch of your own and open a pull request", word)
	}
	return nil
}

// resource accepts kinds and names of Kubernetes resources, except Secrets. kubectl accepts a kind in upper or lower
// case, abbreviated, with version and group, and in a list separated by commas.
func (j judge) resource(word string, _ Command) error {
	for one := range strings.SplitSeq(strings.ToLower(word), ",") {
		kind, _, _ := strings.Cut(one, "/")
		kind, _, _ = strings.Cut(kind, ".")
		if strings.Contains(kind, "secret") {
			return denied("Secrets are not read by agents")
		}
	}
	return nil
}

// workload accepts the name of one workload with its kind, as in deployment/web. A kind alone would mean all of them.
func (j judge) workload(word string, command Command) error {
	kind, name, is := strings.Cut(word, "/")
	if !is || kind == "" || name == "" {
		return denied("name the workload with its kind, as in deployment/web: %s alone is all of them", word)
	}
	return j.service(name, command)
}
