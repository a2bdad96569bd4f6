package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// checkCompose checks a Compose file. It also checks the file together with each override (compose.NAME.yaml) in the
// same directory.
func checkCompose(ctx context.Context, path string) (found []string, err error) {
	overrides, err := filepath.Glob(filepath.Join(filepath.Dir(path), "compose.*.yaml"))
	if err != nil {
		return nil, err
	}
	found, err = checkProject(ctx, path)
	for _, override := range overrides {
		if err == nil {
			var more []string
			more, err = checkProject(ctx, path, override)
			found = append(found, more...)
		}
	}
	return found, err
}

// checkProject returns the errors of Compose's loader, and the violations of this project's rules. By these rules,
// images have a version, services have a memory limit and a health check, ports are on the loopback address only,
// mounted files exist, and passwords are in files only.
func checkProject(ctx context.Context, paths ...string) (found []string, err error) {
	project, err := loadCompose(ctx, paths)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(project.AllServices())) {
		for _, finding := range checkService(project.AllServices()[name]) {
			found = append(found, "service "+name+": "+finding)
		}
	}
	for name, secret := range project.Secrets {
		if filepath.Base(filepath.Dir(secret.File)) != "secrets" {
			found = append(found, "secret "+name+": its file is not in secrets/, which stays out of version control")
		}
	}
	return found, nil
}

// loadCompose loads Compose files in the same way as `docker compose config`. Each file overrides the files before it.
// No environment variable is set.
func loadCompose(ctx context.Context, paths []string) (*types.Project, error) {
	details := types.ConfigDetails{Environment: types.Mapping{}}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(absolute)
		if err != nil {
			return nil, err
		}
		details.WorkingDir = filepath.Dir(absolute)
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: absolute, Content: text})
	}
	return loader.LoadWithContext(ctx, details)
}

func checkService(service types.ServiceConfig) (found []string) {
	report := func(format string, arguments ...any) { found = append(found, fmt.Sprintf(format, arguments...)) }
	if err := pinned(service.Image); err != nil {
		report("%v", err)
	}
	if service.Deploy == nil || service.Deploy.Resources.Limits == nil ||
		service.Deploy.Resources.Limits.MemoryBytes == 0 {
		report("it has no limit on memory")
	}
	if service.Restart == types.RestartPolicyUnlessStopped && service.HealthCheck == nil {
		report("it has no health check")
	}
	if !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
		report("it may gain privileges")
	}
	for _, port := range service.Ports {
		if port.HostIP != "127.0.0.1" {
			report("port %d is published on %q, not on 127.0.0.1", port.Target, port.HostIP)
		}
	}
	for _, volume := range service.Volumes {
		if volume.Type != types.VolumeTypeBind {
			continue
		}
		if _, err := os.Stat(volume.Source); err != nil {
			report("%v", err)
		}
	}
	for name, value := range service.Environment {
		if secretName(name) && value != nil && !strings.HasPrefix(*value, "/run/secrets/") {
			report("%s is in the environment; use a secret", name)
		}
	}
	if asUser := service.Environment["CLAUDEOPS_AGENT_USER"]; (asUser != nil) != (service.User == "0:0") {
		report("CLAUDEOPS_AGENT_USER and a worker that is root need each other")
	}
	return append(append(found, checkBuild(service.Build)...), checkStopGrace(service)...)
}

// checkStopGrace checks that Compose gives a worker enough time to stop.
func checkStopGrace(service types.ServiceConfig) []string {
	text := service.Environment["CLAUDEOPS_DRAIN_TIMEOUT"]
	if text == nil {
		return nil
	}
	drain, err := time.ParseDuration(*text)
	if err != nil {
		return []string{"CLAUDEOPS_DRAIN_TIMEOUT: " + err.Error()}
	}
	if grace := service.StopGracePeriod; grace == nil || time.Duration(*grace) < drain+drainMargin {
		return []string{fmt.Sprintf("stop_grace_period is less than CLAUDEOPS_DRAIN_TIMEOUT (%v) and %v", drain,
			drainMargin)}
	}
	return nil
}

// secretName reports whether a variable with this name holds a secret, or the path of a file with a secret.
func secretName(name string) bool {
	return slices.ContainsFunc([]string{"PASSWORD", "API_KEY", "TOKEN", "DATABASE_URL", "_PWD"},
		func(word string) bool {
			return strings.Contains(name, word)
		})
}

// checkBuild reports whether the Dockerfile of a build is missing, or does not contain the target stage of the build.
func checkBuild(build *types.BuildConfig) []string {
	if build == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(build.Context, build.Dockerfile))
	if err != nil {
		return []string{err.Error()}
	}
	if !strings.Contains(string(text), " AS "+build.Target+"\n") {
		return []string{"the Dockerfile has no stage " + build.Target}
	}
	return nil
}
