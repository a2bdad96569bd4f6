package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/log"
	schema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

// pollInterval is the interval at which Start checks whether the frontend answers. A start of half a second is delayed
// by at most this interval.
const pollInterval = 10 * time.Millisecond

// createNamespace writes the namespace of o to the database, unless it exists. Call it before the server runs, so that
// all services know the namespace from the start. If the namespace were registered later, some services would not know
// it for a moment.
func createNamespace(db *database, o Options) error {
	entry, err := schema.NewNamespaceConfig(clusterName, o.Namespace, false, nil)
	if err != nil {
		return fmt.Errorf("describe the Temporal namespace %q: %w", o.Namespace, err)
	}
	entry.Detail.Config.Retention = durationpb.New(o.Retention)
	if err := schema.CreateNamespaces(db.sqlConfig(), entry); err != nil {
		return fmt.Errorf("create the Temporal namespace %q: %w", o.Namespace, err)
	}
	return nil
}

// awaitNamespace waits until the frontend answers. If the namespace has a retention other than o.Retention,
// awaitNamespace changes it.
func awaitNamespace(ctx context.Context, address string, o Options, logger *serverLogger) error {
	namespaces, err := client.NewNamespaceClient(token(o.Token).clientOptions(
		client.Options{HostPort: address, Logger: log.NewSdkLogger(logger)}))
	if err != nil {
		return fmt.Errorf("make a client of the Temporal server: %w", err)
	}
	defer namespaces.Close()

	found, err := describeWhenReady(ctx, namespaces, o.Namespace)
	if err == nil && found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() != o.Retention {
		err = namespaces.Update(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: o.Namespace,
			Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(o.Retention)},
		})
	}
	if err != nil {
		return fmt.Errorf("prepare the Temporal namespace %q: %w", o.Namespace, err)
	}
	return nil
}

// describeWhenReady asks the frontend for the description of the namespace until the frontend answers.
func describeWhenReady(
	ctx context.Context, namespaces client.NamespaceClient, name string,
) (*workflowservice.DescribeNamespaceResponse, error) {
	for {
		found, err := namespaces.Describe(ctx, name)
		if _, unavailable := errors.AsType[*serviceerror.Unavailable](err); !unavailable {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the frontend does not answer: %w", err)
		case <-time.After(pollInterval):
		}
	}
}
