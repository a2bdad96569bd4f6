package config

import (
	"net"
	"net/netip"
	"strconv"
)

// Telemetry holds the settings of metrics, health checks and profiles. It has no settings of traces, because
// OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT and so on) configure traces.
type Telemetry struct {
	MetricsAddress string `env:"METRICS_ADDRESS" desc:"Address (host:port) at which worker and claudeops up serve /metrics, /healthz and /readyz without a password; each worker of a host needs its own port. Unset: nothing is measured. See docs/telemetry.md."`
	PprofAddress   string `env:"PPROF_ADDRESS" desc:"Loopback address (host:port) at which worker and claudeops up serve profiles below /debug/pprof/. Unset: none. Agents are refused."`
}

func (t Telemetry) validate(p *problems) {
	const form = "be an address such as %s"
	if t.MetricsAddress != "" {
		_, ok := hostOf(t.MetricsAddress)
		p.must("METRICS_ADDRESS", ok, form, "127.0.0.1:9464 or :9464")
	}
	if t.PprofAddress != "" {
		host, ok := hostOf(t.PprofAddress)
		p.must("PPROF_ADDRESS", ok, form, "127.0.0.1:6060")
		p.must("PPROF_ADDRESS", isLoopback(host),
			"be a loopback address such as 127.0.0.1:6060, because a profile shows the inside of the worker")
		p.must("PPROF_ADDRESS", t.PprofAddress != t.MetricsAddress, "not be the address of %sMETRICS_ADDRESS", Prefix)
	}
}

// hostOf returns the host of an address. If the address does not have the form host:port with a port number, hostOf
// returns false.
func hostOf(address string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return host, err == nil
}

// isLoopback reports whether host can be reached only from this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
