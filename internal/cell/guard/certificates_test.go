package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// TestSystemCertificatesAreClear checks that programs read the certificates of the system where Go's crypto/x509 and
// OpenSSL look for them, although they are named like keys. The CLI looks at all of them at each start.
func TestSystemCertificatesAreClear(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	clearPaths := policy.FileRules(1).Clear
	for _, path := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
		"/etc/pki/tls/cert.pem", "/usr/lib/ssl/cert.pem",
	} {
		require.True(t, slices.ContainsFunc(clearPaths, func(one string) bool {
			return path == one || strings.HasPrefix(path, one+"/")
		}), path)
	}
}
