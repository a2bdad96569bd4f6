package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
)

// The files of a chain's directory.
const (
	// CooldownFile tells the agent how far the cooldowns are used up: an escalation.CooldownState.
	CooldownFile = "cooldown.json"
	// HandoffFile is where an agent leaves a handoff that it is asked for.
	HandoffFile = "handoff.json"
)

// ChainsDir is the directory, below the agents' working directory, that holds the chains' own.
// It is within the reach of the rules about files of the working directory.
const ChainsDir = ".claudeops"

// ChainDirName returns the name of a chain's directory in ChainsDir. Whatever the ID of the chain is
// made of, it is a plain name that no other chain has: a readable beginning and a hash of the whole.
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

// chainFile returns the path of a file of a chain's directory as an agent spells it: relative to
// its working directory.
func chainFile(chainID, file string) string {
	return path.Join(ChainsDir, ChainDirName(chainID), file)
}
