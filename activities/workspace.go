package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
)

// The files of a chain's directory.
const (
	// CooldownFile is the file that shows the state of the cooldowns to the agent, as an escalation.CooldownState.
	CooldownFile = "cooldown.json"
	// HandoffFile is the file to which an agent writes a handoff on request.
	HandoffFile = "handoff.json"
)

// ChainsDir contains the directories of chains. It is a directory below the agents' working directory, so that
// permission rules for files of the working directory also apply to ChainsDir.
const ChainsDir = ".claudeops"

// ChainDirName returns the name of a chain's directory in ChainsDir. For any chain ID this is a plain file name: a
// readable beginning, and a hash of the whole ID that makes the name unique.
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
