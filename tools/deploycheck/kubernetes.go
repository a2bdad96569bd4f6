package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// checkKubernetes builds the base and all overlays below directory with kustomize. It returns the violations of the
// schemas of Kubernetes and KEDA, and of this project's rules for the worker.
func checkKubernetes(directory string) (found []string, err error) {
	temporary, err := os.MkdirTemp("", "schemas")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	schemas, err := newSchemas(temporary)
	if err != nil {
		return nil, err
	}
	overlays, err := filepath.Glob(filepath.Join(directory, "overlays", "*"))
	if err != nil {
		return nil, err
	}
	for _, overlay := range append(overlays, filepath.Join(directory, "base")) {
		name := filepath.Base(overlay)
		objects, err := build(overlay)
		if err != nil {
			return found, fmt.Errorf("%s: %w", name, err)
		}
		for _, object := range objects {
			for _, finding := range schemas.check(object) {
				found = append(found, fmt.Sprintf("%s: %s %s: %s", name, object["kind"],
					text(object, "metadata", "name"), finding))
			}
		}
		findings := checkWorker(objects)
		if name != "base" {
			findings = append(findings, checkSettings(find(objects, "ConfigMap"))...)
		}
		for _, finding := range findings {
			found = append(found, name+": "+finding)
		}
	}
	return found, nil
}

// build returns the objects of a kustomization.
func build(directory string) ([]map[string]any, error) {
	if _, err := os.Stat(directory); err != nil {
		return nil, err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		return nil, err
	}
	var objects []map[string]any
	for _, resource := range resources.Resources() {
		object, err := resource.Map()
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// drainMargin is the time that a worker needs after the drain timeout. Its agents take at most 10 s to stop
// (CLAUDEOPS_STOP_GRACE), and their last reports take 10 s. The remaining 10 s are a reserve.
const drainMargin = 30 * time.Second

// checkWorker returns the problems of the Deployment of the worker or of the pages. It also checks that each
// PodDisruptionBudget and each NetworkPolicy selects the worker's pods.
func checkWorker(objects []map[string]any) []string {
	deployment := find(objects, "Deployment")
	if deployment == nil {
		return []string{"there is no Deployment"}
	}
	pod, _ := at(deployment, "spec", "template").(map[string]any)
	settings := find(objects, "ConfigMap")
	found := checkSecurity(pod, at(settings, "data", "CLAUDEOPS_AGENT_USER") != nil)
	// the pages have no agents to wait for
	if at(deployment, "metadata", "labels", "app.kubernetes.io/component") != "web" {
		found = append(found, checkDrain(pod, settings)...)
	}
	for _, object := range objects {
		found = append(found, checkSelector(object, pod)...)
		if at(object, "metadata", "namespace") != at(deployment, "metadata", "namespace") &&
			object["kind"] != "Namespace" {
			found = append(found, fmt.Sprintf("%s %s is not in the namespace of the worker", object["kind"],
				text(object, "metadata", "name")))
		}
		if target := at(object, "spec", "scaleTargetRef", "name"); target != nil &&
			target != at(deployment, "metadata", "name") {
			found = append(found, fmt.Sprintf("%s %s scales %v, which does not exist", object["kind"],
				text(object, "metadata", "name"), target))
		}
	}
	if at(settings, "data", "CLAUDEOPS_DEPLOYMENT") != nil {
		found = append(found, checkVersion(objects)...)
	}
	return found
}

// checkSettings reports required settings that an overlay does not set. CLAUDEOPS_TRANSCRIPTS is required, because the
// default archive of conversations would be lost with the pod.
func checkSettings(settings map[string]any) (found []string) {
	for _, name := range []string{"TEMPORAL_ADDRESS", "CLAUDEOPS_TRANSCRIPTS"} {
		if at(settings, "data", name) == nil {
			found = append(found, name+" is not set")
		}
	}
	return found
}

// checkSecurity checks a pod against the Pod Security Standard "restricted" and some further rules. If agents run as
// another user, the worker must run as root with the capabilities to start these agents.
func checkSecurity(pod map[string]any, agentUser bool) (found []string) {
	var nonRoot, capabilities any = true, nil
	if agentUser {
		nonRoot, capabilities = nil, "[CHOWN DAC_OVERRIDE KILL SETGID SETUID]"
	}
	expect := func(where any, want any, path ...string) {
		if got := at(where, path...); fmt.Sprint(got) != fmt.Sprint(want) {
			found = append(found, fmt.Sprintf("the worker's %v is %v, not %v", path, got, want))
		}
	}
	expect(pod, false, "spec", "automountServiceAccountToken")
	expect(pod, nonRoot, "spec", "securityContext", "runAsNonRoot")
	expect(pod, "RuntimeDefault", "spec", "securityContext", "seccompProfile", "type")
	containers, _ := at(pod, "spec", "containers").([]any)
	for _, container := range containers {
		expect(container, false, "securityContext", "allowPrivilegeEscalation")
		expect(container, true, "securityContext", "readOnlyRootFilesystem")
		expect(container, "[ALL]", "securityContext", "capabilities", "drop")
		expect(container, capabilities, "securityContext", "capabilities", "add")
		if at(container, "resources", "limits", "memory") == nil {
			found = append(found, "the worker has no limit on memory")
		}
		if err := pinned(fmt.Sprint(at(container, "image"))); err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// checkDrain checks that Kubernetes gives the worker's pod enough time to stop.
func checkDrain(pod, settings map[string]any) []string {
	drain, err := time.ParseDuration(text(settings, "data", "CLAUDEOPS_DRAIN_TIMEOUT"))
	if err != nil {
		return []string{"CLAUDEOPS_DRAIN_TIMEOUT: " + err.Error()}
	}
	seconds, err := time.ParseDuration(fmt.Sprintf("%vs", at(pod, "spec", "terminationGracePeriodSeconds")))
	if err != nil {
		return []string{"terminationGracePeriodSeconds: " + err.Error()}
	}
	if seconds < drain+drainMargin {
		return []string{fmt.Sprintf("terminationGracePeriodSeconds is %v, less than CLAUDEOPS_DRAIN_TIMEOUT (%v) and "+
			"%v", seconds, drain, drainMargin)}
	}
	return nil
}

// find returns the first object of a kind; nil if there is none.
func find(objects []map[string]any, kind string) map[string]any {
	for _, object := range objects {
		if object["kind"] == kind {
			return object
		}
	}
	return nil
}

// at returns the value at a path of keys; nil if there is none.
func at(value any, path ...string) any {
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// text returns the value at a path as text.
func text(value any, path ...string) string { return fmt.Sprint(at(value, path...)) }
