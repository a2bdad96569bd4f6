//go:build !linux

package files

import (
	"io/fs"
	"os"
)

// Chmod changes the mode of a file or directory in root.
func Chmod(root *os.Root, name string, mode fs.FileMode) error { return root.Chmod(name, mode) }
