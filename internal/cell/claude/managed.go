package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// ManagedSettings is the directory of the settings that an administrator gives to all users of the CLI on this host.
// They win over the settings of an invocation. An organization can also send such settings from the provider: those are
// in no file here.
var ManagedSettings = map[string]string{ //nolint:gochecknoglobals // a constant of the system
	"linux": "/etc/claude-code", "darwin": "/Library/Application Support/ClaudeCode",
}[runtime.GOOS]

// hookSwitches lists the keys that keep the CLI from running the hooks of an invocation.
var hookSwitches = []string{"disableAllHooks", "allowManagedHooksOnly"}

// HooksOff returns the file of managed settings in dir that keeps the CLI from asking the guard, and the key that does;
// "" if there is none. A file that cannot be read or parsed counts as none.
func HooksOff(dir string) (file, key string) {
	more, _ := filepath.Glob(filepath.Join(dir, "managed-settings.d", "*.json")) // the pattern is valid
	slices.Sort(more)
	for _, name := range append([]string{filepath.Join(dir, "managed-settings.json")}, more...) {
		content, err := os.ReadFile(name) //nolint:gosec // of the administrator's directory
		if err != nil {
			continue
		}
		var settings map[string]any
		if json.Unmarshal(content, &settings) != nil {
			continue
		}
		for _, each := range hookSwitches {
			if on, _ := settings[each].(bool); on {
				return name, each
			}
		}
	}
	return "", ""
}
