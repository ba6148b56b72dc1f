package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"ken/capability"
)

// InvokeSchema is the JSON Schema of invoke_capability, the tool through which
// a model calls what it found.
const InvokeSchema = `{"type":"object","properties":{` +
	`"capability":{"type":"string","description":"Id of the capability, as found"},` +
	`"action":{"type":"string","description":"Action, where the capability has several"},` +
	`"arguments":{"type":"object","description":"Arguments of the capability"}},` +
	`"required":["capability"],"additionalProperties":false}`

const invokeName = "invoke_capability"

// Unwrap turns a call of invoke_capability into the call that it stands for,
// under the same principal, session and intent, so that rules, people and
// records see only the real one. Other calls stay as they are. An envelope that
// cannot be read, or holds another, is refused. What it calls may also be under
// "id" or "name", as models have it from other tools.
func Unwrap(call capability.Call) (capability.Call, error) {
	if !isInvoke(call.Target) {
		return call, nil
	}
	bad := func(text string) error {
		return &capability.Error{
			Kind: capability.Invalid, Op: "call", Target: invokeName, Err: errors.New(text),
			Fix: `send {"capability": "<id>", "arguments": {…}}`,
		}
	}
	var in struct {
		Capability capability.ID   `json:"capability"`
		ID         capability.ID   `json:"id"`
		Name       capability.ID   `json:"name"`
		Action     string          `json:"action"`
		Arguments  json.RawMessage `json:"arguments"`
	}
	if len(call.Arguments) == 0 {
		return call, bad("it names no capability")
	}
	// Two readers must not disagree about what an envelope holds.
	if _, err := call.Digest(); err != nil {
		return call, bad("the arguments are not one plain JSON object")
	}
	named := 0
	var keys map[string]json.RawMessage
	if json.Unmarshal(call.Arguments, &keys) == nil {
		for key := range keys { // a decoder would take Capability for capability
			switch key {
			case "capability", "id", "name":
				named++
			case "action", "arguments":
			default:
				return call, bad("the arguments are not those of " + invokeName)
			}
		}
	}
	dec := json.NewDecoder(bytes.NewReader(call.Arguments))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return call, bad("the arguments are not those of " + invokeName)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return call, bad("text follows the arguments")
	}
	target := cmp.Or(in.Capability, in.ID, in.Name)
	switch {
	case target == "":
		return call, bad("it names no capability")
	case named > 1:
		return call, bad("it names the capability more than once")
	case isInvoke(target):
		return call, bad("it calls itself")
	case in.Action != "" && call.Action != "" && in.Action != call.Action:
		return call, bad("it names two actions")
	}
	call.Target, call.Arguments, call.CapabilityHash = target, in.Arguments, ""
	if in.Action != "" {
		call.Action = in.Action
	}
	return call, nil
}

func isInvoke(id capability.ID) bool {
	_, name, ok := strings.Cut(string(id), ":")
	return name == invokeName || !ok && string(id) == invokeName
}
