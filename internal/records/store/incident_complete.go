package store

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

// incidentBatch is the number of incidents that one query reads.
const incidentBatch = 200

// numberedQuery returns a query for that many incidents by their numbers.
func numberedQuery(count int) string {
	return selectIncidents + " WHERE id IN (" + placeholders(1, count) + ")"
}

// chainsOfQuery returns a query for the chains of that many incidents.
func chainsOfQuery(count int) string {
	return selectIncidentChains + " WHERE incident_id IN (" + placeholders(1, count) +
		") ORDER BY incident_id, since, id"
}

// keysOf returns a table expression with the keys of the chains of that many incidents. A chain with several incidents
// is there once. The table comes first in a CROSS JOIN, because SQLite would otherwise read all sessions first.
func keysOf(count int) string {
	return `
WITH keys AS MATERIALIZED (
    SELECT DISTINCT chain_id, first_run_id FROM incident_chains WHERE incident_id IN (` + placeholders(1, count) + `)
)
SELECT keys.chain_id, keys.first_run_id, `
}

// chainCostsQuery returns a query for the cost of the chains of that many incidents, and replacedCostsQuery one for the
// cost in their replaced reports. What is only reserved for a session of unknown cost is no cost: only budgets count
// it.
func chainCostsQuery(count int) string {
	return keysOf(count) + `SUM(CASE WHEN ended_at IS NULL THEN 0 ELSE cost_usd END), MAX(CASE WHEN cost_estimated THEN 1 ELSE 0 END)
FROM keys CROSS JOIN sessions AS s` + ofKeys + byKey
}

func replacedCostsQuery(count int) string {
	return keysOf(count) + `SUM(r.cost_usd), MAX(CASE WHEN r.cost_estimated THEN 1 ELSE 0 END)
FROM keys CROSS JOIN sessions AS s CROSS JOIN replaced_reports AS r` + ofKeys + " AND r.session_id = s.session_id" + byKey
}

const (
	ofKeys = `
WHERE s.chain_id = keys.chain_id AND s.first_run_id = keys.first_run_id`
	byKey = " GROUP BY keys.chain_id, keys.first_run_id"
)

// chainCost is the cost of a chain, in US dollars.
type chainCost struct {
	escalation.ChainRun

	usd       float64
	estimated int // more than 0 if a part of it is an estimate
}

func chainCostFields(c *chainCost) []field {
	return []field{
		{"chain_id", &c.ChainID},
		{"first_run_id", &c.FirstRunID},
		{"usd", &c.usd},
		{"estimated", &c.estimated},
	}
}

// incidentsNumbered returns the incidents with the numbers of rows, in the same order, without their chains and costs.
func incidentsNumbered(ctx context.Context, q querier, rows []incidentRow) ([]incidentRow, error) {
	var found []incidentRow
	for batch := range slices.Chunk(rows, incidentBatch) {
		more, err := plainIncidents(ctx, q, numberedQuery(len(batch)), numbersOf(batch)...)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	order := make(map[int64]int, len(rows))
	for i, row := range rows {
		order[row.row] = i
	}
	slices.SortFunc(found, func(a, b incidentRow) int { return order[a.row] - order[b.row] })
	return found, nil
}

func numbersOf(rows []incidentRow) []any {
	numbers := make([]any, len(rows))
	for i := range rows {
		numbers[i] = rows[i].row
	}
	return numbers
}

// completeAll fills in the fields of incidents that come from other tables.
func completeAll(ctx context.Context, q querier, rows []incidentRow) error {
	for batch := range slices.Chunk(rows, incidentBatch) {
		numbers := numbersOf(batch)
		chains, err := collect(ctx, q, incidentChainFields, chainsOfQuery(len(batch)), numbers...)
		if err != nil {
			return err
		}
		costs := map[escalation.ChainRun]chainCost{}
		for _, query := range []string{chainCostsQuery(len(batch)), replacedCostsQuery(len(batch))} {
			found, err := collect(ctx, q, chainCostFields, query, numbers...)
			if err != nil {
				return err
			}
			for _, cost := range found {
				sum := costs[cost.ChainRun]
				costs[cost.ChainRun] = chainCost{usd: sum.usd + cost.usd, estimated: sum.estimated + cost.estimated}
			}
		}
		own := map[int64][]escalation.IncidentChain{}
		for _, chain := range chains {
			cost := costs[runIn(chain.IncidentChain)]
			chain.CostUSD, chain.CostEstimated = cost.usd, cost.estimated > 0
			own[chain.incident] = append(own[chain.incident], chain.IncidentChain)
		}
		for i := range batch {
			batch[i].complete(own[batch[i].row])
		}
	}
	return nil
}

// complete fills in all chains of the incident, oldest first, with their costs, and the state. Who shows the incident
// to others shortens the list.
func (i *incidentRow) complete(chains []escalation.IncidentChain) {
	i.Chains, i.CostUSD, i.CostEstimated = chains, 0, false
	for _, chain := range chains {
		i.CostUSD += chain.CostUSD
		i.CostEstimated = i.CostEstimated || chain.CostEstimated
	}
	i.State = i.StateOf()
}
