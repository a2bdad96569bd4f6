package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
)

// The files of a chain's directory.
const (
	// CooldownFile shows the state of the cooldowns to the agent, as an escalation.CooldownState.
	CooldownFile = "cooldown.json"
	// HandoffFile is the file to which an agent writes a requested handoff.
	HandoffFile = "handoff.json"
)

// ChainsDir is the directory, below the agents' working directory, that contains the chains' directories. Permission
// rules for files of the working directory also apply to it.
const ChainsDir = ".claudeops"

// ChainDirName returns the name of a chain's directory in ChainsDir. The name is a plain file name for any chain ID: a readable
// beginning and a hash of the whole ID, which makes it unique.
func ChainDirName(chainID string) string {
	const readable = 12 // characters; the prompt and each call that reads the file repeat them
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, chainID)
	hash := sha256.Sum256([]byte(chainID))
	return strings.TrimLeft(plain[:min(len(plain), readable)]+"-", "-") + hex.EncodeToString(hash[:8])
}

// chainFile returns the path of a file in a chain's directory, relative to the agent's working directory.
func chainFile(chainID, file string) string {
	return path.Join(ChainsDir, ChainDirName(chainID), file)
}
