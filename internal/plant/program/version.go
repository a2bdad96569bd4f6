package program

import "runtime/debug"

// Version returns the version of this build. For a release this is the tag, such as v0.1.0. For another build from a
// git clone it is a version that names the commit. The Go command adds the version to the program. If the program
// contains no version, the result is "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
