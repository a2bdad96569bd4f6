//go:build !linux

package claude

import "os"

// createUnnamed creates a file in dir and removes its name at once.
func createUnnamed(dir string) (*os.File, error) { return createAndUnlink(dir) }
