package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shape describes a kind of secret.
type shape struct {
	// label is the name of the kind in the mask.
	label string
	// keys lists lower-case literals. Every match contains at least one of them.
	keys []string
	// pattern matches the secret, or a text whose first matching group is the secret. A dot does not match a line
	// break, because only keys in PEM span several lines.
	pattern string
	// with lists further literals. If the list is not empty, every match is near one of these literals and near one of
	// keys.
	with []string
	// group is the first group that can be the secret; 0 means 1.
	group int
	// accept decides whether a match is a secret; nil accepts all matches.
	accept func(match []string) bool
	// example is a text with a secret after the last "→". near is a similar text that must not be masked. A test checks
	// both texts.
	example, near string
	// source names the origin of the shape.
	source string
}

const (
	// edge matches the boundary in front of a token. It is for tokens whose prefix could also be the end of a word. The
	// boundary is the start of the text, a character that is neither letter nor digit, or the end of an escape
	// sequence.
	edge = `(?:^|[^A-Za-z0-9]|\\[nrtbf]|%[0-9A-Fa-f]{2})`
	// quotes matches a quotation mark, escaped or not.
	quotes = "\\\\?[\"'`]"

	gitleaks = "gitleaks 8.30.1, config/gitleaks.toml (MIT)"
	vendor   = "the vendor's documentation"
)

// shapes lists the known shapes, beginning with the most specific label. The position in the list is the rank of the
// label.
var shapes = []shape{
	{
		label: "anthropic key", keys: []string{"sk-ant-"}, pattern: `sk-ant-[\w-]{16,}`,
		example: "→sk-ant-" + "api03-" + fill(93) + "AA", near: "sk-ant-api03-… is how a key begins", source: gitleaks,
	},
	{
		label: "session key", keys: []string{"claudeops-session-"}, pattern: `claudeops-session-[A-Z2-7]{16,}`,
		example: "→claudeops-session-" + strings.Repeat("A2B3C4D5", 6) + "WXYZ",
		near:    "claudeops-session-x and claudeops-sessions", source: "package proxy",
	},
	{
		label: "claudeops token", keys: []string{"claudeops-token-"}, pattern: `claudeops-token-[0-9a-f]{32,}`,
		example: "→claudeops-token-" + strings.Repeat("0a", 32), near: "claudeops-token-file and claudeops-tokens",
		source: "package supervisor",
	},
	{
		label: "password hash",
		keys: []string{
			"$1$", "$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$", "$argon2", "$scrypt",
			"$pbkdf2",
		},
		pattern: `\$(?:[1567]|2[abxy]|g?y|apr1|argon2(?:id|[id])|scrypt|pbkdf2[\w-]*)\$(?:[\w=,./+-]{1,80}\$){0,4}[\w./+-]{20,}={0,2}`,
		example: "root:→$6$rounds=5000$" + fill(16) + "$" + fill(86) + ":19000:0:99999:7:::",
		near:    "echo $1$2, $6$ and a price of $5$ each, $y$ and $PATH",
		source:  "crypt(5), the PHC string format",
	},
	{
		label: "openai key", keys: []string{"sk-"},
		pattern: edge + `(sk-(?:proj|svcacct|admin|or-v1)-[\w-]{20,}|sk-[A-Za-z0-9]{32,})`,
		example: "key →sk-" + "proj-" + fill(60), near: "sk-learn-contrib and task-0123456789", source: gitleaks,
	},
	{
		label: "github token", keys: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, pattern: `gh[opsur]_[A-Za-z0-9]{36,}`,
		example: "→ghp_" + fill(36), near: "ghp_short and the branch ghs_main", source: gitleaks,
	},
	{
		label: "github token", keys: []string{"github_pat_"}, pattern: `github_pat_\w{22,}`,
		example: "→github_pat_" + fill(82), near: "github_pat_", source: gitleaks,
	},
	{
		label: "gitlab token",
		keys: []string{
			"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glffct-",
			"glsoat-",
		},
		pattern: `(gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|ffct|soat|rtr)-[\w.-]{20,})`, example: "→glpat-" + fill(20),
		near: "glpat-short, glrt- and english-speaking", source: gitleaks,
	},
	{
		label: "slack token", keys: []string{"xox", "xapp-"},
		pattern: `xox[abceoprsd]\.?[\w.]*-[\w-]{10,}|xapp-\d-[\w-]{10,}`,
		example: "→xoxb-" + "123456789012-1234567890123-" + fill(24), near: "xoxo-xoxo and xapp-name", source: gitleaks,
	},
	{
		label: "slack webhook", keys: []string{"hooks.slack.com/"},
		pattern: `hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,})`,
		example: "https://hooks.slack.com/services/→T00000000/B00000000/" + fill(24),
		near:    "https://hooks.slack.com/services/", source: gitleaks,
	},
	{
		label: "aws access key", keys: []string{"akia", "asia", "abia", "acca"},
		pattern: edge + `((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})(?:[^A-Z0-9]|$)`, example: "→AKIA" + "QYLPMN5HFIQR7XYA",
		near: "AKIAs, eu-west-1 and AKIAQYLPMN", source: gitleaks,
	},
	{
		label: "aws secret key", keys: []string{"secret"},
		pattern: `(?i)secret_?(?:access_?)?key` + quotes + `?[ \t]*(?:=>?|:)[ \t]*` +
			`(?:` + quotes + `)?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`,
		example: `"SecretAccessKey": "→wJalrXUtnFEMI/K7MDENG/` + `bPxRfiCYzEXAMPLEKE"`,
		near:    "commit 420b11e0c1b5d2f4a6978877665544332211ffee",
		source:  "gitleaks 8.30 (rule aws-access-token) and AWS's documentation",
	},
	{
		label: "google key", keys: []string{"aiza"}, pattern: `AIza[\w-]{35}`, example: "→AIza" + fill(35),
		near: "AIzawa and AIza-short", source: gitleaks,
	},
	{
		label: "google token", keys: []string{"ya29.", "gocspx-"}, pattern: `ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}`,
		example: "→GOCSPX-" + fill(28), near: "ya29.short", source: vendor,
	},
	{
		label: "jwt", keys: []string{"eyj"}, pattern: `eyJ[\w-]{10,}\.[\w-]{6,}(?:\.[\w-]+){0,3}\.?`,
		example: "→eyJ" + fill(20) + ".eyJ" + fill(40) + "." + fill(43), near: "eyJhbGciOiJIUzI1NiJ9 alone",
		source: "RFC 7519, RFC 7516; gitleaks 8.30 (rule jwt)",
	},
	{
		label: "telegram token", keys: []string{":aa"}, pattern: `(\d{6,16}:AA[\w-]{32,34})(?:[^\w-]|$)`,
		example: "bot→123456789:AA" + fill(33), near: "12:AA, aa:bb:cc:dd:ee:ff and 10:00:00", source: gitleaks,
	},
	{
		label: "stripe key", keys: []string{"k_live_", "k_test_", "k_prod_", "whsec_"},
		pattern: `[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/]{24,}`, example: "→sk_" + "live_" + fill(24),
		near: "task_test_suite and sk_live_", source: gitleaks,
	},
	{
		label: "npm token", keys: []string{"npm_"}, pattern: edge + `(npm_[A-Za-z0-9]{36})(?:[^A-Za-z0-9]|$)`,
		example: "//registry.npmjs.org/:_authToken=→npm_" + fill(36),
		near:    "npm_config_registry and npm_lifecycle_event", source: gitleaks,
	},
	{
		label: "pypi token", keys: []string{"pypi-"}, pattern: `pypi-AgE[\w-]{32,}`,
		example: "→pypi-" + "AgEIcHlwaS5vcmc" + fill(60), near: "pypi-mirror", source: gitleaks,
	},
	{
		label: "docker token", keys: []string{"dckr_"}, pattern: `dckr_[a-z]{3}_[\w-]{20,}`,
		example: "→dckr_pat_" + fill(27), near: "dckr_pat_", source: vendor,
	},
	{
		label: "hugging face token", keys: []string{"hf_"}, pattern: edge + `(hf_[A-Za-z0-9]{30,})(?:[^A-Za-z0-9]|$)`,
		example: "→hf_" + fill(34), near: "hf_hub_download and shelf_" + strings.Repeat("a", 34), source: gitleaks,
	},
	{
		label: "digitalocean token", keys: []string{"_v1_"}, pattern: `do[opr]_v1_[a-f0-9]{64}`,
		example: "→dop_v1_" + strings.Repeat("0a", 32), near: "dop_v1_abc and foo_v1_" + strings.Repeat("0a", 32),
		source: gitleaks,
	},
	{
		label: "vault token", keys: []string{"hvs.", "hvb.", "hvr."}, pattern: edge + `(hv[sbr]\.[\w-]{24,})`,
		example: "→hvs." + fill(92), near: "hvs.go", source: gitleaks,
	},
	{
		label: "terraform token", keys: []string{".atlasv1."}, pattern: `[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}`,
		example: "→" + fill(14) + ".atlasv1." + fill(67), near: "x.atlasv1.y", source: gitleaks,
	},
	{
		label: "sendgrid key", keys: []string{"sg."}, pattern: edge + `(SG\.[\w-]{16,32}\.[\w-]{32,64})`,
		example: "→SG." + fill(22) + "." + fill(43), near: "MSG.txt and SG.a.b", source: gitleaks,
	},
	{
		label: "mailgun key", keys: []string{"key-"}, pattern: edge + `(key-[a-f0-9]{32})(?:[^a-f0-9]|$)`,
		example: "→key-" + strings.Repeat("0a", 16), near: "monkey-0123456789 and key-value", source: gitleaks,
	},
	{
		label: "grafana token", keys: []string{"glsa_", "glc_"}, pattern: `glsa_\w{32}_[a-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,}`,
		example: "→glsa_" + fill(32) + "_0a1b2c3d", near: "glsa_x", source: gitleaks,
	},
	{
		label: "tailscale key", keys: []string{"tskey-"}, pattern: `tskey-[a-z]+-[\w-]{16,}`,
		example: "→tskey-auth-" + fill(12) + "-" + fill(32), near: "tskey-auth", source: vendor,
	},
	{
		label: "databricks token", keys: []string{"dapi"}, pattern: edge + `(dapi[a-f0-9]{32}(?:-\d)?)(?:[^a-f0-9]|$)`,
		example: "→dapi" + strings.Repeat("0a", 16), near: "dapi and dapile", source: gitleaks,
	},
	{
		label: "shopify token", keys: []string{"shpat_", "shpca_", "shppa_", "shpss_"},
		pattern: `shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`, example: "→shpat_" + strings.Repeat("0a", 16), near: "shpat_x",
		source: gitleaks,
	},
	{
		label: "doppler token", keys: []string{"dp."}, pattern: edge + `(dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,})`,
		example: "→dp.pt." + fill(43), near: "udp.pt.x", source: gitleaks,
	},
	{
		label: "pulumi token", keys: []string{"pul-"}, pattern: edge + `(pul-[a-f0-9]{40})(?:[^a-f0-9]|$)`,
		example: "→pul-" + strings.Repeat("0a", 20), near: "pul-0a", source: gitleaks,
	},
	{
		label: "linear key", keys: []string{"lin_api_"}, pattern: `lin_api_[A-Za-z0-9]{32,}`,
		example: "→lin_api_" + fill(40), near: "lin_api_v2", source: gitleaks,
	},
	{
		label: "notion token", keys: []string{"ntn_"}, pattern: edge + `(ntn_[A-Za-z0-9]{40,})`, example: "→ntn_" + fill(46),
		near: "ntn_x", source: gitleaks,
	},
	{
		label: "1password token", keys: []string{"ops_eyj"}, pattern: `ops_eyJ[A-Za-z0-9+/]{100,}={0,3}`,
		example: "→ops_eyJ" + fill(250), near: "ops_eyJ", source: gitleaks,
	},
	{
		label: "age key", keys: []string{"age-secret-key-"}, pattern: `(?i)AGE-SECRET-KEY-[A-Z0-9-]{40,}`,
		example: "→AGE-SECRET-KEY-1" + strings.Repeat("QPZRY9X8", 7) + "QP", near: "AGE-SECRET-KEY-1", source: gitleaks,
	},
	{
		label: "new relic key", keys: []string{"nrak-", "nrra-", "nrii-"}, pattern: `NR(?:AK|RA|II)-[\w-]{24,}`,
		example: "→NRAK-" + strings.Repeat("A1B", 9), near: "NRAK-1", source: gitleaks,
	},
	{
		label: "discord webhook", keys: []string{"/api/webhooks/"},
		pattern: `discord(?:app)?\.com/api/webhooks/(\d+/[\w-]{40,})`,
		example: "https://discord.com/api/webhooks/→123456789012345678/" + fill(68),
		near:    "https://discord.com/api/webhooks/123", source: vendor,
	},
	{
		label: "azure storage key", keys: []string{"accountkey="}, pattern: `(?i)AccountKey=([A-Za-z0-9+/]{40,}={0,2})`,
		example: "AccountName=x;AccountKey=→" + fill(86) + "==", near: "AccountKey=", source: vendor,
	},
	{
		label: "signature", keys: []string{"sig=", "signature="},
		pattern: `(?i)[?&;](?:sig|(?:x-amz-|x-goog-)?signature)=([\w%+/=-]{20,})`,
		example: "https://x.blob.core.windows.net/a?sv=1&sig=→" + fill(43) + "%3D", near: "?sig=none and config=1",
		source: vendor,
	},
	{
		label: "private key", keys: []string{"ls0tls1crudj"},
		pattern: `LS0tLS1CRUdJTi[A-Za-z0-9+/=]{0,30}(?:UFJJVkFURS|QUklWQVRF|BSSVZBVE)[A-Za-z0-9+/=]*`,
		example: "client-key-data: →LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo" + fill(80),
		near:    "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJ",
		source:  "base64 of a key in PEM, as in a kubeconfig",
	},
	{
		label: "authorization header", keys: []string{"authorization", "set-cookie", "cookie:"},
		pattern: `(?i)(?:authorization|\bset-cookie|\bcookie)` + quotes + `?[ \t]*[:=][ \t]*(?:` + quotes + `)?[ \t]*` +
			`((?:basic|bearer|token|digest|negotiate|apikey|bot)[ \t]+[^\s"'\x60\\]{4,}|` +
			`[^\s"'\x60\\]{16,}[^"'\x60\\\r\n]*)`,
		accept: func(match []string) bool {
			return isSecretText(afterBlank(match[1])) && strings.ContainsAny(match[1], "0123456789=+/")
		},
		example: `curl -H "Authorization: →Basic b3BzOmh1bnRlcjIy" https://x`,
		near:    `Authorization: Bearer $TOKEN; authorization: required, Authorization: see the documentation`,
		source:  "RFC 9110, RFC 6265",
	},
	{
		label: "bearer token", keys: []string{"bearer"}, pattern: `(?i)bearer[ \t]+([\w.~+/=-]{12,})`,
		accept:  func(match []string) bool { return isSecretText(match[1]) && hasDigit(match[1]) },
		example: "Bearer →" + fill(24), near: "bearer authentication-required, and Bearer $API_TOKEN",
		source: "RFC 6750",
	},
	{
		label: "password in an address", keys: []string{"//"},
		with:    []string{"@", "(at)"}, // plaintext.ForChat replaces @ by (at)
		pattern: `[A-Za-z][A-Za-z0-9+.-]*: ?//[^\s/:@"'<>]*:([^\s@"'<>]+?)(?:@|\(at\))[\w.\[-]`,
		accept:  func(match []string) bool { return isSecretText(match[1]) && !isPortAndPath(match[1]) },
		example: "postgres://ops:→hunter2/x#?@db.example:5432/x",
		near: "http://proxy:8080/x@2.1, ssh://git@host/x, https://a:$PASSWORD@host/ and " +
			"http://localhost:3000/@scope/name@1",
		source: "RFC 3986",
	},
	{
		label: "token in an address", keys: []string{"//"}, with: []string{"@", "(at)"},
		pattern: `[A-Za-z][A-Za-z0-9+.-]*: ?//([\w.~%!$&*+=-]{16,})(?:@|\(at\))[\w.\[-]`,
		accept:  func(match []string) bool { return isSecretText(match[1]) && hasDigit(match[1]) },
		example: "https://→" + fill(20) + "@github.com/x/y",
		near:    "ssh://git@github.com and https://service-account-of-ops@host", source: "RFC 3986",
	},
	{
		label: "secret option", keys: []string{"-pass", "-token", "-secret", "-api", "-access", "-auth"},
		pattern: `(?i)(?:^|[\s"'=,\[(]|\\n)--?(?:[a-z]{1,20}-){0,3}` +
			`(?:password|passwd|passphrase|token|secret|api-?key|access-?token|auth-?token|secret-?key)` +
			`(?:[ \t]+|["'],[ \t\n]*["'])(?:` + quotes + `)?([^\s"'\\-][^\s"'\\]{3,})`,
		accept: func(match []string) bool {
			return isSecretText(match[1]) &&
				!ordinaryWords[strings.ToLower(match[1])]
		},
		example: `mysql --user ops --password →hunter2`, near: "--token $TOKEN, --password required and --token-file x",
		source: "options of common programs",
	},
	{
		label: "twilio key", keys: []string{"sk"}, pattern: edge + `(SK[0-9a-f]{32})(?:[^0-9a-f]|$)`,
		example: "→SK" + strings.Repeat("0a", 16), near: "SK0a and ask", source: gitleaks,
	},
	{
		label: "password hash", keys: []string{"{ssha", "{sha", "{crypt}", "{md5}", "{smd5}", "{pbkdf2"},
		pattern: `(?i)\{(?:S?SHA\d{0,3}|S?MD5|CRYPT|PBKDF2[\w-]*)\}[\w./+$,=-]{20,}`, example: "userPassword: →{SSHA}" + fill(32),
		near: "{SHA} and {md5}x", source: "RFC 2307",
	},
	{
		label: "password", keys: []string{"@tcp(", "@unix("}, pattern: `[\w.-]+:([^\s:@/"']{3,})@(?:tcp|unix)\(`,
		example: "ops:→hunter2@tcp(db:3306)/shop", near: "user@tcp(db:3306)",
		source: "the data source names of Go's MySQL driver",
	},
	{
		label: "password", keys: []string{":5432:", ":5433:", ":6432:", ":*:"},
		pattern: `(?:^|[\s"]|\\n)[\w.*-]+:(?:\d{4,5}|\*):[^:\s]+:[^:\s]+:([^\s"\\]{3,})`,
		accept:  func(match []string) bool { return isSecretText(match[1]) && !strings.Contains(match[1], ":") },
		example: "db.lan:5432:shop:ops:→hunter2", near: "tcp 0.0.0.0:5432:x, lp:*:20228:0:99999:7:::",
		source: "the file .pgpass",
	},
	{
		label: "password", keys: []string{"login"}, pattern: `\blogin\s+\S+\s+password\s+(\S{3,})`,
		accept: func(match []string) bool {
			return isSecretText(match[1]) &&
				!ordinaryWords[strings.ToLower(match[1])]
		},
		example: "machine x login ops password →hunter2", near: "login failed, password expired", source: "netrc(5)",
	},
	{
		label: "password", keys: []string{"identified"},
		pattern: `(?i)identified (?:with \S+ )?(?:by|as) (?:password )?["']([^"'\n]{3,})["']`,
		example: "identified by '→hunter2'", near: "identified by name", source: "SQL",
	},
	{
		label: "password", keys: []string{"* \""}, pattern: `["']?[\w.@-]+["']?[ \t]+\*[ \t]+"([^"\n]{3,})"`,
		example: `"ops" * "→hunter2" *`, near: `SELECT * "x"`, source: "pppd(8), chap-secrets",
	},
	{
		label: "community", keys: []string{"snmp-server community"}, pattern: `(?i)snmp-server community (\S{3,})`,
		example: "snmp-server community →s3cret RO", near: "snmp-server community", source: "routers",
	},
	{
		label: "authorization header", keys: []string{"authorization", "x-api-key", "x-auth-token"},
		pattern: `(?i)(?:authorization|x-api-key|x-auth-token)[ \t]+["']?((?:basic|bearer|token)[ \t]+[^\s"']{6,}|[^\s"':]{16,})`,
		accept:  func(match []string) bool { return isSecretText(afterBlank(match[1])) && hasDigit(match[1]) },
		example: `proxy_set_header Authorization "→Basic b3BzOmh1bnRlcjIy";`, near: "Authorization header is required", source: "nginx",
	},
	{
		label: "login", keys: []string{`auth"`}, pattern: `"auth\\?"[ \t]*:[ \t]*\\?"([A-Za-z0-9+/]{8,}={0,2})\\?"`,
		accept:  func(match []string) bool { return isLogin(match[1]) },
		example: `{"auth":"→b3BzOmh1bnRlcjIy"}`, near: `{"auth":"required"}`, source: "the file .docker/config.json",
	},
	{
		label: "password", keys: []string{
			"--password-stdin", "--stdin", "sudo -s", "sudo -ks", "chpasswd",
			"--pass-stdin",
		},
		pattern: `(?:echo|printf)[ \t]+(?:-n[ \t]+)?["']?(?:[\w.-]+:)?([^\s"'|]{3,})["']?[ \t]*\|[ \t]*` +
			`(?:sudo )?[^|\n]{0,80}(?:stdin|sudo -k?S|chpasswd)`,
		accept:  func(match []string) bool { return isSecretText(match[1]) },
		example: "echo →hunter2 | docker login --password-stdin", near: "echo $PASSWORD | sudo -S true",
		source: "the manuals of the commands",
	},
	{
		label: "secret", keys: []string{"--from-literal"}, pattern: `--from-literal[= ]["']?[\w.-]+=([^\s"']{3,})`,
		accept:  func(match []string) bool { return isSecretText(match[1]) },
		example: "--from-literal=dsn=→hunter2", near: "--from-literal=x=$X", source: "kubectl(1)",
	},
	{
		label: "password", keys: []string{"generated", "temporary"},
		pattern: `(?i)(?:generated|temporary)[^\n:]{0,40}password[^\n:]{0,60}: ([^\s"\\]{8,})(?:[\s"\\]|$)`,
		accept:  func(match []string) bool { return isSecretText(match[1]) && hasDigit(match[1]) },
		example: "a generated password for x: →q/Hk2.w#1xY",
		near:    "a temporary password was sent: see the mail", source: "servers at their first start",
	},
}

// isLogin reports whether a text is a user and a password in base64.
func isLogin(encoded string) bool {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	return err == nil && isReadable(plain) && strings.Contains(string(plain), ":")
}

// fill returns n characters that resemble a token and were never a token.
func fill(n int) string { return strings.Repeat("a1B2c3D4e5F6g7H8", n/16+1)[:n] }

// matcher is a shape with its compiled pattern. A lower rank means a more specific label.
type matcher struct {
	shape
	rank int
	// compiled is called when one of the keys is found, because compiling takes long.
	compiled func() *regexp.Regexp
}

// maxShapes limits the number of shapes.
const maxShapes = 128

// table holds all matchers, and the scanner for their keywords.
type table struct {
	all     []matcher
	scanner *scanner
}

// matchers returns all shapes: those of this file, and then those of gitleaks.
var matchers = sync.OnceValue(func() table {
	var known table
	var keywords []keyword
	for i, s := range slices.Concat(shapes, gitleaksShapes()) {
		known.all = append(known.all, matcher{
			s, i + 1,
			sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s.pattern) }),
		})
		for _, key := range s.keys {
			keywords = append(keywords, keyword{key, i})
		}
	}
	known.scanner = newScanner(keywords)
	return known
})

// maxShapeLabel limits the length of the label of a shape.
const maxShapeLabel = 60

// isShapeLabel reports whether label is the label of a shape.
func isShapeLabel(label string) bool {
	if label == pemLabel || label == passwordLabel || label == tokenLabel || label == fieldLabel {
		return true
	}
	for _, m := range matchers().all {
		if m.label == label {
			return true
		}
	}
	return false
}
