package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// deployment is the directory that make deploy-check checks.
const deployment = "../../deploy"

func TestDeploymentIsRight(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := run(deployment, slices.Collect(maps.Keys(checks)), &out); code != 0 {
		t.Fatalf("code %d:\n%s", code, &out)
	}
}

// TestMistakesAreFound breaks one file of a copy at a time.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	for name, mistake := range map[string]struct{ file, old, new, finding string }{
		"an unknown instruction":  {"Dockerfile", "WORKDIR /claude", "WORKDIRS /claude", "unknown instruction"},
		"BuildKit's linter":       {"Dockerfile", "AS claude", "as claude", "FromAsCasing"},
		"no version":              {"Dockerfile", "FROM debian:${DEBIAN_VERSION}-slim", "FROM debian", "has no version"},
		"a stage that is missing": {"Dockerfile", "--from=claude", "--from=clod", "no stage above"},
		"a source that is missing": {
			"Dockerfile", "deploy/docker/with-secrets.sh", "deploy/docker/secrets.sh",
			"no such file",
		},
		"root":                        {"Dockerfile", "USER 10001:10001", "USER root", `runs as "root"`},
		"a shell as process 1":        {"Dockerfile", `CMD ["worker"]`, "CMD worker", "as JSON"},
		"an unknown key":              {"compose.yaml", "  worker:\n", "  worker:\n    healtcheck: {}\n", "healtcheck"},
		"an unknown network":          {"compose.yaml", "networks: [temporal-db]", "networks: [temporaldb]", "temporaldb"},
		"an open port":                {"compose.yaml", "127.0.0.1:7233:7233", "7233:7233", "published on"},
		"a password":                  {"compose.yaml", "POSTGRES_PASSWORD_FILE: /run/secrets/db_password", "POSTGRES_PASSWORD: x", "use a secret"},
		"a file that is missing":      {"compose.yaml", "./compose/temporal-schema.sh", "./compose/schema.sh", "no such file"},
		"no health check":             {"compose.yaml", "    healthcheck: *postgres-is-ready\n\n  worker", "\n  worker", "no health check"},
		"a stop that is too short":    {"compose.yaml", "stop_grace_period: 2m30s", "stop_grace_period: 2m20s", "stop_grace_period is less"},
		"a setting of Prometheus":     {"prometheus/compose.yaml", "refresh_interval", "refresh", "unknown field"},
		"a job":                       {"prometheus/compose.yaml", "job_name: claudeops", "job_name: workers", "not named claudeops"},
		"a setting of Grafana":        {"grafana/provisioning/datasources/prometheus.yaml", "isDefault", "default", "unknown field"},
		"agents as another user":      {"compose.yaml", `user: "0:0"`, `user: "1:1"`, "need each other"},
		"an unknown field":            {"kubernetes/base/deployment.yaml", "readOnlyRootFilesystem", "readOnlyRootFileSystem", "additional properties 'readOnlyRootFileSystem' not allowed"},
		"a missing field":             {"kubernetes/base/deployment.yaml", "- name: worker\n", "- workingDir: /tmp\n", "missing property 'name'"},
		"a text for a number":         {"kubernetes/base/deployment.yaml", "replicas: 2", "replicas: two", "want integer"},
		"privileges":                  {"kubernetes/base/deployment.yaml", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation"},
		"a grace that is too short":   {"kubernetes/base/settings.env", "DRAIN_TIMEOUT=15m", "DRAIN_TIMEOUT=16m", "terminationGracePeriodSeconds is 16m0s"},
		"privileges of the pages":     {"kubernetes/overlays/web/deployment.yaml", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation"},
		"a policy of something else":  {"kubernetes/overlays/production/network.yaml", "component: worker", "component: wrker", "does not select"},
		"no archive":                  {"kubernetes/overlays/production/settings.env", "CLAUDEOPS_TRANSCRIPTS", "#", "CLAUDEOPS_TRANSCRIPTS is not set"},
		"an unknown key of a trigger": {"kubernetes/components/autoscaling/scaledobject.yaml", "queueTypes", "queueType", "is unknown"},
		"our labels on other pods": {
			"kubernetes/overlays/production/network.yaml", "matchExpressions:\n              - {key: app.kubernetes.io/component, operator: In, values: [frontend]}",
			"matchLabels: {app.kubernetes.io/component: worker}", "reaches only pods with the worker's label",
		},
		"a scaler of nothing":      {"kubernetes/components/autoscaling/scaledobject.yaml", "Deployment\n    name: claudeops-worker", "Deployment\n    name: worker", "scales worker, which does not exist"},
		"no namespace":             {"kubernetes/overlays/autoscaled/kustomization.yaml", "namespace: claudeops", "", "is not in the namespace of the worker"},
		"a version without a name": {"kubernetes/overlays/versioned/kustomization.yaml", "nameSuffix: -v0-1-0", "nameSuffix: -v0-2-0", "does not contain its version"},
		"a version that selects others": {
			"kubernetes/overlays/versioned/kustomization.yaml", "includeSelectors: true", "includeSelectors: false", "also selects the pods of other versions",
		},
		"a version without a label": {
			"kubernetes/overlays/versioned/kustomization.yaml", "app.kubernetes.io/version: v0.1.0", "version: v0.1.0", "lacks the label",
		},
		"a namespace in a version": {"kubernetes/components/versions/kustomization.yaml", "$patch: delete", "", "would be deleted with one version"},
		"a missing resource":       {"kubernetes/base/kustomization.yaml", "metrics.yaml", "metric.yaml", "metric.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if err := os.CopyFS(filepath.Join(root, "deploy"), os.DirFS(deployment)); err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{"go.mod", "go.sum", "tools"} { // what the Dockerfile copies
				absolute, err := filepath.Abs(filepath.Join("../..", source))
				if err == nil {
					err = os.Symlink(absolute, filepath.Join(root, source))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(root, "deploy", mistake.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			broken := strings.Replace(string(text), mistake.old, mistake.new, 1)
			if broken == string(text) {
				t.Fatalf("%s does not contain %q", mistake.file, mistake.old)
			}
			if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			check := mistake.file
			switch {
			case strings.HasPrefix(check, "compose."):
				check = "compose.yaml"
			case strings.HasPrefix(check, "kubernetes/"):
				check = "kubernetes"
			case strings.HasPrefix(check, "grafana/"):
				check = "grafana/provisioning"
			}
			if code := run(filepath.Join(root, "deploy"), []string{check}, &out); code != 1 || !strings.Contains(out.String(), mistake.finding) {
				t.Fatalf("code %d, no %q in:\n%s", code, mistake.finding, &out)
			}
		})
	}
}

// TestVersionsRunSideBySide builds two copies of the overlay for versions, with autoscaling, as docs/kubernetes.md
// says. They must share no object.
func TestVersionsRunSideBySide(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "kubernetes")
	if err := os.CopyFS(root, os.DirFS(filepath.Join(deployment, "kubernetes"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "overlays", "versioned", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	for _, version := range []string{"0.1.0", "0.2.0"} {
		overlay := filepath.Join(root, "overlays", "versioned-"+version)
		of := strings.NewReplacer("../production", "../autoscaled", "0.1.0", version, "v0-1-0", "v"+strings.ReplaceAll(version, ".", "-"))
		if err := os.Mkdir(overlay, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(of.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		objects, err := build(overlay)
		if err != nil {
			t.Fatal(err)
		}
		if found := checkWorker(objects); len(found) > 0 || find(objects, "ScaledObject") == nil {
			t.Fatalf("%s: %q", version, found)
		}
		for _, object := range objects {
			name := fmt.Sprint(object["kind"], " ", at(object, "metadata", "name"))
			if other := owners[name]; other != "" {
				t.Fatalf("%s is in versions %s and %s", name, other, version)
			}
			owners[name] = version
		}
	}
}
