// Package access decides who may use the HTTP server, and for what. Every route is registered with the role that it
// needs, and every request gets the person who sends it.
package access

import (
	"context"
	"slices"
)

// Role names what a person may do.
type Role string

// The roles. Operate includes Answer and Talk, and Answer includes View. Alert stands alone.
const (
	View    Role = "view"    // read everything
	Answer  Role = "answer"  // answer gates
	Operate Role = "operate" // start, escalate and cancel chains, close incidents, change schedules
	Alert   Role = "alert"   // for alerts of monitoring systems; no route needs it yet
	Talk    Role = "talk"    // hold conversations
)

// ReadTalk is the role for routes that read conversations. View and Talk include it, and nobody has it alone.
const ReadTalk Role = "view or talk"

// HooksPrefix begins the paths to which monitoring systems send alerts.
const HooksPrefix = "/api/v1/hooks/"

// Roles lists the roles.
func Roles() []Role { return []Role{View, Answer, Operate, Alert, Talk} }

// Includes reports whether a person with the role r may do what other permits.
func (r Role) Includes(other Role) bool {
	ladder := []Role{View, Answer, Operate}
	own, wanted := slices.Index(ladder, r), slices.Index(ladder, other)
	if other == ReadTalk {
		return r == Talk || own >= 0
	}
	return r == other || (wanted >= 0 && own > wanted) || r == Operate && other == Talk
}

// Person is who sends a request.
type Person struct {
	// Name is the person's name for the record. It belongs to the token, or comes from a trusted proxy. So it is
	// verified, unlike a name that a client merely says.
	Name  string
	Roles []Role

	// owner reports that the person runs the `claudeops up` of this server.
	owner bool
}

// May reports whether the person has a role that includes role.
func (p Person) May(role Role) bool {
	return slices.ContainsFunc(p.Roles, func(own Role) bool { return own.Includes(role) })
}

type personKey struct{}

// WithPerson returns a context with the person who sends the request.
func WithPerson(ctx context.Context, person Person) context.Context {
	return context.WithValue(ctx, personKey{}, person)
}

// PersonOf returns the person who sends the request; false if nobody has logged in.
func PersonOf(ctx context.Context) (Person, bool) {
	person, found := ctx.Value(personKey{}).(Person)
	return person, found
}
