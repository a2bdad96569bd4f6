package config

import (
	"fmt"
	"slices"
)

// temporalPorts are the usual ports of Temporal and of its Web UI, which `starter up` opens unless it is given
// others.
var temporalPorts = []int{7233, 8233}

// TemporalPorts returns the usual ports of Temporal and of its Web UI.
func TemporalPorts() []int { return slices.Clone(temporalPorts) }

// PortRules returns rules that deny every command with one of the ports in it, as URLs and addresses have them.
// They name no host, because the same host has many names: localhost, 127.1, [::1], 2130706433 and others. A
// port that begins with the same digits is denied, too.
func PortRules(ports ...int) RuleList { return rules(portGrants(ports...)) }

func portGrants(ports ...int) []grant {
	var grants []grant
	for _, port := range ports {
		grants = append(grants,
			grant{fmt.Sprintf("Bash(*:%d*)", port), "Temporal and its Web UI start chains and answer gates for whoever asks"},
			grant{fmt.Sprintf("Bash(*:0*%d*)", port), "the same, with zeros in front"})
	}
	return grants
}
