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

// checkCompose returns what Compose's loader says, and what breaks a rule of this project: images with a version, a limit on memory,
// a health check, ports on the loopback address only, mounted files that exist, and no password outside of a file.
func checkCompose(ctx context.Context, path string) ([]string, error) {
	project, err := loadCompose(ctx, path)
	if err != nil {
		return nil, err
	}
	var found []string
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

// loadCompose loads the file as `docker compose config` does, with the example of the settings.
func loadCompose(ctx context.Context, path string) (*types.Project, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(absolute)
	if err != nil {
		return nil, err
	}
	return loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir:  filepath.Dir(absolute),
		ConfigFiles: []types.ConfigFile{{Filename: absolute, Content: text}},
		Environment: types.Mapping{},
	})
}

func checkService(service types.ServiceConfig) (found []string) {
	report := func(format string, arguments ...any) { found = append(found, fmt.Sprintf(format, arguments...)) }
	if err := pinned(service.Image); err != nil {
		report("%v", err)
	}
	if service.Deploy == nil || service.Deploy.Resources.Limits == nil || service.Deploy.Resources.Limits.MemoryBytes == 0 {
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
	return append(append(found, checkBuild(service.Build)...), checkStopGrace(service)...)
}

// checkStopGrace compares the time that Compose gives a worker with the time that it takes.
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
		return []string{fmt.Sprintf("stop_grace_period is less than CLAUDEOPS_DRAIN_TIMEOUT (%v) and %v", drain, drainMargin)}
	}
	return nil
}

// secretName reports whether a variable of this name holds a secret, or the file of one.
func secretName(name string) bool {
	return slices.ContainsFunc([]string{"PASSWORD", "API_KEY", "TOKEN", "DATABASE_URL", "_PWD"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}

// checkBuild reports a Dockerfile or a target that does not exist.
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
