package config

import "slices"

// temporalPorts are the usual ports of Temporal and of its Web UI, which `starter up` opens unless it is given
// others.
var temporalPorts = []int{7233, 8233}

// TemporalPorts returns the usual ports of Temporal and of its Web UI.
func TemporalPorts() []int { return slices.Clone(temporalPorts) }
