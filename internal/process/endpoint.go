package process

// Endpoint is one end of a TCP connection. This package does not import net, which would delay the start of an init
// (see the init function).
type Endpoint struct {
	// IP is an IPv6 address, or an IPv4 address mapped into one (::ffff:127.0.0.1).
	IP   [16]byte
	Port uint16
}
