package deliver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/find/show"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm"
)

func offer(name string, tokens int) Offer {
	return Offer{ID: capability.ID("tool:" + name), Tokens: tokens, Tool: llm.Tool{Name: name, Description: "Does " + name, Schema: json.RawMessage(`{"type":"object"}`)}}
}

func own() []llm.Tool {
	return []llm.Tool{{Name: "discover_capabilities"}, {Name: "describe_capability"}, {Name: "invoke_capability"}, {Name: "ask_user"}, {Name: "select_active_intent"}}
}

// found makes a selection: names in full with a probability each, the rest in a
// line.
func found(full map[string]float64, lines ...string) door.Found {
	s := show.Shown{Map: "the map"}
	brief := func(name string) {
		n := len(s.Briefs) + 1
		s.Briefs = append(s.Briefs, show.Piece{ID: capability.ID("tool:" + name), Number: n, About: len(fmt.Sprintf("%d. %s (tool). ", n, name)), Text: fmt.Sprintf("%d. %s (tool). Does %s. Params: a", n, name, name)})
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		if p, ok := full[name]; ok {
			brief(name)
			s.Fulls = append(s.Fulls, show.Piece{ID: capability.ID("tool:" + name), Score: p, Tokens: 100, Text: "# " + name + "\n\nAll about " + name})
		}
	}
	for _, name := range lines {
		brief(name)
	}
	return door.Found{Selection: discover.Selection{Shown: s}, Rollout: door.Rollout{Inject: true, Cards: true}}
}

func text(e session.Entry) string {
	if len(e.Blocks) > 0 {
		return e.Blocks[0].Text
	}
	return ""
}

func toolsOf(blocks []llm.Block) (names []string) {
	for _, b := range blocks {
		for _, t := range b.Tools {
			names = append(names, t.Name)
		}
	}
	return names
}

// TestAddByRung: how the same selection is delivered (S2.56, S2.57).
func TestAddByRung(t *testing.T) {
	in := AddInput{Found: found(map[string]float64{"a": 0.9, "b": 0.05}, "c"), Offers: []Offer{offer("a", 120), offer("b", 120), offer("c", 120)}}
	lines := "\n- b: Does b. Params: a\n- c: Does c. Params: a"
	tests := []struct {
		delivery model.DeliveryMode
		text     string
		tools    []string
	}{
		{model.Inline, "Found, for invoke_capability:" + lines, []string{"a"}},
		{model.Search, "Found, for describe_capability:\n- a: Does a. Params: a" + lines, nil},
		{model.Bridge, "Found, for invoke_capability:" + lines + "\n\na\n# a\n\nAll about a", nil},
	}
	for _, tt := range tests {
		in.Delivery = tt.delivery
		e, ok := Add(in)
		if !ok || e.Kind != session.Added || text(e) != tt.text || !slices.Equal(toolsOf(e.Blocks), tt.tools) {
			t.Errorf("%s: Add = %v, %q, tools %v; want %q and %v", tt.delivery, ok, text(e), toolsOf(e.Blocks), tt.text, tt.tools)
		}
		if e.Tokens == 0 {
			t.Errorf("%s: the entry has no price", tt.delivery)
		}
		live := LiveOf([]session.Entry{e})
		for _, name := range []string{"a", "b", "c"} {
			if o, ok := live.Resolve(name); !ok || o.ID != capability.ID("tool:"+name) {
				t.Errorf("%s: Resolve(%q) = %v, %v", tt.delivery, name, o, ok)
			}
		}
		if _, tool := live.Tools["a"]; tool != (tt.delivery == model.Inline) {
			t.Errorf("%s: a is a tool: %v", tt.delivery, tool)
		}
		again := in
		again.Live = live
		if e, ok := Add(again); ok {
			t.Errorf("%s: Add of what is live = %q, %v; want nothing", tt.delivery, text(e), toolsOf(e.Blocks))
		}
	}
}

// TestAddKeepsItsBounds: the rollout, heavy tools, eight tools or six (S4.U05),
// news, what changed, and per_turn, which repeats everything.
func TestAddKeepsItsBounds(t *testing.T) {
	in := AddInput{Delivery: model.Inline, Found: found(map[string]float64{"a": 0.9}), Offers: []Offer{offer("a", 100)}, News: "New: x"}
	held := in
	held.Found.Rollout.Inject = false
	if e, ok := Add(held); !ok || text(e) != "New: x" || len(e.Offers) != 0 {
		t.Errorf("held back: Add = %v, %+v; want the news alone", ok, e)
	}
	heavy := in
	heavy.Offers = []Offer{offer("a", 5000)}
	if e, _ := Add(heavy); len(toolsOf(e.Blocks)) != 0 || !strings.Contains(text(e), "All about a") {
		t.Errorf("a heavy tool: Add = %+v; want its text", e)
	}
	e, _ := Add(in)
	changed := in
	changed.Delivery, changed.News = model.Bridge, ""
	changed.Live = Live{Shown: map[capability.ID]string{"tool:a": "full:old"}}
	if c, ok := Add(changed); !ok || !strings.Contains(text(c), "All about a") {
		t.Errorf("what changed: Add = %v, %q; want it shown again", ok, text(c))
	}
	changed.Live.Shown = e.Shown
	changed.Live.Tools = map[string]session.Offer{"a": {Tool: "a", ID: "tool:a"}}
	if c, ok := Add(changed); ok {
		t.Errorf("what is a tool: Add = %q; want nothing", text(c))
	}
	all := map[string]float64{}
	many := AddInput{Delivery: model.Inline}
	for _, name := range strings.Split("abcdefghij", "") {
		all[name] = 0.99
		many.Offers = append(many.Offers, offer(name, 100))
	}
	many.Found = found(all)
	for pressed, want := range map[bool]int{false: 8, true: 6} {
		many.NearlyFull = pressed
		if e, _ := Add(many); len(toolsOf(e.Blocks)) != want {
			t.Errorf("pressed %v: %d tools, want %d", pressed, len(toolsOf(e.Blocks)), want)
		}
	}
	skill := in
	skill.Found, skill.Offers, skill.News = found(map[string]float64{"a": 0.1}), nil, ""
	skill.Delivery = model.Whole
	if e, _ := Add(skill); text(e) != "Since this conversation began there is also, for describe_capability:\n- tool:a: Does a. Params: a" {
		t.Errorf("whole: what came since the list: Add = %q; want one line", text(e))
	}
	skill.Live = LiveOf([]session.Entry{{Kind: session.Prefix, Shown: Listed(door.Others{Marks: map[capability.ID]string{"tool:a": "- tool:a: Does a"}})}})
	if e, ok := Add(skill); ok {
		t.Errorf("whole: what the list has: Add = %q; want nothing beside the list", text(e))
	}
	skill.Live = Live{}
	for _, delivery := range []model.DeliveryMode{model.Inline, model.Search, model.Bridge} {
		skill.Delivery = delivery
		if e, _ := Add(skill); !strings.Contains(text(e), "tool:a\n# a\n\nAll about a") {
			t.Errorf("%s: what is no tool: Add = %q; want all of its text under its id", delivery, text(e))
		}
	}
	literal := in
	literal.Delivery, literal.News, literal.Live = model.PerTurn, "", LiveOf([]session.Entry{e})
	if e, ok := Add(literal); !ok || text(e) != literal.Found.Prompt() {
		t.Errorf("per_turn: Add = %v, %q; want all of %q", ok, text(e), literal.Found.Prompt())
	}
}

// TestAddIsAppendOnly: over any turns nothing is shown twice, the input is never
// changed and the same input gives the same bytes (C20, K0.01).
func TestAddIsAppendOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delivery := rapid.SampledFrom([]model.DeliveryMode{model.Whole, model.Inline, model.Search, model.Bridge, model.Extend}).Draw(t, "rung")
		var offers []Offer
		for _, name := range strings.Split("abcdefghij", "") {
			offers = append(offers, offer(name, rapid.IntRange(20, 2000).Draw(t, "tokens")))
		}
		plan := Begin(PlanInput{Want: delivery, Row: model.Row{DeliveryModes: []model.DeliveryMode{model.Inline, model.Search}}, All: offers, Last: own()})
		entries := []session.Entry{{Kind: session.Prefix, Tools: plan.Tools, Offers: plan.Offers}}
		count := map[string]int{}
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			full := rapid.MapOfN(rapid.SampledFrom(strings.Split("abcdefghij", "")), rapid.Float64Range(0, 1), 0, 3).Draw(t, "full")
			in := AddInput{Delivery: delivery, Found: found(full, rapid.SampledFrom(strings.Split("abcdefghij", "")).Draw(t, "line")), Offers: offers, Live: LiveOf(entries), Last: own()}
			if p, ok := Prefix(in); ok {
				if old := in.Live.Prefix; len(p.Tools) <= len(old) || !reflect.DeepEqual(p.Tools[:len(old)], old) {
					t.Fatalf("the prefix became %v, which does not begin with %v", p.Tools, old)
				}
				entries = append(entries, p)
				in.Live = LiveOf(entries)
			}
			before := fmt.Sprintf("%+v", in)
			e, ok := Add(in)
			if again, _ := Add(in); !reflect.DeepEqual(e, again) || fmt.Sprintf("%+v", in) != before {
				t.Fatal("Add of the same is not the same, or changed its input")
			}
			if !ok {
				continue
			}
			for _, name := range toolsOf(e.Blocks) {
				count["tool "+name]++
			}
			for _, line := range strings.Split(text(e), "\n") {
				if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "# ") {
					count[line]++
				}
			}
			entries = append(entries, e)
		}
		for what, n := range count {
			if n > 1 {
				t.Fatalf("%s: %q was given %d times", delivery, what, n)
			}
		}
		if delivery == model.Whole && len(count) > 0 {
			t.Fatalf("whole: %v was shown besides", count)
		}
	})
}

// TestPrefixByRung: extend appends and keeps, per_turn lists what the turn has,
// the intent's tool last.
func TestPrefixByRung(t *testing.T) {
	last := own()
	live := Live{System: "s", Prefix: append([]llm.Tool{offer("core", 9).Tool}, last...), Tools: map[string]session.Offer{"core": {Tool: "core", ID: "tool:core"}}}
	in := AddInput{Found: found(map[string]float64{"a": 0.9}, "b"), Offers: []Offer{offer("a", 100), offer("b", 100)}, Live: live, Core: []Offer{offer("core", 9)}, Last: last}
	names := func(tools []llm.Tool) (out []string) {
		for _, t := range tools {
			out = append(out, t.Name)
		}
		return out
	}
	base := append([]string{"core"}, names(last)...)
	for delivery, want := range map[model.DeliveryMode][]string{
		model.Extend:  append(slices.Clone(base), "a"),
		model.Whole:   append(slices.Clone(base), "a", "b"),
		model.PerTurn: append([]string{"a", "b", "core"}, names(last)...),
		model.Inline:  nil, model.Search: nil, model.Bridge: nil,
	} {
		in.Delivery = delivery
		e, ok := Prefix(in)
		if ok != (want != nil) || !slices.Equal(names(e.Tools), want) {
			t.Errorf("%s: Prefix = %v, %v; want %v", delivery, names(e.Tools), ok, want)
		}
		if ok && (e.System != "s" || e.Kind != session.Prefix || LiveOf([]session.Entry{e}).Tools["core"].ID != "tool:core") {
			t.Errorf("%s: Prefix = %+v; want what was there kept", delivery, e)
		}
	}
	in.Delivery = model.PerTurn
	e, _ := Prefix(in)
	in.Live = LiveOf([]session.Entry{e})
	if _, ok := Prefix(in); ok {
		t.Error("per_turn: the same tools again break the prefix")
	}
}

// TestSearched: what the model's own search gives.
func TestSearched(t *testing.T) {
	offers := []Offer{offer("a", 10), offer("book", 9000), offer("b", 10), offer("c", 10)}
	live := Live{Tools: map[string]session.Offer{"a": {Tool: "a", ID: "tool:a"}}}
	for _, delivery := range []model.DeliveryMode{model.Inline, model.Search} {
		blocks, given := Searched(delivery, offers, live)
		if got := toolsOf(blocks); !slices.Equal(got, []string{"b", "c"}) || len(given) != 2 || given[0].ID != "tool:b" {
			t.Errorf("%s: Searched = %v, %v; want b and c", delivery, got, given)
		}
		if text, ok := Instead("tool:b", given); !ok || !strings.Contains(text, ": b") {
			t.Errorf("Instead = %q, %v", text, ok)
		}
		if _, ok := Instead("tool:book", given); ok {
			t.Error("Instead stands for a text whose tool was not given")
		}
		result := session.Entry{Kind: session.Results, Offers: given, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "1", Blocks: blocks}}}}
		if l := LiveOf([]session.Entry{result}); l.Tools["b"].ID != "tool:b" {
			t.Errorf("%s: LiveOf = %+v; want b to be a tool", delivery, l)
		}
	}
	for _, delivery := range []model.DeliveryMode{model.Whole, model.Bridge, model.Extend, model.PerTurn, model.Auto} {
		if blocks, given := Searched(delivery, offers, live); blocks != nil || given != nil {
			t.Errorf("%s: Searched = %v, want nothing", delivery, blocks)
		}
	}
}
