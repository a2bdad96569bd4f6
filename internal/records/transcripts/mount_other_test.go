//go:build !linux

package transcripts

import "errors"

func mountSmall(string) error { return errors.New("only Linux has a tmpfs") }

func unmount(string) error { return nil }
