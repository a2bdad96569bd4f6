package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues(t *testing.T) {
	t.Parallel()
	r := New([]string{
		"ANTHROPIC_API_KEY=sk-secret-1", "GITHUB_TOKEN=gh-secret-2", "HTTPS_PROXY=http://u:pass-word1@proxy", "PATH=/usr/bin", "SHORT_KEY=1",
		"DB_PASS=hunter22", "REPORTS_DSN=ops:pw1@tcp(db)/x", "ANTHROPIC_BASE_URL=https://ops:s%40fe-word1@gateway.example/v1?a=b@c",
		"FLEET_URL=https://tokentoken1@fleet.example?api_key=param-1234", "PLAIN_URL=https://plain.example/user:pass@x", "LONG_TOKEN=gh-secret-2-and-more",
		"QUOTED_SECRET=say 1 \"friend\"", "AWS_ACCESS_KEY_ID=AKIAxxxx1234", "ANTHROPIC_CUSTOM_HEADERS=X-Org: org-12345\nX-Auth: Bearer header-4711",
		"OTEL_EXPORTER_OTLP_HEADERS=x-team=team-98765,Authorization=Bearer%20otlp%2F12345",
		"CLAUDEOPS_NOTIFY_URLS=discord://discord-1234@42,ntfy://ops:ntfy-pw-1@ntfy.example/alerts",
	})
	for text, want := range map[string]string{
		"key sk-secret-1, gh-secret-2 via http://u:pass-word1@proxy in /usr/bin, 1 time": "key [masked: ANTHROPIC_API_KEY], [masked: GITHUB_TOKEN] via http://[masked: HTTPS_PROXY]@proxy in /usr/bin, 1 time",
		"hunter22 to ops:pw1@tcp(db)/x":                    "[masked: DB_PASS] to [masked: REPORTS_DSN]",
		"curl https://ops:s%40fe-word1@gateway.example/v1": "curl https://[masked: ANTHROPIC_BASE_URL]@gateway.example/v1",
		"it is s@fe-word1":                                 "it is [masked: ANTHROPIC_BASE_URL]",
		"it is tokentoken1, or param-1234":                 "it is [masked: FLEET_URL], or [masked: FLEET_URL]",
		"https://plain.example/user:pass@x":                "https://plain.example/user:pass@x",
		"gh-secret-2-and-more":                             "[masked: LONG_TOKEN]",
		`{"command":"echo say 1 \"friend\""}`:              `{"command":"echo [masked: QUOTED_SECRET]"}`,
		`"{\"command\":\"echo say 1 \\\"friend\\\"\"}"`:    `"{\"command\":\"echo [masked: QUOTED_SECRET]\"}"`,
		"AKIAxxxx1234":                                     "[masked: AWS_ACCESS_KEY_ID]",
		"org-12345 and header-4711":                        "[masked: ANTHROPIC_CUSTOM_HEADERS] and [masked: ANTHROPIC_CUSTOM_HEADERS]",
		"team-98765 and otlp/12345":                        "[masked: OTEL_EXPORTER_OTLP_HEADERS] and [masked: OTEL_EXPORTER_OTLP_HEADERS]",
		"discord-1234, ntfy-pw-1":                          "[masked: CLAUDEOPS_NOTIFY_URLS], [masked: CLAUDEOPS_NOTIFY_URLS]",
	} {
		require.Equal(t, want, r.Text(text))
	}
}

// TestOrdinaryValues uses variables whose names suggest a secret, but whose values occur in ordinary text.
func TestOrdinaryValues(t *testing.T) {
	t.Parallel()
	r := New([]string{
		"KEY=1", "USE_TOKEN=disabled", "DB_PASSWORD=jellyfin", "MODE_SECRET=needs_human", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=64000", "MAX_TOKENS=200000000",
		"DB_PASSWORD_FILE=/run/secrets/db", "GOOGLE_APPLICATION_CREDENTIALS=/etc/gcp/key1.json", "GIT_CONFIG_KEY_0=core.hooksPath",
		"SSH_AUTH_SOCK=/run/user/1000/ssh", "API_KEY_NAME=name-of-key-1", "PWD=/home/ada/ops-1", "OLDPWD=/srv/compose-2", "HTTPS_PROXY=http://proxy.example:3128",
	})
	text := "1 disabled jellyfin needs_human 64000 200000000 /run/secrets/db /etc/gcp/key1.json core.hooksPath /run/user/1000/ssh name-of-key-1 " +
		"/home/ada/ops-1 /srv/compose-2 http://proxy.example:3128"
	require.Equal(t, text, r.Text(text))
}

// TestLinesOfValues masks the lines of values that only these values have.
func TestLinesOfValues(t *testing.T) {
	t.Parallel()
	key := "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
	r := New([]string{
		"GOOGLE_CREDENTIALS={\n  \"type\": \"service_account\",\n  \"project_id\": \"ops-cluster-12345\",\n  \"private_key_id\": \"0a1b2c3d4e5f6a7b\",\n" +
			"  \"token_uri\": \"https://oauth2.googleapis.com/token\",\n  \"universe_domain\": \"googleapis.com\"\n}",
		"SETTINGS_SECRET=# comment here\nresources:\n  limits: {cpu: 100m}\n  name: cluster1234\n  host: db1\npassword: hunter2x\nmore: words of 1 line\nswordfish-22",
		"TLS_KEY=-----BEGIN PRIVATE KEY-----\n" + key + "\n-----END PRIVATE KEY-----",
	})
	for _, text := range []string{
		"{\n  \"type\": \"service_account\",\n  \"project_id\": \"ops-cluster-12345\",\n  \"token_uri\": \"https://oauth2.googleapis.com/token\"\n}",
		"# comment here\nresources:\n  limits: {cpu: 100m}\n  name: cluster1234\n  host: db1\nmore: words of 1 line", "-----BEGIN PRIVATE KEY-----",
	} {
		require.Equal(t, text, r.Text(text))
	}
	require.JSONEq(t, `{"private_key_id":"[masked: GOOGLE_CREDENTIALS]","a":1}`, r.Text(`{"private_key_id":"0a1b2c3d4e5f6a7b","a":1}`))
	require.Equal(t, "it is [masked: SETTINGS_SECRET], [masked: SETTINGS_SECRET], [masked: TLS_KEY]", r.Text("it is hunter2x, swordfish-22, "+key))
}

func TestEncodedValues(t *testing.T) {
	t.Parallel()
	const secret = `p&ss/w+rd "1" of the fleet, which is longer than one line of base64 <ok>?`
	r := New([]string{"FLEET_TOKEN=" + secret})
	const mask = "[masked: FLEET_TOKEN]"
	require.Equal(t, "?q="+mask+"&x", r.Text("?q="+url.QueryEscape(secret)+"&x"))
	require.Equal(t, "/"+mask+"/x", r.Text("/"+url.PathEscape(secret)+"/x"))
	require.Equal(t, mask, r.Text(strings.ToLower(url.PathEscape("/")) + "" + "" + secret)[len("%2f"):])
	require.Equal(t, mask, r.Text(hex.EncodeToString([]byte(secret))))
	html, err := json.Marshal(secret)
	require.NoError(t, err)
	require.Equal(t, `"`+mask+`"`, r.Text(string(html)))
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		for _, before := range []string{"", "a", "ab", "abc", "user:"} {
			encoded := encoding.EncodeToString([]byte(before + secret + "\n"))
			require.Equal(t, "it is "+mask+" .", r.Text("it is "+encoded+" ."), before)
			wrapped := encoded[:76] + "\n" + encoded[76:]
			require.Equal(t, mask, r.Text(wrapped), before)
			require.Equal(t, mask, r.Text(encoded[:10]+"\n"+encoded[10:]), before)
			inJSON := strings.ReplaceAll(wrapped, "\n", `\n`)
			require.Equal(t, mask, r.Text(inJSON), before)
		}
	}
}

// TestWhatDecisionsAreMadeFrom checks that text on which decisions depend stays unmasked, even if it looks like
// a token.
func TestWhatDecisionsAreMadeFrom(t *testing.T) {
	t.Parallel()
	r := New([]string{"ANTHROPIC_API_KEY=sk-ant-api03-0123456789abcdef", "DB_PASSWORD=Tr0ub4dor&3"})
	for _, text := range []string{
		"7f3c9a52-1b7e-4f0a-9d3e-2c5b8a6f1e04", "420b11e", "420b11e0c1b5d2f4a6978877665544332211ffee",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "d41d8cd98f00b204e9800998ecf8427e",
		"container 3f2a9c1d5b7e of jellyfin", "3f2a9c1d5b7e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192",
		"jellyfin-7d9f8b6c5-x2x4z", "ghcr.io/linuxserver/jellyfin:10.10.7@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"chain-20261122-105237-a1b2c3", "claudeops/session/12", "healthy degraded down critical escalate needs_human resolved",
		"password-manager", "token-service", "secrets-operator", "auth-key-rotator", "vault", "bearer-proxy", "authelia",
		"claude-haiku-4-5-20251001", "2026-11-22T10:52:37.123456Z", "0.0004 USD, 200000 tokens, context_tokens=123456", "10.0.0.1:8233", "aa:bb:cc:dd:ee:ff",
		"HTTP 401: token expired", "authentication token is missing", "password authentication failed for user \"ops\"", "the secret \"db-credentials\" is not found",
		"secret/jellyfin-tls created", "kubectl get secret jellyfin-tls -n media", "error: password: Permission denied", "Bearer error=\"invalid_token\"",
		"git clone ssh://git@github.com/x/y.git", "https://registry.example:5000/v2/", "user@example.org", "mailto:ops@example.org", "npm_config_cache",
		"/var/run/secrets/kubernetes.io/serviceaccount/token", "-u 1000:1000", "key: value", "sk-learn", "https://github.com/x/y/compare/a@{1}...b",
		"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
		"the log has a line -----BEGIN RSA PRIVATE KEY-----, which should not be there",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ops@host",
		"tool_use id toolu_01A09q90qw90lq917835lq9", "msg_01XFDUDYJgAACzvnptvVoYEL", "req_011CSHoEeqs5C35K2UUqR7Fy",
		"[masked: github token] and [masked: DB_PASSWORD]",
	} {
		require.Equal(t, text, r.Text(text))
		document, err := json.Marshal(map[string]any{"summary": text, "services": []string{text}})
		require.NoError(t, err)
		require.Equal(t, string(document), string(r.JSON(document)))
	}
}

// TestLongBase64 masks a secret wherever it stands in a long line of base64.
func TestLongBase64(t *testing.T) {
	t.Parallel()
	r := New([]string{"DB_PASSWORD=Tr0ub4dor&3"})
	filling := strings.Repeat("all is well, nothing to see here\n", 30_000)
	for _, secret := range []string{"ghp_" + fill(36), "password=hunter22x"} {
		for _, at := range []int{0, len(filling) / 4, len(filling)} {
			encoded := base64.StdEncoding.EncodeToString([]byte(filling[:at] + secret + "\n" + filling[at:]))
			require.Less(t, len(r.Text("data: "+encoded)), 100, "%s at %d", secret, at)
		}
	}
	harmless := base64.StdEncoding.EncodeToString([]byte(filling))
	require.Equal(t, harmless, r.Text(harmless))
}

func TestKeysInPEM(t *testing.T) {
	t.Parallel()
	var r *Redactor
	body := strings.Repeat(fill(64)+"\n", 20)
	for _, kind := range []string{"RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		key := "-----BEGIN " + kind + "-----\n" + body + "-----END " + kind + "-----"
		require.Equal(t, "a [masked: private key] b", r.Text("a "+key+" b"))
		require.Equal(t, `"a [masked: private key] b"`, r.Text(`"a `+strings.ReplaceAll(key, "\n", `\n`)+` b"`))
		require.Equal(t, "a [masked: private key]", r.Text("a "+key[:300]), "without an end")
		logged := strings.ReplaceAll(key, "\n", "\nweb-1  | ")
		require.Equal(t, "[masked: private key]", r.Text(logged), "in a log")
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	r := New([]string{"ANTHROPIC_API_KEY=sk-secret-1", "LONG_KEY=123456789012345", `ODD_KEY=":"value1`})
	for document, want := range map[string]string{
		`{"a":"sk-secret-1","n":1.50,"b":[true,null,"<x>"]}`:                                     `{"a":"[masked: ANTHROPIC_API_KEY]","n":1.50,"b":[true,null,"<x>"]}`,
		`{"password":"swordfish","passwords":"swordfish"}`:                                       `{"password":"[masked: secret]","passwords":"swordfish"}`,
		`{"db_password" : "a\"b\\c1", "tokens":200000, "token":"expired" }`:                      `{"db_password" : "[masked: secret]", "tokens":200000, "token":"expired" }`,
		`{"token":["a1b2c3d4",7],"secret":{"name":"jellyfin-tls"},"a":["b1c2d3"]}`:               `{"token":["[masked: secret]",7],"secret":{"name":"jellyfin-tls"},"a":["b1c2d3"]}`,
		`{"password":["hunter2x","hunter3x"],"token":{"a":"b1c2d3","value":"abcd1234"}}`:         `{"password":["[masked: secret]","[masked: secret]"],"token":{"a":"b1c2d3","value":"[masked: secret]"}}`,
		`{"password":12345678,"pwd":[[-48291734],4],"pin":12345678,"id":123456789012345}`:        `{"password":"[masked: secret]","pwd":[["[masked: secret]"],4],"pin":12345678,"id":"[masked: LONG_KEY]"}`,
		`{"name":"DB_PASSWORD","value":"swordfish"}`:                                             `{"name":"DB_PASSWORD","value":"[masked: secret]"}`,
		`[{"Name":"MODE","Value":"swordfish"},"--db-password","swordfish","--mode","swordfish"]`: `[{"Name":"MODE","Value":"swordfish"},"--db-password","[masked: secret]","--mode","swordfish"]`,
		`{"sk-secret-1":"x"}`:       `{"[masked: ANTHROPIC_API_KEY]":"x"}`,
		`{"a":"value1"}`:            `{"a":"value1"}`,
		`"sk-secret-1 \u00e4 <\/>"`: `"[masked: ANTHROPIC_API_KEY] ä </>"`,
		`{"a":"sk-secret-1`:         `{"a":"[masked: ANTHROPIC_API_KEY]`,
	} {
		require.Equal(t, want, string(r.JSON([]byte(document))))
	}
	require.Nil(t, r.JSON(nil))
}

// TestTextOfJSON masks JSON that is a text, or a part of one. It stays JSON.
func TestTextOfJSON(t *testing.T) {
	t.Parallel()
	r := New([]string{"DB_PASSWORD=123456789012345"})
	for document, want := range map[string]string{
		`{"tests":{"pass":10234,"fail":2}}`:            `{"tests":{"pass":10234,"fail":2}}`,
		`{"password":12345678}`:                        `{"password":"[masked: password]"}`,
		`{"a":1,"db_pass" : -48291734.5e3 ,"b":2}`:     `{"a":1,"db_pass" : "[masked: password]" ,"b":2}`,
		`{"password":[12345678, 2]}`:                   `{"password":["[masked: password]", 2]}`,
		`{"password":[true,12345678,2]}`:               `{"password":["[masked: password]"]}`,
		`{"body":"{\"pwd\":48291734}"}`:                `{"body":"{\"pwd\":\"[masked: password]\"}"}`,
		`{"id":123456789012345,"of":12345678901}`:      `{"id":"[masked: DB_PASSWORD]","of":12345678901}`,
		`{"log":"password: 48291734, pass: 48291734"}`: `{"log":"password: [masked: password], pass: 48291734"}`,
	} {
		require.True(t, json.Valid([]byte(document)))
		require.Equal(t, want, r.Text(document))
		require.True(t, json.Valid([]byte(want)))
		require.Equal(t, want, r.Text(want), "a second time changes nothing")
	}
}

func TestBeginning(t *testing.T) {
	t.Parallel()
	r := New([]string{"ANTHROPIC_API_KEY=sk-secret-1"})
	const limit = 1000
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(fill(64)+"\n", 30) + "-----END PRIVATE KEY-----\n"
	for name, part := range map[string]string{"key": key, "value": "sk-secret-1 ", "token": "ghp_" + fill(36) + "\n", "text": "all is well. "} {
		text := strings.Repeat(part, 1_000_000/len(part))
		beginning := r.Beginning(text, limit)
		require.GreaterOrEqual(t, len(beginning), limit/10, name)
		require.Less(t, len(beginning), 20*margin, name)
		require.NotContains(t, beginning, fill(16), name)
		require.NotContains(t, beginning, "sk-secret", name)
	}
	require.Equal(t, "short", r.Beginning("short", limit))
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	r := New([]string{"ANTHROPIC_API_KEY=sk-secret-1"})
	var text, lines bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: r.Attr}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&text, options), slog.NewJSONHandler(&lines, options)} {
		logger := slog.New(handler).With("with", "sk-secret-1").WithGroup("group")
		logger.Info("said sk-secret-1", "error", errors.New("no sk-secret-1"), "token", "abc123", "inner", slog.GroupValue(slog.String("x", "sk-secret-1")),
			"list", []string{"sk-secret-1"}, "count", 3, "bytes", json.RawMessage(`"sk-secret-1"`), "plain", struct{ A int }{1})
	}
	for _, logged := range []string{text.String(), lines.String()} {
		require.NotContains(t, logged, "sk-secret-1")
		require.NotContains(t, logged, "abc123")
		require.Contains(t, logged, "said [masked: ANTHROPIC_API_KEY]")
	}
	require.True(t, json.Valid(lines.Bytes()))
	require.EqualError(t, r.Error(errors.New("no sk-secret-1")), "no [masked: ANTHROPIC_API_KEY]")
	require.NoError(t, r.Error(nil))
}

// fuzzed is a Redactor of secrets that resemble parts of masks and of JSON.
var fuzzed = New([]string{
	"A_KEY=sk-secret-1", "B_TOKEN=]masked: x", `C_SECRET=":"value1`, "D_PASSWORD=aaaaaaaa1", "E_KEY=[masked: A_KEY]", "F_PASSWORD=p@ss w\\rd1\n2",
})

// FuzzText checks the promises of masking: the result contains none of the values, masking it again changes nothing,
// and a JSON document stays valid with the same number of values.
func FuzzText(f *testing.F) {
	for _, s := range shapes {
		f.Add(strings.ReplaceAll(s.example, "→", ""))
		f.Add(s.near)
	}
	for _, text := range []string{
		`{"password":"x1y2z3","a":["sk-secret-1",{"b":null}]}`, "password=[masked: [masked: secret]", "[masked: A_KEY", "-----BEGIN PRIVATE KEY-----\nabc", "\xff\xfe=token",
		"authorization: Bearer [masked: jwt]x", "https://a:[masked:@b.c", "c2stc2VjcmV0LTE=", "password=password=password=abc12", `{"password":12345678,"b":[12345678,2],"x":{"pwd" : -1234e5}}`, "+password: |\n+  hunter2x\n", `{"token":{"value":"abcd1234"}}`, "token: \"a\\\"b1234\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		masked := fuzzed.Text(text)
		require.Equal(t, masked, fuzzed.Text(masked), "a second time changes nothing")
		require.NotContains(t, masked, "sk-secret-1")
		require.NotContains(t, masked, "aaaaaaaa1")
		if json.Valid([]byte(text)) {
			require.True(t, json.Valid([]byte(masked)), masked)
		}
		require.LessOrEqual(t, len(fuzzed.Beginning(text, 100)), len(masked)+len(text))
		document := fuzzed.JSON([]byte(text))
		require.Equal(t, json.Valid([]byte(text)), json.Valid(document) && json.Valid([]byte(text)))
		require.Equal(t, string(document), string(fuzzed.JSON(document)), "a second time changes nothing")
	})
}

// BenchmarkText measures the speed on typical output of commands: logs without secrets, logs with a secret in
// every hundredth line, and a single line of JSON of the same length.
func BenchmarkText(b *testing.B) {
	r := New([]string{"ANTHROPIC_API_KEY=sk-secret-1", "DB_PASSWORD=hunter22-1", "GITHUB_TOKEN=gh-secret-4711"})
	line := "2026-11-22T10:00:00Z jellyfin-1 | level=info id=3f2a9c1d5b7e GET /health HTTP/1.1 200 12ms upstream=10.0.0.7:8096\n"
	hundred := strings.Repeat(line, 99)
	for name, text := range map[string]string{
		"logs":     strings.Repeat(hundred+line, 100),
		"secrets":  strings.Repeat(hundred+"DB_PASSWORD=hunter22-1 password reset, token bucket ghp_"+fill(36)+"\n", 100),
		"one_line": strings.Repeat(strings.ReplaceAll(hundred, "\n", `\n`)+`\npassword reset\n`, 100),
		"hostile":  strings.Repeat("password token secret eyJ sk- :// @ ", 30_000),
		"quotes":   strings.Repeat(`password=" token=' secret=\" pwd=\\" api_key="""`, 25_000),
		"lists":    strings.Repeat("password=$;a;a;a;a,b,b,b&c&c|d|d", 34_000),
		"commas":   strings.Repeat("psk=$,!,!,!,!,!,! token=a;!;!;!;!", 31_000),
		"masks":    strings.Repeat("[masked: ", 114_000),
		"tables":   strings.Repeat(strings.Repeat("password|", 60)+"\n"+strings.Repeat(strings.Repeat("x|", 60)+"\n", 120), 70),
		"blocks":   strings.Repeat("  password: |\n    a\n    [masked: secret]\n password:\n", 22_000),
		"escapes":  strings.Repeat(`\\\\\"\u0026%2525253d&amp;amp;amp;lt;=3D=3D`, 27_000),
		"base64":   strings.Repeat("cGFzc3dvcmQ9JHgKcGFzc3dvcmQ9JHgK", 33_000),
		"base64s":  strings.Repeat(strings.Repeat("cGFzc3dvcmQ9JHgKcGFzc3dvcmQ9JHgK", 2)+"\n", 16_000),
		"commands": strings.Repeat("mysql -p -p curl -u a: openssl -k docker login -p ", 20_000),
		"markup":   strings.Repeat(`<password a="b"> <x name="password" y="z" `, 25_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_ = r.Text(text)
			}
		})
	}
}
