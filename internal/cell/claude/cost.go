package claude

import (
	"slices"
	"strings"
)

// price holds the prices of a model, in US dollars per million tokens.
type price struct {
	// prefix is the beginning of the model's name from "claude-" on. Some clouds put text before "claude-".
	prefix    string
	input     float64
	output    float64
	cacheRead float64
	// longOver is a prompt length in tokens, cached tokens included. The price of a call with a longer prompt is
	// multiplied by longFactor. If longOver is 0, the price does not depend on the length.
	longOver   count
	longFactor float64
}

// The cost of writing to the cache is a multiple of the input price. The multiple depends on how long the cache is
// kept.
const (
	cacheFiveMinutes = 1.25
	cacheOneHour     = 2
)

// webSearchUSD is the price of one search by the API, for every model.
const webSearchUSD = 0.01

// priceList holds the prices with which one version of the CLI computes costs.
type priceList struct {
	rows []price
	// unlisted is the price of all other models.
	unlisted price
}

// oldPrices returns the prices of 2.1.286. Unknown models cost as much as claude-opus-5-5. The prices were derived from
// the cost reports of the CLI, one kind of token at a time. Use them only for estimates. If the CLI reports a cost, use
// that cost.
func oldPrices() priceList {
	return priceList{
		rows: []price{
			{prefix: "claude-3-5-haiku", input: 0.80, output: 4, cacheRead: 0.08},
			{prefix: "claude-3-5-sonnet", input: 3, output: 15, cacheRead: 0.30},
			{prefix: "claude-3-7-sonnet", input: 3, output: 15, cacheRead: 0.30},
			{prefix: "claude-haiku-4", input: 1, output: 5, cacheRead: 0.10},
			{prefix: "claude-sonnet-", input: 3, output: 15, cacheRead: 0.30},
			{prefix: "claude-sonnet-5", input: 2, output: 10, cacheRead: 0.20},
			{prefix: "claude-opus-4", input: 5, output: 25, cacheRead: 0.50},
			{prefix: "claude-opus-4-1", input: 15, output: 75, cacheRead: 1.50},
			{prefix: "claude-opus-5", input: 5, output: 25, cacheRead: 0.50},
			{prefix: "claude-opus-5-5", input: 4, output: 20, cacheRead: 0.20},
			{prefix: "claude-fable-", input: 10, output: 50, cacheRead: 1},
			{prefix: "claude-fable-5-2", input: 4, output: 20, cacheRead: 0.20}, // the version does not know it
		},
		unlisted: price{input: 4, output: 20, cacheRead: 0.20},
	}
}

// PricesMeasured is the date on which the prices were last compared with the cost reports of the newest measured
// version of the CLI.
const PricesMeasured = "2026-11-27"

// newPrices returns the prices of 2.1.329 to 2.1.332.
func newPrices() priceList {
	prices := oldPrices()
	prices.rows = append([]price{
		{prefix: "claude-haiku-5-5", input: 0.10, output: 0.50, cacheRead: 0.01, longOver: 100_000, longFactor: 5},
		{prefix: "claude-sonnet-5-5", input: 2, output: 10, cacheRead: 0.10},
		{prefix: "claude-fable-5-2", input: 8, output: 40, cacheRead: 0.20},
	}, prices.rows...)
	return prices
}

// of returns the prices of a model. These are the prices in the first row with the longest prefix that matches the
// model's name. If no row matches, it returns the prices for unlisted models.
func (l priceList) of(model string) price {
	if start := strings.Index(model, "claude-"); start > 0 {
		model = model[start:]
	}
	found := l.unlisted
	for _, p := range l.rows {
		if strings.HasPrefix(model, p.prefix) && len(p.prefix) > len(found.prefix) {
			found = p
		}
	}
	return found
}

// estimate returns the list price of one API call, in US dollars.
func (l priceList) estimate(model string, u usage) float64 {
	p := l.of(model)
	oneHour := min(u.Creation.OneHour, u.CacheCreation)
	written := cacheFiveMinutes*float64(u.CacheCreation-oneHour) + cacheOneHour*float64(oneHour)
	perMillion := p.input*(float64(u.Input)+written) + p.output*float64(u.Output) + p.cacheRead*float64(u.CacheRead)
	if p.longOver > 0 && u.Input+u.CacheRead+u.CacheCreation > p.longOver {
		perMillion *= p.longFactor
	}
	return perMillion/1e6 + webSearchUSD*float64(u.ServerTools.WebSearches)
}

// EstimateUSD returns the list price of tokens of a model in US dollars, and the name by which the list knows the
// model. An alias such as "haiku" stands for the model that the newest measured version takes for it, or else for the
// dearest that has the alias in its name. Tokens written to the cache are priced as if it kept them for five minutes.
// If no price is known, EstimateUSD returns false.
func EstimateUSD(model string, tokens Tokens) (usd float64, name string, known bool) {
	newest := newestProfile()
	found := newest.prices.of(newest.fullName(model))
	if found.prefix == "" {
		found = price{}
		for _, p := range newest.prices.rows {
			if strings.HasPrefix(p.prefix, "claude-"+model+"-") && p.input > found.input {
				found = p
			}
		}
	}
	written := cacheFiveMinutes * float64(tokens.CacheCreation)
	perMillion := found.input*(float64(tokens.Input)+written) + found.output*float64(tokens.Output) +
		found.cacheRead*float64(tokens.CacheRead)
	return perMillion / 1e6, found.prefix, found.prefix != ""
}

// sum returns the list price of calls, in US dollars.
func (l priceList) sum(calls []*apiCall) float64 {
	total := 0.0
	for _, call := range calls {
		total += l.estimate(call.model, call.usage)
	}
	return total
}

// cost returns the cost of the invocation in US dollars, without earlier invocations of the same conversation. The
// argument resumed reports whether there were earlier ones. It estimates the calls after the last result. If no result
// reports a cost, it estimates all calls. The second result reports whether any part is an estimate. The cost of a
// model without a known price is one, whoever reports it.
func (a *accumulator) cost(prices priceList, resumed bool) (usd float64, estimated bool) {
	reported, known := ownCost(a.results, resumed)
	unreported := a.usage.calls
	if known {
		unreported = a.usage.calls[a.usage.reported:]
	}
	return reported + prices.sum(unreported), len(unreported) > 0 || a.unlistedModel() != ""
}

// unlistedModel returns a model of this invocation that no price list has; "" if there is none. The CLI takes the price
// of another model for it, and says nothing.
func (a *accumulator) unlistedModel() string {
	for _, call := range a.usage.calls {
		if !Listed(call.model) {
			return call.model
		}
	}
	return ""
}

// Listed reports whether a price of the model is known. An alias such as "haiku" stands for models with known prices.
func Listed(model string) bool {
	if start := strings.Index(model, "claude-"); start > 0 {
		model = model[start:]
	}
	return slices.ContainsFunc(newPrices().rows, func(p price) bool {
		return strings.HasPrefix(model, p.prefix) || strings.HasPrefix(p.prefix, "claude-"+model+"-")
	})
}

// ownCost returns the cost of one invocation in US dollars, as its result lines report it. Earlier invocations of the
// same conversation are not included. If the lines do not report this cost, ownCost returns false.
func ownCost(results []resultLine, resumed bool) (float64, bool) {
	if len(results) == 0 {
		return 0, false
	}
	unknown := func(r resultLine) bool { return r.SinceLastResult == nil }
	if !slices.ContainsFunc(results, unknown) {
		return sumSinceLast(results), true
	}
	if resumed { // the total includes earlier invocations
		return 0, false
	}
	// Every result line holds the total cost of the conversation so far, so the last line has the cost of all calls.
	return results[len(results)-1].TotalCostUSD.usd(), true
}

func sumSinceLast(results []resultLine) float64 {
	total := 0.0
	for _, result := range results {
		for _, model := range result.SinceLastResult {
			total += model.CostUSD.usd()
		}
	}
	return total
}

// CallUsage is the usage of one call of the API.
type CallUsage struct {
	Tokens

	// OneHour is the number of tokens in CacheCreation that the cache keeps for an hour.
	OneHour int
	// WebSearches counts the searches by the API.
	WebSearches int
}

// Price returns the list price of one call of the API, in US dollars, as this version of the CLI computes it.
func (c *CLI) Price(model string, call CallUsage) float64 {
	used := usage{
		Input: count(call.Input), Output: count(call.Output),
		CacheRead: count(call.CacheRead), CacheCreation: count(call.CacheCreation),
	}
	used.Creation.OneHour = count(call.OneHour)
	used.ServerTools.WebSearches = count(call.WebSearches)
	return c.profile.prices.estimate(model, used)
}
