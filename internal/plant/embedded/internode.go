package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"go.temporal.io/server/common/rpc/encryption"
)

// internodeName is the name in the certificate of the services.
const internodeName = "services.claudeops.internal"

// internodeTLS returns a TLS configuration with which the services refuse connections from other processes. It does not
// apply to the frontend, which uses gRPC without TLS. Without this configuration the services history and matching
// would accept requests that the frontend refuses. Both ends of a connection must present a certificate. The
// certificate's key was created by this process and exists only in this process's memory.
func internodeTLS() (encryption.TLSConfigProvider, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the services: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate.Leaf)
	return &encryption.FixedTLSConfigProvider{
		InternodeServerConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate},
			ClientCAs:    trusted,
			ClientAuth:   tls.RequireAndVerifyClientCert,
			MinVersion:   tls.VersionTLS13,
		},
		InternodeClientConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate},
			RootCAs:      trusted,
			ServerName:   internodeName,
			MinVersion:   tls.VersionTLS13,
		},
	}, nil
}

// selfSigned creates a key and a certificate for this key. The certificate never expires, so a change of the clock
// cannot stop a server.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: internodeName},
		DNSNames:              []string{internodeName},
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(encoded)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key, Leaf: leaf}, nil
}
