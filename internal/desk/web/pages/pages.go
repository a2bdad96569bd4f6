package pages

import (
	"context"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

// Options describe the surroundings of the pages.
type Options struct {
	// Clock returns the current time. The zone of this time is the time zone of the pages.
	Clock func() time.Time
	// TemporalUI returns the address of a chain in Temporal's Web UI; nil if there is no Web UI.
	TemporalUI func(chainID, runID string) string
	// Events is the path of the event stream in the API; empty if there is none, so that pages do not update
	// themselves.
	Events string
	// Position returns the ID of the latest event; nil if it is unknown. A page asks the stream for the events after
	// it, so that it misses nothing between its rendering and its stream.
	Position func() string
}

// Pages are the pages.
type Pages struct {
	backend
	Options

	templates templates
	assets    assets
}

// New returns pages that show what o returns.
func New(o *operations.Operations, options Options) (*Pages, error) {
	return newPages(backendOf(o), options)
}

func newPages(b backend, options Options) (*Pages, error) {
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	p := &Pages{backend: b, Options: options, assets: files}
	p.templates, err = parseTemplates(p.functions())
	return p, err
}

// Register registers all pages, their forms and their files.
func (p *Pages) Register(router *access.Router) {
	for pattern, show := range map[string]handler{
		"GET /{$}":               p.showNow,
		"GET /chains":            p.showChains,
		"GET /chains/{id}":       p.showChain,
		"GET /incidents":         p.showIncidents,
		"GET /incidents/{id}":    p.showIncident,
		"GET /memories":          p.showMemories,
		"GET /memories/{id}":     p.showMemory,
		"GET /sessions/{number}": p.showSession,
		"GET /services":          p.showServices,
		"GET /services/{name}":   p.showService,
		"GET /schedules":         p.showSchedules,
		"GET /schedules/{id}":    p.showSchedule,
		"GET /cost":              p.showCost,
		"GET /policy":            p.showPolicy,
		"GET /{path...}":         p.showUnknown,
	} {
		router.Handle(access.View, pattern, p.serve(show))
	}
	router.Handle(access.ReadTalk, "GET /talk", p.serve(p.showTalk))
	router.Handle(access.ReadTalk, "GET /talk/{name}", p.serve(p.showTalk))
	for pattern, talk := range map[string]handler{
		"POST /talk/{name}/messages":                        p.sendMessage,
		"POST /talk/{name}/turns/{turn}/stop":               p.stopTurn,
		"POST /talk/{name}/turns/{turn}/proposals/{number}": p.confirmProposal,
	} {
		router.Handle(access.Talk, pattern, p.serve(talk))
	}
	for pattern, act := range map[string]handler{
		"POST /chains/{id}/answer": p.answerGate,
		"POST /gates/answer":       p.answerGates,
	} {
		router.Handle(access.Answer, pattern, p.serve(act))
	}
	for pattern, act := range map[string]handler{
		"POST /chains/{id}/escalate":   p.escalateChain,
		"POST /chains/{id}/cancel":     p.cancelChain,
		"POST /chains/cancel":          p.cancelChains,
		"POST /incidents/{id}/close":   p.closeIncident,
		"POST /incidents/close":        p.closeIncidents,
		"POST /memories":               p.addMemory,
		"POST /memories/{id}/confirm":  p.confirmMemory,
		"POST /memories/{id}/edit":     p.editMemory,
		"POST /memories/{id}/delete":   p.deleteMemory,
		"POST /schedules/{id}/pause":   p.pauseSchedule,
		"POST /schedules/{id}/resume":  p.resumeSchedule,
		"POST /schedules/{id}/trigger": p.triggerSchedule,

		"POST /incidents/{id}/acknowledge": p.acknowledgeIncident,
	} {
		router.Handle(access.Operate, pattern, p.serve(act))
	}
	router.Public("GET /assets/{hash}/{name}", p.assets)
	router.Public("GET /favicon.ico", http.HandlerFunc(p.assets.serveIcon))
}

// positionKey is the context key of the ID of the latest event when a request began.
type positionKey struct{}

// handler serves a request. If it returns an error, it has written nothing, and the caller writes a page about the
// error.
type handler func(w http.ResponseWriter, r *http.Request) error

// serve returns the handler h as an http.Handler.
func (p *Pages) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Position != nil && r.Method == http.MethodGet {
			r = r.WithContext(context.WithValue(r.Context(), positionKey{}, p.Position())) // before anything is read
		}
		if err := h(w, r); err != nil {
			p.writeProblem(w, r, problemOf(err))
		}
	})
}
