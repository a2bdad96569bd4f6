// Package alert decides what becomes of the alerts of monitoring systems. Everything in it is pure.
//
// Whoever sends an alert chooses neither tier nor model nor prompt: labels select a service by the operator's matchers,
// and a severity can only lower the highest tier, by the operator's table. "Resolved" is a claim, which a look checks.
package alert
