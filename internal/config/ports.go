package config

import "slices"

// temporalPorts are the default ports of Temporal and its Web UI. `starter up` opens them unless its options name other
// ports.
var temporalPorts = []int{7233, 8233}

// TemporalPorts returns the default ports of Temporal and its Web UI.
func TemporalPorts() []int { return slices.Clone(temporalPorts) }
