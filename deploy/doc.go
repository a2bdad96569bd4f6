// Package deploy embeds the installation files that this project's programs need.
package deploy

import _ "embed"

// Policy is the built-in policy, policy.yaml. It applies if the configuration names no other policy.
//
//go:embed policy.yaml
var Policy []byte
