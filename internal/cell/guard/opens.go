package guard

import (
	"maps"
	"slices"
)

// FileRules says which files the kernel refuses to the programs of a session, whatever their options.
type FileRules struct {
	// Secret lists patterns of files that no program reads. Kept lists those that no program changes.
	Secret, Kept []string
	// Clear lists the directories with the files of packages, in which nothing is secret.
	Clear []string
	// Programs maps the names of programs to what they open nevertheless.
	Programs map[string]Opens
}

// systemDirs lists directories with the files of packages, which every user may read. Certificates are named like keys.
func systemDirs() []string {
	return []string{"/usr", "/lib", "/lib64", "/bin", "/sbin", "/snap", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust"}
}

// FileRules returns the rules for the files of a tier.
func (p *Policy) FileRules(tier int) FileRules {
	limits := p.Tiers[tier]
	rules := FileRules{
		Secret: slices.Clone(p.Private), Kept: slices.Concat(p.Private, p.Protected, limits.Keep), Clear: systemDirs(),
		Programs: maps.Clone(p.Opens),
	}
	if !limits.Anything {
		rules.Secret = append(rules.Secret, p.Secrets...)
	}
	return rules
}
