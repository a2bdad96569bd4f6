package program

import "runtime/debug"

// Version returns the version of this build. For a release it is the tag, such as v0.1.0. For another build from a git
// clone it names the commit, which the Go command adds to the program. If the program contains no version, it is
// "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
