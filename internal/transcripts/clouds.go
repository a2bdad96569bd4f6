//go:build clouds

package transcripts

// The drivers of the clouds double the size of a program that links them, so they are in
// the released binaries only.
import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
