package guard

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// This file judges what daemons do for a program: systemd, Docker and the services that send notifications.

// serviceName matches the names of containers, of services in a compose file, of units and of workloads. A path would
// be another name of the same service, or lead to another script.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@\\-]*$`)

// service accepts the name of one service, so that the ledger can count the actions on it.
func (j judge) service(word string, command Command) error {
	name := strings.TrimSuffix(word, ".service")
	switch {
	case !serviceName.MatchString(word):
		return denied("%q is not the plain name of one service", word)
	case containerID.MatchString(word), maybeID.MatchString(word) && byID(command) && !j.isComposed(word, command.Dir):
		return denied("%s can be the id of a container: write the container's whole name, or restart its service "+
			"with docker compose", word)
	case strings.Contains(strings.ToLower(word), "claudeops"), slices.Contains(j.place.Services, name):
		return &DeniedError{Rule: "services", Reason: word + " is the supervisor's own: agents do not act on it"}
	case slices.ContainsFunc(hostUnits, func(part string) bool { return strings.Contains(word, part) }):
		return denied("%s ends the host, opens it, or ends the sessions of its users", word)
	}
	return nil
}

// unit accepts the name of one unit of systemd that runs a service, or starts one.
func (j judge) unit(word string, command Command) error {
	if kind := strings.TrimPrefix(filepath.Ext(word), "."); slices.Contains(otherUnits, kind) {
		return denied("%s is no service: agents act on services, and on timers, sockets and paths that start them",
			word)
	}
	if slices.ContainsFunc(systemUnits, func(prefix string) bool { return strings.HasPrefix(word, prefix) }) &&
		!strings.HasPrefix(word, "systemd-resolved") && !strings.HasPrefix(word, "systemd-timesyncd") {
		return denied("%s holds up the host and other services", word)
	}
	return j.service(word, command)
}

// otherUnits are the types of units that are no service and start none (systemd.unit(5)).
var otherUnits = []string{"target", "mount", "automount", "slice", "scope", "swap", "device", "snapshot"}

// systemUnits are beginnings of the names of units without which other units fail, or that hold the sessions of users.
var systemUnits = []string{
	"systemd-", "dbus", "init", "getty", "serial-getty", "console-getty", "container-getty", "display-manager", "gdm",
	"sddm", "lightdm", "polkit",
}

// hostUnits lists parts of the names of units that end the host, open it, or end the sessions of its users
// (systemd.special(7)).
var hostUnits = []string{
	"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "hybrid-sleep", "debug-shell", "rescue", "emergency",
	"systemd-exit", "user@", "user-runtime-dir@", "systemd-logind", "session-", "shell.service",
}

// containerID matches container ids, in full or in docker's abbreviated form. maybeID also matches what docker takes
// for the beginning of one. Names such as db look the same.
var (
	containerID = regexp.MustCompile(`^[0-9a-f]{12,64}$`)
	maybeID     = regexp.MustCompile(`^[0-9a-f]+$`)
)

// byID reports whether a program takes the beginning of an id for the name of a container.
func byID(command Command) bool {
	program := filepath.Base(command.Words[0])
	return (program == "docker" || program == "podman") && len(command.Words) > 1 && command.Words[1] != "compose"
}

// apprise accepts a single URL of a notification service, which names no port of the supervisor, wherever apprise looks
// for it. If the URL has a port, the tier must be permitted to connect to the URL's host and port.
func (j judge) apprise(word string, _ Command) error {
	decoded, err := url.PathUnescape(word)
	found := appriseAddress.FindStringSubmatch(word)
	if err != nil || found == nil || strings.Contains(strings.ToLower(decoded), "method=") {
		return denied("%s is not one plain address of a notification, or names a method", word)
	}
	for _, text := range []string{word, decoded} {
		if err := j.doors(text); err != nil {
			return err
		}
	}
	if strings.Trim(found[2], "0123456789") != "" || found[2] == "" { // a token of a bot
		return nil
	}
	return j.connect(found[1], found[2])
}

// appriseAddress matches SCHEME://HOST:PORT/…, with a user in front of the host. Its groups are the host, or the first
// part of a token, and the port, or the rest of the token.
var appriseAddress = regexp.MustCompile(
	`^[A-Za-z0-9]+:///*(?:[^\s,\\/?#]*@)?([A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(?::([A-Za-z0-9_-]*))?(?:[/?#][^\s,\\]*)?$`)

// namedThere refuses a program that finds files by itself in a container or on another host. Nobody there asks us
// before it opens them, and each directory can contain secret files.
func (j judge) namedThere(name string, got given) error {
	if !j.remote || j.limits().Anything {
		return nil
	}
	walks := name == "rg" || name == "diff" || name == "cmp" ||
		strings.HasSuffix(name, "grep") && (got.flags["-r"] || got.flags["-R"] || got.flags["--recursive"])
	if walks {
		return denied("there it is granted only without a search of directories: name the files, with grep or cat")
	}
	for _, word := range slices.Concat(got.values, typedWords(got.args)) {
		if text := opensThere[name]; text != nil && word.kind != "URL" && text.MatchString(word.word) {
			return denied("there nobody judges the files that %s opens by %s: name the file as an argument", name,
				word.word)
		}
	}
	return nil
}

func typedWords(words []string) []typed {
	all := make([]typed, len(words))
	for i, word := range words {
		all[i].word = word
	}
	return all
}

// asksItself accepts requests of a container or another host to itself only, whose services decide where redirects
// lead.
func asksItself(name string, words []typed) error {
	asked := false
	for _, word := range words {
		if word.kind != "URL" {
			continue
		}
		parsed, err := url.Parse(word.word)
		if err != nil || !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, parsed.Hostname()) {
			return denied("there redirects lead anywhere: with wget, or curl -L, ask localhost only")
		}
		asked = true
	}
	if !asked {
		return denied("%s is not granted there", name)
	}
	return nil
}

// opensThere matches the words by which programs open files that no argument names.
var opensThere = map[string]*regexp.Regexp{
	"curl": regexp.MustCompile(`^[^=]*@|%output`),
}

// metadataThere matches the names of metadata services, and numbers that are no plain address.
var metadataThere = regexp.MustCompile(`^(metadata(\..*)?|instance-data|(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+))*)\.?$`)

// givesCredentials reports whether a host is a metadata service of a cloud. It is for containers and other hosts only:
// here, the kernel judges addresses.
func givesCredentials(host string) bool {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return metadataThere.MatchString(strings.ToLower(host))
	}
	address = address.Unmap()
	return address.IsLinkLocalUnicast() || slices.ContainsFunc(MetadataServices, func(service netip.Prefix) bool {
		return service.Contains(address)
	})
}

// MetadataServices lists the addresses at which clouds give out credentials: of AWS and most others, of AWS and Google
// by IPv6, of Alibaba, Azure and Oracle.
var MetadataServices = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::a9fe:a9fe/128"),
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
}
