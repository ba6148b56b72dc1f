package capability

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
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

	// Code is the digest of the files whose bytes decide what the call does: the
	// program that it starts and the scripts that it names. The runner sets it
	// before the call is decided on, whatever it was; an executor refuses to run
	// anything else. A call whose effect depends on something else too, such as
	// the page that is open in a browser, has a digest of that here. Empty: the
	// call depends on its arguments alone.
	Code string `json:"code,omitempty"`

	// Surface says where the call came in ("chat", "run", "mcp", …), and Key is
	// the caller's own name for it: under one key a call has its effect once,
	// however often it is made. Only a surface sets them; neither is part of
	// the digest.
	Surface string `json:"-"`
	Key     string `json:"-"`

	// Structured asks for the structured part of the result (the last one, JSON
	// of the type application/json) as it is, however long: the caller
	// checks it against a schema. Without it that part is cut like a text. Only
	// a surface sets it, and it is not part of the digest.
	Structured bool `json:"-"`

	// Arrived is when the call came in. The rules that decide on it may have been
	// read at any time since; zero: they are read again. Only a surface sets it, and
	// it is not part of the digest.
	Arrived time.Time `json:"-"`

	// Meta is a JSON object that a client sent for the server of the capability,
	// beside the arguments; trace context is in it. Models do not write it. Only a
	// surface sets it, and it is not part of the digest.
	Meta json.RawMessage `json:"-"`

	// Answers carry a person's replies to what an earlier try asked, by the
	// question's name, and State is what that [Inquiry] wants back. They are
	// not part of the digest.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	State   string                     `json:"state,omitempty"`

	// Live, when not nil, takes output and progress as they come. The result
	// holds everything that was written to it, or a handle to it. One that is
	// also a [Streams] is given standard error apart, one that is a [Reporter]
	// how far the call has come.
	Live io.Writer `json:"-"`
}

// An Inquiry is the cause of an [InputNeeded] error: what the capability itself
// wants to know before it goes on. The call is made again with an answer to
// each request in Call.Answers, and with State in Call.State.
type Inquiry struct {
	// Requests are what is asked, by name, in the words of the protocol of
	// tools: {"method": "elicitation/create", "params": {…}}. They came from
	// outside.
	Requests map[string]json.RawMessage `json:"requests"`
	State    string                     `json:"state,omitempty"`
}

func (q *Inquiry) Error() string {
	return fmt.Sprintf("it asks %d more before it goes on", len(q.Requests))
}

// A Reporter takes what a call says while it runs, besides its output. Its
// methods are called from one goroutine at a time and never after the call.
type Reporter interface {
	// Progress says how far it is. A total of zero is unknown.
	Progress(done, total float64, message string)

	// Note passes on a line for a log: its level and who says it are
	// the capability's own words, data is JSON.
	Note(level, logger string, data json.RawMessage)
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
	ByApp    Caller = "app"    // a page of an MCP server (MCP Apps); rules about models apply to it
)

// Digest identifies what will happen: equal digests mean the same target,
// action, arguments (whatever their spelling), principal, session, intent,
// mode, capability text and code. Consent is bound to it.
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
	if c.Code != "" {
		field(c.Code)
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

// A Part is one piece of a result: text, JSON, data or a link. A link beside
// one of the others says where that is from.
type Part struct {
	Text string          `json:"text,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`
	Data []byte          `json:"data,omitempty"` // image, audio or a file, by MIME
	Link string          `json:"link,omitempty"`
	MIME string          `json:"mime,omitempty"`

	// Extra is what its maker said of it besides, a JSON object in the maker's
	// own words ("annotations", "name", "_meta").
	Extra json.RawMessage `json:"extra,omitempty"`
}
