package program

import "runtime/debug"

// Version returns the version of this build. For a release it is the tag, such as v0.1.0. For other builds from a git
// clone it names the commit: the Go command puts it into the program. Without that it is "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
