package redact

import (
	_ "embed"
	"strings"
)

// gitleaksTable holds shapes of gitleaks as data. It says what it is and under which license.
//
//go:embed gitleaks.txt
var gitleaksTable string

// gitleaksShapes returns the shapes of gitleaks that this package does not have itself.
func gitleaksShapes() (all []shape) {
	for line := range strings.Lines(gitleaksTable) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		all = append(all, shape{
			label: fields[0], keys: strings.Fields(fields[1]), pattern: edge + `(` + fields[2] + `)(?:[^A-Za-z0-9]|$)`, source: gitleaks,
		})
	}
	return all
}
