package agent

import (
	"context"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/change/checkout"
)

// show gives a session the files of the commit that it must judge, in its own directory for temporary files, and names them in its
// prompt. If this host cannot do that, the prompt says why.
func (r *Runner) show(ctx context.Context, run activities.AgentRun, own *private) (activities.AgentRun, error) {
	if run.Shown == nil {
		return run, nil
	}
	dir, err := r.workplaces.keeper.Show(ctx, run.Directory, checkout.Checkpoint(run.Shown.Checkpoint), own.temporary.path)
	problem := ""
	if err != nil {
		if ctx.Err() != nil {
			return run, context.Cause(ctx)
		}
		dir, problem = "", r.mask.Text(err.Error())
		r.logger.WarnContext(ctx, "a reviewer does not get the files of a change", "session_id", run.SessionID, "error", problem)
	}
	section, err := run.Shown.Describe(dir, problem)
	run.Prompt += "\n\n" + section
	return run, err
}
