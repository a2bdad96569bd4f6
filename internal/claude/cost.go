package claude

import (
	"slices"
	"strings"
)

// price is what a model costs, in US dollars per million tokens.
type price struct {
	// prefix is what the model's name begins with, after whatever a cloud puts before "claude-".
	prefix    string
	input     float64
	output    float64
	cacheRead float64
	// longOver is the prompt's length in tokens, cache included, above which everything costs
	// longFactor times as much; 0 is none.
	longOver   count
	longFactor float64
}

// Writing to the cache costs a multiple of the input price, by how long it is kept.
const (
	cacheFiveMinutes = 1.25
	cacheOneHour     = 2
)

// prices returns the list prices that the CLI itself reckons with, as its cost reports gave them
// for one kind of token at a time: versions 2.1.197 and 2.1.329, which agree where both know a model.
// They serve for estimates only; the CLI's own report counts where there is one.
func prices() []price {
	return []price{
		{prefix: "claude-haiku-5", input: 0.10, output: 0.50, cacheRead: 0.01, longOver: 100_000, longFactor: 5},
		{prefix: "claude-haiku-", input: 1, output: 5, cacheRead: 0.10},
		{prefix: "claude-3-5-haiku", input: 0.80, output: 4, cacheRead: 0.08},
		{prefix: "claude-sonnet-5-5", input: 2, output: 10, cacheRead: 0.10},
		{prefix: "claude-sonnet-", input: 3, output: 15, cacheRead: 0.30},
		{prefix: "claude-opus-5", input: 4, output: 20, cacheRead: 0.20},
		{prefix: "claude-fable-5-2", input: 8, output: 40, cacheRead: 0.20},
		{prefix: "claude-fable-", input: 10, output: 50, cacheRead: 1},
	}
}

// priceOf returns the price of model. What is not on the list is reckoned like the opus models
// before 5, as the CLI does.
func priceOf(model string) price {
	if start := strings.Index(model, "claude-"); start > 0 {
		model = model[start:]
	}
	list := prices()
	matches := func(p price) bool { return strings.HasPrefix(model, p.prefix) }
	if i := slices.IndexFunc(list, matches); i >= 0 {
		return list[i]
	}
	return price{input: 5, output: 25, cacheRead: 0.50}
}

// estimate returns the list price of one API call, in US dollars.
func estimate(model string, u usage) float64 {
	p := priceOf(model)
	oneHour := min(u.Creation.OneHour, u.CacheCreation)
	written := cacheFiveMinutes*float64(u.CacheCreation-oneHour) + cacheOneHour*float64(oneHour)
	perMillion := p.input*(float64(u.Input)+written) + p.output*float64(u.Output) + p.cacheRead*float64(u.CacheRead)
	if p.longOver > 0 && u.Input+u.CacheRead+u.CacheCreation > p.longOver {
		perMillion *= p.longFactor
	}
	return perMillion / 1e6
}
