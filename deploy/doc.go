// Package deploy holds the files that an installation is made of, as far as the program needs them itself.
package deploy

import _ "embed"

// Policy is the policy that holds where no other is named: policy.yaml.
//
//go:embed policy.yaml
var Policy []byte
