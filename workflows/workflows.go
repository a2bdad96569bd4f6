package workflows

// ChainWorkflows lists the workflow types whose state is an escalation.Chain, and whose gates people answer.
func ChainWorkflows() []string {
	return []string{ChainWorkflow, PlanReviewWorkflow, PhaseExecutionWorkflow}
}
