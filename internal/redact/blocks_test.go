package redact

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeysWithoutABeginning checks that the rest of a private key is masked although its header and its first line are
// missing.
func TestKeysWithoutABeginning(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	encoded := base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PrivateKey(key))
	var r *Redactor
	for _, width := range []int{64, 70} { // PEM, OpenSSH
		var lines []string
		for line := range slices.Chunk([]byte(encoded), width) {
			lines = append(lines, string(line))
		}
		for skipped := 1; len(lines)-skipped > minBlockLines; skipped++ {
			rest := lines[skipped:]
			for _, text := range []string{
				strings.Join(rest, "\n"), "$ tail -n +3 id\n" + strings.Join(rest, "\r\n") + "\n-----END RSA PRIVATE KEY-----\n",
				`{"out":"` + strings.Join(rest, `\n`) + `\n"}`, "    " + strings.Join(rest, "\n    "),
			} {
				masked := r.Text(text)
				require.Contains(t, masked, maskOf(pemLabel), "%d %s", skipped, text)
				for _, line := range rest {
					require.NotContains(t, masked, line, text)
				}
			}
		}
	}
}

// TestWhatIsNoKey checks that logs, digests, certificates and encoded files of other widths stay as they are.
func TestWhatIsNoKey(t *testing.T) {
	t.Parallel()
	random := make([]byte, 2000)
	_, err := rand.Read(random)
	require.NoError(t, err)
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: random}))
	digits, mixed := hex.EncodeToString(random), base64.StdEncoding.EncodeToString(random)
	var digests, requests, words, unlike strings.Builder
	for i := range 20 {
		fmt.Fprintln(&digests, digits[i*64:][:64])
		fmt.Fprintf(&requests, "2026-11-23T10:00:%02d GET /%s 200\n", i, mixed[i*64:][:64])
		fmt.Fprintln(&words, strings.Repeat("TheQuickBrownFox", 4))
		fmt.Fprintln(&unlike, mixed[i*70:][:50+i%5])
	}
	var r *Redactor
	for name, text := range map[string]string{
		"digests": digests.String(), "requests": requests.String(), "words": words.String(), "lines of other lengths": unlike.String(),
		"a certificate": certificate, "a certificate in JSON": strings.ReplaceAll(certificate, "\n", `\n`),
		"two lines": mixed[:64] + "\n" + mixed[64:128] + "\nand no more", "one line": mixed[:64*5],
	} {
		require.Equal(t, text, r.Text(text), name)
	}
}
