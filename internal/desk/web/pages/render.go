package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plaintext"
)

//go:embed templates
var templateFiles embed.FS

// templates are the parsed pages, by the name of their file without its extension.
type templates map[string]*template.Template

// parseTemplates parses each page together with the layout and the common parts.
func parseTemplates(functions template.FuncMap) (templates, error) {
	common, err := template.New("").Funcs(functions).ParseFS(templateFiles, "templates/common/*.html")
	if err != nil {
		return nil, err
	}
	files, err := templateFiles.ReadDir("templates")
	parsed := templates{}
	for _, file := range files {
		if file.IsDir() {
			continue
		}
		page, err := common.Clone()
		if err == nil {
			page, err = page.ParseFS(templateFiles, path.Join("templates", file.Name()))
		}
		if err != nil {
			return nil, err
		}
		parsed[strings.TrimSuffix(file.Name(), ".html")] = page
	}
	return parsed, err
}

// view is a page before it is rendered.
type view struct {
	// template is the name of the page's template.
	template string
	// title is the title of the page. It can contain words of agents.
	title string
	// section is the path of the section in the navigation.
	section string
	// parts names the IDs of the elements whose content is fetched again when something changes. Each content has a
	// template with the prefix part-.
	parts []string
	// chain limits the event stream to one chain; empty means all events.
	chain string
	// events is the URL of an event stream of the page's own; empty for that of all pages.
	events string
	// status is the status of the response; 0 means 200.
	status int
	data   any
}

// frame is the data of the layout.
type frame struct {
	Title   string
	Section string
	// Self is the path of the page with its query.
	Self   string
	Person access.Person
	Known  bool
	Flash  *flash
	// Events is the URL of the event stream; empty if the page does not change by itself.
	Events string
	Now    time.Time
	Data   any
}

// Machine returns the time at which the page was rendered, in the form of HTML.
func (f frame) Machine() string { return f.Now.UTC().Format(time.RFC3339) }

// May reports whether the person has a role, by its name.
func (f frame) May(role string) bool { return f.Person.May(access.Role(role)) }

// show renders a page. If htmx asks for a part of the page, show renders only this part.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, v view) error {
	f := frame{
		Title: v.title, Section: v.section, Self: r.URL.RequestURI(), Now: p.Clock(), Data: v.data,
	}
	f.Person, f.Known = access.PersonOf(r.Context())
	switch {
	case v.events != "":
		f.Events = v.events
	case len(v.parts) > 0 && p.Events != "":
		f.Events = p.eventsURL(r, v.chain)
	}
	part := partOf(r)
	name := "part-" + part
	if !slices.Contains(v.parts, part) {
		name = "layout"
		f.Flash = takeFlash(w, r)
	}
	page, err := p.render(v.template, name, f)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store") // a page shows what only some people may see, and is soon out of date
	header.Set("Vary", "HX-Request, HX-Target")
	if v.status != 0 {
		w.WriteHeader(v.status)
	}
	_, _ = w.Write(page) // an error means that the browser has gone
	return nil
}

// render renders a template. It removes control characters and marks that change the direction of text, so that no
// template can forget it.
func (p *Pages) render(page, name string, f frame) ([]byte, error) {
	var b bytes.Buffer
	if err := p.templates[page].ExecuteTemplate(&b, name, f); err != nil {
		return nil, fmt.Errorf("page %s: %w", page, err)
	}
	return []byte(plaintext.Block(b.String())), nil
}

// partOf returns the ID of the element for which htmx fetches new content; empty if the request is for the whole page.
func partOf(r *http.Request) string {
	if r.Header.Get("HX-Request-Type") != "partial" {
		return ""
	}
	_, id, _ := strings.Cut(r.Header.Get("HX-Target"), "#")
	return id
}

// eventsURL returns the URL of the event stream of a chain; of all chains if the ID is empty. The stream begins after
// the last event before the request.
func (p *Pages) eventsURL(r *http.Request, chainID string) string {
	query := url.Values{}
	if chainID != "" {
		query.Set("chain", chainID)
	}
	if position, _ := r.Context().Value(positionKey{}).(string); position != "" {
		query.Set("after", position)
	}
	if len(query) == 0 {
		return p.Events
	}
	return p.Events + "?" + query.Encode()
}
