package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Run runs the project's program with arguments and a standard input, and returns its exit code and what it printed. An
// error means that the program could not be run to its end.
type Run func(ctx context.Context, args []string, input []byte) (Answer, error)

// Answer is the result of a program.
type Answer struct {
	Code           int
	Output, Errors string
}

// RefusedError says that the forge refuses a request, or that there is no login. The same request would be refused
// again.
type RefusedError struct{ reason string }

func (r *RefusedError) Error() string { return r.reason }

// LimitedError says that the forge has had too many requests from this login. The same request succeeds later.
type LimitedError struct{ reason string }

func (l *LimitedError) Error() string { return l.reason }

// Client opens and reads the pull requests of a project.
type Client struct {
	project Project
	run     Run
}

// NewClient returns a client for a project.
func NewClient(project Project, run Run) Client { return Client{project, run} }

// PullRequest is an open pull request.
type PullRequest struct {
	Number int
	URL    string
}

// Proposal is a branch of the project with the texts of its pull request.
type Proposal struct {
	Branch, Title, Body string
}

// Propose opens a pull request for a branch. If there is one already, Propose replaces its text, so a repeated call
// opens no second one.
func (c Client) Propose(ctx context.Context, proposal Proposal) (PullRequest, error) {
	known, err := c.find(ctx, proposal.Branch)
	if err != nil {
		return PullRequest{}, err
	}
	if known != nil {
		return *known, c.rewrite(ctx, *known, proposal.Body)
	}
	opened, err := c.open(ctx, proposal)
	if _, refused := errors.AsType[*RefusedError](err); !refused {
		return opened, err
	}
	// The list of pull requests can lack one that an earlier call has just opened.
	if known, findErr := c.find(ctx, proposal.Branch); findErr == nil && known != nil {
		return *known, c.rewrite(ctx, *known, proposal.Body)
	}
	return PullRequest{}, err
}

// Comment adds a comment to the open pull request of a branch, unless one of its comments contains the line marker. If
// there is no pull request, Comment returns nil.
func (c Client) Comment(ctx context.Context, branch, marker, text string) (*PullRequest, error) {
	known, err := c.find(ctx, branch)
	if known == nil || err != nil {
		return nil, err
	}
	listed, err := c.call(ctx, "GET", c.comments(known.Number)+"?per_page=100", nil)
	if err != nil {
		return nil, err
	}
	comments, err := decodeList[struct{ Body string }](listed)
	if err != nil {
		return nil, err
	}
	for _, comment := range comments {
		for line := range strings.Lines(comment.Body) {
			if strings.TrimSpace(line) == marker {
				return known, nil
			}
		}
	}
	_, err = c.call(ctx, "POST", c.comments(known.Number), map[string]string{"body": text})
	return known, err
}

// found is a pull request as the forges describe it.
type found struct {
	Number  int    `json:"number"`
	IID     int    `json:"iid"`
	HTMLURL string `json:"html_url"`
	WebURL  string `json:"web_url"`
	// GitLab lists the requests of forks, too.
	Source int `json:"source_project_id"`
	Target int `json:"target_project_id"`
}

// addressPattern matches the address of a pull request. It contains nothing that Markdown or a chat service interprets.
var addressPattern = regexp.MustCompile(`^https?://[A-Za-z0-9.:-]+(/[A-Za-z0-9._-]+)+$`)

// pullRequest checks and returns the pull request. The address becomes a link in pages and notifications.
func (f found) pullRequest(host string) (PullRequest, error) {
	one := PullRequest{Number: f.Number, URL: f.HTMLURL}
	if f.IID != 0 {
		one = PullRequest{Number: f.IID, URL: f.WebURL}
	}
	parsed, err := url.Parse(one.URL)
	if err != nil || one.Number == 0 || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.User != nil ||
		!strings.EqualFold(parsed.Hostname(), withoutPort(host)) || !addressPattern.MatchString(one.URL) {
		return PullRequest{}, fmt.Errorf("the forge has answered with no pull request of %s", host)
	}
	return one, nil
}

// find returns the open pull request of a branch of the project itself; nil if there is none.
func (c Client) find(ctx context.Context, branch string) (*PullRequest, error) {
	owner, _, _ := strings.Cut(c.project.Path, "/")
	query := "?state=open&head=" + url.QueryEscape(owner+":"+branch)
	if c.project.Program == GitLab {
		query = "?state=opened&source_branch=" + url.QueryEscape(branch)
	}
	listed, err := c.call(ctx, "GET", c.requests()+query, nil)
	if err != nil {
		return nil, err
	}
	all, err := decodeList[found](listed)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Source == one.Target {
			known, err := one.pullRequest(c.project.Host)
			return &known, err
		}
	}
	return nil, nil
}

func (c Client) open(ctx context.Context, proposal Proposal) (PullRequest, error) {
	base, err := c.base(ctx)
	if err != nil {
		return PullRequest{}, err
	}
	fields := map[string]string{"title": proposal.Title, "head": proposal.Branch, "base": base, "body": proposal.Body}
	if c.project.Program == GitLab {
		fields = map[string]string{
			"title": proposal.Title, "source_branch": proposal.Branch, "target_branch": base,
			"description": proposal.Body,
		}
	}
	answer, err := c.call(ctx, "POST", c.requests(), fields)
	if err != nil {
		return PullRequest{}, err
	}
	var opened found
	if err := json.Unmarshal(answer, &opened); err != nil {
		return PullRequest{}, fmt.Errorf("read the answer of the forge: %w", err)
	}
	return opened.pullRequest(c.project.Host)
}

// rewrite replaces the text of a pull request.
func (c Client) rewrite(ctx context.Context, known PullRequest, body string) error {
	method, field := "PATCH", "body"
	if c.project.Program == GitLab {
		method, field = "PUT", "description"
	}
	_, err := c.call(ctx, method, c.requests()+"/"+strconv.Itoa(known.Number), map[string]string{field: body})
	return err
}

// base returns the branch into which changes are merged.
func (c Client) base(ctx context.Context) (string, error) {
	if c.project.Base != "" {
		return c.project.Base, nil
	}
	answer, err := c.call(ctx, "GET", c.root(), nil)
	if err != nil {
		return "", err
	}
	var project struct {
		DefaultBranch string `json:"default_branch"`
	}
	if err := json.Unmarshal(answer, &project); err != nil || project.DefaultBranch == "" {
		return "", fmt.Errorf("the forge names no default branch of %s", c.project.Path)
	}
	return project.DefaultBranch, nil
}

// root returns the endpoint of the project.
func (c Client) root() string {
	if c.project.Program == GitLab {
		return "projects/" + url.PathEscape(c.project.Path)
	}
	return "repos/" + c.project.Path
}

// requests returns the endpoint of the project's pull requests.
func (c Client) requests() string {
	if c.project.Program == GitLab {
		return c.root() + "/merge_requests"
	}
	return c.root() + "/pulls"
}

// comments returns the endpoint of the comments on a pull request.
func (c Client) comments(number int) string {
	if c.project.Program == GitLab {
		return fmt.Sprintf("%s/%d/notes", c.requests(), number)
	}
	return fmt.Sprintf("%s/issues/%d/comments", c.root(), number)
}

// statusPattern finds the status of an answer in what the programs print about errors, such as "gh: Not Found (HTTP
// 404)".
var statusPattern = regexp.MustCompile(`\bHTTP[ :]*([1-5]\d{2})\b`)

// exitNoLogin is the exit code of gh without a login.
const exitNoLogin = 4

// call sends one request, with fields as JSON unless they are nil. A GET returns all pages.
func (c Client) call(ctx context.Context, method, endpoint string, fields map[string]string) ([]byte, error) {
	args := []string{"api", "--hostname", c.project.Host, "--method", method}
	var input []byte
	switch {
	case fields != nil:
		var err error
		if input, err = json.Marshal(fields); err != nil {
			return nil, err
		}
		args = append(args, "--header", "Content-Type: application/json", "--input", "-")
	case strings.Contains(endpoint, "?"):
		args = append(args, "--paginate")
	}
	answer, err := c.run(ctx, append(args, endpoint), input)
	if err != nil {
		return nil, err
	}
	if answer.Code == 0 {
		return []byte(answer.Output), nil
	}
	said := answer.Errors
	if said == "" {
		said = answer.Output
	}
	reason := fmt.Sprintf("%s: exit code %d: %s", c.project.Program, answer.Code,
		plaintext.Cut(plaintext.Compact(said), 300))
	status := ""
	if match := statusPattern.FindStringSubmatch(answer.Errors); len(match) > 1 {
		status = match[1]
	}
	switch {
	case status == "429" || status == "403" && strings.Contains(strings.ToLower(said), "rate limit"):
		return nil, &LimitedError{reason}
	case answer.Code == exitNoLogin || strings.HasPrefix(status, "4") && status != "408":
		return nil, &RefusedError{reason}
	}
	return nil, errors.New(reason)
}

// decodeList decodes a list. With several pages, the programs can print one list after the other.
func decodeList[T any](text []byte) (all []T, err error) {
	pages := json.NewDecoder(bytes.NewReader(text))
	for {
		var page []T
		switch err := pages.Decode(&page); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read the answer of the forge: %w", err)
		}
		all = append(all, page...)
	}
}
