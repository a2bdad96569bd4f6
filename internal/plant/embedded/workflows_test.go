package embedded

import (
	"context"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// These are the search attributes of a chain, as added by a worker.
var (
	tierAttribute     = temporal.NewSearchAttributeKeyInt64("ClaudeOpsTier")
	outcomeAttribute  = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsOutcome")
	gateAttribute     = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsGate")
	servicesAttribute = temporal.NewSearchAttributeKeyKeywordList("ClaudeOpsServices")
	costAttribute     = temporal.NewSearchAttributeKeyFloat64("ClaudeOpsCostUSD")
	triggerAttribute  = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsTrigger")
)

func nothing(context.Context) error { return nil }

// nineActivities runs nine activities that do nothing, one after another.
func nineActivities(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range 9 {
		if err := workflow.ExecuteActivity(ctx, nothing).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// tenShortTimers waits 20 ms, ten times in a row.
func tenShortTimers(ctx workflow.Context) error {
	for range 10 {
		if err := workflow.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// sleepThenSay waits and then returns its argument.
func sleepThenSay(ctx workflow.Context, wait time.Duration, say string) (string, error) {
	return say, workflow.Sleep(ctx, wait)
}

// waitForName waits for a name from the signal "name" or the update "name" and returns it. It shows its state
// as its current details.
func waitForName(ctx workflow.Context) (string, error) {
	workflow.SetCurrentDetails(ctx, "waiting for a **name**")
	var name string
	err := workflow.SetUpdateHandler(ctx, "name", func(_ workflow.Context, given string) (string, error) {
		name = given
		return "hello " + given, nil
	})
	if err != nil {
		return "", err
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		var given string
		workflow.GetSignalChannel(ctx, "name").Receive(ctx, &given)
		name = given
	})
	return name, workflow.Await(ctx, func() bool { return name != "" && workflow.AllHandlersFinished(ctx) })
}

// chainAttributes sets the search attributes of a chain.
func chainAttributes(ctx workflow.Context) error {
	return workflow.UpsertTypedSearchAttributes(ctx,
		tierAttribute.ValueSet(2),
		outcomeAttribute.ValueSet("resolved"),
		gateAttribute.ValueSet("closed"),
		servicesAttribute.ValueSet([]string{"jellyfin", "sonarr"}),
		costAttribute.ValueSet(0.25),
		triggerAttribute.ValueSet("manual"),
	)
}
