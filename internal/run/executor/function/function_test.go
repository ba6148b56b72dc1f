package function

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/testkit/executortest"
)

type addInput struct {
	A    int      `json:"a" jsonschema:"first number"`
	B    int      `json:"b,omitempty"`
	Text string   `json:"text,omitempty"`
	List []string `json:"list,omitempty"`
}

type addOutput struct {
	Sum  int    `json:"sum"`
	Text string `json:"text,omitempty"`
}

func add(_ context.Context, in addInput) (addOutput, error) {
	return addOutput{Sum: in.A + in.B, Text: in.Text}, nil
}

func must[In, Out any](t *testing.T, name string, f func(context.Context, In) (Out, error)) *Function {
	t.Helper()
	fn, err := Func(name, "does "+name, f)
	executortest.Must(t, err)
	return fn
}

func newExecutor(t *testing.T, functions ...*Function) *Executor {
	t.Helper()
	e, err := New(functions...)
	executortest.Must(t, err)
	return e
}

// TestChecklist is S5.54 for Go functions.
func TestChecklist(t *testing.T) {
	called := false
	e := newExecutor(t, must(t, "add", func(ctx context.Context, in addInput) (addOutput, error) { called = true; return add(ctx, in) }))
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			called = false
			for _, args := range []string{`{}`, `{"a":"1"}`, `{"a":1.5}`, `{"a":1,"c":2}`, `{"A":1}`, `{"a":1,"a":2}`, `[]`, `{"a":1,"list":[1]}`, `{"a":1} {}`, `{"a":99999999999999999999}`, `nul`} {
				executortest.Fails(t, e, executortest.Call("tool:add", args), capability.Invalid)
			}
			if called {
				t.Error("the function was called with bad arguments")
			}
			executortest.Refused(t, e, executortest.Call("tool:sub", `{}`), capability.NotFound, "function not found")
		},
		WorkDirBounds: func(t *testing.T) {
			// A function has no work directory. What it says of the files it
			// touches is what policy is told.
			f := must(t, "touch", add)
			f.Facts = func(context.Context, capability.Call) (executor.Facts, error) {
				return executor.Facts{Paths: []executor.Path{{Name: "x", Write: true}}}, nil
			}
			got, err := newExecutor(t, f).Facts(t.Context(), executortest.Call("tool:touch", `{"a":1}`), nil)
			if err != nil || !slices.Equal(got.Paths, []executor.Path{{Name: "x", Write: true}}) {
				t.Errorf("Facts = %+v, %v", got, err)
			}
		},
		EnvFilter: executortest.None("it reads no variables"),
		Timeout: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				deaf := must(t, "deaf", func(context.Context, addInput) (string, error) { <-release; return "late", nil })
				deaf.Timeout = time.Minute
				begun := time.Now()
				_, err := newExecutor(t, deaf).Invoke(t.Context(), executortest.Call("tool:deaf", `{"a":1}`))
				if capability.KindOf(err) != capability.Timeout || time.Since(begun) != time.Minute {
					t.Errorf("a function that does not listen: %v after %v, want timeout after a minute", err, time.Since(begun))
				}
				close(release) // and it can still end
			})
			heard := must(t, "heard", func(ctx context.Context, _ addInput) (string, error) { <-ctx.Done(); return "", ctx.Err() })
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := newExecutor(t, heard).Invoke(ctx, executortest.Call("tool:heard", `{"a":1}`)); capability.KindOf(err) != capability.Unavailable {
				t.Errorf("a cancelled call: %v, want unavailable", err)
			}
		},
		OutputLimit: func(t *testing.T) {
			f := must(t, "long", func(_ context.Context, in addInput) (string, error) { return strings.Repeat("x", in.A), nil })
			f.MaxOutput = 1000
			e := newExecutor(t, f)
			if r, err := e.Invoke(t.Context(), executortest.Call("tool:long", `{"a":1000}`)); err != nil || r.Failed || len(r.Parts[0].Text) != 1000 || r.Meta["truncated"] != "false" {
				t.Errorf("a result that fits: %+v, %v", r.Meta, err)
			}
			r, err := e.Invoke(t.Context(), executortest.Call("tool:long", `{"a":1001}`))
			if err != nil || !r.Failed || r.Meta["truncated"] != "true" || !strings.Contains(executortest.Text(r, ""), "1001 bytes") {
				t.Errorf("a result that does not fit: %+v, %v", r, err)
			}
		},
		Log: func(t *testing.T) {
			r, err := e.Invoke(t.Context(), executortest.Call("tool:add", `{"a":1}`))
			if err != nil || r.Meta["tool"] != "add" || r.Meta["duration_ms"] == "" || r.Meta["end"] != "returned" || !strings.Contains(r.Meta["isolation"], "in-process") {
				t.Errorf("Meta = %v, %v", r.Meta, err)
			}
		},
		SecureErrors: func(t *testing.T) {
			boom := must(t, "boom", func(_ context.Context, in addInput) (string, error) { panic("hunter2secret " + in.Text) })
			_, err := newExecutor(t, boom).Invoke(t.Context(), executortest.Call("tool:boom", `{"a":1,"text":"private"}`))
			if capability.KindOf(err) != capability.Internal || strings.Contains(err.Error(), "hunter2secret") || strings.Contains(err.Error(), "private") || !strings.Contains(err.Error(), "function.") {
				t.Errorf("a panic gave %v, want the place and not the value", err)
			}
			_, err = e.Invoke(t.Context(), executortest.Call("tool:add", `{"a":"hunter2secret"}`))
			if err == nil || strings.Contains(err.Error(), "hunter2secret") {
				t.Errorf("a bad argument gave %v, want an error without it", err)
			}
		},
		MaliciousInputs: func(t *testing.T) {
			deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
			for _, args := range []string{`{"a":` + deep + `}`, "{\"a\":1,\"text\":\"\xff\"}", `{"a":1,"text":"` + strings.Repeat("x", 17<<20) + `"}`, `{"__proto__":{},"a":1}`, "{\"a\":1e400}"} {
				executortest.Fails(t, e, executortest.Call("tool:add", args), capability.Invalid)
			}
		},
		PermissionReview: func(t *testing.T) {
			f := must(t, "wipe", add)
			f.Capability.Permissions, f.Capability.Effects.Destructive = []string{"filesystem.write"}, capability.Yes
			got, err := newExecutor(t, f).Facts(t.Context(), executortest.Call("tool:wipe", `{"a":1}`), nil)
			if err != nil || !slices.Equal(got.Required, []string{"filesystem.write"}) || !got.Destructive {
				t.Errorf("Facts = %+v, %v, want its permission and that it destroys", got, err)
			}
		},
	}.Run(t)
}

func TestFunc(t *testing.T) {
	e := newExecutor(t, must(t, "b", add), must(t, "a", add))
	tools := e.Tools()
	if len(tools) != 2 || tools[0].Capability.ID != "tool:a" || !strings.Contains(string(tools[0].Detail.Schema), `"first number"`) || tools[0].Capability.Run.Runner != "function.a" {
		t.Errorf("Tools() = %+v", tools)
	}
	if r, err := e.Invoke(t.Context(), executortest.Call("tool:a", `{"a":2,"b":3}`)); err != nil || string(r.Parts[0].JSON) != `{"sum":5}` {
		t.Errorf("Invoke = %+v, %v, want 5", r, err)
	}
	if _, err := New(must(t, "a", add), must(t, "a", add)); err == nil {
		t.Error("New with one id twice = nil, want an error")
	}
	if _, err := Func("n", "", func(context.Context, int) (int, error) { return 0, nil }); err == nil {
		t.Error("Func of an int = nil, want an error")
	}
	if _, err := New(&Function{}); err == nil {
		t.Error("New with an empty function = nil, want an error")
	}
}

// TestEnds: an error is a failed result, one of Ken's own is passed on, and a
// function that ends its goroutine is no hang.
func TestEnds(t *testing.T) {
	own := &capability.Error{Kind: capability.Unavailable, Op: "reach", Target: "it"}
	e := newExecutor(t,
		must(t, "fails", func(context.Context, addInput) (string, error) { return "", errors.New("no such record") }),
		must(t, "own", func(context.Context, addInput) (string, error) { return "", own }),
		must(t, "exits", func(context.Context, addInput) (string, error) { runtime.Goexit(); return "", nil }),
		must(t, "result", func(context.Context, addInput) (capability.Result, error) {
			return capability.Result{Failed: true, Parts: []capability.Part{{Link: "x"}}, Meta: map[string]string{"k": "v"}}, nil
		}),
		must(t, "unwritable", func(context.Context, addInput) (func(), error) { return func() {}, nil }),
	)
	call := func(name string) (capability.Result, error) {
		return e.Invoke(t.Context(), executortest.Call("tool:"+name, `{"a":1}`))
	}
	if r, err := call("fails"); err != nil || !r.Failed || executortest.Text(r, "") != "no such record" {
		t.Errorf("an error gave %+v, %v", r, err)
	}
	if _, err := call("own"); !errors.Is(err, own) {
		t.Errorf("an error of Ken's gave %v", err)
	}
	if _, err := call("exits"); capability.KindOf(err) != capability.Internal || err == nil {
		t.Errorf("Goexit gave %v, want internal", err)
	}
	if r, err := call("result"); err != nil || !r.Failed || r.Parts[0].Link != "x" || r.Meta["k"] != "v" {
		t.Errorf("a result gave %+v, %v", r, err)
	}
	if r, err := call("unwritable"); err != nil || !r.Failed {
		t.Errorf("a result that is no JSON gave %+v, %v", r, err)
	}
}

// TestGivesUp: a function that ends because it was told to has not failed on
// its own, whichever of the two is seen first.
func TestGivesUp(t *testing.T) {
	begun := make(chan struct{}, 1)
	e := newExecutor(t, must(t, "waits", func(ctx context.Context, _ addInput) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}))
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		if r, err := e.Invoke(ctx, executortest.Call("tool:waits", `{"a":1}`)); capability.KindOf(err) != capability.Unavailable || err == nil {
			t.Fatalf("a call that was cancelled gave %+v, %v, want unavailable", r, err)
		}
	}
}

// TestCheck: arguments that fit the schema and not the type are known
// beforehand, and the function is not called for it.
func TestCheck(t *testing.T) {
	called := 0
	e := newExecutor(t, must(t, "add", func(ctx context.Context, in addInput) (addOutput, error) { called++; return add(ctx, in) }))
	executortest.Doomed(t, e, executortest.Call("tool:add", `{"a":99999999999999999999}`), "not of its type")
	executortest.Unhindered(t, e, executortest.Call("tool:add", `{"a":1}`))
	if called != 0 {
		t.Errorf("the function was called %d times, want never", called)
	}
}
