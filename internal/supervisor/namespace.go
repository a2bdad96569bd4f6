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
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/workflows"
)

const (
	// attributePoll is how often a namespace is asked for attributes that were just added.
	attributePoll = 100 * time.Millisecond
	// attributeWait is how long they may take to appear: servers cache them.
	attributeWait = 30 * time.Second
)

// MissingAttributesError says which search attributes a namespace lacks, and how an
// operator adds them.
type MissingAttributesError struct {
	Namespace string
	Missing   []temporal.SearchAttributeKey
	// Err is why they could not be added.
	Err error
}

// Error gives the commands to run, one a line.
func (e *MissingAttributesError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %q lacks search attributes; add them with:", e.Namespace)
	for _, key := range e.Missing {
		fmt.Fprintf(&b, "\n  temporal operator search-attribute create --namespace %s --name %s --type %s",
			e.Namespace, key.GetName(), key.GetValueType())
	}
	if e.Err != nil {
		fmt.Fprintf(&b, "\n(adding them failed: %v)", e.Err)
	}
	return b.String()
}

// Unwrap returns why the attributes could not be added.
func (e *MissingAttributesError) Unwrap() error { return e.Err }

// SetUpNamespace makes sure that the namespace knows every search attribute of ours. If
// it may not add them, the error is a *MissingAttributesError.
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
	var exists *serviceerror.AlreadyExists // another worker was faster
	if err != nil && !errors.As(err, &exists) {
		return &MissingAttributesError{Namespace: namespace, Missing: missing, Err: err}
	}
	return awaitAttributes(ctx, c, namespace)
}

// MissingAttributes returns the search attributes of ours that the namespace does not
// know. An attribute of another type than ours is an error.
func MissingAttributes(ctx context.Context, c client.Client, namespace string) ([]temporal.SearchAttributeKey, error) {
	listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
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
			return nil, fmt.Errorf("search attribute %s of namespace %q is of type %s and must be %s: remove it and add it again",
				key.GetName(), namespace, has, key.GetValueType())
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
