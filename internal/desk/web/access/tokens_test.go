package access

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTokenFile creates, lists and revokes tokens, as another process does beside a server that has read the file.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "web", "tokens.json")
	server, command := OpenTokens(name), OpenTokens(name)
	listed, err := server.List()
	require.NoError(t, err)
	require.Empty(t, listed)

	created := time.Now().UTC().Truncate(time.Second)
	secret, err := command.Create(Token{Name: "grace", Roles: []Role{View, Talk}, CreatedAt: created, ExpiresAt: created.Add(time.Hour)})
	require.NoError(t, err)
	require.Regexp(t, "^claudeops-token-[0-9a-f]{64}$", secret)
	_, err = command.Create(Token{Name: "grace", Roles: []Role{View}})
	require.ErrorIs(t, err, ErrTokenExists)
	for _, wrong := range []Token{{Name: "x"}, {Roles: []Role{View}}, {Name: "x", Roles: []Role{"root"}}, {Name: "x\n", Roles: []Role{View}}} {
		_, err = command.Create(wrong)
		require.Error(t, err)
	}

	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NotContains(t, string(content), secret)

	listed, err = server.List()
	require.NoError(t, err)
	require.Len(t, listed, 1)
	found, ok := find(listed, secret, created)
	require.True(t, ok)
	require.Equal(t, Person{Name: "grace", Roles: []Role{View, Talk}}, found.Person())
	_, ok = find(listed, secret, created.Add(time.Hour))
	require.False(t, ok, "it has expired")
	_, ok = find(listed, secret+"0", created)
	require.False(t, ok)

	require.NoError(t, command.Revoke("grace"))
	require.ErrorIs(t, command.Revoke("grace"), ErrNoToken)
	listed, err = server.List()
	require.NoError(t, err)
	require.Empty(t, listed)
}

// TestTokenFileIsRefused reads files that somebody else could have written, or that are damaged.
func TestTokenFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"readable by others": {`{"tokens":[]}`, 0o644, "chmod 0600"},
		"writable by others": {`{"tokens":[]}`, 0o660, "chmod 0600"},
		"no JSON":            {`tokens`, 0o600, "damaged"},
		"without a hash":     {`{"tokens":[{"name":"x","roles":["view"]}]}`, 0o600, "damaged"},
		"an unknown role":    {`{"tokens":[{"name":"x","roles":["root"],"hash":"` + hashOf("x") + `"}]}`, 0o600, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "tokens.json")
			require.NoError(t, os.WriteFile(file, []byte(test.content), 0o600))
			require.NoError(t, os.Chmod(file, test.mode))
			_, err := OpenTokens(file).List()
			require.ErrorContains(t, err, test.want)
			a := newAccess(t, Options{Tokens: OpenTokens(file), Owner: Owner{"ada", ownerSecret}})
			require.Len(t, a.tokens(), 1, "the owner can still log in")
		})
	}
}

// TestTokensAtOnce creates tokens in several goroutines: none is lost.
func TestTokensAtOnce(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "tokens.json")
	var creating sync.WaitGroup
	errs := make([]error, 8)
	for n := range errs {
		creating.Go(func() {
			_, errs[n] = OpenTokens(name).Create(Token{Name: fmt.Sprint("person", n), Roles: []Role{View}})
		})
	}
	creating.Wait()
	listed, err := OpenTokens(name).List()
	require.NoError(t, err)
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
		}
	}
	require.Len(t, listed, created)
	require.Equal(t, len(errs), created)
}

// TestRoles checks what each role includes.
func TestRoles(t *testing.T) {
	t.Parallel()
	for own, may := range map[Role][]Role{
		View: {View}, Answer: {View, Answer}, Operate: {View, Answer, Operate, Talk}, Alert: {Alert}, Talk: {Talk},
	} {
		for _, role := range Roles() {
			require.Equal(t, slices.Contains(may, role), Person{Roles: []Role{own}}.May(role), "%s for %s", own, role)
		}
	}
	require.Panics(t, func() { NewRouter(nil).Handle("", "GET /", http.NotFoundHandler()) })
	require.Panics(t, func() { NewRouter(nil).Handle(View, "/", http.NotFoundHandler()) })
}
