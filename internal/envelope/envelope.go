// Package envelope reads and writes the arguments of invoke_capability, the tool
// through which a model or client calls any capability by its id. Everything that
// must know what such a call is about uses this package, so that rules, people,
// records and screens never disagree about it.
package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/jsonvalid"
	"ken/internal/untrusted"
)

// Schema is the JSON Schema of the arguments.
const Schema = `{"type":"object","properties":{"capability":{"type":"string"},"action":{"type":"string"},"arguments":{"type":"object"}},"required":["capability"]}`

// Fix tells a model how to write the arguments.
const Fix = `send {"capability": "<id>", "arguments": {…}}`

// An Envelope is what the arguments of invoke_capability hold.
type Envelope struct {
	Capability string          `json:"capability"` // an id, or a name under which it was shown
	Action     string          `json:"action,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
}

// Read reads the arguments of invoke_capability. Models also write the capability
// as "id" or "name", as other tools have it. Read returns an error if the
// capability is missing, is named more than once or is invoke_capability itself,
// and for keys that it does not know: a reader that skipped them could take the
// call for another one.
func Read(arguments []byte) (Envelope, error) {
	if e, plain := readPlain(arguments); plain {
		return e, nil
	}
	return readFully(arguments)
}

// readFully is Read for all arguments.
func readFully(arguments []byte) (Envelope, error) {
	var e Envelope
	if len(arguments) == 0 {
		return e, errors.New("missing capability")
	}
	if _, err := (capability.Call{Arguments: arguments}).Digest(); err != nil { // duplicate keys, and more than one value
		return e, errors.New("the arguments are not one plain JSON object")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &keys); err != nil {
		return e, errors.New("the arguments are not a JSON object")
	}
	named := 0
	for key, value := range keys {
		var err error
		switch key {
		case "capability", "id", "name":
			named++
			err = json.Unmarshal(value, &e.Capability)
		case "action":
			err = json.Unmarshal(value, &e.Action)
		case "arguments":
			e.Arguments = value
		default:
			return Envelope{}, fmt.Errorf("unknown key %.40q: arguments of the capability belong in \"arguments\"", key)
		}
		if err != nil {
			return Envelope{}, fmt.Errorf("%q is not text", key)
		}
	}
	switch {
	case named > 1:
		return Envelope{}, errors.New("the capability is named more than once")
	case e.Capability == "":
		return Envelope{}, errors.New("missing capability")
	case isInvoke(e.Capability):
		return Envelope{}, errors.New(capability.ToolInvoke + " cannot call itself")
	}
	return e, nil
}

// maxPlain is how deep arguments may be nested for readPlain.
const maxPlain = 100

// readPlain reads arguments in one pass if they are as nearly all are: valid, without
// escapes in what Ken reads, and with nothing wrong. It reports false for all others,
// which Read then judges. What it returns shares the memory of arguments.
func readPlain(arguments []byte) (e Envelope, plain bool) {
	if !utf8.Valid(arguments) || !jsonvalid.Within(arguments, maxPlain) {
		return e, false
	}
	if _, twice := untrusted.TwiceNamed(arguments, 0); twice {
		return e, false
	}
	for key, value := range untrusted.Members(arguments) {
		ok := true
		switch key {
		case "capability", "id", "name":
			if e.Capability != "" { // named twice
				return Envelope{}, false
			}
			e.Capability, ok = jsonvalid.Text(value)
			ok = ok && e.Capability != ""
		case "action":
			e.Action, ok = jsonvalid.Text(value)
		case "arguments":
			e.Arguments = value
		default:
			ok = false
		}
		if !ok {
			return Envelope{}, false
		}
	}
	if e.Capability == "" || isInvoke(e.Capability) {
		return Envelope{}, false
	}
	return e, true
}

// Write returns an envelope as the arguments of invoke_capability. Arguments that
// are not JSON are kept as text, so that they are refused and not lost.
func Write(e Envelope) []byte {
	if e.Arguments != nil && !json.Valid(e.Arguments) {
		e.Arguments, _ = json.Marshal(string(bytes.ToValidUTF8(e.Arguments, []byte("\uFFFD")))) // text always marshals
	}
	b, _ := json.Marshal(e) // so do texts and valid JSON
	return b
}

// Unwrap returns the call that a call of invoke_capability stands for, under the
// same principal, session and intent. It returns other calls unchanged. A call
// that cannot be read is returned with an error of kind [capability.Invalid].
func Unwrap(call capability.Call) (capability.Call, error) {
	if !isInvoke(string(call.Target)) {
		return call, nil
	}
	e, err := Read(call.Arguments)
	if err == nil && e.Action != "" && call.Action != "" && e.Action != call.Action {
		err = errors.New("two actions are named")
	}
	if err != nil {
		return call, &capability.Error{Kind: capability.Invalid, Op: "call", Target: capability.ToolInvoke, Err: err, Fix: Fix}
	}
	call.Target, call.Arguments, call.CapabilityHash = capability.ID(e.Capability), e.Arguments, ""
	if e.Action != "" {
		call.Action = e.Action
	}
	return call, nil
}

// isInvoke reports whether an id or name is that of invoke_capability.
func isInvoke(id string) bool {
	_, name, ok := strings.Cut(id, ":")
	return name == capability.ToolInvoke || !ok && id == capability.ToolInvoke
}
