package operations

import (
	"cmp"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
)

// overlap is an overlap policy of Temporal, with its name.
type overlap struct {
	name   string
	policy enumspb.ScheduleOverlapPolicy
	// harm says why schedules must not use the policy; empty if they can use it.
	harm string
}

// overlaps lists the overlap policies. An overlap policy applies when a cycle becomes due while another cycle runs.
func overlaps() []overlap {
	return []overlap{
		{name: "skip", policy: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP},
		{name: "buffer_one", policy: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE},
		{name: "buffer_all", policy: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL},
		{name: "cancel_other", policy: enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER},
		{name: "allow_all", policy: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL},
		{
			name: "terminate_other", policy: enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER,
			harm: "would leave the chain of the terminated cycle at work beside the new one; cancel_other ends it " +
				"with its cycle",
		},
	}
}

// OverlapNames lists the names of the overlap policies that schedules can use.
func OverlapNames() string {
	var names []string
	for _, known := range overlaps() {
		if known.harm == "" {
			names = append(names, known.name)
		}
	}
	return strings.Join(names, ", ")
}

// OverlapPolicy returns the policy with the given name. It returns an error if the name is unknown, or if schedules
// must not use the policy.
func OverlapPolicy(name string) (enumspb.ScheduleOverlapPolicy, error) {
	for _, known := range overlaps() {
		switch {
		case known.name != name:
		case known.harm != "":
			return 0, invalidField("overlap", "%s %s", name, known.harm)
		default:
			return known.policy, nil
		}
	}
	return 0, invalidField("overlap", "%q is none of %s", line(name, 60), OverlapNames())
}

// OverlapName returns the name of a policy. It also knows the policies that schedules must not use, because another
// client can have created the schedule.
func OverlapName(policy enumspb.ScheduleOverlapPolicy) string {
	for _, known := range overlaps() {
		if known.policy == cmp.Or(policy, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP) {
			return known.name
		}
	}
	return policy.String()
}
