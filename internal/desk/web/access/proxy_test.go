package access

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProxy sends the headers of a proxy from its address and from others.
func TestProxy(t *testing.T) {
	t.Parallel()
	trusted := Proxy{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::1/128")}, UserHeader: "X-Forwarded-User",
		GroupsHeader: "X-Forwarded-Groups", Roles: map[string][]Role{"*": {View}, "sre": {Operate}, "oncall": {Answer, Talk}},
	}
	secretly := trusted
	secretly.Secret = "between us"
	type header = map[string][]string
	for name, test := range map[string]struct {
		proxy  Proxy
		from   string
		header header
		want   string
		roles  []Role
	}{
		"the proxy":               {trusted, "10.0.0.7:1", header{"X-Forwarded-User": {"ada"}}, "ada", []Role{View}},
		"with groups":             {trusted, "[fd00::1]:1", header{"X-Forwarded-User": {"ada"}, "X-Forwarded-Groups": {"dev, sre", "oncall"}}, "ada", []Role{View, Operate, Answer, Talk}},
		"groups with bars":        {trusted, "10.0.0.7:1", header{"X-Forwarded-User": {"ada"}, "X-Forwarded-Groups": {"dev|sre| oncall"}}, "ada", []Role{View, Operate, Answer, Talk}},
		"a name in Latin-1":       {trusted, "10.0.0.7:1", header{"X-Forwarded-User": {"Ren\xe9e"}}, "Ren\u00e9e", []Role{View}},
		"a name in UTF-8":         {trusted, "10.0.0.7:1", header{"X-Forwarded-User": {"Ren\u00e9e"}}, "Ren\u00e9e", []Role{View}},
		"a group called *":        {trusted, "10.0.0.7:1", header{"X-Forwarded-User": {"ada"}, "X-Forwarded-Groups": {"*"}}, "ada", []Role{View}},
		"an IPv4 address in IPv6": {trusted, "[::ffff:10.0.0.7]:1", header{"X-Forwarded-User": {"ada"}}, "ada", []Role{View}},
		"another address":         {trusted, "10.0.1.7:1", header{"X-Forwarded-User": {"ada"}}, "", nil},
		"nobody":                  {trusted, "10.0.0.7:1", nil, "", nil},
		"two names":               {trusted, "10.0.0.7:1", header{"X-Forwarded-User": {"ada", "eve"}}, "", nil},
		"a name with bidi":        {trusted, "10.0.0.7:1", header{"X-Forwarded-User": {"ada\u202e"}}, "", nil},
		"its secret":              {secretly, "10.0.0.7:1", header{"X-Forwarded-User": {"ada"}, ProxySecretHeader: {"between us"}}, "ada", []Role{View}},
		"without its secret":      {secretly, "10.0.0.7:1", header{"X-Forwarded-User": {"ada"}}, "", nil},
		"another secret":          {secretly, "10.0.0.7:1", header{"X-Forwarded-User": {"ada"}, ProxySecretHeader: {"guess"}}, "", nil},
		"no proxy":                {Proxy{UserHeader: "X-Forwarded-User", Roles: trusted.Roles}, "10.0.0.7:1", header{"X-Forwarded-User": {"ada"}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccess(t, Options{Proxy: test.proxy})
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.RemoteAddr, r.Header = test.from, test.header
			if r.Header == nil {
				r.Header = http.Header{}
			}
			var passed *http.Request
			a.Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = r })).ServeHTTP(httptest.NewRecorder(), r)
			person, known := PersonOf(passed.Context())
			require.Equal(t, test.want != "", known)
			require.Equal(t, test.want, person.Name)
			require.Equal(t, test.roles, person.Roles)
			require.Empty(t, passed.Header, "nothing behind sees the proxy's headers")
		})
	}
}

// TestAddress checks whose failed logins are counted.
func TestAddress(t *testing.T) {
	t.Parallel()
	p := Proxy{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, UserHeader: "X-Forwarded-User"}
	for name, test := range map[string]struct{ from, forwarded, want string }{
		"the client itself":         {"192.0.2.1:5", "", "192.0.2.1"},
		"a client that says others": {"192.0.2.1:5", "198.51.100.1", "192.0.2.1"},
		"behind the proxy":          {"10.0.0.7:5", "198.51.100.9, 198.51.100.1", "198.51.100.1"},
		"with its port":             {"10.0.0.7:5", "198.51.100.1:4711", "198.51.100.1"},
		"IPv6 with its port":        {"10.0.0.7:5", "[2001:db8::1]:4711", "2001:db8::1"},
		"IPv6 in brackets":          {"10.0.0.7:5", "[2001:db8::1]", "2001:db8::1"},
		"behind it, nonsense":       {"10.0.0.7:5", "x", "10.0.0.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = test.from
			if test.forwarded != "" {
				r.Header.Set("X-Forwarded-For", test.forwarded)
			}
			require.Equal(t, test.want, p.address(r))
		})
	}
}
