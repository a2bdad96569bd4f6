package guard

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kinds maps the type names of arguments and option values in a policy to their checks.
var kinds map[string]func(j *judge, word Word, command Command) error

func init() { //nolint:gochecknoinits // breaks an initialization cycle between the table and its functions
	kinds = map[string]func(j *judge, word Word, command Command) error{
		"TEXT":          func(*judge, Word, Command) error { return nil },
		"NAME":          matching(`[^-].*`, "a name"),
		"INT":           matching(`[-+]?[0-9]+[kKmMgGbB]*%?`, "a number"),
		"DURATION":      matching(`[0-9.]+(ns|us|ms|s|m|h|d)?([0-9.]+(ms|s|m))*`, "a time"),
		"MODE":          matching(`[0-7]{3,4}|[ugoa]*[-+=][rwxX]+`, "a mode"),
		"FORMAT":        (*judge).format,
		"HEADER":        (*judge).header,
		"FILE":          reads((*judge).read),
		"TREE":          nil,
		"LIST":          reads((*judge).list),
		"SOURCE":        reads((*judge).source),
		"OUT":           reads((*judge).write),
		"OUTPUT":        (*judge).output,
		"QUERY":         (*judge).query,
		"PORT":          (*judge).port,
		"REV":           (*judge).revision,
		"JQ":            program(checkJQ),
		"APPRISE":       (*judge).apprise,
		"COMPOSE":       (*judge).compose,
		"PLAIN":         reads((*judge).plain),
		"INTO":          reads((*judge).into),
		"OUTFILE":       reads((*judge).writePlain),
		"REMOTE":        (*judge).gitName,
		"REF":           (*judge).gitName,
		"YQ":            (*judge).yq,
		kindDir:         reads((*judge).list),
		"URL":           (*judge).url,
		"HOST":          (*judge).host,
		"METHOD":        (*judge).method,
		"AWK":           program(checkAWK),
		"SED":           program(checkSED),
		"SERVICE":       (*judge).service,
		"UNIT":          (*judge).service,
		"WORKLOAD":      (*judge).service,
		"BRANCH":        (*judge).branch,
		"RESOURCE":      (*judge).resource,
		kindExec:        nil,
		kindMark:        matching(`\{\}|[A-Z%@_]+`, "{}"),
		kindPOSIXScript: nil, kindCommand: nil, kindEnv: nil, kindXargs: nil, kindElsewhere: nil, kindScript: nil, kindRemoteScript: nil,
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

func isPattern(kind string) (string, bool) {
	if len(kind) > 2 && kind[0] == '/' && kind[len(kind)-1] == '/' {
		return "^(?:" + kind[1:len(kind)-1] + ")$", true
	}
	return "", false
}

// check checks that a word has its type.
func (j *judge) check(word typed, command Command) error {
	if word.kind == "TREE" {
		path, err := j.at(word.word, command.Dir)
		if err != nil {
			return err
		}
		return j.readTree(path, word.leaveOut)
	}
	if check, is := kinds[word.kind]; is {
		if check == nil {
			return nil
		}
		return check(j, word.word, command)
	}
	text, isKnown := word.word.Known()
	if pattern, is := isPattern(word.kind); is {
		if matched, _ := regexp.MatchString(pattern, text); !isKnown || !matched {
			return denied("%s is not granted here", word.word)
		}
		return nil
	}
	if !isKnown || !slices.Contains(strings.Split(word.kind, "|"), text) {
		return denied("%s is not granted here; %s is", word.word, word.kind)
	}
	return nil
}

// matching returns a check that a word matches a pattern. An unknown number in the word counts as a digit. Other
// unknown parts are refused, unless the word is a name. In a name, an unknown item (see anyItem) counts as a letter.
// Other unknown text can be anywhere in a name, but not at its beginning.
func matching(pattern, what string) func(*judge, Word, Command) error {
	compiled := regexp.MustCompile("^(?s:" + pattern + ")$")
	return func(_ *judge, word Word, _ Command) error {
		text := strings.ReplaceAll(string(word), string(rune(anyNumber)), "1")
		if what == "a name" {
			text = strings.NewReplacer(string(rune(anyItem)), "x", string(rune(anyItems)), "x").Replace(text)
		}
		unknown := what != "a name" && strings.ContainsAny(text, holes) || strings.IndexAny(text, string([]byte{anyText, anyWords})) == 0
		if unknown || !compiled.MatchString(text) {
			return denied("%s is not %s", word, what)
		}
		return nil
	}
}

// reads turns a check of a path into a check of a word.
func reads(check func(*judge, string) error) func(*judge, Word, Command) error {
	return func(j *judge, word Word, command Command) error {
		path, err := j.at(word, command.Dir)
		if err != nil {
			return err
		}
		return check(j, path)
	}
}

// program returns a check of a word from a check of a program's text, such as an awk program. The text must be known.
func program(check func(string) error) func(*judge, Word, Command) error {
	return func(_ *judge, word Word, _ Command) error {
		text, isKnown := word.Known()
		if !isKnown {
			return unclear("a program with "+word.String()+" in it", "put it into single quotes, and pass values with -v")
		}
		return check(text)
	}
}

// format refuses formats of curl -w that read or write files.
func (j *judge) format(word Word, _ Command) error {
	text, isKnown := word.Known()
	if !isKnown || strings.HasPrefix(text, "@") || strings.Contains(text, "%output") {
		return denied("the format %s may name a file", word)
	}
	return nil
}

// header refuses headers that are read from a file, that change the method, or that have several lines.
func (j *judge) header(word Word, _ Command) error {
	text := string(word)
	name, _, _ := strings.Cut(strings.ToLower(text), ":")
	if strings.Contains(name, "method") {
		return denied("the header %s changes the method", word)
	}
	if strings.ContainsAny(text, "\r\n") {
		return denied("the header has several lines")
	}
	if text == "" || text[0] == '@' || strings.ContainsAny(text[:1], holes) {
		return denied("the header %s may name a file", word)
	}
	return nil
}

// output accepts a file that the tier may write, or - for the standard output.
func (j *judge) output(word Word, command Command) error {
	if word == "-" {
		return nil
	}
	if strings.Contains(string(word), "#") {
		return denied("%s: curl replaces what follows #", word)
	}
	return reads((*judge).write)(j, word, command)
}

// query refuses a query of the form name@file, because curl would read that file.
func (j *judge) query(word Word, _ Command) error {
	if text, isKnown := word.Known(); !isKnown || strings.Contains(text, "@") {
		return denied("%s may be read from a file", word)
	}
	return nil
}

// port accepts ports other than the supervisor's.
func (j *judge) port(word Word, _ Command) error {
	text, isKnown := word.Known()
	if !isKnown {
		return unclear("which port "+word.String()+" is", "write it out")
	}
	first, last, isRange := strings.Cut(text, "-")
	low, err := strconv.Atoi(first)
	high := low
	if err == nil && isRange {
		high, err = strconv.Atoi(last)
	}
	if err != nil {
		return denied("the port %s is no number", text)
	}
	for _, door := range j.place.Doors {
		if low <= door.Port && door.Port <= high {
			return &DeniedError{Rule: "doors", Reason: "port " + strconv.Itoa(door.Port) + " is the supervisor's own: agents do not ask it"}
		}
	}
	return nil
}

// revision accepts REVISION, REVISION:PATH and PATH for files of the repository that are not secret.
func (j *judge) revision(word Word, command Command) error {
	text := string(word)
	if strings.ContainsAny(text, "*?["+holes) || strings.Contains(text, ":(") || strings.HasPrefix(text, ":") {
		return unclear("what "+word.String()+" shows", "name revision and files")
	}
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		text = text[at+1:]
	}
	if text == "" {
		return nil
	}
	path, err := j.at(Word(text), command.Dir)
	if err != nil {
		return err
	}
	paths, err := j.resolve(path)
	if err != nil {
		return err
	}
	for _, one := range paths { // outside of a repository git diff reads any file
		if err := j.secret(one); err != nil {
			return err
		}
		if !j.below(one, j.roots(append([]string{"."}, j.origin()...))) {
			return denied("%s is outside of the repository", one)
		}
	}
	return nil
}

// gitName accepts the name of a branch or remote. It refuses a name that is also the name of a file or directory,
// because git would use the file or directory.
func (j *judge) gitName(word Word, command Command) error {
	text, isKnown := word.Known()
	if !isKnown || !gitName.MatchString(text) {
		return denied("%s is not the plain name of a branch or of a remote", word)
	}
	if paths, complete := j.files.Match(string(command.Dir)+"/"+text, 1); len(paths) > 0 || !complete {
		return denied("%s is a file or directory, too: git would go there", text)
	}
	return nil
}

var gitName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

// yq accepts an expression of yq. It refuses a word that yq would read as a file name or as a command.
func (j *judge) yq(word Word, command Command) error {
	text, isKnown := word.Known()
	if !isKnown || !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "(") && !strings.HasPrefix(text, "[") {
		return denied("begin the expression with a dot, as in '.services'")
	}
	file := string(command.Dir) + "/" + strings.NewReplacer("*", "", "?", "", "[", "", "{", "").Replace(text)
	if paths, complete := j.files.Match(file, 1); text != "." && (len(paths) > 0 || !complete) {
		return denied("%s is a file, too: yq would show it", text)
	}
	return checkJQ(text)
}

// apprise accepts a single URL of a notification service. If the URL has a port, the tier must be permitted to connect
// to the URL's host and port.
func (j *judge) apprise(word Word, _ Command) error {
	text, isKnown := word.Known()
	scheme, rest, is := strings.Cut(text, "://")
	if !isKnown || !is || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return denied("%s is no address of a notification", word)
	}
	if strings.ContainsAny(rest, ", ") || strings.Contains(strings.ToLower(rest), "method=") {
		return denied("%s holds several addresses, or a method", word)
	}
	if parsed, err := url.Parse("http://" + rest); err == nil && parsed.Port() != "" {
		return j.connect(parsed.Hostname(), parsed.Port())
	}
	return nil
}

// compose accepts a compose file in the working directory. If the session has a worktree, the file must instead be in
// the directory from which the worktree was made. The built-in policy forbids Tiers 1 and 2 to write compose files.
func (j *judge) compose(word Word, command Command) error {
	path, err := j.at(word, command.Dir)
	if err != nil {
		return err
	}
	paths, err := j.resolve(path)
	if err != nil {
		return err
	}
	base, from := filepath.Base(paths[1]), []string{"."}
	if j.place.Worktree != nil {
		from = j.origin()
	}
	if !j.below(paths[1], j.roots(from)) || !composeFile.MatchString(base) {
		return denied("%s is no compose file of the working directory", word)
	}
	return nil
}

var composeFile = regexp.MustCompile(`compose.*\.ya?ml$`)

// method accepts an HTTP method that the tier is granted.
func (j *judge) method(word Word, _ Command) error {
	if text, isKnown := word.Known(); !isKnown || !slices.Contains(j.limits().Methods, text) {
		return denied("the method %s is not granted", word)
	}
	return nil
}

// service accepts the name of one service, so that the ledger can count the actions on it.
func (j *judge) service(word Word, _ Command) error {
	text, isKnown := word.Known()
	if !isKnown {
		return unclear("which service "+word.String()+" is", "write its name")
	}
	if text == "" || strings.ContainsAny(text, "*?[],: \t\n") || strings.HasPrefix(text, "-") {
		return denied("%q is not the name of one service", text)
	}
	if containerID.MatchString(text) {
		return denied("write the name of the service, not the id of a container")
	}
	for _, end := range []string{".target", "shell.service"} {
		if strings.HasSuffix(text, end) {
			return denied("%s is no service", text)
		}
	}
	for _, part := range []string{
		"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "hybrid-sleep", "debug-shell", "rescue", "emergency",
	} {
		if strings.Contains(text, part) {
			return denied("%s ends the host, or opens it", text)
		}
	}
	return nil
}

// containerID matches container ids, in full or in docker's abbreviated form.
var containerID = regexp.MustCompile(`^[0-9a-f]{12,64}$`)

// serviceOf returns the service that a word names, in the ledger's spelling. If the word's type is not a service,
// serviceOf returns false.
func serviceOf(word typed) (string, bool) {
	text := string(word.word)
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

// branch accepts a branch to which agents may push. A person reviews the branch before it is merged.
func (j *judge) branch(word Word, _ Command) error {
	text, isKnown := word.Known()
	if !isKnown {
		return unclear("which branch "+word.String()+" is", "write its name")
	}
	short := strings.TrimPrefix(text, "refs/heads/")
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`).MatchString(short) || short == "HEAD" || strings.HasPrefix(short, "refs/") {
		return denied("%q is not the plain name of a branch", text)
	}
	if slices.ContainsFunc(j.policy.Branches, func(protected string) bool { return strings.EqualFold(protected, short) }) {
		return denied("%s is not pushed to by agents: push a branch of your own and open a pull request", text)
	}
	return nil
}

// resource accepts kinds and names of Kubernetes resources, except Secrets. kubectl accepts a kind in upper or lower
// case, abbreviated, with version and group, and in a list separated by commas.
func (j *judge) resource(word Word, _ Command) error {
	text, isKnown := word.Known()
	if !isKnown {
		if word.MayBeOption() || strings.Contains(word.Start(), ",") || !strings.Contains(word.Start(), "/") {
			return unclear("which resource "+word.String()+" is", "write its kind out, as in pod/NAME")
		}
		text = word.Start()
	}
	for one := range strings.SplitSeq(strings.ToLower(text), ",") {
		kind, _, _ := strings.Cut(one, "/")
		kind, _, _ = strings.Cut(kind, ".")
		if strings.Contains(kind, "secret") || kind == "all" && strings.Contains(text, "secret") {
			return denied("Secrets are not read by agents")
		}
	}
	return nil
}

// exec judges the command of find -exec once for each directory in which find starts. It replaces {} with an unknown
// path below that directory.
func (j *judge) exec(words, roots []Word, command Command) error {
	if strings.Contains(string(words[0]), "{}") {
		return unclear("a program that find names", "write the program's name")
	}
	if len(roots) == 0 {
		roots = []Word{"."}
	}
	for _, root := range roots {
		replaced := slices.Clone(words)
		for i, word := range words {
			if word == "{}" {
				replaced[i] = root + Word("/"+string(rune(anyBelow)))
			} else {
				replaced[i] = Word(strings.ReplaceAll(string(word), "{}", string(rune(anyText))))
			}
		}
		if err := j.run(Command{Words: replaced, Dir: command.Dir, Repeated: true}); err != nil {
			return err
		}
	}
	return nil
}
