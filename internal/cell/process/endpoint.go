package process

// Endpoint is one end of a TCP connection.
type Endpoint struct {
	// IP is an IPv6 address, or an IPv4 address in IPv6 form (::ffff:127.0.0.1).
	IP   [16]byte
	Port uint16
}
