package config

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWebSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := load(t, "CLAUDEOPS_STATE_DIR="+dir, "CLAUDEOPS_WEB_TRUSTED_PROXY=10.0.0.5, 10.1.0.7/16,fd00::1", "CLAUDEOPS_WEB_URL=https://ops.example.org/",
		"CLAUDEOPS_WEB_PROXY_ROLES=sre=operate, a=b=view,*=view,sre=talk", "CLAUDEOPS_WEB_LISTEN=:9000", "CLAUDEOPS_WEB_PROXY_SECRET_FILE=/etc/secret")
	require.Equal(t, filepath.Join(dir, "web", "tokens.json"), cfg.Web.TokensFile)
	require.Equal(t, NetworkList{
		netip.MustParsePrefix("10.0.0.5/32"), netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::1/128"),
	}, cfg.Web.TrustedProxy)
	require.Equal(t, "10.0.0.5,10.1.0.0/16,fd00::1", cfg.Web.TrustedProxy.String())
	require.Equal(t, GroupRoles{"sre": {"operate", "talk"}, "a=b": {"view"}, "*": {"view"}}, cfg.Web.ProxyRoles)
	require.Equal(t, "*=view,a=b=view,sre=operate,sre=talk", cfg.Web.ProxyRoles.String())
	require.Equal(t, "ops.example.org", cfg.Web.Hostname())
	require.False(t, cfg.Web.IsLocal())
	require.Equal(t, []string{cfg.Web.TokensFile, "/etc/secret"}, cfg.Web.SecretFiles())
	require.True(t, load(t).Web.IsLocal())
}

func TestParseNetworksRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "proxy.example.org", "10.0.0.0/33", "10.0.0.5:80", "fe80::1%eth0", "::ffff:10.0.0.1", "10.0.0.5,,10.0.0.6"} {
		_, err := parseNetworks(text)
		require.Error(t, err, text)
	}
}
