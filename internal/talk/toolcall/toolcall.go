// Package toolcall reads the calls that models write. Models are sloppy: they
// write arguments that are almost JSON, give two calls one id, and call tools
// that were not declared. This package is the one place that knows how such a
// call is meant. All functions are pure.
package toolcall

import (
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/envelope"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// A Call is what a model's call is about, without the envelope of
// invoke_capability.
type Call struct {
	Own       string // one of Ken's own tools; empty: the call is of Target
	Target    capability.ID
	Action    string
	Arguments json.RawMessage
	Note      string // how the arguments were read, if they were repaired

	// Repaired is the note about the arguments that the model wrote, also if
	// those in an envelope were repaired too.
	Repaired string
}

// Read returns what a call is about. The function resolve returns the
// capability that was shown to the model under a name. Whole reports whether
// the answer with the call came to its own end. An error is for the model; it
// is a [capability.Error] of the kind Invalid. The notes count with it too.
func Read(c *llm.ToolCall, whole bool, resolve func(name string) (session.Offer, bool)) (Call, error) {
	args, note, err := Arguments(c.Arguments, whole)
	if err != nil {
		return Call{}, invalid(c.Name, err, fixArguments)
	}
	call := Call{Target: capability.ID(c.Name), Arguments: args, Note: note, Repaired: note}
	switch {
	case c.Name == capability.ToolInvoke:
		return unwrap(call, whole, resolve)
	case capability.IsOwnTool(c.Name) && c.Name != capability.ToolRead:
		call.Own, call.Target = c.Name, ""
		return call, nil
	}
	if o, ok := resolve(c.Name); ok {
		call.Target, call.Action = o.ID, o.Action
	}
	return call, nil
}

// unwrap reads the envelope that call.Arguments are.
func unwrap(call Call, whole bool, resolve func(string) (session.Offer, bool)) (Call, error) {
	in, err := envelope.Read(call.Arguments)
	if err != nil {
		return call, invalid(capability.ToolInvoke, err, envelope.Fix)
	}
	target := in.Capability
	if o, ok := resolve(target); ok { // the name under which it was shown
		target = string(o.ID)
		if o.Action != "" {
			in.Action = o.Action
		}
	}
	args, note, err := Arguments(in.Arguments, whole)
	if err != nil {
		return call, invalid(target, err, fixArguments)
	}
	if note != "" {
		call.Note = note
	}
	call.Arguments = args
	if name := strings.TrimPrefix(in.Capability, "tool:"); capability.IsOwnTool(name) && name != capability.ToolRead {
		call.Own, call.Target = name, ""
		return call, nil
	}
	call.Target, call.Action = capability.ID(target), in.Action
	return call, nil
}

const fixArguments = "send the arguments as one JSON object"

func invalid(target string, err error, fix string) error {
	return &capability.Error{Kind: capability.Invalid, Op: "call", Target: untrusted.Line(target, 80), Err: err, Fix: fix}
}

// An Answer is what Name must know about the answer that calls belong to.
type Answer struct {
	Turn     int             // its number
	Before   int             // calls of the turn before the answer
	Whole    bool            // the answer came to its own end
	Declared map[string]bool // the tools that the request declared
	Used     map[string]bool // ids of calls that the model has before it
}

// mostName is how many bytes of a tool's name are kept. No tool has a longer one,
// and the name is sent again with every request.
const mostName = 512

// Name sets a unique id for each call and a name that the provider accepts in
// the next request. Some servers begin to number the calls of each answer again;
// providers refuse a conversation in which two calls have one id. A call of a tool that was not declared becomes a call of
// invoke_capability. If that tool was not declared either, because the request
// declares everything, the call keeps its name if the name is valid.
func Name(calls []*llm.ToolCall, a Answer) {
	taken := map[string]bool{} // also by a call that comes later
	for _, c := range calls {
		taken[c.ID] = true
	}
	seen := map[string]bool{}
	for i, c := range calls {
		if !plainID(c.ID) || seen[c.ID] || a.Used[c.ID] {
			for c.ID = fmt.Sprintf("call_%d_%d", a.Turn, a.Before+i+1); taken[c.ID] || a.Used[c.ID]; {
				c.ID += "x"
			}
			taken[c.ID] = true
		}
		seen[c.ID] = true
		if len(c.Name) > mostName {
			c.Name = strings.ToValidUTF8(c.Name[:mostName], "")
		}
		if a.Declared[c.Name] || capability.IsOwnTool(c.Name) || !a.Declared[capability.ToolInvoke] && plainID(c.Name) {
			continue
		}
		c.Arguments = wrap(c, a.Whole)
		c.Name = capability.ToolInvoke
	}
}

// wrap returns a call as the arguments of invoke_capability.
func wrap(c *llm.ToolCall, whole bool) []byte {
	in := envelope.Envelope{Capability: c.Name, Arguments: c.Arguments}
	if args, _, err := Arguments(c.Arguments, whole); err == nil {
		in.Arguments = args
	}
	return envelope.Write(in)
}

// plainID reports whether every provider accepts an id as it is.
func plainID(id string) bool {
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return id != "" && len(id) <= 64
}
