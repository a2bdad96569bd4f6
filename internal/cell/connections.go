package cell

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// connectionRules adds to the rules for files where the programs of a session do not connect: to the supervisor, to
// other sessions, to terminals of people and to the metadata services of clouds.
func (g *guards) connectionRules(ctx context.Context, opens *process.Opens, place guard.Place, post *Post) {
	opens.Addresses = metadataServices()
	for _, dir := range resolved(os.TempDir()) {
		opens.Sockets = append(opens.Sockets, filepath.Join(dir, tempPrefix+"*", "**"))
	}
	opens.Sockets = append(opens.Sockets, "**/tmux-*/**", "/run/screen/**", "/tmp/screens/**")
	for _, own := range place.Own {
		opens.Sockets = append(opens.Sockets, literalPattern(own), literalPattern(own)+"/**")
	}
	opens.OwnSockets = resolved(post.Socket())
	for _, door := range place.Doors {
		const reason = "it is the supervisor's own: agents do not ask it"
		switch {
		case filepath.IsAbs(door.Host): // a directory with a socket of PostgreSQL
			for _, dir := range resolved(door.Host) {
				opens.Sockets = append(opens.Sockets,
					literalPattern(filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(door.Port))))
			}
			opens.Addresses = append(opens.Addresses, process.Address{Here: true, Port: door.Port, Reason: reason})
		case door.Port != 80 && door.Port != 443:
			opens.Addresses = append(opens.Addresses, process.Address{Port: door.Port, Reason: reason})
		default:
			own := ownAddresses()
			for _, ip := range g.names.addresses(ctx, door.Host) {
				here := ip.IsLoopback() || ip.IsUnspecified() || slices.Contains(own, ip)
				rule := process.Address{IP: ip.As16(), Bits: 128, Here: here, Port: door.Port, Reason: reason}
				opens.Addresses = append(opens.Addresses, rule)
			}
		}
	}
}

// metadataServices lists the addresses at which clouds give out credentials.
func metadataServices() (rules []process.Address) {
	for _, prefix := range guard.MetadataServices {
		bits := prefix.Bits() + 128 - prefix.Addr().BitLen()
		rules = append(rules, process.Address{
			IP: prefix.Addr().As16(), Bits: bits,
			Reason: "clouds give out credentials there",
		})
	}
	return rules
}

// ownAddresses returns the addresses of this host's interfaces.
func ownAddresses() (all []netip.Addr) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			all = append(all, prefix.Addr())
		}
	}
	return all
}

// literalPattern returns a pattern that matches a path only.
func literalPattern(path string) string {
	var pattern []rune
	for _, symbol := range path {
		switch symbol {
		case '*', '?', '[', ']', '{', '}', '\\':
			pattern = append(pattern, '\\')
		}
		pattern = append(pattern, symbol)
	}
	return string(pattern)
}

// names looks up the addresses of hosts, and remembers them for a while. The zero value is ready to use.
type names struct {
	mutex sync.Mutex
	found map[string]lookup
}

type lookup struct {
	at        time.Time
	addresses []netip.Addr
}

const (
	// lookupAge is the time after which the address of a host is looked up again.
	lookupAge = 5 * time.Minute
	// lookupLimit limits the wait of a session's start for an address.
	lookupLimit = time.Second
)

// addresses returns the addresses of a host. If the lookup fails, it returns the last ones.
func (n *names) addresses(ctx context.Context, host string) []netip.Addr {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.WithZone("")}
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	last := n.found[host]
	if time.Since(last.at) < lookupAge {
		return last.addresses
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	if found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host); err == nil {
		last.addresses = found
	}
	last.at = time.Now()
	if n.found == nil {
		n.found = map[string]lookup{}
	}
	n.found[host] = last
	return last.addresses
}
