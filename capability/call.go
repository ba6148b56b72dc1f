package capability

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// An Invoker carries out a call. It is the only verb: everything between a
// request and its effect has this shape and wraps the next.
//
// Invoke returns an *[Error] when Ken could not or would not make the call,
// and a Result with Failed set when the call was made and the capability
// itself reported failure. Nothing below waits for a person: a call that needs
// an answer fails with [Unapproved] or [InputNeeded] and is made again with
// Call.Answers.
type Invoker interface {
	Invoke(ctx context.Context, call Call) (Result, error)
}

// InvokerFunc makes a function an Invoker.
type InvokerFunc func(ctx context.Context, call Call) (Result, error)

// Invoke calls f.
func (f InvokerFunc) Invoke(ctx context.Context, call Call) (Result, error) { return f(ctx, call) }

// A Call asks for one capability to be used. It is plain data; a wrapper that
// wants a different call makes a copy.
type Call struct {
	Target    ID              `json:"target"`
	Action    string          `json:"action,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // a JSON object
	Principal Principal       `json:"principal"`
	Session   string          `json:"session,omitempty"`
	Intent    string          `json:"intent,omitempty"`
	Mode      string          `json:"mode,omitempty"`
	Origin    Caller          `json:"origin"`

	// CapabilityHash is [Capability.Hash] of the target as it was decided on.
	CapabilityHash string `json:"capabilityHash,omitempty"`

	// Surface says where the call came in ("chat", "run", "mcp", …), and Key is
	// the caller's own name for it: under one key a call has its effect once,
	// however often it is made. Only a surface sets them; neither is part of
	// the digest.
	Surface string `json:"-"`
	Key     string `json:"-"`

	// Answers carry a person's replies to what an earlier try asked, by the
	// question's name. They are not part of the digest.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`

	// Live, when not nil, takes output and progress as they come. The result
	// holds everything that was written to it, or a handle to it. One that is
	// also a [Streams] is given standard error apart.
	Live io.Writer `json:"-"`
}

// Streams takes the output of a program with standard error apart: Write is
// given standard output.
type Streams interface {
	io.Writer
	Stderr() io.Writer
}

// A Caller says whose authority a call is made under. The zero value is the
// model's, which has the least.
type Caller string

const (
	ByModel  Caller = ""       // a model's tool call
	ByPerson Caller = "person" // a slash command, a click, "ken run"
)

// Digest identifies what will happen: equal digests mean the same target,
// action, arguments (whatever their spelling), principal, session, intent,
// mode and capability text. Consent is bound to it.
func (c Call) Digest() (string, error) {
	var room [512]byte
	args, err := canonical(room[:0], c.Arguments)
	if err != nil {
		return "", fmt.Errorf("digest of call to %s: arguments: %w", c.Target, err)
	}
	var more [768]byte
	b := more[:0]
	field := func(s string) {
		// The length before each field keeps neighbours apart.
		b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
		b = append(b, s...)
	}
	field("ken.call.v1")
	field(string(c.Target))
	field(c.Action)
	b = append(strconv.AppendInt(b, int64(len(args)), 10), ':')
	b = append(b, args...)
	for _, s := range [...]string{c.Principal.Tenant, c.Principal.ID, c.Session, c.Intent, c.Mode, c.CapabilityHash} {
		field(s)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// A Result is what a call gave back.
type Result struct {
	Parts []Part `json:"parts,omitempty"`

	// Failed means that the capability ran and reported failure.
	Failed bool `json:"failed,omitempty"`

	// Handle, when set, names the whole result in the result store; Parts
	// then hold an excerpt.
	Handle string            `json:"handle,omitempty"`
	Meta   map[string]string `json:"meta,omitempty"`
}

// A Part is one piece of a result. Exactly one of its fields besides MIME is
// set.
type Part struct {
	Text string          `json:"text,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`
	Data []byte          `json:"data,omitempty"` // image or audio, by MIME
	Link string          `json:"link,omitempty"`
	MIME string          `json:"mime,omitempty"`
}
