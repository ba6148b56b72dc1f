package engine

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm"
)

// TestJudge: what an answer comes to depends on nothing but values, and judging
// it changes none of them.
func TestJudge(t *testing.T) {
	shown := func(text string) *strings.Builder {
		b := &strings.Builder{}
		b.WriteString(text)
		return b
	}
	said := []llm.Block{{Text: "Hello."}}
	calls := func() []llm.Block {
		return []llm.Block{{Call: &llm.ToolCall{ID: "c", Name: toolFinish, Arguments: []byte(`{}`)}}}
	}
	aborted, abort := context.WithCancel(t.Context())
	abort()
	for name, c := range map[string]struct {
		ctx  context.Context
		got  answer
		err  error
		want verdict // of it: end.reason, last, calls, next, and how many entries
		n    int
		fail bool
	}{
		"answer":        {got: answer{blocks: said, stop: llm.StopEnd}, want: verdict{end: ending{reason: event.EndAnswer}, last: true}, n: 1},
		"truncated":     {got: answer{blocks: said, stop: llm.StopLength, truncated: true}, want: verdict{end: ending{reason: event.EndLimit}, last: true}, n: 1},
		"calls":         {got: answer{blocks: calls(), stop: llm.StopCalls}, want: verdict{calls: true}, n: 1},
		"refused calls": {got: answer{blocks: calls(), stop: llm.StopRefuse}, want: verdict{calls: true, end: ending{reason: event.EndFailed}}, n: 2},
		"refused":       {got: answer{stop: llm.StopRefuse}, want: verdict{end: ending{reason: event.EndFailed}}, n: 1},
		"nothing":       {got: answer{stop: llm.StopEnd}, n: 2},
		"too long":      {err: &llm.Error{Kind: llm.TooLong}, want: verdict{next: makeRoom}, fail: true},
		"unsupported":   {err: &llm.Error{Kind: llm.Unsupported, Feature: string(model.Inline)}, want: verdict{next: deliverAgain}, n: 1},
		"cut":           {got: answer{any: true}, err: &llm.Error{Kind: llm.Cut}, n: 2},
		"aborted":       {ctx: aborted, got: answer{any: true}, err: context.Canceled, n: 1, fail: true},
		"no key":        {err: &llm.Error{Kind: llm.Auth}, fail: true},
	} {
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		c.got.shown = shown("")
		if c.got.any {
			c.got.shown = shown("Half")
		}
		p := progress{delivery: model.Inline, refused: map[model.DeliveryMode]bool{}, tally: tally{steps: 1}}
		s := setup{model: Model{Name: "m", Row: both}}
		v := judge(c.ctx, s, history{}, 1, p, c.got, c.err)
		if v.end.reason != c.want.end.reason || v.last != c.want.last || v.calls != c.want.calls || v.next != c.want.next || len(v.entries) != c.n || (v.err != nil) != c.fail {
			t.Errorf("%s: judge = %+v, want %+v with %d entries", name, v, c.want, c.n)
		}
		if before := (progress{delivery: model.Inline, refused: map[model.DeliveryMode]bool{}, tally: tally{steps: 1}}); !reflect.DeepEqual(p, before) {
			t.Errorf("%s: the progress before is %+v, want it unchanged", name, p)
		}
		for _, e := range v.entries {
			if e.Kind == session.Assistant && e.Usage == nil {
				t.Errorf("%s: the answer has no usage", name)
			}
		}
	}
}
