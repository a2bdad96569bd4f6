package prompts

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// describeIncidents returns one line for each incident.
func describeIncidents(incidents []escalation.Incident, tier escalation.Tier) []string {
	var lines []string
	for i := range incidents {
		lines = append(lines, describeIncident(&incidents[i], tier))
	}
	return lines
}

// describeIncident describes in one line an incident and the work of chains on that incident.
func describeIncident(incident *escalation.Incident, tier escalation.Tier) string {
	parts := []string{quote(incident.ID), names(incident.Services)}
	if incident.Kind != "" {
		parts = append(parts, "kind "+quote(incident.Kind))
	}
	parts = append(parts, string(incident.Severity), "since "+minute(incident.OpenedAt))
	if incident.Returned > 0 {
		parts = append(parts, fmt.Sprintf("came back %d times, after repairs %d times", incident.Returned,
			len(incident.Returns)))
	}
	line := strings.Join(parts, ", ") + ": " + quote(incident.Summary)
	if len(incident.Returns) > 0 && tier > escalation.TierObserve {
		line += " Find out why it comes back, instead of repairing it as before."
	}
	if last := lastChain(incident); last != nil {
		line += fmt.Sprintf(" Chain %s: %s", quote(last.ChainID), quote(last.Describe()))
		if last.Did != "" {
			line += "; it tried " + quote(last.Did)
		}
		line += "."
	}
	return line
}

// lastChain returns the chain that takes care of the incident. If there is none, lastChain returns the latest chain
// that has tried a repair; nil if there is none either.
func lastChain(incident *escalation.Incident) *escalation.IncidentChain {
	var last *escalation.IncidentChain
	for i := range incident.Chains {
		chain := &incident.Chains[i]
		if chain.AtWork() {
			return chain
		}
		if chain.Tier > 0 {
			last = chain
		}
	}
	return last
}

// describeRepairs returns one line for each repair.
func describeRepairs(repairs []escalation.PastRepair) []string {
	var lines []string
	for _, repair := range repairs {
		result := string(repair.Status)
		if repair.Verdict != "" {
			result = string(repair.Verdict)
		}
		line := fmt.Sprintf("%s, %s, %s: %s", minute(repair.At), repair.Tier, names(repair.Services), result)
		if len(repair.Actions) > 0 {
			line += "; " + quote(strings.Join(repair.Actions, "; "))
		}
		if repair.Did != "" {
			line += "; " + quote(repair.Did)
		}
		lines = append(lines, line)
	}
	return lines
}

// describeLeft returns one line for each incident that another chain takes care of.
func describeLeft(incidents []escalation.ChainIncident) []string {
	var lines []string
	for _, incident := range incidents {
		lines = append(lines, fmt.Sprintf("%s, %s: %s", quote(incident.ID), names(incident.Services),
			quote(incident.Summary)))
	}
	return lines
}

func names(services []string) string {
	if len(services) == 0 {
		return "no service named"
	}
	quoted := make([]string, len(services))
	for i, service := range services {
		quoted[i] = quote(service)
	}
	return strings.Join(quoted, ", ")
}

func minute(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }
