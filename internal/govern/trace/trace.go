// Package trace exports the effects of calls for other tools: one line per
// effect in a file ([File]), and OpenTelemetry spans ([Spans]). Both carry the
// same ids as the audit log, which alone is complete: what cannot be exported
// is counted and dropped.
package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"ken/capability"
)

// A Call is a call that has ended.
type Call struct {
	Call   capability.Call
	Result capability.Result
	Err    error
	Began  time.Time
	Ended  time.Time

	Record string // the closing record in the audit trail, CHAIN:NUMBER
	Effect string // the effect's id; empty where nothing may have changed
	Class  string // of the capability: read, write, …

	// Work are ids of the work at hand, and Files what the call changed, as far
	// as that is known.
	Work  []string
	Files []Changed
}

// Changed is a file as a call left it.
type Changed struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"` // empty: it is not there any more
}

// Turn returns the session and the turn that a call belongs to, by its key
// SESSION/TURN/NUMBER; a call outside a turn has none.
func Turn(call capability.Call) (session, turn string) {
	if rest, ok := strings.CutPrefix(call.Key, call.Session+"/"); ok && call.Session != "" {
		if turn, _, ok := strings.Cut(rest, "/"); ok {
			return call.Session, turn
		}
	}
	return call.Session, ""
}

// ContentHash names what a call was and what it gave back.
func (c *Call) ContentHash() string {
	h := sha256.New()
	part := func(b []byte) {
		sum := sha256.Sum256(b)
		h.Write(sum[:])
	}
	part([]byte(c.Call.Target))
	part([]byte(c.Call.Action))
	arguments := []byte(c.Call.Arguments)
	if plain, err := capability.CanonicalJSON(arguments); err == nil {
		arguments = plain
	}
	part(arguments)
	result, _ := json.Marshal(c.Result.Parts) // parts hold nothing that has no JSON
	part(result)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
