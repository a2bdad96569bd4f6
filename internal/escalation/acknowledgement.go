package escalation

import "time"

// MinSnooze and MaxSnooze limit the length of a snooze.
const (
	MinSnooze = time.Minute
	MaxSnooze = 30 * 24 * time.Hour
)

// Acknowledgement says that a person knows of an incident and takes care of it. Nobody is reminded of the incident
// until the acknowledgement ends: with a snooze, when the incident becomes worse or comes back, or when a person
// withdraws it. It changes nothing about what chains do.
type Acknowledgement struct {
	Actor string `json:"actor"`
	// Verified reports that the person had logged in under this name.
	Verified bool      `json:"verified,omitempty"`
	At       time.Time `json:"at"`
	// Until is the end of a snooze, of which people are told; zero if there is no end.
	Until time.Time `json:"until,omitzero"`
	// Note holds the words of the person; empty if there are none.
	Note string `json:"note,omitempty"`
}
