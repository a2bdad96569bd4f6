package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestWebRefusesToListen starts the server where nobody could log in, or where tokens would pass the network in clear.
func TestWebRefusesToListen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ []string
		want    string
	}{
		"nobody could log in":        {[]string{"CLAUDEOPS_WEB_LISTEN=0.0.0.0:0", "CLAUDEOPS_WEB_URL=https://ops.example.org"}, "nobody could log in at 0.0.0.0:0"},
		"in clear":                   {[]string{"CLAUDEOPS_WEB_LISTEN=0.0.0.0:0"}, "tokens must not pass the network in clear"},
		"in clear, by name":          {[]string{"CLAUDEOPS_WEB_LISTEN=:0", "CLAUDEOPS_WEB_URL=http://ops.example.org"}, "tokens must not pass the network in clear"},
		"a proxy at loopback":        {[]string{"CLAUDEOPS_WEB_TRUSTED_PROXY=10.0.0.1,127.0.0.0/8", "CLAUDEOPS_WEB_PROXY_ROLES=*=view"}, "leave out loopback addresses"},
		"a proxy from everywhere":    {[]string{"CLAUDEOPS_WEB_TRUSTED_PROXY=0.0.0.0/0", "CLAUDEOPS_WEB_PROXY_ROLES=*=view"}, "leave out loopback addresses"},
		"a proxy without roles":      {[]string{"CLAUDEOPS_WEB_TRUSTED_PROXY=10.0.0.1"}, "CLAUDEOPS_WEB_PROXY_ROLES"},
		"half of a certificate":      {[]string{"CLAUDEOPS_WEB_TLS_CERT_FILE=/cert.pem"}, "CLAUDEOPS_WEB_TLS_KEY_FILE"},
		"a role that is unknown":     {[]string{"CLAUDEOPS_WEB_PROXY_ROLES=sre=root"}, "view, answer, operate, alert, talk"},
		"an address with a path":     {[]string{"CLAUDEOPS_WEB_URL=https://ops.example.org/pages"}, "without a path"},
		"a certificate not there":    {[]string{"CLAUDEOPS_WEB_LISTEN=127.0.0.1:0", "CLAUDEOPS_WEB_TLS_CERT_FILE=/none.pem", "CLAUDEOPS_WEB_TLS_KEY_FILE=/none.pem"}, "load the certificate"},
		"the proxy's secret is gone": {[]string{"CLAUDEOPS_WEB_LISTEN=127.0.0.1:0", "CLAUDEOPS_WEB_PROXY_SECRET_FILE=/none"}, "the secret of the trusted proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := starter(t, clitest.Environment(t, test.environ...), "web")
			require.NotEqual(t, program.ExitOK, refused.Code)
			require.Contains(t, refused.Stderr, test.want)
		})
	}
}
