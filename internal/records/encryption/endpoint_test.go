package encryption_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/claudeops/claudeops/internal/records/encryption"
)

const (
	token  = "0123456789abcdef0123456789abcdef"
	origin = "https://temporal.example.org"
)

// codecServer serves an endpoint with the keys new and old.
func codecServer(t *testing.T) (*httptest.Server, *encryption.Keys) {
	t.Helper()
	keys := readKeys(t, keyOf("new", 'a'), keyOf("old", 'b'))
	server := httptest.NewServer(encryption.Endpoint{Keys: keys, Token: token, Origin: origin}.Handler())
	t.Cleanup(server.Close)
	return server, keys
}

// answered is a response without its body.
type answered struct {
	status int
	header http.Header
}

// send sends payloads with headers ("Name: value"), and returns the answer and its body.
func send(t *testing.T, c *http.Client, url string, body []byte, headers ...string) (answered, []byte) {
	t.Helper()
	method := http.MethodPost
	if body == nil {
		method = http.MethodOptions
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := c.Do(request)
	require.NoError(t, err)
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return answered{response.StatusCode, response.Header}, answer
}

func asJSON(t *testing.T, payloads ...*commonpb.Payload) []byte {
	t.Helper()
	encoded, err := protojson.Marshal(&commonpb.Payloads{Payloads: payloads})
	require.NoError(t, err)
	return encoded
}

func TestEndpointDecodes(t *testing.T) {
	t.Parallel()
	server, keys := codecServer(t)
	unknown := encode(t, readKeys(t, keyOf("others", 'c')))
	response, answer := send(t, server.Client(), server.URL+"/decode",
		asJSON(t, encode(t, keys), encode(t, readKeys(t, keyOf("old", 'b'))), encode(t, nil), unknown), "Authorization: Bearer "+token)
	require.Equal(t, http.StatusOK, response.status, string(answer))
	var decoded commonpb.Payloads
	require.NoError(t, protojson.Unmarshal(answer, &decoded))
	require.Len(t, decoded.GetPayloads(), 4)
	for _, payload := range decoded.GetPayloads()[:3] {
		require.JSONEq(t, `{"text":"`+told+`"}`, string(payload.GetData()))
	}
	require.Equal(t, unknown.GetData(), decoded.GetPayloads()[3].GetData(), "it stays as it is")

	response, answer = send(t, server.Client(), server.URL+"/encode", asJSON(t, encode(t, nil)), "Authorization: Bearer "+token)
	require.Equal(t, http.StatusOK, response.status)
	require.NoError(t, protojson.Unmarshal(answer, &decoded))
	text, err := decode(decoded.GetPayloads()[0], keys)
	require.NoError(t, err)
	require.Equal(t, told, text)

	wrong := encode(t, readKeys(t, keyOf("new", 'z')))
	response, answer = send(t, server.Client(), server.URL+"/decode", asJSON(t, wrong), "Authorization: Bearer "+token)
	require.Equal(t, http.StatusBadRequest, response.status)
	require.Contains(t, string(answer), `key "new" is not the one that it was encrypted with`)
}

func TestEndpointRefuses(t *testing.T) {
	t.Parallel()
	server, keys := codecServer(t)
	body := asJSON(t, encode(t, keys))
	for name, tt := range map[string]struct {
		path    string
		body    []byte
		headers []string
		want    int
	}{
		"no token":         {"/decode", body, nil, http.StatusUnauthorized},
		"a wrong token":    {"/decode", body, []string{"Authorization: Bearer " + token + "x"}, http.StatusUnauthorized},
		"no bearer":        {"/decode", body, []string{"Authorization: Basic " + token}, http.StatusUnauthorized},
		"an empty token":   {"/encode", body, []string{"Authorization: Bearer "}, http.StatusUnauthorized},
		"a forged cookie":  {"/decode", body, []string{"Cookie: claudeops-codec=9999999999.00"}, http.StatusUnauthorized},
		"another page":     {"/decode", body, []string{"Authorization: Bearer " + token, "Origin: https://evil.example"}, http.StatusForbidden},
		"another path":     {"/x/decode", body, []string{"Authorization: Bearer " + token}, http.StatusNotFound},
		"no JSON":          {"/decode", []byte("x"), []string{"Authorization: Bearer " + token}, http.StatusBadRequest},
		"too much":         {"/decode", bytes.Repeat([]byte(" "), 9<<20), []string{"Authorization: Bearer " + token}, http.StatusBadRequest},
		"a page preflight": {"/decode", nil, []string{"Origin: https://evil.example"}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, answer := send(t, server.Client(), server.URL+tt.path, tt.body, tt.headers...)
			require.Equal(t, tt.want, response.status, string(answer))
			require.NotContains(t, string(answer), told)
			require.Empty(t, response.header.Get("Access-Control-Allow-Origin"))
		})
	}
	open := httptest.NewServer(encryption.Endpoint{Keys: keys}.Handler())
	t.Cleanup(open.Close)
	response, _ := send(t, open.Client(), open.URL+"/decode", body, "Authorization: Bearer ")
	require.Equal(t, http.StatusUnauthorized, response.status, "an endpoint without a token admits nobody")
}

// TestEndpointForTheWebUI sends the requests of the Web UI's page: a preflight without credentials, then the call, with
// the token or with the cookie from the link.
func TestEndpointForTheWebUI(t *testing.T) {
	t.Parallel()
	server, keys := codecServer(t)
	response, _ := send(t, server.Client(), server.URL+"/decode", nil, "Origin: "+origin,
		"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type,x-namespace")
	require.Equal(t, http.StatusNoContent, response.status)
	requireCORS := func(response answered) {
		require.Equal(t, origin, response.header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "true", response.header.Get("Access-Control-Allow-Credentials"))
		require.Equal(t, "Origin", response.header.Get("Vary"))
	}
	requireCORS(response)
	require.Equal(t, "POST", response.header.Get("Access-Control-Allow-Methods"))
	require.Equal(t, "Authorization, Content-Type, X-Namespace", response.header.Get("Access-Control-Allow-Headers"))

	body := asJSON(t, encode(t, keys))
	response, answer := send(t, server.Client(), server.URL+"/decode", body, "Origin: "+origin, "Authorization: Bearer "+token)
	require.Equal(t, http.StatusOK, response.status, string(answer))
	requireCORS(response)

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	get := func(link string) (status int, cookies []*http.Cookie) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, http.NoBody)
		require.NoError(t, err)
		response, err := browser.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Cookies()
	}
	status, _ := get(server.URL + "/login?token=wrong")
	require.Equal(t, http.StatusUnauthorized, status)
	status, cookies := get(encryption.Endpoint{Token: token}.LinkTo(server.URL))
	require.Equal(t, http.StatusOK, status)
	cookie := cookies[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.NotContains(t, cookie.Value, token)
	response, answer = send(t, browser, server.URL+"/decode", body, "Origin: "+origin)
	require.Equal(t, http.StatusOK, response.status, string(answer))
	response, _ = send(t, browser, server.URL+"/decode", body, "Origin: https://evil.example")
	require.Equal(t, http.StatusForbidden, response.status, "the cookie does not help the pages of others")
}
