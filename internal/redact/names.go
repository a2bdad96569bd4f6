package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The labels of secrets that are recognised by a name in front of them.
const (
	passwordLabel = "password"
	tokenLabel    = "token"
	// fieldLabel is also the label of the value of a field whose name suggests a secret.
	fieldLabel = "secret"
)

// secretWord is a name, or the end of a name, that announces a secret.
type secretWord struct {
	// text is in lower case, as far as it is in ASCII.
	text, label string
	// whole means that the word is not the end of a longer one: "pass" is not "bypass".
	whole bool
	// directive means that a value can follow after a blank, whatever it looks like.
	directive bool
	// counts means that digits after the word are a count, as in token=4096.
	counts bool
}

// passwordWords lists words for passwords, and wholeWords those that are also the end of other words.
var (
	passwordWords = []string{
		"password", "passwd", "passphrase", "passcode", "pass-phrase",
		"passwort", "kennwort", "zugangsschlüssel", "geheimwort", // German
		"mot de passe", "mot_de_passe", "motdepasse", // French
		"contraseña", "contrasena", "contraseÑa", // Spanish
		"palavra-passe", "palavra passe", // Portuguese
		// Italian, Dutch, Swedish, Danish, Finnish
		"parola d'ordine", "wachtwoord", "lösenord", "adgangskode", "salasana",
		"passord", "kodeord", "jelszó", "hasło", "haslo", "heslo", // Norwegian, Danish, Hungarian, Polish, Czech
		"şifre", "Şifre", "parolă", "kata sandi", "mật khẩu", "mat khau", // Turkish, Romanian, Indonesian, Vietnamese
		"пароль", "Пароль", "ПАРОЛЬ", "κωδικός", "Κωδικός", // Russian, Ukrainian, Greek
		"パスワード", "暗証番号", "密码", "密碼", "口令", "비밀번호", "암호", // Japanese, Chinese, Korean
		"كلمة المرور", "كلمة السر", "סיסמה", "पासवर्ड", "รหัสผ่าน", // Arabic, Hebrew, Hindi, Thai
	}
	wholeWords = []string{"pass", "pwd", "pw", "psk", "mdp", "senha", "parola", "sifre", "wpa-psk"}
	// directives are settings of programs: redis.conf, slapd.conf, ldap.conf, keytool, snmpd.conf.
	directives = []string{
		"requirepass", "masterauth", "rootpw", "bindpw", "storepass", "keypass", "rocommunity",
		"rwcommunity",
	}
	// keyOf lists what a key that is a secret is for.
	keyOf = []string{
		"api", "access", "private", "auth", "secret", "encryption", "preshared", "pre-shared", "signing",
		"master",
	}
)

// secretWords holds all words, and a scanner for them.
var secretWords, wordScanner = func() (words []secretWord, _ *scanner) {
	add := func(label string, of secretWord, texts ...string) {
		for _, text := range texts {
			of.text, of.label = text, label
			words = append(words, of)
		}
	}
	add(passwordLabel, secretWord{}, passwordWords...)
	add(passwordLabel, secretWord{whole: true}, wholeWords...)
	add(passwordLabel, secretWord{directive: true}, directives...)
	add(tokenLabel, secretWord{}, "token", "_pat")
	add(fieldLabel, secretWord{}, "secret", "key-data", "credential", "credentials", "recovery code", "recovery codes",
		"backup code",
		"verification code", "unseal key", "_auth", "_dsn", "otp code")
	for _, of := range keyOf {
		for _, joined := range []string{"key", "_key", "-key", ".key", " key"} {
			add(fieldLabel, secretWord{}, of+joined)
		}
	}
	var keywords []keyword
	for i, w := range words {
		keywords = append(keywords, keyword{w.text, i})
	}
	return words, newScanner(keywords)
}()

// isName reports whether a word stands at a position as a name or as the end of one. It returns the end of the name.
func (w *secretWord) isName(text string, at int) (end int, is bool) {
	if w.whole && at > 0 {
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		camel := unicode.IsLower(before) && unicode.IsUpper(rune(text[at]))
		if unicode.IsLetter(before) && !camel && !isEscaped(text, at-1) {
			return 0, false
		}
	}
	end = at + len(w.text)
	for _, suffix := range []string{"_value", "_plain", "_b64", "_base64", "Value", "-value", "_text"} {
		if strings.HasPrefix(text[end:], suffix) {
			end += len(suffix)
		}
	}
	number := numberEnd(text, end)
	next, _ := utf8.DecodeRuneInString(text[number:])
	ascii := next < utf8.RuneSelf && (unicode.IsLetter(next) || unicode.IsDigit(next))
	switch {
	case number > end:
		return number, next != '.' && !unicode.IsLetter(next) && !unicode.IsDigit(next)
	case next == '-':
		return end, number+1 == len(text) || !isAlphanumeric(text[number+1])
	case w.text[len(w.text)-1] >= utf8.RuneSelf: // Japanese goes on without a blank
		return end, next != '_'
	}
	return end, next != '_' && !ascii && !unicode.In(next, unicode.Latin)
}

// isWhole reports whether the word at a position is no end of a longer name.
func isWhole(text string, at int) bool {
	start := nameStart(text, at)
	return start == at || start == at-1 && isEscaped(text, start)
}

// numberEnd returns the end of a number after a name, as in password2; at if there is none.
func numberEnd(text string, at int) int {
	end := at
	if end < len(text)-1 && strings.IndexByte("_- ", text[end]) >= 0 && isDigit(text[end+1]) {
		end++
	}
	for end < len(text) && end-at < maxNumber && isDigit(text[end]) {
		end++
	}
	return end
}

// maxNumber limits the digits after a name, as in password2.
const maxNumber = 2

// isEscaped reports whether the letter at a position belongs to an escape such as \n.
func isEscaped(text string, at int) bool {
	return at > 0 && text[at-1] == '\\' && strings.IndexByte("nrtbf", text[at]) >= 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isSecretName reports whether a name ends like the names of secrets, as in "db_password".
func isSecretName(name string) bool {
	is := false
	wordScanner.scan(lowerASCII(name), func(at, id int) {
		end, named := secretWords[id].isName(name, at)
		is = is || named && strings.Trim(name[end:], " \t*:\"'") == ""
	})
	return is || slices.Contains([]string{"auth", "psk"}, lowerASCII(name))
}
