package config

import "slices"

// WebPort is the default port of the server of pages and API.
const WebPort = 8230

// ownPorts holds the default ports of Temporal, its Web UI, and the server of pages and API. `claudeops up` also uses
// these ports by default.
var ownPorts = []int{7233, 8233, WebPort}

// OwnPorts returns the default ports of Temporal, its Web UI, and the server of pages and API.
func OwnPorts() []int { return slices.Clone(ownPorts) }
