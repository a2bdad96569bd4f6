package proposal

import (
	"fmt"
	"math"

	"github.com/claudeops/claudeops/internal/cell/claude"
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

// RecordedLook returns the cost of a look from the records: the average of a number of looks.
func RecordedLook(usd float64, looks int) Look {
	return Look{usd, fmt.Sprintf("the average of %d looks that found nothing wrong", looks)}
}

// EstimatedLook returns the cost of a look by list prices. If the price of the model is unknown, the cost is budgetUSD,
// the limit of one look.
func EstimatedLook(model string, budgetUSD float64) Look {
	read := 0
	for turn := 1; turn < lookTurns; turn++ {
		read += firstTokens + turn*turnTokens
	}
	usd, name, known := claude.EstimateUSD(model, claude.Tokens{
		CacheRead: read, CacheCreation: firstTokens + lookTurns*turnTokens, Output: lookTurns * wordTokens,
	})
	if !known {
		return Look{budgetUSD, fmt.Sprintf("its whole budget, because no price of %s is known", model)}
	}
	return Look{usd, fmt.Sprintf("an estimate: %d turns at the list price of %s; your first looks will tell",
		lookTurns, name)}
}

// Month says what a month of looks costs, and what it can cost at most. A day's budget of 0 is no limit.
func Month(timing Timing, look Look, dayBudgetUSD float64) string {
	looks := timing.PerDay() * daysOfMonth
	usd := looks * look.USD
	text := fmt.Sprintf("About $%s a month: %.0f looks at %s (%s).", dollars(usd), looks, cents(look.USD), look.Basis)
	if dayBudgetUSD <= 0 {
		return text + " Without a day's budget there is no upper limit."
	}
	most := dayBudgetUSD * daysOfMonth
	text += fmt.Sprintf(" With repairs it is at most $%s, the day's budget on each day.", dollars(most))
	if usd > most {
		text += fmt.Sprintf(" That budget ends a day after %.0f looks.", math.Floor(dayBudgetUSD/look.USD))
	}
	return text
}

func dollars(usd float64) string {
	if usd < 10 {
		return fmt.Sprintf("%.2f", usd)
	}
	return fmt.Sprintf("%.0f", usd)
}

func cents(usd float64) string {
	if usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
