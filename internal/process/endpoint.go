package process

// Endpoint is one end of a TCP connection. It stands in for the types of package net, which this package does without:
// they would put off the start of an init (see its init function).
type Endpoint struct {
	// IP is an address of IPv6, or one of IPv4 in its form (::ffff:127.0.0.1).
	IP   [16]byte
	Port uint16
}
