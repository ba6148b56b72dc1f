// Package clearmessage finds messages of JSON-RPC that two programs could read in
// two ways.
package clearmessage

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/internal/jsonvalid"
	"ken/internal/untrusted"
)

// mostID is the largest integer that every JSON decoder represents exactly.
const mostID = 1<<53 - 1

// mostDepth is how deep the SDK reads objects and arrays. It ends a session with one
// that is deeper.
const mostDepth = 1000

// Unclear returns why a message or batch must be rejected, or "": a member that
// occurs twice, an id that the SDK would not return exactly, or values that are
// nested deeper than it reads. data must be valid JSON.
func Unclear(data []byte) string {
	if !jsonvalid.Within(data, mostDepth) && jsonvalid.Valid(data) {
		return "the message is nested more than " + strconv.Itoa(mostDepth) + " deep"
	}
	if name, twice := untrusted.TwiceNamed(data, 0); twice {
		return "the member " + strconv.Quote(untrusted.Line(name, 40)) + " is there twice; send it once"
	}
	messages := []json.RawMessage{data}
	if first := bytes.TrimLeft(data, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		messages = nil
		_ = json.Unmarshal(data, &messages) // it is valid
	}
	for _, one := range messages {
		if why := unclearMessage(one); why != "" {
			return why
		}
	}
	return ""
}

func unclearMessage(data []byte) string {
	var id json.RawMessage
	var hasID, asks, result, failed bool
	for name, value := range untrusted.Members(data) { // none: not an object, which is reported elsewhere
		switch name {
		case "id":
			id, hasID = value, true
		case "method":
			asks = true
		case "result":
			result = true
		case "error":
			failed = true
		}
		if lower := strings.ToLower(name); lower != name && slices.Contains(memberNames[:], lower) {
			return "the member " + strconv.Quote(untrusted.Line(name, 40)) + " must be written " + lower
		}
	}
	switch {
	case hasID && !exactID(id):
		return "the id " + untrusted.Line(string(id), 40) + " cannot be answered exactly; use a text, or a whole number up to " + strconv.Itoa(mostID)
	case asks && (result || failed):
		return "the message is a request and a response at once"
	case hasID && !asks && !result && !failed:
		return "the message has an id, but no method and no result"
	}
	return ""
}

// IsRequest reports whether a message is a request or notification that the SDK can
// decode. data must be valid JSON that Unclear has no objection to. It returns false
// for rare messages, too: the caller then has to decode them.
func IsRequest(data []byte) bool {
	var version, method bool
	for name, value := range untrusted.Members(data) {
		switch name {
		case "jsonrpc":
			version = string(value) == `"2.0"`
		case "method":
			method = value[0] == '"' && !bytes.ContainsFunc(value, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf })
		case "id", "params": // the SDK takes any that is clear
		default:
			return false
		}
	}
	return version && method
}

// memberNames are the members of a JSON-RPC message.
var memberNames = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// exactID reports whether an id is returned exactly as it was sent. A missing
// or null id needs no answer.
func exactID(id json.RawMessage) bool {
	if len(id) == 0 || string(id) == "null" {
		return true
	}
	if id[0] == '"' {
		var text string // with U+FFFD in the place of what is not Unicode
		return json.Unmarshal(id, &text) == nil && !strings.ContainsRune(text, utf8.RuneError)
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n <= mostID && n >= -mostID && strconv.FormatInt(n, 10) == string(id)
}
