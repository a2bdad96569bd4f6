package redact

import (
	"regexp"
	"strings"
)

// command describes how command lines contain a password although no word says so.
type command struct {
	names []string
	// option matches an option, and has a group for the password.
	option *regexp.Regexp
}

// commandLabel is the label of passwords in command lines.
const commandLabel = passwordLabel

// option returns a pattern for an option in front of a password.
func option(text string) *regexp.Regexp {
	return regexp.MustCompile(`[ \t]` + text + `(?:'([^'\n]{3,})'|"([^"\n]{3,})"|([^\s'"\\]{3,}))`)
}

// words splits a list of names.
func words(list string) []string { return strings.Fields(list) }

// commands lists commands by their manuals.
var commands = []command{
	{words("mysql mysqldump mysqladmin mysqlcheck mysqlimport mariadb-dump mariadb-admin mycli mariadb"), option(`-p`)},
	{words("sshpass mongo mongosh mongodump mongorestore mongoexport"), option(`-p ?`)},
	{[]string{"docker login", "podman login", "nerdctl login", "skopeo login", "buildah login", "oras login"}, option(`-p ?`)},
	{[]string{"registry login", "az login"}, option(`-p ?`)},
	{words("7z 7za 7zr rar unrar"), option(`-p`)},
	{words("zip unzip ipmitool mosquitto_pub mosquitto_sub"), option(`-P ?`)}, //nolint:misspell // names of programs
	{words("redis-cli valkey-cli"), option(`-a `)},
	{words("ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami ldappasswd"), option(`-w ?`)},
	{words("snmpwalk snmpget snmpset snmpbulkwalk"), option(`-(?:A|X|c) ?`)},
	{[]string{"smbclient", "rpcclient", "smbget", "net ads", "net rpc"}, option(`-U ?["']?[^\s%"']+%`)},
	{words("htpasswd"), option(`-\w*b\w* \S+ \S+ `)},
	{words("xfreerdp xfreerdp3 wlfreerdp"), option(`/p:`)},
	{words("lftp"), option(`-u ?[^\s,]+,`)},
	{words("curl"), option(`(?:-\w*u|--user|-U|--proxy-user)[ =]?["']?[^\s:'"]+:`)},
	{words("openssl"), option(`-(?:k |pass(?:in|out)? pass:)`)},
}

// commandScanner finds the names of the commands.
var commandScanner = func() *scanner {
	var keywords []keyword
	for i, c := range commands {
		for _, name := range c.names {
			keywords = append(keywords, keyword{name + " ", i})
		}
	}
	return newScanner(keywords)
}()

// maxCommand limits the length of a command line, in bytes.
const maxCommand = 2 << 10

// findCommands returns the positions of passwords in command lines.
func findCommands(text, lower string) (found []span) {
	seen := make([]int, len(commands))
	commandScanner.scan(lower, func(at, id int) {
		if at < seen[id] || at > 0 && isAlphanumeric(text[at-1]) && !isEscaped(text, at-1) {
			return
		}
		line := text[at:min(len(text), at+maxCommand)]
		if end := strings.IndexAny(line, "\n|;&"); end >= 0 {
			line = line[:end]
		}
		seen[id] = at + len(line)
		for _, groups := range commands[id].option.FindAllStringSubmatchIndex(line, -1) {
			for group := 2; group < len(groups); group += 2 {
				if start, end := groups[group], groups[group+1]; start >= 0 && isCommandPassword(line[start:end]) {
					found = append(found, span{at + start, at + end, commandLabel, maxShapes})
				}
			}
		}
	})
	return found
}

// isCommandPassword reports whether an argument is a password and not the next option.
func isCommandPassword(text string) bool {
	return isSecretText(text) && text[0] != '-' && !ordinaryWords[lowerASCII(text)] &&
		!strings.HasPrefix(text, maskStart[:1])
}
