package pages

import (
	"errors"
	"net/http"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

// problem is a page that says what went wrong, and what to do.
type problem struct {
	Status int
	Title  string
	// Text says what happened. It can contain words of agents.
	Text string
	// Next says what to do.
	Next string
}

// Error implements error.
func (p *problem) Error() string { return p.Text }

// problemOf describes an error.
func problemOf(err error) *problem {
	if own, ok := errors.AsType[*problem](err); ok {
		return own
	}
	text := err.Error()
	if _, forbidden := errors.AsType[*access.ForbiddenError](err); forbidden {
		return &problem{http.StatusForbidden, "Not permitted", text, "Ask the operator for a token with another role."}
	}
	switch operations.KindOf(err) {
	case operations.KindInvalid:
		return &problem{
			http.StatusUnprocessableEntity, "That does not work", text,
			"Nothing was changed. Go back, and mend it.",
		}
	case operations.KindNotFound:
		return &problem{
			http.StatusNotFound, "Not found", text,
			"It may be gone, or the address is wrong. The lists show what there is.",
		}
	case operations.KindConflict:
		return &problem{
			http.StatusConflict, "It has changed", text,
			"Nothing was changed. Look at its page again before you repeat it.",
		}
	case operations.KindFailure:
	}
	return &problem{
		http.StatusServiceUnavailable, "Something does not work", text,
		"Reload the page. If it stays so, check the installation with: claudeops doctor",
	}
}

// writeProblem writes the page about a problem.
func (p *Pages) writeProblem(w http.ResponseWriter, r *http.Request, about *problem) {
	if err := p.show(w, r, view{
		template: "problem", title: about.Title, status: about.Status,
		data: about,
	}); err != nil {
		http.Error(w, about.Text+"\n"+about.Next, about.Status) // text/plain, so nothing in it is interpreted
	}
}

// showUnknown answers requests for pages that do not exist.
func (p *Pages) showUnknown(http.ResponseWriter, *http.Request) error {
	return &problem{
		http.StatusNotFound, "Not found", "There is no such page.",
		"Begin at the page Now, or choose a section above.",
	}
}
