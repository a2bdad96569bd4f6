package access

import (
	"net/http"
	"slices"
	"strings"
)

// Route is a registered route.
type Route struct {
	// Pattern is the route's pattern for http.ServeMux, with its method.
	Pattern string
	// Role is the role that the route needs; empty if it is public.
	Role Role
}

// Router is a multiplexer whose every route needs a role, or is public by name. A test walks its routes.
type Router struct {
	mux    *http.ServeMux
	routes []Route
	refuse func(w http.ResponseWriter, r *http.Request, known bool)
}

// NewRouter returns a router. It calls refuse for a request whose person lacks the role of the route; known reports
// whether somebody has logged in.
func NewRouter(refuse func(w http.ResponseWriter, r *http.Request, known bool)) *Router {
	return &Router{mux: http.NewServeMux(), refuse: refuse}
}

// Handle registers a route that needs a role. The pattern must name the method.
func (r *Router) Handle(role Role, pattern string, handler http.Handler) {
	if role != ReadTalk && !slices.Contains(Roles(), role) {
		panic("access: " + pattern + " needs a role")
	}
	r.register(Route{pattern, role}, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		person, known := PersonOf(request.Context())
		if !person.May(role) {
			r.refuse(w, request, known)
			return
		}
		handler.ServeHTTP(w, request)
	}))
}

// Public registers a route that needs no login: it must reveal nothing.
func (r *Router) Public(pattern string, handler http.Handler) {
	r.register(Route{Pattern: pattern}, handler)
}

func (r *Router) register(route Route, handler http.Handler) {
	if method, _, found := strings.Cut(route.Pattern, " "); !found || method == "" {
		panic("access: " + route.Pattern + " names no method")
	}
	r.routes = append(r.routes, route)
	r.mux.Handle(route.Pattern, handler)
}

// Routes returns all routes, in the order in which they were registered.
func (r *Router) Routes() []Route { return slices.Clone(r.routes) }

// ServeHTTP implements http.Handler.
func (r *Router) ServeHTTP(w http.ResponseWriter, request *http.Request) { r.mux.ServeHTTP(w, request) }
