package proposal

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// The assumptions about a look at a machine with a dozen services that finds nothing wrong. Each turn reads what came
// before from the cache and adds to it.
const (
	lookTurns   = 12
	firstTokens = 20_000 // the CLI's own prompt, what the tier may do, the services
	turnTokens  = 1_000  // a command's output and the words around it
	wordTokens  = 200    // what the model writes in a turn
)

// daysOfMonth is the number of days that a month is reckoned with.
const daysOfMonth = 30

// Look is the cost of one look that finds nothing wrong.
type Look struct {
	// USD is the cost in US dollars, and Basis says where it comes from.
	USD   float64
	Basis string
}

// Measured says what looks on this installation have cost.
type Measured struct {
	Looks     int
	MedianUSD float64
	// First and Last are the times of the oldest and of the newest look.
	First, Last time.Time
}

// fewLooks is the number of looks that say more than an estimate.
const fewLooks = 3

// Model is the model of Tier 1.
type Model struct {
	// Alias is the name in the settings. FullName is the model that the installed CLI takes for it; empty if no CLI
	// says it.
	Alias, FullName string
	// CLI is the version of that CLI.
	CLI string
	// BudgetUSD is the limit of one look.
	BudgetUSD float64
}

// EstimateLook returns the cost of a look: the median of those that were measured or, if these are too few, an estimate
// by list prices. If the price of the model is unknown, it is the limit of one look.
func EstimateLook(measured Measured, model Model) Look {
	if measured.Looks >= fewLooks && measured.MedianUSD > 0 {
		return Look{measured.MedianUSD, fmt.Sprintf("the median of %d looks that found nothing wrong, %s to %s",
			measured.Looks, calendar.Of(measured.First), calendar.Of(measured.Last))}
	}
	read := 0
	for turn := 1; turn < lookTurns; turn++ {
		read += firstTokens + turn*turnTokens
	}
	named := cmp.Or(model.FullName, model.Alias)
	usd, listed, known := claude.EstimateUSD(named, claude.Tokens{
		CacheRead: read, CacheCreation: firstTokens + lookTurns*turnTokens, Output: lookTurns * wordTokens,
	})
	if !known {
		return Look{model.BudgetUSD, fmt.Sprintf("its whole budget, because no price of %s is known", named)}
	}
	source := ""
	if model.FullName != "" && model.FullName != model.Alias {
		source = fmt.Sprintf(", which claude %s takes for %s", model.CLI, model.Alias)
	}
	return Look{usd, fmt.Sprintf("an estimate: %d turns at the prices of %s%s, as of %s; from the third look on, what "+
		"yours cost", lookTurns, listed, source, claude.PricesMeasured)}
}

// Text returns the cost as text.
func (l Look) Text() string { return plaintext.Dollars(l.USD) }

// Month says what a month of looks costs, and with repairs what it can cost at most. A day's budget of 0 is no limit.
func Month(timing Timing, look Look, dayBudgetUSD float64, repairs bool) string {
	looks := timing.PerDay() * daysOfMonth
	usd := looks * look.USD
	text := fmt.Sprintf("About $%s a month: %.0f looks at %s (%s).", dollars(usd), looks, look.Text(), look.Basis)
	if dayBudgetUSD <= 0 {
		return text + " Without a day's budget there is no upper limit."
	}
	most := dayBudgetUSD * daysOfMonth
	if repairs {
		text += fmt.Sprintf(" With repairs it is at most $%s, the day's budget on each day.", dollars(most))
	}
	if usd > most {
		text += fmt.Sprintf(" The day's budget ends a day after %.0f looks.", math.Floor(dayBudgetUSD/look.USD))
	}
	return text
}

func dollars(usd float64) string {
	if usd < 10 {
		return fmt.Sprintf("%.2f", usd)
	}
	return fmt.Sprintf("%.0f", usd)
}
