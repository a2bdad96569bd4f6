// Package talk answers the messages of a conversation, one at a time.
package talk
