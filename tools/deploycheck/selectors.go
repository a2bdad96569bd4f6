package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkSelector reports a PodDisruptionBudget or a NetworkPolicy that does not select the worker's pod, and rules of a
// NetworkPolicy that lead only to pods with the worker's own labels.
func checkSelector(object, pod map[string]any) (found []string) {
	selector, _ := at(object, "spec", "podSelector", "matchLabels").(map[string]any)
	if object["kind"] == "PodDisruptionBudget" {
		selector, _ = at(object, "spec", "selector", "matchLabels").(map[string]any)
	} else if object["kind"] != "NetworkPolicy" {
		return nil
	}
	name := fmt.Sprintf("%s %s", object["kind"], text(object, "metadata", "name"))
	labels, _ := at(pod, "metadata", "labels").(map[string]any)
	for key, value := range selector {
		if labels[key] != value {
			found = append(found, name+" does not select the worker: "+key)
		}
	}
	if len(selector) == 0 {
		found = append(found, name+" selects every pod")
	}
	for _, peer := range peers(object) {
		others, _ := at(peer, "podSelector", "matchLabels").(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(others)) {
			if labels[key] == others[key] {
				found = append(found, fmt.Sprintf("%s reaches only pods with the worker's label %s: write its "+
					"podSelector with matchExpressions", name, key))
			}
		}
	}
	return found
}

// peers returns the ends of the connections that a NetworkPolicy permits.
func peers(policy map[string]any) (all []any) {
	for direction, end := range map[string]string{"ingress": "from", "egress": "to"} {
		rules, _ := at(policy, "spec", direction).([]any)
		for _, rule := range rules {
			ends, _ := at(rule, end).([]any)
			all = append(all, ends...)
		}
	}
	return all
}

// versionLabel has the version of a worker in its value.
const versionLabel = "app.kubernetes.io/version"

// checkVersion reports what keeps a version of the worker from running beside another one: objects with the same names,
// selectors that also select the other's pods, and the namespace, which would be deleted with the version.
func checkVersion(objects []map[string]any) (found []string) {
	for _, object := range objects {
		name := fmt.Sprintf("%s %s", object["kind"], text(object, "metadata", "name"))
		switch object["kind"] {
		case "Namespace":
			found = append(found, name+" would be deleted with one version: remove it")
			continue
		case "Deployment", "PodDisruptionBudget":
			if at(object, "spec", "selector", "matchLabels", versionLabel) == nil {
				found = append(found, name+" also selects the pods of other versions: add the label "+versionLabel+" to its selector")
			}
		}
		version, labelled := at(object, "metadata", "labels", versionLabel).(string)
		if !labelled {
			found = append(found, name+" lacks the label "+versionLabel)
		} else if !strings.Contains(name, strings.ReplaceAll(version, ".", "-")) {
			found = append(found, fmt.Sprintf("%s does not contain its version (%s): set nameSuffix", name, version))
		}
	}
	return found
}
