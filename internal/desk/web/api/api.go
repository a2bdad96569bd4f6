package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
)

// beStrict makes huma refuse a field whose case differs, such as Prompt. By default it accepts all spellings.
var beStrict = sync.OnceFunc(func() { huma.ValidateStrictCasing = true })

// prefix is the beginning of every path. A change that breaks clients gets another one.
const prefix = "/api/v1"

// API is a part of the web server.
type API struct {
	operations *operations.Operations
	hub        *stream.Hub
	version    string
	// waiting limits the requests that wait for turns.
	waiting access.Crowd
}

// New returns the API. The hub serves the event stream. The version is that of this program, for the OpenAPI document.
func New(o *operations.Operations, hub *stream.Hub, version string) *API {
	return &API{o, hub, version, access.NewCrowd(maxWaits)}
}

// Register adds the routes of the API.
func (a *API) Register(router *access.Router) {
	beStrict()
	routes := routes{huma.NewAPI(describe(a.version), adapter{router})}
	a.registerChains(routes)
	a.registerPlans(routes)
	a.registerSessions(routes)
	a.registerGates(routes)
	a.registerIncidents(routes)
	a.registerAlerts(routes)
	a.registerConversations(routes)
	a.registerMemories(routes)
	a.registerServices(routes)
	a.registerSchedules(routes)
	a.registerOverview(routes)
	a.registerPolicy(routes)
	a.registerStreams(routes, router)
	document, err := json.Marshal(routes.OpenAPI())
	if err != nil {
		panic("api: the OpenAPI document: " + err.Error())
	}
	router.Handle(access.View, "GET "+prefix+"/openapi.json",
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/openapi+json")
			_, _ = w.Write(document)
		}))
	router.Handle(access.View, "GET "+prefix+"/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		access.WriteProblem(w, http.StatusNotFound,
			fmt.Errorf("there is nothing here; %s/openapi.json lists what there is", prefix))
	}))
}

// security is the name of the login in the OpenAPI document.
const security = "token"

// describe returns the settings of huma, with the head of the OpenAPI document.
func describe(version string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", nameSchema)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Claude Ops", Version: version,
				Description: "Start, read and direct escalation chains of Claude agents. " +
					"Errors are problem details (RFC 9457), in one sentence.",
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{security: {
					Type: "http", Scheme: "bearer", Description: "A token that `claudeops web token` has made.",
				}},
			},
			Security: []map[string][]string{{security: {}}},
		},
		Formats: huma.DefaultFormats, DefaultFormat: "application/json", RejectUnknownQueryParameters: true,
	}
}

// nameSchema names the schema of a type. Types of packages that have namesakes of the domain's types get the package's
// name as well.
func nameSchema(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch path.Base(t.PkgPath()) {
	case "guard":
		return "Guard" + name
	case "stream":
		return "Stream" + name
	case "memory":
		return "Memory" + strings.TrimPrefix(name, "Memory")
	default:
		return name
	}
}

// adapter registers huma's operations on the server's router, so that none is without a role.
type adapter struct{ *access.Router }

var _ huma.Adapter = adapter{}

// roleKey is the key of an operation's role in its metadata.
const roleKey = "role"

// Handle implements huma.Adapter. It panics if the operation has no role.
func (a adapter) Handle(operation *huma.Operation, handler func(huma.Context)) {
	role, found := operation.Metadata[roleKey].(access.Role)
	if !found {
		panic("api: " + operation.OperationID + " has no role")
	}
	a.Router.Handle(role, operation.Method+" "+operation.Path,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler(humago.NewContext(operation, r, w))
		}))
}

// routes is the set of the API's operations.
type routes struct{ huma.API }

// route describes an operation for both sides: add serves it, and call of a Client asks for it. In holds what the
// request says, in huma's tags and the field Body; Out is the body of the answer.
type route[In, Out any] struct {
	role access.Role
	// pattern is the method and the path after the prefix.
	pattern string
	id      string
	summary string
	tag     string
	// status is the status of a success; 0 means 200.
	status int
	// maxBody limits the body, in bytes; 0 means 64 KiB.
	maxBody int64
}

// reply is an answer with a body. The status 0 stands for that of the route.
type reply[Out any] struct {
	Status int
	Body   Out
}

// add serves a route by handler, whose errors become problems.
func add[In, Out any](r routes, described route[In, Out], handler func(context.Context, *In) (Out, error)) {
	addAnswer(r, described, func(ctx context.Context, in *In) (reply[Out], error) {
		body, err := handler(ctx, in)
		return reply[Out]{Body: body}, err
	})
}

// addAnswer is add with a handler that chooses the status.
func addAnswer[In, Out any](
	r routes, described route[In, Out], handler func(context.Context, *In) (reply[Out], error),
) {
	method, where, _ := strings.Cut(described.pattern, " ")
	operation := huma.Operation{
		OperationID: described.id, Method: method, Path: prefix + where, Summary: described.summary,
		Tags: []string{described.tag}, DefaultStatus: cmp.Or(described.status, http.StatusOK),
		MaxBodyBytes: cmp.Or(described.maxBody, 64<<10),
		Errors: []int{
			http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
			http.StatusServiceUnavailable,
		},
		Description: "Needs the role " + string(described.role) + ".",
		Metadata:    map[string]any{roleKey: described.role},
	}
	huma.Register(r.API, operation, func(ctx context.Context, in *In) (*reply[Out], error) {
		out, err := handler(ctx, in)
		if err != nil {
			return nil, problem(err)
		}
		out.Status = cmp.Or(out.Status, operation.DefaultStatus)
		return &out, nil
	})
}

// personIn returns the person who sends the request. The router lets nobody else in.
func personIn(ctx context.Context) access.Person {
	person, _ := access.PersonOf(ctx)
	return person
}

// personOf returns the name of the person who sends the request.
func personOf(ctx context.Context) string { return personIn(ctx).Name }
