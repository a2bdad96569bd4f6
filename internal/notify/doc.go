// Package notify tells people things, wherever they want to be told: over the services that
// shoutrrr knows, and through an Apprise API.
//
// A target is named by a URL, and such a URL is a secret: whoever has it can write in the
// operator's name, and some services take the token for a host name or a part of the path. So
// nothing that leaves this package holds any of it but the scheme: not an ID, not an error.
package notify
