package llmtest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"ken/llm"
)

func TestFake(t *testing.T) {
	call := llm.ToolCall{ID: "c1", Name: "f", Arguments: []byte(`{not json`)}
	fake := &Fake{Script: Replies(Reply{Thought: "hm", Text: "some text", Calls: []llm.ToolCall{call}, Fragments: 2}, Reply{Text: "x", Want: []string{"nowhere"}})}
	a := gather(t.Context(), fake, hello())
	if err := a.fine(nil); err != nil {
		t.Fatal(err)
	}
	if a.text != "some text" || a.thought != "hm" || a.stop != llm.StopCalls || a.usage != (llm.Usage{Input: 10, Output: 5}) {
		t.Errorf("Generate() = %+v", a)
	}
	want := []llm.Block{
		{Reasoning: &llm.Reasoning{Text: "hm", Wire: FakeWire, Opaque: a.blocks[0].Reasoning.Opaque}}, {Text: "some text"}, {Call: &call},
	}
	if !reflect.DeepEqual(a.blocks, want) {
		t.Errorf("blocks = %s, want %s", show(a.blocks), show(want))
	}
	if a := gather(t.Context(), fake, hello()); llm.KindOf(a.err) != llm.Overloaded {
		t.Errorf("a want that is not met = %v, want a server error", a.err)
	}
	if seen := fake.Requests(); len(seen) != 2 || seen[1].Number != 2 || !reflect.DeepEqual(seen[0].Request, hello()) {
		t.Errorf("Requests() = %+v", seen)
	}
	if a := gather(t.Context(), &Fake{}, hello()); a.fine(nil) != nil || a.stop != llm.StopEnd {
		t.Errorf("the zero Fake = %+v, want an empty answer", a)
	}
}

func TestFakeFaults(t *testing.T) {
	for _, f := range Faults() {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a := gather(ctx, &Fake{Script: Always(Reply{Fault: f, RetryAfter: time.Second})}, hello())
			kind, ok := kindOf(f)
			switch {
			case f == Hang:
				if !errors.Is(a.err, context.DeadlineExceeded) {
					t.Errorf("%s: error %v, want %v", f, a.err, context.DeadlineExceeded)
				}
			case !ok || llm.KindOf(a.err) != kind || a.broken != nil:
				t.Errorf("%s: error %v (%v), want one of kind %v", f, a.err, a.broken, kind)
			case (kind == llm.Cut) != (a.text != ""):
				t.Errorf("%s: text %q before the error", f, a.text)
			}
		})
	}
}

func TestFakeHold(t *testing.T) {
	hold := make(chan struct{})
	fake := &Fake{Script: Always(Reply{Text: "one two three", Hold: hold})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for c, err := range fake.Generate(ctx, hello()) {
		if c.Text != "" {
			cancel()
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("Generate() with a context that ended = %v, want %v", last, context.Canceled)
	}
	open := true
	for c := range fake.Generate(t.Context(), hello()) {
		if c.Text != "" && open {
			open = false
			close(hold)
		}
	}
}
