package config

import "slices"

// temporalPorts holds the default ports of Temporal and its Web UI. `starter up` also uses these ports by default.
var temporalPorts = []int{7233, 8233}

// TemporalPorts returns the default ports of Temporal and its Web UI.
func TemporalPorts() []int { return slices.Clone(temporalPorts) }
