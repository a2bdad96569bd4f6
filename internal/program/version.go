package program

import "runtime/debug"

// Version returns the version of this build. For a release this is the tag, such as v0.1.0. For another build from a
// git clone the version names the commit, which the Go command adds to the program. If the program contains no version,
// the result is "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
