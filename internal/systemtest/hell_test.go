//go:build linux

package systemtest

import (
	"fmt"
	"slices"
	"testing"
)

// The agent from hell is a program that has passed the guard. It has the rights of an agent of Tier 1 or 2 and does
// harm with them: each attack of the table below is tried in every mode of an installation. An attack that succeeds is
// a failing test.
//
// To add an attack, write a function that acts as the agent, and add a row to a list of attacks.
// hell_stage_linux_test.go runs the table. It starts a worker as a process of its own, and the attacks in place of the
// CLI.

// attack is one thing that no agent of Tiers 1 and 2 may do.
type attack struct {
	// at is what the attack aims at.
	at target
	// name says what the attacker gets.
	name string
	// act is run by the agent's program, once for each attack in a process of its own. It returns nil if the attack
	// succeeded. With an error it says what kept it from succeeding.
	act func(victim) error
	// harm looks at the damage from outside, after the session has ended. It returns an error that describes the
	// damage. If harm is nil, it is the word of act that counts.
	harm func(victim) error
	// open lists the modes in which the attack is known to succeed, each with the reason. The page docs/security.md
	// names these gaps.
	open map[hellMode]string
}

// target is a kind of thing that attacks aim at. It is a row of the table in docs/security.md.
type target string

const (
	onProcesses target = "memory, limits, priorities, descriptors and namespaces of other processes"
	onFiles     target = "permissions, owner and times of the worker's files"
	onSecrets   target = "secret files that everybody may read"
	onDoors     target = "the guard of another session"
	onServers   target = "the supervisor's ports, terminals of tmux, sockets of virtual machines"
	onPrograms  target = "programs that the policy does not grant"
	onRights    target = "capabilities, other users and groups, the host's packets"
	onTerminals target = "terminals"
	onKernel    target = "tracing, keys, BPF, perf events, io_uring, namespaces, mounts, 32-bit calls"
)

// attacks returns the whole table.
func attacks() []attack {
	return slices.Concat(kernelAttacks(), rightsAttacks(), fileAttacks(), executionAttacks(), doorAttacks())
}

// hellMode is a way to install a worker.
type hellMode string

const (
	// ordinaryUser is a worker without special rights; its agents have the same user.
	ordinaryUser hellMode = "U"
	// rootAlone is a worker of root whose agents are root, too.
	rootAlone hellMode = "R"
	// agentsUser is a worker of root with CLAUDEOPS_AGENT_USER.
	agentsUser hellMode = "A"
)

// victim describes the installation to the attacker. It holds what an attacker could find out.
type victim struct {
	// Worker is the process number of the worker.
	Worker int `json:"worker"`
	// Home is the home directory of the worker's user, and State is the worker's state directory.
	Home, State string
	// Terminal is the path of a terminal of the worker's user.
	Terminal string
	// Door is the guard's socket of another session of the same worker. Every process can find it in /proc/net/unix.
	Door string
	// Temporal is the address of Temporal, and Tmux the path of a socket of tmux to which everybody may connect.
	Temporal, Tmux string
}

// TestAgentFromHell runs the attacks as an agent of each tier, in each mode that this process's user can install.
func TestAgentFromHell(t *testing.T) { //nolint:tparallel // one subtest after the other: each fills a processor
	t.Parallel()
	for _, mode := range hellModes() {
		for _, tier := range []int{1, 2} {
			t.Run(fmt.Sprint(mode, tier), func(t *testing.T) { requireHarmless(t, mode, tier, nil) })
		}
	}
}
