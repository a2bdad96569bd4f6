package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
)

// newRouter returns the routes of an API on these operations.
func newRouter(o *operations.Operations, hub *stream.Hub) *access.Router {
	router := access.NewRouter(func(w http.ResponseWriter, _ *http.Request, known bool) {
		if known {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	New(o, hub, "test").Register(router)
	return router
}

func TestRolesOfRoutes(t *testing.T) {
	t.Parallel()
	router := newRouter(operations.New(operations.Options{}), stream.NewHub(nil, nil))
	roles := map[string]access.Role{
		"POST /api/v1/chains":                           access.Operate,
		"POST /api/v1/plans":                            access.Operate,
		"POST /api/v1/chains/{chain_id}/escalate":       access.Operate,
		"POST /api/v1/chains/{chain_id}/cancel":         access.Operate,
		"POST /api/v1/chains/{chain_id}/gate":           access.Answer,
		"POST /api/v1/incidents/{incident}/close":       access.Operate,
		"POST /api/v1/incidents/{incident}/acknowledge": access.Operate,
		"POST /api/v1/schedules/{schedule_id}/pause":    access.Operate,
		"POST /api/v1/schedules/{schedule_id}/resume":   access.Operate,
		"POST /api/v1/schedules/{schedule_id}/trigger":  access.Operate,
		"POST /api/v1/policy/check":                     access.View, // changes nothing

		"POST /api/v1/memories":                  access.Operate,
		"POST /api/v1/memories/{memory}/confirm": access.Operate,
		"POST /api/v1/memories/{memory}/edit":    access.Operate,
		"POST /api/v1/memories/{memory}/delete":  access.Operate,

		"POST /api/v1/conversations/{name}/messages":                                access.Talk,
		"POST /api/v1/conversations/{name}/stop":                                    access.Talk,
		"POST /api/v1/conversations/{name}/end":                                     access.Talk,
		"POST /api/v1/conversations/{name}/turns/{turn}/proposals/{number}/confirm": access.Talk, // checks that of the act, too
	}
	posts := 0
	for _, route := range router.Routes() {
		if strings.HasPrefix(route.Pattern, "POST ") {
			posts++
			require.Equal(t, roles[route.Pattern], route.Role, route.Pattern)
			continue
		}
		require.True(t, strings.HasPrefix(route.Pattern, "GET "), route.Pattern)
		role := access.View
		if strings.HasPrefix(route.Pattern, "GET /api/v1/conversations") {
			role = access.ReadTalk
		}
		require.Equal(t, role, route.Role, route.Pattern)
	}
	require.Len(t, roles, posts)
	for _, route := range router.Routes() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		require.Equal(t, http.StatusUnauthorized, answer.Code, route.Pattern)
	}
}

func TestOperationWithoutRole(t *testing.T) {
	t.Parallel()
	router := access.NewRouter(nil)
	require.PanicsWithValue(t, "api: lost has no role", func() {
		adapter{router}.Handle(&huma.Operation{OperationID: "lost", Method: http.MethodGet, Path: "/lost"}, nil)
	})
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		http.StatusUnprocessableEntity: serviceerror.NewInvalidArgument("a bad filter"),
		http.StatusNotFound:            operations.ErrNoSuchChain,
		http.StatusConflict:            operations.ErrNoGate,
		http.StatusGatewayTimeout:      serviceerror.NewDeadlineExceeded("late"),
		http.StatusServiceUnavailable:  errors.New("the database\nis away"),
		http.StatusTooManyRequests:     &access.TooManyError{After: 6 * time.Second},
	} {
		answer := httptest.NewRecorder()
		writeProblem(answer, err)
		require.Equal(t, want, answer.Code)
		require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
		var model huma.ErrorModel
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &model))
		require.Equal(t, want, model.Status)
		require.NotContains(t, model.Detail, "\n")
	}
	field := modelOf(operations.Invalid(&operations.FieldError{Field: "limit", Problem: "0 is less than one chain"}))
	require.Equal(t, "limit 0 is less than one chain", field.Detail)
	require.Equal(t, []*huma.ErrorDetail{{Location: "limit", Message: "0 is less than one chain"}}, field.Errors)
}

func TestPages(t *testing.T) {
	t.Parallel()
	same := func(s string) string { return s }
	all := []string{"a", "b-1", "c", "d", "e"}
	shown, next, err := cut(all, Page{Limit: 2}, same)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b-1"}, shown)
	for name, now := range map[string][]string{"unchanged": all, "moved": {"new", "a", "b-1", "c", "d"}, "the last one has gone": {"a", "x", "c", "d"}} {
		shown, _, err = cut(now, Page{Limit: 2, After: next}, same)
		require.NoError(t, err)
		require.Equal(t, []string{"c", "d"}, shown, name)
	}
	shown, next, err = cut(all, Page{Limit: 5}, same)
	require.NoError(t, err)
	require.Len(t, shown, 5)
	require.Empty(t, next)
	shown, _, err = cut(all[:0], Page{Limit: 5, After: "7-x"}, same)
	require.NoError(t, err)
	require.NotNil(t, shown)
	for _, after := range []string{"x", "-1-a", "3", "99999999999999999999-a"} {
		_, _, err = cut(all, Page{Limit: 5, After: after}, same)
		require.ErrorIs(t, err, errPage, after)
	}
}
