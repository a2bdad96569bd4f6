package parts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.temporal.io/sdk/workflow"
)

// ErrorTypeInput is the type of the application error for an invalid input.
const ErrorTypeInput = "InvalidInput"

// DecodeStrictly decodes one JSON object into target. Its error messages are written for people.
func DecodeStrictly(data []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(target)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType) && wrongType.Field == "":
		return fmt.Errorf("input must be a JSON object, not %s", withArticle(wrongType.Value))
	case errors.As(err, &wrongType):
		return fmt.Errorf("%s must not be %s", wrongType.Field, withArticle(wrongType.Value))
	case err != nil:
		return fmt.Errorf("input is not valid: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("input must be one JSON object, with nothing after it")
	}
	return nil
}

// withArticle returns the name of a kind of JSON value with its article: an array, a string.
func withArticle(kind string) string {
	if strings.HasPrefix(kind, "array") || strings.HasPrefix(kind, "object") {
		return "an " + kind
	}
	return "a " + kind
}

// MaxPromptBytes keeps an input well below Temporal's limit of 2 MB for one payload.
const MaxPromptBytes = 100_000

// MaxRepositoryBytes is the maximum length of a path on Linux, in bytes.
const MaxRepositoryBytes = 4096

// ErrCarried is the error for an input that has Carried but does not come from a previous run of the chain.
var ErrCarried = errors.New("carried is not for people: a chain gives it to itself when it goes on in a new run")

// IsContinued reports whether this run continues an earlier run of the chain. A run that cron starts, or that retries a
// failed run, also has a previous run. IsContinued returns false for such a run, because its input comes from a client.
func IsContinued(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.ContinuedExecutionRunID != "" && info.CronSchedule == "" && info.Attempt == 1
}
