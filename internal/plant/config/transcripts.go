package config

import (
	"net/url"
	"path/filepath"
)

// NoTranscripts is the value of CLAUDEOPS_TRANSCRIPTS that disables the archive.
const NoTranscripts = "none"

// directoryScheme is the URL scheme of an archive that is a directory.
const directoryScheme = "file"

// locationOf formats the directory dir in the syntax of CLAUDEOPS_TRANSCRIPTS.
func locationOf(dir string) string {
	return (&url.URL{Scheme: directoryScheme, Path: dir}).String()
}

// TranscriptsDir returns the directory of the transcript archive; "" if the archive is not a directory.
func (s State) TranscriptsDir() string {
	parsed, err := url.Parse(s.Transcripts)
	if err != nil || parsed.Scheme != directoryScheme {
		return ""
	}
	return parsed.Path
}

// validateTranscripts checks the location of the archive without connecting to it.
func validateTranscripts(location string, p *problems) {
	if !p.given("TRANSCRIPTS") || location == NoTranscripts {
		return
	}
	parsed, err := url.Parse(location)
	switch {
	case err != nil: // do not show the value, because it may contain a password
		p.add("TRANSCRIPTS", Prefix+"TRANSCRIPTS (value not shown): it must be a URL, or "+NoTranscripts+".")
		return
	case parsed.User != nil:
		p.add("TRANSCRIPTS", Prefix+"TRANSCRIPTS (value not shown): it must hold no credentials; "+
			"they come from where the cloud's own programs find them.")
	}
	switch parsed.Scheme {
	case directoryScheme:
		plain := url.URL{Scheme: directoryScheme, Path: parsed.Path, RawPath: parsed.RawPath}
		p.must("TRANSCRIPTS", *parsed == plain && filepath.IsAbs(parsed.Path) && parsed.Path != "/",
			"name a directory by its absolute path, such as file:///var/lib/claudeops-transcripts")
	case "s3", "gs", "azblob":
		p.must("TRANSCRIPTS", parsed.Host != "", "name a bucket, such as %s://claudeops", parsed.Scheme)
		p.must("TRANSCRIPTS", parsed.Path == "" && parsed.Fragment == "",
			"have nothing after the bucket but parameters; a part of a bucket is spelled %s://%s?prefix=some/dir/",
			parsed.Scheme, parsed.Host)
	default:
		p.must("TRANSCRIPTS", false, "begin with file://, s3://, gs:// or azblob://, or be %s", NoTranscripts)
	}
}
