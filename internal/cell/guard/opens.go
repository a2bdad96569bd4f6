package guard

import (
	"maps"
	"path/filepath"
	"slices"
)

// FileRules says which files the kernel refuses to the programs of a session, whatever their options.
type FileRules struct {
	// Secret lists patterns of files that no program reads. Kept lists those that no program changes.
	Secret, Kept []string
	// Clear lists the directories with the files of packages, in which nothing but Keys is secret.
	Clear, Keys []string
	// Programs maps the names of programs to what they open nevertheless.
	Programs map[string]Opens
}

// systemDirs lists directories and files of packages, which every user may read. Certificates are named like keys.
func systemDirs() []string {
	return []string{
		"/usr", "/lib", "/lib64", "/bin", "/sbin", "/snap", "/etc/ssl/certs", "/etc/ssl/cert.pem",
		"/etc/ssl/ca-bundle.pem", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust",
	}
}

// Reached returns the files and directories that a tier reads and changes at a place. It reads the system's
// certificates wherever they are, and what stands beside directories of programs, which load it.
func (p *Policy) Reached(tier int, place Place) (read, write []string) {
	j := judge{policy: p, tier: tier, place: place, files: Host{}}
	read = slices.Concat(j.roots(j.readable()), place.Asked, systemDirs(), []string{"/var/lib/ca-certificates"})
	for _, dir := range p.Directories {
		for _, part := range []string{"lib", "lib64", "libexec", "share", "opt", "Cellar"} {
			if !isBelow(dir, systemDirs()) {
				read = append(read, filepath.Join(filepath.Dir(dir), part))
			}
		}
	}
	return read, slices.Concat(j.roots(j.limits().Write), place.Asked)
}

// FileRules returns the rules for the files of a tier.
func (p *Policy) FileRules(tier int) FileRules {
	limits := p.Tiers[tier]
	rules := FileRules{
		Secret: slices.Clone(p.Private), Kept: slices.Concat(p.Private, p.Protected, limits.Keep), Clear: systemDirs(),
		Programs: maps.Clone(p.Opens),
		Keys:     []string{"/etc/**/{id_*,*.key,*key.pem,privkey*.pem,*.p12,*.pfx,*.jks,*.keytab}"},
	}
	if !limits.Anything {
		rules.Secret = append(rules.Secret, p.Secrets...)
	}
	return rules
}
