package mcpserver

import (
	"bytes"
	"encoding/json"
	"strconv"

	"ken/internal/untrusted"
)

// mostID is the largest integer that every JSON decoder represents exactly.
const mostID = 1<<53 - 1

// unclear returns why a message or batch is ambiguous and must be rejected, or
// "": a member that occurs twice, or an id that the SDK would not return
// exactly. data must be valid JSON.
func unclear(data []byte) string {
	if name, twice := untrusted.TwiceNamed(data, 0); twice {
		return "the member " + strconv.Quote(untrusted.Line(name, 40)) + " is there twice; send it once"
	}
	messages := []json.RawMessage{data}
	if first := bytes.TrimLeft(data, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		messages = nil
		_ = json.Unmarshal(data, &messages) // it is valid
	}
	for _, one := range messages {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(one, &m) == nil && !exactID(m.ID) {
			return "the id " + untrusted.Line(string(m.ID), 40) + " cannot be answered exactly; use a text, or a whole number up to " + strconv.Itoa(mostID)
		}
	}
	return ""
}

// exactID reports whether an id is returned exactly as it was sent. A missing
// or null id needs no answer.
func exactID(id json.RawMessage) bool {
	if len(id) == 0 || id[0] == '"' || string(id) == "null" {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n <= mostID && n >= -mostID && strconv.FormatInt(n, 10) == string(id)
}
