package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"ken/internal/door"
)

// maxName is how long a name may be for all clients.
const maxName = 64

// unique makes a name fit for clients, and one that neither Ken nor an earlier
// tool has. The same capability among the same ones always gets the same.
func unique[T any](name string, e *door.Entry, taken map[string]T) string {
	fit := fitting(name)
	if _, ok := taken[fit]; !ok && !reserved(fit) && fit == name {
		return fit
	}
	sum := sha256.Sum256([]byte(e.ID))
	suffix := "_" + hex.EncodeToString(sum[:4])
	if fit == name && e.Category != "" {
		long := fitting(e.Category + "__" + name)
		if _, ok := taken[long]; !ok && long == e.Category+"__"+name {
			return long
		}
	}
	return fit[:min(len(fit), maxName-len(suffix))] + suffix
}

// fitting replaces what clients refuse in a name.
func fitting(name string) string {
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return fit[:min(len(fit), maxName)]
}
