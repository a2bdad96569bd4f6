// Package notify sends messages to people, through the services of shoutrrr or an Apprise API.
//
// A URL names each target. The URL is a secret, because everybody who knows it can send messages in the operator's
// name. For some services the host name or a part of the path is a secret token. Therefore no ID and no error of this
// package contains any part of a URL except the scheme.
package notify
