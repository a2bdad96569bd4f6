package store_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a := authority{template, key}
	a.certificate, err = x509.ParseCertificate(a.sign(t, template, name, key))
	require.NoError(t, err)
	return a
}

// sign completes a template and returns the certificate for key.
func (a authority) sign(t *testing.T, template *x509.Certificate, name string, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template.SerialNumber, template.Subject = serial, pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	require.NoError(t, err)
	return signed
}

// issue returns a certificate in PEM for a host or a user, and its key.
func (a authority) issue(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return encode("CERTIFICATE", a.sign(t, template, name, private)), encode("PRIVATE KEY", encoded)
}

func (a authority) pem() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

func encode(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// keep writes a private file, and returns its path.
func keep(t *testing.T, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file.pem")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

const (
	tlsHost     = "db.example.test"
	tlsPassword = "hunter2"
	// tlsRules let the user claudeops in with a password. The database strict also asks for a certificate with the
	// user's name.
	tlsRules = `
local   all     postgres             trust
hostssl records claudeops 127.0.0.0/8 scram-sha-256
hostssl strict  claudeops 127.0.0.0/8 scram-sha-256 clientcert=verify-full
`
)

// startTLS starts a server with a certificate of the authority for tlsHost.
func startTLS(t *testing.T, ours authority) *postgrestest.Cluster {
	t.Helper()
	certificate, key := ours.issue(t, tlsHost)
	cluster := postgrestest.StartWith(t, postgrestest.Options{
		TCP: true, Settings: []string{"ssl=on", "ssl_ca_file=ca.crt"},
		Files: map[string][]byte{"server.crt": certificate, "server.key": key, "ca.crt": ours.pem(), "pg_hba.conf": []byte(tlsRules)},
	})
	postgrestest.Exec(t, cluster.URL("postgres"), "CREATE ROLE claudeops LOGIN PASSWORD '"+tlsPassword+"'")
	for _, database := range []string{"records", "strict"} {
		postgrestest.Exec(t, cluster.URL("postgres"), "CREATE DATABASE "+database+" OWNER claudeops ENCODING 'UTF8' TEMPLATE template0")
	}
	return cluster
}

// tlsURL returns the URL of a database as an operator writes it, with the address in place of an entry in DNS.
func tlsURL(cluster *postgrestest.Cluster, database string, parameters map[string]string) string {
	address := cluster.Address()
	values := url.Values{"host": {tlsHost}, "hostaddr": {address.Addr().String()}, "sslmode": {"verify-full"}}
	for name, value := range parameters {
		values.Set(name, value)
	}
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword("claudeops", tlsPassword), Host: fmt.Sprintf("%s:%d", tlsHost, address.Port()),
		Path: "/" + database, RawQuery: values.Encode(),
	}).String()
}

// TestPostgresTLS connects to a server with TLS as docs/postgresql.md describes.
func TestPostgresTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	cluster := startTLS(t, ours)
	certificate, key := ours.issue(t, "claudeops")
	strangers, strangersKey := ours.issue(t, "stranger")
	trusted := map[string]string{"sslrootcert": keep(t, ours.pem())}
	plus := func(base map[string]string, pairs ...string) map[string]string {
		all := maps.Clone(base)
		for pair := range slices.Chunk(pairs, 2) {
			all[pair[0]] = pair[1]
		}
		return all
	}
	client := plus(trusted, "sslcert", keep(t, certificate), "sslkey", keep(t, key))
	openURL(t, tlsURL(cluster, "records", trusted))
	openURL(t, tlsURL(cluster, "strict", client))
	for database, session := range map[string]string{"records": "true by nobody", "strict": "true by /CN=claudeops"} {
		require.Equal(t, session, postgrestest.Query(t, cluster.URL("postgres"), "SELECT ssl::text || ' by ' || COALESCE(client_dn, 'nobody') "+
			"FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = '"+database+"' LIMIT 1"))
	}
	for name, parameters := range map[string]map[string]string{
		"verify-ca with another name":             plus(trusted, "sslmode", "verify-ca", "host", "standby.example.test"),
		"require with the authority":              plus(trusted, "sslmode", "require", "host", "standby.example.test"),
		"the authority of several":                {"sslrootcert": keep(t, slices.Concat(others.pem(), ours.pem()))},
		"a client certificate that is not needed": client,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			openURL(t, tlsURL(cluster, "records", parameters))
		})
	}
	const wrongAuthority = "certificate signed by unknown authority: let sslrootcert in its URL name the file of the authority"
	const wrongClient = "and, if the server wants one, the client certificate (sslcert, sslkey)"
	for name, test := range map[string]struct {
		database   string
		parameters map[string]string
		messages   []string
	}{
		"another authority": {"records", map[string]string{"sslrootcert": keep(t, others.pem())}, []string{wrongAuthority}},
		"another authority, verify-ca": {
			"records", map[string]string{"sslmode": "verify-ca", "sslrootcert": keep(t, others.pem())}, []string{wrongAuthority},
		},
		"another authority, require": {
			"records", map[string]string{"sslmode": "require", "sslrootcert": keep(t, others.pem())}, []string{wrongAuthority},
		},
		"another host": {
			"records", plus(trusted, "host", "standby.example.test"),
			[]string{"is valid for " + tlsHost + ", not standby.example.test: use a name of the certificate as host in its URL"},
		},
		"a file that is missing": {
			"records", map[string]string{"sslrootcert": "/nowhere/ca.pem"}, []string{"/nowhere/ca.pem: no such file", "correct sslrootcert"},
		},
		"no TLS":                {"records", plus(trusted, "sslmode", "disable"), []string{"no encryption"}},
		"no client certificate": {"strict", trusted, []string{"requires a valid client certificate", wrongClient}},
		"the certificate of another user": {
			"strict", plus(trusted, "sslcert", keep(t, strangers), "sslkey", keep(t, strangersKey)), []string{wrongClient},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := store.OpenPostgres(bounded(t), tlsURL(cluster, test.database, test.parameters), 2)
			for _, message := range test.messages {
				require.ErrorContains(t, err, message)
			}
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), tlsPassword)
		})
	}
	t.Run("a client certificate of another authority", func(t *testing.T) {
		t.Parallel()
		certificate, key := others.issue(t, "claudeops")
		database := tlsURL(cluster, "strict", plus(trusted, "sslcert", keep(t, certificate), "sslkey", keep(t, key)))
		require.Eventually(t, func() bool { // the alert can be lost, because the server closes the connection after it
			_, err := store.OpenPostgres(bounded(t), database, 2)
			return err != nil && strings.Contains(err.Error(), "unknown certificate authority: let sslcert in its URL name a certificate of an authority")
		}, patience, 10*time.Millisecond)
	})
}
