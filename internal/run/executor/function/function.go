// Package function makes typed Go functions capabilities: [Func] derives the
// schema from the types, and an [Executor] calls the function that a call
// names.
//
// A function is part of the program and runs in it, with all its rights; what
// it is given is checked, what it returns is bounded, and a panic in it is an
// error of that call alone. Its arguments are exactly those that were decided
// on: nothing is expanded, and a key that the schema does not have is refused.
package function

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/run/executor"
)

// A Function is a Go function as a capability. Its fields may be set until it
// is given to [New].
type Function struct {
	// Capability describes it. ID, Kind, Name and Description are set.
	Capability capability.Capability

	// Schema is the JSON Schema of the input.
	Schema json.RawMessage

	// Timeout is the most that a call may take. Zero: 300 s.
	Timeout time.Duration

	// MaxOutput bounds the result in bytes. Zero: 1 MiB. A longer result is
	// reported as a failure, since half a JSON value is none.
	MaxOutput int

	// Facts, when not nil, says what a call comes to.
	Facts func(ctx context.Context, call capability.Call) (executor.Facts, error)

	resolved *jsonschema.Resolved
	fits     func(arguments json.RawMessage) error
	call     func(ctx context.Context, arguments json.RawMessage) (capability.Result, error)
}

const (
	timeoutDefault = 300 * time.Second
	outputDefault  = 1 << 20
)

// Func makes a capability of a function. In is a struct; its JSON names and
// `jsonschema` tags make the schema. Out is a string, which becomes text, a
// [capability.Result], which is passed on, or anything that JSON can hold. An
// error that f returns is a failed result, or, when it is a
// [*capability.Error], the error of the call.
//
// f must return soon after its context ends. One that does not is left behind:
// the call is over for everybody else.
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) (*Function, error) {
	if f == nil || name == "" {
		return nil, fmt.Errorf("function %q: missing name or function", name)
	}
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("function %s: schema of its input: %w", name, err)
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("function %s: the input is %T, want a struct", name, *new(In))
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("function %s: schema of its input: %w", name, err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("function %s: schema of its input: %w", name, err)
	}
	return &Function{
		Capability: capability.Capability{
			ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Description: description,
			Run: &capability.Recipe{Runner: "function." + name},
		},
		Schema: raw, resolved: resolved,
		fits: func(arguments json.RawMessage) error { _, err := decode[In](arguments); return err },
		call: func(ctx context.Context, arguments json.RawMessage) (capability.Result, error) {
			in, err := decode[In](arguments)
			if err != nil {
				return capability.Result{}, err
			}
			out, err := f(ctx, in)
			if err != nil {
				return capability.Result{}, err
			}
			return resultOf(out)
		},
	}, nil
}

func decode[In any](arguments json.RawMessage) (in In, err error) {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return in, &mismatch{err}
	}
	return in, nil
}

// A mismatch is an argument that the schema allows and the type does not.
type mismatch struct{ err error }

func (m *mismatch) Error() string { return m.err.Error() }

func resultOf(out any) (capability.Result, error) {
	switch out := out.(type) {
	case capability.Result:
		return out, nil
	case string:
		return capability.Result{Parts: []capability.Part{{Text: out}}}, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return capability.Result{}, fmt.Errorf("result cannot be written as JSON: %w", err)
	}
	return capability.Result{Parts: []capability.Part{{JSON: raw, MIME: "application/json"}}}, nil
}

// An Executor calls functions. It is safe for concurrent use.
type Executor struct {
	functions map[capability.ID]*Function
}

// New takes the functions of a program; two of one id are refused.
func New(functions ...*Function) (*Executor, error) {
	e := &Executor{functions: make(map[capability.ID]*Function, len(functions))}
	for _, f := range functions {
		if f == nil || f.call == nil {
			return nil, errors.New("function executor: a function was not made by Func")
		}
		kept := *f
		kept.Capability.ID = capability.ID(norm.NFC.String(string(f.Capability.ID))) // as the catalog has it
		if _, twice := e.functions[kept.Capability.ID]; twice {
			return nil, fmt.Errorf("function executor: duplicate name %s; rename one", f.Capability.ID)
		}
		e.functions[kept.Capability.ID] = &kept
	}
	return e, nil
}

// Tools returns the capabilities of all functions, by id.
func (e *Executor) Tools() []executor.Tool {
	var out []executor.Tool
	for _, f := range e.functions {
		out = append(out, executor.Tool{Capability: f.Capability, Detail: capability.Detail{Schema: slices.Clone(f.Schema)}})
	}
	coldsort.By(out, func(a, b executor.Tool) int {
		if a.Capability.ID < b.Capability.ID {
			return -1
		}
		return 1
	})
	return out
}

// Facts checks the arguments and gives what the function itself says of them,
// with the permissions that it declares.
func (e *Executor) Facts(ctx context.Context, call capability.Call, _ *capability.Capability) (executor.Facts, error) {
	f, _, err := e.find(call)
	if err != nil {
		return executor.Facts{}, err
	}
	var facts executor.Facts
	if f.Facts != nil {
		if facts, err = f.Facts(ctx, call); err != nil {
			return executor.Facts{}, err
		}
	}
	facts.Required = append(slices.Clone(facts.Required), f.Capability.Permissions...)
	facts.Destructive = facts.Destructive || f.Capability.Effects.Destructive == capability.Yes
	return facts, nil
}

func (e *Executor) find(call capability.Call) (*Function, json.RawMessage, error) {
	f, ok := e.functions[call.Target]
	if !ok {
		return nil, nil, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(call.Target), Err: errors.New("function not found")}
	}
	raw := call.Arguments
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := executor.Unique(raw); err != nil {
		return nil, nil, executor.BadArguments(call, err, "")
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, nil, executor.BadArguments(call, errors.New("the arguments are not JSON"), "")
	}
	if err := f.resolved.Validate(value); err != nil {
		// The validator's words repeat the values.
		return nil, nil, executor.BadArguments(call, errors.New("the arguments do not match the schema"), "describe_capability shows the schema")
	}
	return f, raw, nil
}

var _ executor.Checker = (*Executor)(nil)

// Check says whether the arguments fit the function's type, which can want more
// than its schema says. What the function makes of them only it knows.
func (e *Executor) Check(_ context.Context, call capability.Call) (capability.Result, error) {
	f, raw, err := e.find(call)
	if err != nil {
		return capability.Result{}, err
	}
	if f.fits(raw) != nil {
		return capability.Result{}, notOfType(call)
	}
	return capability.Result{}, nil
}

func notOfType(call capability.Call) error {
	return executor.BadArguments(call, errors.New("a value is not of its type"), "describe_capability shows the schema")
}

// Invoke calls the function.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	f, raw, err := e.find(call)
	if err != nil {
		return capability.Result{}, err
	}
	limit := f.Timeout
	if limit <= 0 {
		limit = timeoutDefault
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return capability.Result{}, stopped(call, err)
	}
	begun := time.Now()
	done := make(chan answer, 1) // so that one left behind can still end
	go f.guarded(ctx, raw, done)
	select {
	case <-ctx.Done():
		select {
		case a := <-done: // it ended as well: what it did is the truth
			return f.settle(ctx, call, a, time.Since(begun))
		default:
			return capability.Result{}, stopped(call, ctx.Err())
		}
	case a := <-done:
		return f.settle(ctx, call, a, time.Since(begun))
	}
}

func stopped(call capability.Call, err error) error {
	kind, cause := capability.Unavailable, errors.New("cancelled")
	if errors.Is(err, context.DeadlineExceeded) {
		kind, cause = capability.Timeout, errors.New("took longer than allowed")
	}
	return &capability.Error{Kind: kind, Op: "call", Target: string(call.Target), Err: cause}
}

// An answer is how a function ended.
type answer struct {
	result   capability.Result
	err      error
	panicked string // where, without the value: it may be anything
}

// guarded calls the function, catches whatever it throws, and answers even
// when the function ends its goroutine.
func (f *Function) guarded(ctx context.Context, raw json.RawMessage, done chan<- answer) {
	var a answer
	returned := false
	defer func() {
		if v := recover(); v != nil || !returned {
			a = answer{panicked: origin(debug.Stack())}
		}
		done <- a
	}()
	a.result, a.err = f.call(ctx, raw)
	returned = true
}

// origin returns the place of a panic: the first frame after the runtime's own.
func origin(stack []byte) string {
	lines := bytes.Split(stack, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("panic(")) && i+2 < len(lines) {
			name, _, _ := bytes.Cut(lines[i+2], []byte("("))
			return string(name)
		}
	}
	return "its own goroutine"
}

func (f *Function) settle(ctx context.Context, call capability.Call, a answer, took time.Duration) (capability.Result, error) {
	if a.panicked != "" {
		return capability.Result{}, &capability.Error{Kind: capability.Internal, Op: "call", Target: string(call.Target), Err: fmt.Errorf("panicked in %s", a.panicked), Fix: "this is a defect of the function"}
	}
	r := a.result
	if a.err != nil {
		if end := ctx.Err(); end != nil && errors.Is(a.err, end) {
			return capability.Result{}, stopped(call, end) // it gave up because it was told to
		}
		if _, own := errors.AsType[*capability.Error](a.err); own {
			return capability.Result{}, a.err
		}
		if _, bad := errors.AsType[*mismatch](a.err); bad {
			return capability.Result{}, notOfType(call)
		}
		r = capability.Result{Failed: true, Parts: []capability.Part{{Text: executor.Clip(a.err.Error(), 4000)}}}
	}
	most := f.MaxOutput
	if most <= 0 {
		most = outputDefault
	}
	if n := size(r); n > most {
		r = capability.Result{Failed: true, Parts: []capability.Part{{Text: fmt.Sprintf("the function ran, but its result of %d bytes exceeds the limit of %d; ask for less", n, most)}},
			Meta: map[string]string{"truncated": "true"}}
	}
	meta := map[string]string{"truncated": "false", "end": "returned"}
	for k, v := range r.Meta {
		meta[k] = v
	}
	meta["tool"], meta["duration_ms"] = f.Capability.Name, fmt.Sprint(took.Milliseconds())
	meta["isolation"] = `{"profile":"in-process"}`
	r.Meta = meta
	return r, nil
}

func size(r capability.Result) int {
	n := 0
	for _, p := range r.Parts {
		n += len(p.Text) + len(p.JSON) + len(p.Data) + len(p.Link)
	}
	return n
}
