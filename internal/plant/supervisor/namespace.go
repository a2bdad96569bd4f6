package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// attributePoll is the interval at which SetUpNamespace checks whether added attributes have appeared in the
	// namespace.
	attributePoll = 100 * time.Millisecond
	// attributeWait limits the wait until added attributes appear. Servers cache the attributes of a namespace.
	attributeWait = 30 * time.Second
)

// MissingAttributesError lists the search attributes that a namespace lacks. Its text tells an operator how to add
// these attributes.
type MissingAttributesError struct {
	Namespace string
	Missing   []temporal.SearchAttributeKey
	// Err is the reason why the attributes could not be added.
	Err error
}

// Error returns a message with the commands that add the attributes, each on its own line.
func (e *MissingAttributesError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %q lacks search attributes; add them with:", e.Namespace)
	if strings.Contains(e.Namespace, ".") { // only names of Temporal Cloud have an account after a dot
		fmt.Fprintf(&b, "\n  tcld namespace search-attributes add --namespace %s", e.Namespace)
		for _, key := range e.Missing {
			fmt.Fprintf(&b, " --search-attribute %s=%s", key.GetName(), key.GetValueType())
		}
	} else {
		for _, key := range e.Missing {
			fmt.Fprintf(&b, "\n  temporal operator search-attribute create --namespace %s --name %s --type %s",
				e.Namespace, key.GetName(), key.GetValueType())
		}
	}
	if e.Err != nil {
		fmt.Fprintf(&b, "\n(adding them failed: %v)", e.Err)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *MissingAttributesError) Unwrap() error { return e.Err }

// FindNamespace returns the ID of the namespace with the given name. Temporal creates the ID together with the
// namespace. So two clusters have different IDs for the same name. The ID stays the same if the address of the cluster
// changes or another cluster takes over.
func FindNamespace(ctx context.Context, c client.Client, name string) (store.Namespace, error) {
	// Every API key for the namespace permits this call. On Temporal Cloud, reading the ID of the cluster would require
	// additional permissions.
	described, err := c.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		return store.Namespace{}, fmt.Errorf("look up the id of namespace %q: %w", name, err)
	}
	id := described.GetNamespaceInfo().GetId()
	if id == "" {
		return store.Namespace{}, fmt.Errorf("look up the id of namespace %q: Temporal returned none", name)
	}
	return store.Namespace{ID: id, Name: name}, nil
}

// SetUpNamespace adds the project's search attributes that the namespace lacks, and waits until they appear. If an
// attribute cannot be added, the error is a *MissingAttributesError.
func SetUpNamespace(ctx context.Context, c client.Client, namespace string) error {
	missing, err := MissingAttributes(ctx, c, namespace)
	if err != nil || len(missing) == 0 {
		return err
	}
	types := make(map[string]enumspb.IndexedValueType, len(missing))
	for _, key := range missing {
		types[key.GetName()] = key.GetValueType()
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: types,
	})
	var exists *serviceerror.AlreadyExists // another worker has added them meanwhile
	if err != nil && !errors.As(err, &exists) {
		return &MissingAttributesError{Namespace: namespace, Missing: missing, Err: err}
	}
	return awaitAttributes(ctx, c, namespace)
}

// MissingAttributes returns the project's search attributes that the namespace lacks. If the namespace has an attribute
// with the same name and another type, MissingAttributes returns an error.
//
// A server may permit the list of attributes to administrators only. MissingAttributes then searches by each attribute
// instead, and does not learn their types.
func MissingAttributes(ctx context.Context, c client.Client, namespace string) ([]temporal.SearchAttributeKey, error) {
	listed, err := c.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if isRefused(err) {
		return unsearchable(ctx, c, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("list the search attributes of namespace %q: %w", namespace, err)
	}
	var missing []temporal.SearchAttributeKey
	for _, key := range workflows.SearchAttributes() {
		has, known := listed.GetCustomAttributes()[key.GetName()]
		switch {
		case !known:
			missing = append(missing, key)
		case has != key.GetValueType():
			return nil, fmt.Errorf("search attribute %s of namespace %q is of type %s and must be %s: remove it and "+
				"add it again",
				key.GetName(), namespace, has, key.GetValueType())
		}
	}
	return missing, nil
}

// isRefused reports whether the server has no such call, or none for this client.
func isRefused(err error) bool {
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	_, missing := errors.AsType[*serviceerror.Unimplemented](err)
	return denied || missing
}

// unsearchable returns the project's search attributes by which nobody can search in the namespace.
func unsearchable(ctx context.Context, c client.Client, namespace string) ([]temporal.SearchAttributeKey, error) {
	var missing []temporal.SearchAttributeKey
	for _, key := range workflows.SearchAttributes() {
		_, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: namespace, PageSize: 1, Query: key.GetName() + " IS NOT NULL",
		})
		if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); unknown {
			missing = append(missing, key)
		} else if err != nil {
			return nil, fmt.Errorf("search by attribute %s in namespace %q: %w", key.GetName(), namespace, err)
		}
	}
	return missing, nil
}

func awaitAttributes(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, attributeWait)
	defer cancel()
	ticker := time.NewTicker(attributePoll)
	defer ticker.Stop()
	for {
		missing, err := MissingAttributes(ctx, c, namespace)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return &MissingAttributesError{Namespace: namespace, Missing: missing, Err: ctx.Err()}
		case <-ticker.C:
		}
	}
}
