package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestWebTokens creates, lists and revokes tokens by the commands.
func TestWebTokens(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	none := starter(t, environ, "web", "token", "list")
	require.Equal(t, "There are no tokens. `claudeops web token create NAME --role ROLE` makes one.\n", none.Stdout)
	secret := webToken(t, environ, "ada", "operate")
	again := starter(t, environ, "web", "token", "create", "ada", "--role", "view")
	require.Equal(t, program.ExitFailure, again.Code)
	require.Contains(t, again.Stderr, "exists already")
	listed := starter(t, environ, "web", "token", "list", "-o", "json")
	require.Equal(t, program.ExitOK, listed.Code)
	require.Contains(t, listed.Stdout, `"name": "ada"`)
	require.NotContains(t, listed.Stdout, secret)
	require.NotContains(t, listed.Stdout, "hash")
	require.Equal(t, program.ExitOK, starter(t, environ, "web", "token", "revoke", "ada").Code)
	require.Equal(t, program.ExitFailure, starter(t, environ, "web", "token", "revoke", "ada").Code)

	for _, wrong := range [][]string{
		{"web", "token", "create", "ada"},
		{"web", "token", "create", "ada", "--role", "root"},
		{"web", "token", "create", "\u202eada", "--role", "view"},
		{"web", "token", "create", "ada", "--role", "view", "--expires", "-1h"},
	} {
		refused := starter(t, environ, wrong...)
		require.Equal(t, program.ExitUsage, refused.Code, "%v: %s", wrong, refused.Stderr)
	}
}

// webToken creates a token.
func webToken(t *testing.T, environ []string, name string, roles ...string) string {
	t.Helper()
	created := starter(t, environ, "web", "token", "create", name, "--role", strings.Join(roles, ","))
	require.Equal(t, program.ExitOK, created.Code, created.Stderr)
	secret := strings.TrimSpace(created.Stdout)
	require.Regexp(t, "^claudeops-token-[0-9a-f]{64}$", secret)
	return secret
}

// runningWeb is `claudeops web` running in this process. As a process of its own it would be a child of the worker's
// process, and so an agent for Temporal.
type runningWeb struct {
	Pages string `json:"pages"`

	stop  context.CancelFunc
	ended chan program.ExitCode
	said  *bytes.Buffer // read it only after the end
}

func startWeb(t *testing.T, environ []string) *runningWeb {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	w := &runningWeb{stop: stop, ended: make(chan program.ExitCode, 1), said: new(bytes.Buffer)}
	go func() {
		w.ended <- execute(ctx, &console.Console{
			Process: program.Process{
				Args: []string{"web", "--output", "json"}, Environ: append([]string{"CLAUDEOPS_WEB_LISTEN=127.0.0.1:0"}, environ...),
				Stdin: strings.NewReader(""), Stdout: write, Stderr: w.said,
			}.WithSettings(),
			Clock: time.Now, Patience: clitest.Timeout,
		})
		_ = write.Close()
	}()
	require.NoError(t, json.NewDecoder(read).Decode(w))
	go func() { _, _ = io.Copy(io.Discard, read) }()
	return w
}

// end stops the server as Ctrl-C does.
func (w *runningWeb) end(t *testing.T) {
	t.Helper()
	w.stop()
	require.Equal(t, program.ExitOK, <-w.ended, w.said)
}

// TestWebForATeam runs `claudeops web` beside a worker. Only a person who has logged in as an approver may answer at
// the gate; a client that says an approver's name may not, and somebody else who has logged in neither. An answer to a
// gate that is closed is refused.
func TestWebForATeam(t *testing.T) {
	t.Parallel()
	environ := startInstallation(t, claudesim.Play(claudesim.Always(claudesim.Conclude(escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "may the lock be removed?",
	}))), "CLAUDEOPS_GATE_TIMEOUT=1h", "CLAUDEOPS_GATE_APPROVERS=ada", "CLAUDEOPS_GATE_REQUIRE_VERIFIED=true", "CLAUDEOPS_GATE_FOUR_EYES=true")
	environ = slices.DeleteFunc(environ, func(v string) bool { return v == "CLAUDEOPS_GATE_TIMEOUT=0s" })
	ada, eve, viewer := webToken(t, environ, "ada", "answer"), webToken(t, environ, "eve", "operate"), webToken(t, environ, "bob", "view")
	web := startWeb(t, environ)
	require.Equal(t, http.StatusOK, fetch(t, http.MethodGet, web.Pages+"/healthz", "", "").status)

	require.Equal(t, http.StatusCreated, sendJSON(t, web.Pages+"/api/v1/chains", eve, `{"id":"team"}`).status)
	require.Equal(t, http.StatusForbidden, sendJSON(t, web.Pages+"/api/v1/chains", viewer, `{"id":"other"}`).status)
	require.Eventually(t, func() bool { return strings.Contains(starter(t, environ, "gate").Stdout, "team") }, clitest.Timeout, clitest.Look)

	said := starter(t, environ, "gate", "team", "--action", "o", "--actor", "ada")
	require.NotEqual(t, program.ExitOK, said.Code)
	require.Contains(t, said.Stderr, "answers need a login")
	gate := web.Pages + "/api/v1/chains/team/gate"
	const override = `{"gate_id":"gate-1","action":"override"}`
	require.Contains(t, sendJSON(t, gate, eve, override).body, "CLAUDEOPS_GATE_APPROVERS does not list that name")
	require.Equal(t, http.StatusForbidden, sendJSON(t, gate, viewer, override).status)
	require.NotEqual(t, http.StatusOK, sendJSON(t, gate, ada, `{"action":"override"}`).status, "an answer names what was seen")

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	post := func(path string, form url.Values) int {
		response, err := browser.PostForm(web.Pages+path, form)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	post("/login", url.Values{"token": {ada}, "next": {"/chains/team"}})
	require.NotEqual(t, http.StatusOK, post("/chains/team/answer", url.Values{"gate_id": {"gate-7"}, "action": {"override"}}))
	post("/chains/team/answer", url.Values{"gate_id": {"gate-1"}, "action": {"override"}})
	require.Eventually(t, func() bool {
		return strings.Contains(starter(t, environ, "chain", "team").Stdout, "ada (verified) answered override")
	}, clitest.Timeout, clitest.Look, "ada answers in her page")
	late := sendJSON(t, gate, ada, override)
	require.NotEqual(t, http.StatusOK, late.status, late.body)

	web.end(t)
	for _, secret := range []string{ada, eve, viewer} {
		require.NotContains(t, web.said.String(), secret)
	}
}

// sendJSON sends a request as the owner of a token.
func sendJSON(t *testing.T, address, secret, body string) fetched {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return fetched{response.StatusCode, string(content)}
}

// TestWebOverTLS serves with a certificate of files.
func TestWebOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key)
	web := startWeb(t, clitest.Environment(t, "CLAUDEOPS_WEB_TLS_CERT_FILE="+cert, "CLAUDEOPS_WEB_TLS_KEY_FILE="+key))
	require.Regexp(t, "^https://127.0.0.1:", web.Pages)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
	response, err := client.Get(web.Pages + "/login")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "HTTP/2.0", response.Proto, fmt.Sprint(response.Header))
	web.end(t)
}

// writeCertificate writes a certificate for 127.0.0.1 and its key. It returns a pool that trusts the certificate.
func writeCertificate(t *testing.T, cert, key string) *x509.CertPool {
	t.Helper()
	donor := httptest.NewTLSServer(http.NotFoundHandler())
	defer donor.Close()
	private, err := x509.MarshalPKCS8PrivateKey(donor.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: donor.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	pool := x509.NewCertPool()
	pool.AddCert(donor.Certificate())
	return pool
}
