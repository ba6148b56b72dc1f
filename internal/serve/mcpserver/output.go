package mcpserver

import (
	"bytes"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/capability"
)

// outputSchema returns the schema of a tool's results as a client is shown it, or
// nil. Only one that every client can use is shown: one of an object, since those
// of before 2026-07-28 refuse a list of tools with any other, and one that can
// be resolved, since many build a validator when they list, and one tool of one
// server must not cost them all the others.
func outputSchema(raw json.RawMessage) []byte {
	if !isObject(raw) {
		return nil
	}
	var s jsonschema.Schema
	if json.Unmarshal(raw, &s) != nil || s.Type != "object" {
		return nil
	}
	if _, err := s.Resolve(nil); err != nil {
		return nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return nil
	}
	return compact.Bytes()
}

// structured returns the structured part of a result; nil where it has none.
func structured(res capability.Result) json.RawMessage {
	if n := len(res.Parts); n > 0 && res.Parts[n-1].MIME == "application/json" && isObject(res.Parts[n-1].JSON) {
		return res.Parts[n-1].JSON
	}
	return nil
}

// kept makes sure that a result keeps what the tool's schema promises. A client
// throws away one that does not, with all that is in it; as a failure it is
// read. Who takes that for a call that was not made would make it twice, so what
// it is stands first and last.
func kept(res capability.Result) capability.Result {
	if res.Failed || structured(res) != nil {
		return res
	}
	res.Failed = true
	parts := append([]capability.Part{{Text: saidMade}}, res.Parts...)
	res.Parts = append(parts, capability.Part{Text: "The error is only that its structured part is missing, which the tool's output schema promises."})
	return res
}

const saidMade = "The call was made, and whatever it does has happened: do not make it again for this error. What it gave:"
