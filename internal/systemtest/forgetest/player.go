package forgetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Exit codes of gh (https://cli.github.com/manual/gh_help_exit-codes). Those of glab are 0 and 1.
const (
	exitFailed  = 1
	exitNoLogin = 4
)

// player plays one call of gh or glab.
type player struct {
	state

	call Call
}

func (p *player) gitlab() bool { return p.call.Program == "glab" }

// play returns the exit code.
func (p *player) play() int {
	args := p.call.Args
	switch {
	case len(args) > 1 && args[0] == "auth" && args[1] == "status":
		return p.login(option(args, "--hostname"))
	case len(args) > 1 && args[0] == "api":
		return p.api()
	case len(args) > 1 && (args[0] == "pr" || args[0] == "mr") && args[1] == "create":
		return p.create()
	}
	return p.fail(exitFailed, "unknown command %q", args)
}

func (p *player) fail(code int, format string, args ...any) int {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
	return code
}

// option returns the value of an option; "" if it is not given.
func option(args []string, name string) string {
	if at := slices.Index(args, name); at >= 0 && at+1 < len(args) {
		return args[at+1]
	}
	return ""
}

func (p *player) login(host string) int {
	if slices.Contains(p.Hosts, host) {
		return 0
	}
	return p.fail(exitFailed, "You are not logged into any accounts on %s", host)
}

// create opens a pull request as "gh pr create" and "glab mr create" do, and prints its address.
func (p *player) create() int {
	branch := option(p.call.Args, "--head")
	body := option(p.call.Args, "--body")
	if p.gitlab() {
		branch, body = option(p.call.Args, "--source-branch"), option(p.call.Args, "--description")
	}
	if known := p.open(branch); known != nil {
		return p.fail(exitFailed, "a pull request for branch %q into branch \"main\" already exists:\n%s",
			branch, p.address("github.com", known.Number))
	}
	one := PullRequest{Branch: branch, Base: "main", Title: option(p.call.Args, "--title"), Body: body}
	p.add(&one)
	fmt.Println(p.address("github.com", one.Number)) //nolint:forbidigo // its output
	return 0
}

func (p *player) address(host string, number int) string {
	if p.gitlab() {
		return fmt.Sprintf("https://%s/acme/infra/-/merge_requests/%d", host, number)
	}
	return fmt.Sprintf("https://%s/acme/infra/pull/%d", host, number)
}

// api answers one request as "gh api" and "glab api" do: the answer of the forge is on the standard output, also if the
// request has failed, and the error with its status on the standard error.
func (p *player) api() int {
	args := p.call.Args
	host, method, endpoint := option(args, "--hostname"), option(args, "--method"), args[len(args)-1]
	if !slices.Contains(p.Hosts, host) {
		if p.gitlab() {
			return p.fail(exitFailed, "glab: 401 Unauthorized (HTTP 401)")
		}
		return p.fail(exitNoLogin, "To get started with GitHub CLI, please run:  gh auth login")
	}
	var fields map[string]string
	if option(args, "--input") == "-" {
		if err := json.Unmarshal([]byte(p.call.Input), &fields); err != nil {
			return p.failed(http.StatusBadRequest, "Problems parsing JSON")
		}
	}
	failure := p.Failure
	fails := p.fails(method, endpoint)
	if fails && !failure.After {
		return p.failed(failure.Status, cmp.Or(failure.Reason, http.StatusText(failure.Status)))
	}
	answer, status, message := p.answer(request{host, method, endpoint, fields})
	if status >= http.StatusBadRequest {
		return p.failed(status, message)
	}
	if fails {
		return p.failed(failure.Status, cmp.Or(failure.Reason, http.StatusText(failure.Status)))
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	// The programs print one list for each page.
	if pages, list := answer.([]any); list && len(pages) > 1 && slices.Contains(args, "--paginate") {
		for _, page := range pages {
			one, _ := json.Marshal([]any{page})
			_, _ = os.Stdout.Write(one)
		}
		return 0
	}
	_, _ = os.Stdout.Write(text)
	return 0
}

func (p *player) failed(status int, message string) int {
	_, _ = fmt.Fprintf(os.Stdout, `{"message":%q}`, message)
	return p.fail(exitFailed, "%s: %s (HTTP %d)", p.call.Program, message, status)
}

// request is a request to the API of a forge.
type request struct {
	host, method, endpoint string
	fields                 map[string]string
}

var (
	gitHubEndpoint = regexp.MustCompile(`^repos/([^/]+/[^/]+)(?:/(pulls|issues)(?:/([0-9]+)(/comments)?)?)?$`)
	gitLabEndpoint = regexp.MustCompile(`^projects/([^/]+)(?:/(merge_requests)(?:/([0-9]+)(/notes)?)?)?$`)
)

// answer returns what the forge answers.
func (p *player) answer(r request) (answer any, status int, message string) {
	path, query, _ := strings.Cut(r.endpoint, "?")
	values, err := url.ParseQuery(query)
	pattern := gitHubEndpoint
	if p.gitlab() {
		pattern = gitLabEndpoint
	}
	match := pattern.FindStringSubmatch(path)
	if match == nil || err != nil || strings.ReplaceAll(match[1], "%2F", "/") != "acme/infra" {
		return nil, http.StatusNotFound, "Not Found"
	}
	number, _ := strconv.Atoi(match[3])
	if number > len(p.PullRequests) {
		return nil, http.StatusNotFound, "Not Found"
	}
	switch {
	case match[4] != "":
		return p.comments(r, &p.PullRequests[number-1])
	case number > 0:
		return p.update(r, &p.PullRequests[number-1])
	case match[2] != "" && r.method == http.MethodPost:
		return p.propose(r)
	case match[2] != "":
		return p.list(r.host, values), http.StatusOK, ""
	}
	return map[string]string{"default_branch": "main"}, http.StatusOK, ""
}

func (p *player) comments(r request, of *PullRequest) (answer any, status int, message string) {
	if r.method == http.MethodPost {
		of.Comments = append(of.Comments, r.fields["body"])
		return map[string]string{"body": r.fields["body"]}, http.StatusCreated, ""
	}
	listed := []any{}
	for _, comment := range of.Comments {
		listed = append(listed, map[string]string{"body": comment})
	}
	return listed, http.StatusOK, ""
}

func (p *player) update(r request, of *PullRequest) (answer any, status int, message string) {
	switch {
	case !p.gitlab() && r.method == http.MethodPatch:
		of.Body = r.fields["body"]
	case p.gitlab() && r.method == http.MethodPut:
		of.Body = r.fields["description"]
	default:
		return nil, http.StatusNotFound, "Not Found"
	}
	return p.shown(r.host, *of), http.StatusOK, ""
}

func (p *player) propose(r request) (answer any, status int, message string) {
	one := PullRequest{
		Branch: r.fields["head"], Base: r.fields["base"], Title: r.fields["title"],
		Body: r.fields["body"],
	}
	exists, already := http.StatusUnprocessableEntity, "Validation Failed"
	if p.gitlab() {
		one = PullRequest{
			Branch: r.fields["source_branch"], Base: r.fields["target_branch"], Title: r.fields["title"],
			Body: r.fields["description"],
		}
		exists, already = http.StatusConflict, "Another open merge request already exists for this source branch"
	}
	if p.open(one.Branch) != nil || one.Branch == "" || one.Base == "" || one.Title == "" {
		return nil, exists, already
	}
	p.add(&one)
	return p.shown(r.host, one), http.StatusCreated, ""
}

// list returns the pull requests that a query selects.
func (p *player) list(host string, query url.Values) []any {
	listed := []any{}
	for _, one := range p.PullRequests {
		if !p.gitlab() && (query.Get("head") != "acme:"+one.Branch || one.Fork || query.Get("state") != "open") {
			continue
		}
		if p.gitlab() && (query.Get("source_branch") != one.Branch || query.Get("state") != "opened") {
			continue
		}
		if !one.Closed {
			listed = append(listed, p.shown(host, one))
		}
	}
	return listed
}

// shown returns a pull request in the form of the forge.
func (p *player) shown(host string, one PullRequest) map[string]any {
	address := p.address(host, one.Number)
	if !p.gitlab() {
		return map[string]any{"number": one.Number, "html_url": address, "title": one.Title, "body": one.Body}
	}
	source := 7
	if one.Fork {
		source = 8
	}
	return map[string]any{
		"iid": one.Number, "id": 1000 + one.Number, "web_url": address, "source_project_id": source,
		"target_project_id": 7, "title": one.Title, "description": one.Body,
	}
}
