//go:build clouds

package transcripts

// The cloud drivers double the size of a program that links them, so only the released binaries contain them.
import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
