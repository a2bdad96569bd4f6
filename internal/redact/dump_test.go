package redact

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows prints content as xxd, hexdump -C and hexdump do.
func rows(content string, words func(row []byte) string) string {
	var all strings.Builder
	for at := 0; at < len(content); at += 16 {
		row := []byte(content[at:min(at+16, len(content))])
		fmt.Fprintf(&all, "%08x%s\n", at, words(row))
	}
	return all.String()
}

// TestDumpedValues checks that a value is masked if a program prints it byte by byte.
func TestDumpedValues(t *testing.T) {
	t.Parallel()
	const secret = "Tr0ub4dor&3-of-the-fleet-in-more-than-a-row"
	r := New([]string{"FLEET_PASSWORD=" + secret})
	spaced := func(gap string) string {
		var digits []string
		for _, b := range []byte(secret) {
			digits = append(digits, hex.EncodeToString([]byte{b}))
		}
		return strings.Join(digits, gap)
	}
	content := "user=ops password=" + secret + "\nand more of the file\n"
	for name, text := range map[string]string{
		"blanks":     "it is " + spaced(" "),
		"upper case": strings.ToUpper(spaced(" ")),
		"colons":     spaced(":"),
		"escapes":    `\x` + spaced(`\x`),
		"an array":   "0x" + spaced(", 0x"),
		"od -tx1":    rows(content, func(row []byte) string { return fmt.Sprintf(" % x", row) }),
		"xxd":        rows(content, func(row []byte) string { return ": " + pairs(row) + "  " + string(row) }),
		"hexdump -C": rows(content, func(row []byte) string { return "  " + halves(row) + "  |" + string(row) + "|" }),
		"hexdump":    rows(content, func(row []byte) string { return " " + swapped(row) }),
		"xxd -p":     hex.EncodeToString([]byte(content[:30])) + "\n" + hex.EncodeToString([]byte(content[30:])),
	} {
		masked := r.Text(text)
		require.Contains(t, masked, "[masked: FLEET_PASSWORD]", name)
		for at := 0; at+6 <= len(secret); at++ {
			require.NotContains(t, masked, secret[at:at+6], name)
			require.NotContains(t, strings.NewReplacer(" ", "", ":", "", "\n", "").Replace(masked), hex.EncodeToString([]byte(secret[at:at+6])), name)
		}
	}
	for _, text := range []string{
		rows("nothing in here is secret at all\n", func(row []byte) string { return fmt.Sprintf(" % x", row) }),
		"aa:bb:cc:dd:ee:ff, fe80::1:2:3:4 and 10 20 30 40 50",
	} {
		require.Equal(t, text, r.Text(text))
	}
}

func pairs(row []byte) string {
	var words []string
	for at := 0; at < len(row); at += 2 {
		words = append(words, hex.EncodeToString(row[at:min(at+2, len(row))]))
	}
	return strings.Join(words, " ")
}

func halves(row []byte) string {
	if len(row) <= 8 {
		return fmt.Sprintf("% x", row)
	}
	return fmt.Sprintf("% x  % x", row[:8], row[8:])
}

func swapped(row []byte) string {
	var words []string
	for at := 0; at+1 < len(row); at += 2 {
		words = append(words, fmt.Sprintf("%02x%02x", row[at+1], row[at]))
	}
	return strings.Join(words, " ")
}

// TestKeysWithoutAHeader checks that the body of a private key is masked, and the body of a certificate is not.
func TestKeysWithoutAHeader(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	curveKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	encoded := map[string][]byte{"RSA": x509.MarshalPKCS1PrivateKey(rsaKey)}
	for name, key := range map[string]any{"RSA in PKCS 8": rsaKey, "a curve in PKCS 8": curveKey, "Ed25519": edwards} {
		encoded[name], err = x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
	}
	encoded["a curve"], err = x509.MarshalECPrivateKey(curveKey)
	require.NoError(t, err)
	encoded["OpenSSH"] = append([]byte("openssh-key-v1\x00"), encoded["RSA"]...)
	var r *Redactor
	for name, key := range encoded {
		lines := strings.Split(strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: key}))), "\n")
		body := lines[1 : len(lines)-1]
		for _, text := range []string{
			"$ tail -n +2 id\n" + strings.Join(body, "\n") + "\nthat was it", `{"out":"` + strings.Join(body, `\n`) + `\n"}`,
			"key: " + strings.Join(body, ""), strings.Join(lines[1:], "\n"), "    " + strings.Join(body, "\n    "),
		} {
			masked := r.Text(text)
			require.Contains(t, masked, maskOf(pemLabel), name)
			for _, line := range body {
				require.NotContains(t, masked, line, name)
			}
		}
	}
	public, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	require.NoError(t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: public}))
	require.Equal(t, text, r.Text(text), "a public key")
}
