package billtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/talk/deliver"
	"ken/internal/talk/engine"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
	"ken/llm"
	"ken/llm/llmtest"
)

// A pair plays a conversation twice: by the replay, and by the real engine whose
// model answers as the replay's does.
type pair struct {
	t      *testing.T
	world  *world
	player *player
	engine *engine.Engine
	row    model.Row

	sessions *session.Store

	number  int
	now     turn
	system  string
	want    []llm.Request // of the replay, that the engine has not made
	answers [][]llm.Block
	results []string
}

func newPair(t *testing.T, w *world, row model.Row, delivery model.DeliveryMode) *pair {
	p := &pair{t: t, world: w, row: row, sessions: session.New(storetest.Open(t, storetest.Address(t)), session.Config{})}
	p.player = &player{tb: t, world: w, delivery: delivery, meter: New(row, w.count), read: map[capability.ID]bool{}}
	p.player.asked = func(req llm.Request, answer []llm.Block) {
		p.want, p.answers = append(p.want, req), append(p.answers, answer)
	}
	p.player.made = func(text string) { p.results = append(p.results, text) }
	w.invoke = func() capability.Result {
		text := p.results[0]
		p.results = p.results[1:]
		return capability.Result{Parts: []capability.Part{{Text: text}}}
	}
	p.engine = engine.New(engine.Config{
		Door: w.door, Sessions: p.sessions, Count: w.count,
		Terms: engine.Terms{Delivery: delivery, Limits: engine.Limits{Repeats: -1}}.Always,
		Model: func(context.Context, session.Head, engine.Retry) (engine.Model, error) {
			return engine.Model{Model: &llmtest.Fake{Script: p.script}, Row: row}, nil
		},
		Layers: func(_ context.Context, in engine.LayerInput) ([]prompt.Layer, []event.Notice, error) {
			return []prompt.Layer{{Name: prompt.Base, Text: system}, {Name: prompt.Map, Text: in.Map}}, nil, nil
		},
	})
	return p
}

// script compares a request of the engine's with that of the replay, which plays
// its turn when the engine makes the first of it.
func (p *pair) script(seen llmtest.Seen) llmtest.Reply {
	if len(p.want) == 0 {
		if p.number == 0 {
			p.system, _ = p.player.begin(p.row, p.now.found)
		}
		p.player.turn(p.system, p.number, p.now, 3)
		p.number++
	}
	p.same(p.want[0], seen.Request)
	var reply llmtest.Reply
	for _, b := range p.answers[0] {
		reply.Text += b.Text
		if b.Call != nil {
			reply.Calls = append(reply.Calls, *b.Call)
		}
	}
	p.want, p.answers = p.want[1:], p.answers[1:]
	return reply
}

func (p *pair) same(want, got llm.Request) {
	p.t.Helper()
	// What is there for other reasons than finding is not billed to it.
	tools := slices.DeleteFunc(slices.Clone(got.Tools), func(x llm.Tool) bool { return x.Name == "ask_user" || x.Name == "finish" })
	p.equal("tools", want.Tools, tools)
	p.equal("system", want.System, got.System)
	for i := range max(len(want.Messages), len(got.Messages)) {
		if i >= len(want.Messages) || i >= len(got.Messages) {
			p.t.Fatalf("turn %d: %d messages, the replay has %d", p.number, len(got.Messages), len(want.Messages))
		}
		p.equal(fmt.Sprint("message ", i+1), want.Messages[i], got.Messages[i])
	}
}

func (p *pair) equal(what string, want, got any) {
	p.t.Helper()
	w, _ := json.Marshal(want) // requests always can be
	g, _ := json.Marshal(got)
	at := 0
	for at < min(len(w), len(g)) && w[at] == g[at] {
		at++
	}
	if at < max(len(w), len(g)) {
		around := func(b []byte) []byte { return b[max(0, at-200):min(len(b), at+200)] }
		p.t.Fatalf("turn %d: the engine's %s is not that of the replay from byte %d on:\n%s\nthe replay's:\n%s", p.number, what, at, around(g), around(w))
	}
}

// TestTheEngineDoesWhatIsBilled: the requests that BenchmarkBill counts are those
// that the engine makes, on every delivery mode, byte for byte: tools, system text and
// messages.
func TestTheEngineDoesWhatIsBilled(t *testing.T) {
	testkit.CI(t, "takes long conversations over a large catalog")
	tools := corpus(t)
	var table *model.Table
	row, _ := table.Find(model.Messages, "claude-opus-5-5")
	for _, n := range []int{50, 1000} {
		w := newWorld(t, tools[:n])
		talk := w.talk(t, 3, 1, 0)[:8] // later two tools want one name, which the replay gives to another of them
		for _, delivery := range []model.DeliveryMode{model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn, model.Auto} {
			if delivery == model.Whole && n > 200 {
				continue // the engine makes no such list
			}
			t.Run(fmt.Sprint(n, "/", delivery), func(t *testing.T) {
				newPair(t, w, row, delivery).play(talk)
			})
		}
	}
}

// play takes the conversation through the engine.
func (p *pair) play(talk []turn) {
	head, err := p.sessions.Begin(p.t.Context(), session.Head{Principal: "somebody"})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, t := range talk {
		p.now = t
		in := event.Input{Principal: capability.Principal{ID: "somebody"}, Session: head.ID, Text: t.message}
		for ev, err := range p.engine.Turn(p.t.Context(), in) {
			if err != nil {
				p.t.Fatal(err)
			}
			switch ev := ev.(type) {
			case event.Selected:
				p.now.found = ev.Found // each finds by its own history
			case event.Done:
				if ev.Reason != event.EndAnswer || len(p.want) > 0 {
					p.t.Fatalf("turn %d ended with %s (%s), and %d requests of the replay were not made", p.number, ev.Reason, ev.Why, len(p.want))
				}
			}
		}
	}
	if p.number != len(talk) {
		p.t.Errorf("%d turns were played, want %d", p.number, len(talk))
	}
}

// TestAutoWithoutTheList: where there are too many tools for the engine to read
// them all, auto takes the delivery mode that it would take if it had.
func TestAutoWithoutTheList(t *testing.T) {
	testkit.CI(t, "takes long conversations over a large catalog")
	w := newWorld(t, corpus(t)[:2000])
	var table *model.Table
	for _, f := range families() {
		row, _ := table.Find(f.wire, f.id)
		in := deliver.PlanInput{Row: row, Last: own(), Count: w.count}
		without := deliver.Begin(in)
		in.All = w.all
		if with := deliver.Begin(in); with.Delivery != without.Delivery {
			t.Errorf("%s: auto is %s without the list and %s with it", f.name, without.Why, with.Why)
		}
	}
}

// BenchmarkBill reports the least that auto cuts in any cell, and by how much it
// misses the cheapest delivery mode in the worst, in percent: of conversations of
// 30 turns with 3 and 8 calls over real tools, against each provider's published
// cache rules and prices. A person stays with something for three turns.
func BenchmarkBill(b *testing.B) {
	tools := corpus(b)
	for _, n := range []int{20, 50, 200, 2000} {
		b.Run(fmt.Sprint(n, "-tools"), func(b *testing.B) {
			for b.Loop() {
				least, inline, missed, searches := 100.0, 100.0, 0.0, 0
				for _, c := range replay(b, tools[:n], 3) {
					b.Log(c.line())
					least = min(least, c.cut(c.auto))
					if c.auto == model.Inline {
						inline = min(inline, c.cut(c.auto))
					}
					missed = max(missed, 100*(c.over(c.auto)/c.over(c.best())-1))
					searches += c.modes[c.auto].searches
				}
				b.ReportMetric(least, "least-cut-%")
				b.ReportMetric(inline, "least-inline-cut-%")
				b.ReportMetric(missed, "over-cheapest-%")
				b.ReportMetric(float64(searches)/10/talks, "searches/session")
			}
		})
	}
	// People who want something new in every turn or every second one: a session
	// comes to most of 20 or 50 tools, auto does not know that and may choose wrong.
	b.Run("restless", func(b *testing.B) {
		for b.Loop() {
			worst := -100.0
			for _, n := range []int{20, 50, 200} {
				for _, c := range slices.Concat(replay(b, tools[:n], 1), replay(b, tools[:n], 2)) {
					worst = max(worst, 100*(c.modes[c.auto].cost/c.all-1))
				}
			}
			b.ReportMetric(worst, "over-all-%")
		}
	})
}
