package cell

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// Protection says what holds the agents of Tiers 1 and 2 on this host.
type Protection struct {
	// Level is that of the tier which is held least.
	Level Level
	// Sandboxes describes the sandbox of each tier, or says why there is none. Open says what the Level leaves open,
	// and Gaps what the kernel leaves open in addition.
	Sandboxes, Open string
	Gaps            []string
}

// Probe starts a process in the sandbox of each tier that has one. It fails if a sandbox is required and not available.
// The argument separate reports that agents have another user, which need not exist yet.
func Probe(ctx context.Context, options Options, dir string, separate bool) (Protection, error) {
	boxes := newSandboxes(options)
	found := Protection{Level: levelOf(true, separate)}
	var said []string
	files, connections := true, true
	for _, tier := range []int{observe, repair} {
		sandbox, why := boxes.of(tier, dir, nil)
		var held process.Sandboxed
		if sandbox != nil {
			sandbox.Opens = fileRules(options.Policy.FileRules(tier), nil, nil, nil)
			var err error
			if held, err = claude.ProbeSandbox(ctx, options.Driver, sandbox); err != nil {
				return Protection{}, err
			}
			why = held.String()
		}
		if held.ABI == 0 {
			found.Level = levelOf(false, separate)
		}
		files, connections = files && held.Opens, connections && held.Connects
		said = append(said, fmt.Sprintf("tier %d: %s", tier, why))
	}
	if !files {
		found.Gaps = append(found.Gaps, openFiles)
	}
	if !connections {
		found.Gaps = append(found.Gaps, openConnections)
	}
	found.Sandboxes, found.Open = strings.Join(said, "; "), found.Level.open()
	return found, nil
}

// openFiles says what is open at Tiers 1 and 2 where the kernel does not ask before files are opened.
const openFiles = "granted programs can read secret files of their user, and change protected ones, if options or " +
	"links name them in a way that the guard does not see"

// openConnections says what is open at Tiers 1 and 2 where the kernel does not ask before programs connect.
const openConnections = "granted programs can connect to the supervisor's ports and to metadata services, if a name " +
	"or a notation hides these from the guard"

// ProbeSealed says how sealed programs run on this host (see Program), or why they do not run.
func ProbeSealed(ctx context.Context, options Options) (process.Sandboxed, error) {
	return claude.ProbeSandbox(ctx, options.Driver, newSandboxes(options).sealed(options.ConfigDir))
}
