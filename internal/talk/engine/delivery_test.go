package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/run/executor/analyze"
	"ken/internal/run/executor/files"
	"ken/internal/run/executor/shell"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

func toolNames(tools []llm.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

// both is a model that takes tools by every delivery mode.
var both = model.Row{DeliveryModes: []model.DeliveryMode{model.Inline, model.Search}}

// TestOwnToolsInEveryRung: the tools of the program are native tools of the
// prefix, before the ones that search, however found ones are delivered; a
// capability with the name of one of them gets another name.
func TestOwnToolsInEveryRung(t *testing.T) {
	core := []string{"analyze_response", "analyze_schema", "apply_diff", "list_files", "read_file", "search_files", "shell", "write_to_file"}
	meta := []string{toolDiscover, toolDescribe, toolInvoke, toolRead, toolAsk, toolFinish}
	for _, delivery := range []model.DeliveryMode{model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn} {
		t.Run(string(delivery), func(t *testing.T) {
			r := open(t, setting{
				row: both, own: slices.Concat(files.Tools(), shell.Tools(), analyze.Tools()), config: func(c *Config) { c.Terms = Terms{Delivery: delivery}.Always },
				tools: func(r *rig) {
					r.memory.Put(capability.Capability{
						ID: "tool:theirs/shell", Kind: capability.KindTool, Name: "shell", Category: "sea", Description: "Opens a shell of the sea, with pearls", Effects: reading,
						Run: &capability.Recipe{Runner: "mcp.call"},
					}, capability.Detail{Schema: []byte(anySchema)})
				},
			})
			fake := &llmtest.Fake{Script: llmtest.Always(text("Hello."))}
			r.model = fake
			id := r.session()
			for _, text := range []string{"open a shell of the sea with pearls", "greet somebody by name"} {
				done(t, r.say(id, text), event.EndAnswer)
			}
			meta := meta
			if delivery == model.Whole { // every tool is in the list: none is searched for, none is called by an id
				meta = slices.DeleteFunc(slices.Clone(meta), func(name string) bool { return name == toolInvoke || name == toolDiscover })
			}
			for i, seen := range fake.Requests() {
				got := toolNames(seen.Request.Tools)
				kept := slices.DeleteFunc(slices.Clone(got), func(name string) bool { return !slices.Contains(core, name) && !own(name) })
				if want := slices.Concat(core, meta); !slices.Equal(kept, want) {
					t.Errorf("request %d has %q, want %q", i+1, kept, want)
				}
				if delivery != model.Extend && !slices.Equal(got[len(got)-len(meta):], meta) {
					t.Errorf("request %d ends with %q, want %q", i+1, got[len(got)-len(meta):], meta)
				}
			}
			prefix := r.entries(id)[0]
			for _, o := range prefix.Offers {
				if o.Tool == "shell" && o.ID != "tool:shell" || o.ID == "tool:theirs/shell" && o.Tool != "sea__shell" {
					t.Errorf("%s is the tool %s", o.ID, o.Tool)
				}
			}
		})
	}
}

// TestOwnToolRuns: one of the program's is called by its name and reaches the
// door under its id.
func TestOwnToolRuns(t *testing.T) {
	r := open(t, setting{own: files.Tools()})
	id := r.begin(llmtest.Replies(answers(call("list_files", `{"path":"."}`)), text("Done.")))
	f := of[event.Finished](r.say(id, "hello"))
	if len(f) != 1 || f[0].Target != "tool:list_files" || f[0].Kind == "not found" {
		t.Errorf("Finished = %+v, want that of tool:list_files", f)
	}
}

// TestOwnToolAppears: one of the program's that another mode shows is told of
// beside the next message, once, and can be called; the prefix stays.
func TestOwnToolAppears(t *testing.T) {
	r := open(t, setting{own: files.Tools()})
	fake := &llmtest.Fake{Script: llmtest.Replies(text("Hello."), answers(call("write_to_file", `{"path":"a","content":"b"}`)), text("Done."), text("Yes."))}
	r.model = fake
	id := r.session()
	r.turn(event.Input{Session: id, Text: "hello", Mode: "ask"})
	events := r.turn(event.Input{Session: id, Text: "write", Mode: "code"})
	if f := of[event.Finished](events); len(f) != 1 || f[0].Target != "tool:write_to_file" || f[0].Kind == "not found" {
		t.Errorf("Finished = %+v, want that of tool:write_to_file", f)
	}
	r.turn(event.Input{Session: id, Text: "and?", Mode: "code"})
	seen := fake.Requests()
	last := seen[len(seen)-1].Request
	told := 0
	for _, m := range last.Messages {
		told += strings.Count(textOf(m.Blocks), "- write_to_file: ")
	}
	if told != 1 || len(last.Tools) != len(seen[0].Request.Tools) {
		t.Errorf("write_to_file was told of %d times, want once; %d tools before and %d after", told, len(seen[0].Request.Tools), len(last.Tools))
	}
}

// TestOnlyTools: if all tools are sent, there is neither a map nor a tool that
// searches or calls by id. Everything else is listed once, and the tool that
// reads texts and the reference stays (S1.05, S2.49). A call of an unknown tool
// still gets an answer.
func TestOnlyTools(t *testing.T) {
	for _, only := range []bool{true, false} {
		var asked LayerInput
		r := open(t, setting{only: only, config: func(c *Config) {
			layers := c.Layers
			c.Layers = func(ctx context.Context, in LayerInput) ([]prompt.Layer, []event.Notice, error) {
				asked = in
				return layers(ctx, in)
			}
		}})
		fake := &llmtest.Fake{Script: llmtest.Replies(answers(call("great", `{"name":"A"}`)), answers(call("greet", `{"name":"A"}`)), text("Done."))}
		r.model = fake
		id := r.session()
		done(t, r.say(id, "hello"), event.EndAnswer)
		if asked.Delivery != model.Whole || (asked.Map == "") != only || strings.Contains(asked.Map, "skill:roses: Pruning roses in March") == only {
			t.Errorf("only tools %v: the layers were asked for with %s and the map %q", only, asked.Delivery, asked.Map)
		}
		for i, seen := range fake.Requests() {
			names := toolNames(seen.Request.Tools)
			if slices.Contains(names, toolDiscover) || !slices.Contains(names, toolDescribe) || slices.Contains(names, toolInvoke) {
				t.Errorf("only tools %v: request %d has %q", only, i+1, names)
			}
			if strings.Contains(seen.Request.System, "Available capability categories") || strings.Contains(seen.Request.System, "skill:roses") == only {
				t.Errorf("only tools %v: the system text is %q", only, seen.Request.System)
			}
		}
		got := resultTexts(r.entries(id))
		contains(t, "the result", got[0], "There is no tool great", "tool:greet")
		if strings.Contains(got[0], toolDiscover) {
			t.Errorf("only tools %v: %q", only, got[0])
		}
		contains(t, "the next", got[1], "hello A")
	}
}

// TestShortNames: what was shown under a name is called and read by it, through
// the tools that take any.
func TestShortNames(t *testing.T) {
	var called []capability.ID
	r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Delivery: model.Bridge}.Always }, tools: func(r *rig) {
		for _, x := range []string{"alpha", "beta"} {
			id := capability.ID("tool:" + x + "/paint")
			r.memory.Put(capability.Capability{
				ID: id, Kind: capability.KindTool, Name: "paint", Category: x, Description: "Paints a fence in colours, by the company " + x, Effects: reading,
				Run: &capability.Recipe{Runner: "mcp.call"},
			}, capability.Detail{Schema: []byte(anySchema)})
			r.does[id] = func(_ context.Context, c capability.Call) (capability.Result, error) {
				r.mu.Lock()
				defer r.mu.Unlock()
				called = append(called, c.Target)
				return said("painted")
			}
		}
	}})
	script := func(s llmtest.Seen) llmtest.Reply {
		switch s.Number {
		case 1:
			return answers(call(toolDescribe, `{"id":"beta__paint","part":"schema"}`), call(toolDescribe, `{"id":"alpha__paint"}`))
		case 2:
			return answers(invoke("alpha__paint", `{}`), invoke("beta__paint", `{}`), invoke("paint", `{}`), call("beta__paint", `{}`))
		}
		return text("Done.")
	}
	id := r.begin(script)
	events := r.say(id, "paint the fence in colours, by any company")
	done(t, events, event.EndAnswer)
	names := map[string]capability.ID{}
	for _, e := range r.entries(id) {
		if e.Kind == session.Added {
			for _, o := range e.Offers {
				names[o.Tool] = o.ID
			}
		}
	}
	if len(names) != 2 || names["paint"] == "" {
		t.Fatalf("shown as %v, want both, and one of them as paint", names)
	}
	other := map[capability.ID]string{"tool:alpha/paint": "beta", "tool:beta/paint": "alpha"}[names["paint"]]
	got := resultTexts(r.entries(id))
	for i, text := range got[:2] {
		if read := []string{"beta", "alpha"}[i] == other; strings.Contains(text, `"type":"object"`) != read {
			t.Errorf("reading %d gave %q, want the schema: %v", i+1, text, read)
		}
	}
	second := capability.ID("tool:" + other + "/paint")
	slices.Sort(called)
	want := []capability.ID{names["paint"], second, second}
	slices.Sort(want)
	if !slices.Equal(called, want) {
		t.Errorf("called %v, want %v", called, want)
	}
}

// TestSearchGivesEachToolOnce: searches of one answer give a tool once, and
// reading what becomes a tool is answered by its name alone.
func TestSearchGivesEachToolOnce(t *testing.T) {
	for _, w := range []llmtest.Wire{llmtest.Messages, llmtest.Responses} {
		for _, delivery := range []model.DeliveryMode{model.Inline, model.Search} {
			t.Run(string(w)+"/"+string(delivery), func(t *testing.T) {
				r := open(t, setting{row: both, tools: many(300), config: func(c *Config) { c.Terms = Terms{Delivery: delivery}.Always }})
				var last llm.Request
				r.model = wired(t, w, func(s llmtest.Seen) llmtest.Reply {
					last = s.Request
					if s.Number == 1 {
						return answers(call(toolDiscover, `{"query":"thing number 7 with colours"}`), call(toolDiscover, `{"query":"number 7 thing"}`), call(toolDescribe, `{"id":"tool:thing9"}`), call(toolDescribe, `{"id":"tool:thing9"}`))
					}
					return text("Done.")
				})
				id := r.session()
				done(t, r.say(id, "hello"), event.EndAnswer)
				has := given(last.Messages)
				slices.Sort(has)
				if len(has) < 2 || !slices.Contains(has, "thing9") || len(slices.Compact(slices.Clone(has))) != len(has) {
					t.Errorf("given = %v, want each once", has)
				}
				got := resultTexts(r.entries(id))
				if got[2] != "You can call it now: thing9" {
					t.Errorf("the first reading says %q", got[2])
				}
				if !strings.Contains(got[3], "thing number 9") {
					t.Errorf("the second reading says %q, want the text: nothing became a tool", got[3])
				}
			})
		}
	}
}

// TestSearchIsDeclared: in the delivery mode search the wire knows from the first request
// on which tool searches, and in no other.
func TestSearchIsDeclared(t *testing.T) {
	for _, delivery := range []model.DeliveryMode{model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn} {
		r := open(t, setting{row: both, config: func(c *Config) { c.Terms = Terms{Delivery: delivery}.Always }})
		fake := &llmtest.Fake{Script: llmtest.Replies(answers(call(toolDiscover, `{"query":"greet"}`)), text("Done."))}
		r.model = fake
		r.say(r.session(), "hello")
		for i, seen := range fake.Requests() {
			if want := map[bool]string{true: toolDiscover}[delivery == model.Search]; seen.Request.Search != want {
				t.Errorf("%s, request %d: Search = %q, want %q", delivery, i+1, seen.Request.Search, want)
			}
		}
	}
	r := open(t, setting{row: both, config: func(c *Config) { c.Terms = Terms{Delivery: model.Search}.Always }})
	fake := &llmtest.Fake{Script: llmtest.Replies(llmtest.Reply{Fault: llmtest.UnsupportedSearch}, text("Done."))}
	r.model = fake
	done(t, r.say(r.session(), "hello"), event.EndAnswer)
	if seen := fake.Requests(); seen[1].Request.Search != "" {
		t.Errorf("after the refusal Search = %q", seen[1].Request.Search)
	}
}

// TestK311AllowedPerWire: Gemini and OpenAI are narrowed to what the intent
// allows, by the names under which the tools are declared and with Ken's own
// among them, while what is declared stays; for Anthropic nothing changes
// (S3.29, S3.30).
func TestK311AllowedPerWire(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			r := open(t, setting{rules: strict, config: func(c *Config) {
				intents := c.Intents
				c.Terms = Terms{Delivery: model.Whole}.Always
				c.Intents = func(at string) IntentRules {
					rules := intents(at)
					rules.Allows = func(intent string, e *door.Entry) bool {
						return intent == "CODE" || policy.Of(e.Capability).Class == policy.Read
					}
					return rules
				}
			}, tools: func(r *rig) { // its name is none that a wire takes
				r.tool("tool:save as…", "Save under another name", nameSchema, changing, func(context.Context, capability.Call) (capability.Result, error) { return said("saved") })
				r.tool("tool:look-up", "Look something up", nameSchema, reading, func(context.Context, capability.Call) (capability.Result, error) { return said("seen") })
			}})
			var seen []llmtest.Seen
			replies := llmtest.Replies(
				answers(intend("READ_FILE", "")), answers(call("save", `{"name":"A"}`)), answers(intend("CODE", "to save it")), answers(call("save", `{"name":"A"}`)), text("Done."),
			)
			r.model = wired(t, w, func(s llmtest.Seen) llmtest.Reply {
				seen = append(seen, s)
				return replies(s)
			})
			id := r.session()
			done(t, r.say(id, "save it"), event.EndAnswer)
			declared := toolNames(seen[0].Request.Tools)
			if !slices.Contains(declared, "save_as") || !slices.Contains(declared, "look-up") {
				t.Fatalf("declared = %q", declared)
			}
			narrowed := slices.DeleteFunc(slices.Clone(declared), func(n string) bool { return n == "save" || n == "save_as" })
			for i, s := range seen {
				want := [][]string{nil, narrowed, narrowed, nil, nil}[i]
				if w == llmtest.Messages {
					want = nil
					if s.Choice != seen[0].Choice {
						t.Errorf("request %d has tool_choice %s, the first had %s", i+1, s.Choice, seen[0].Choice)
					}
				}
				got := slices.Sorted(slices.Values(s.Request.Allowed))
				if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Errorf("request %d allows %q, want %q", i+1, got, want)
				}
				if names := toolNames(s.Request.Tools); !slices.Equal(names, declared) {
					t.Errorf("request %d declares %q, the first %q", i+1, names, declared)
				}
			}
			for _, name := range []string{toolIntent, toolDescribe, toolFinish} {
				if !slices.Contains(narrowed, name) {
					t.Errorf("%s is not in %q", name, narrowed)
				}
			}
			got := resultTexts(r.entries(id))
			contains(t, "the refusal", got[1], "Tool not allowed under selected intent")
			contains(t, "the result", got[3], "saved")
		})
	}
}

// TestK311PerTurnOverGemini: a history with calls of tools that are not declared
// any more is one that Gemini takes.
func TestK311PerTurnOverGemini(t *testing.T) {
	r := open(t, setting{tools: many(300), config: func(c *Config) { c.Terms = Terms{Delivery: model.PerTurn}.Always }})
	var seen []llmtest.Seen
	r.model = wired(t, llmtest.Gemini, func(s llmtest.Seen) llmtest.Reply {
		seen = append(seen, s)
		switch said := textOf(s.Request.Messages[len(s.Request.Messages)-1].Blocks); {
		case strings.Contains(said, "number 7 "):
			return answers(call("thing7", `{"colour":"blue"}`))
		case strings.Contains(said, "number 11 "):
			return answers(call("thing11", `{"colour":"red"}`))
		}
		return text("Done.")
	})
	id := r.session()
	turns := []string{"please do thing number 7 with colours"}
	for range recent + 1 { // until what was used is long ago
		turns = append(turns, "good, and how are you?")
	}
	for _, text := range append(turns, "and now thing number 11 with colours") {
		done(t, r.say(id, text), event.EndAnswer)
	}
	if got := r.made(); !slices.Equal(got, []string{"tool:thing7", "tool:thing11"}) {
		t.Errorf("calls = %v", got)
	}
	last := seen[len(seen)-1]
	if names := toolNames(last.Request.Tools); slices.Contains(names, "thing7") || !slices.Contains(names, "thing11") {
		t.Errorf("the second turn declares %q", names)
	}
	var words string
	for _, m := range last.Request.Messages {
		for _, c := range callsOf(m.Blocks) {
			if c.Name != "thing11" {
				t.Errorf("the history calls %s, which is not declared", c.Name)
			}
		}
		words += textOf(m.Blocks)
	}
	contains(t, "the history", words, "thing7", "blue", "did")
	r.entries(id)
}

// TestAnotherModel: tools that one model was given in the middle are not sent to
// one that takes none there, and are shown to it as text.
func TestAnotherModel(t *testing.T) {
	r := open(t, setting{row: both, tools: many(300), config: func(c *Config) { c.Terms = Terms{Delivery: model.Inline}.Always }})
	fake := &llmtest.Fake{Script: func(s llmtest.Seen) llmtest.Reply {
		if s.Number == 3 {
			return answers(invoke("thing7", `{}`))
		}
		return text("Hello.")
	}}
	r.model = fake
	id := r.session()
	r.say(id, "please do thing number 7 with colours")
	if got := given(fake.Requests()[0].Request.Messages); !slices.Contains(got, "thing7") {
		t.Fatalf("given = %v", got)
	}
	r.row.DeliveryModes = nil
	r.say(id, "please do thing number 7 with colours, once more")
	second := fake.Requests()[1].Request
	if got := given(second.Messages); len(got) != 0 {
		t.Errorf("given = %v to a model that takes none", got)
	}
	shown := textOf(second.Messages[len(second.Messages)-1].Blocks)
	contains(t, "the message", shown, "Found, for invoke_capability:", "thing7")
	done(t, r.say(id, "yes, that one"), event.EndAnswer)
	if got := r.made(); !slices.Equal(got, []string{"tool:thing7"}) {
		t.Errorf("calls = %v", got)
	}
}

// TestPressed: with the window nearly full a turn gives fewer tools (S4.U05).
func TestPressed(t *testing.T) {
	counts := map[bool]int{}
	for _, full := range []bool{false, true} {
		r := open(t, setting{row: both, tools: many(300), config: func(c *Config) { c.Terms = Terms{Delivery: model.PerTurn}.Always }})
		fake := &llmtest.Fake{Script: llmtest.Always(text("Hello."))}
		r.model = fake
		id := r.session()
		r.row.Window = 60_000
		if full {
			r.say(id, strings.Repeat("one two three four five ", 7000))
		}
		ten, none, room := 10, 0.0, 5000
		wide := door.Override{TopK: &ten, MinRelevance: &none, TailRelevance: &none, BriefTokens: &room, TotalTokens: &room}
		done(t, r.turn(event.Input{Session: id, Text: "please do things with colours, any number of them", Override: wide}), event.EndAnswer)
		seen := fake.Requests()
		for _, name := range toolNames(seen[len(seen)-1].Request.Tools) {
			if strings.HasPrefix(name, "thing") {
				counts[full]++
			}
		}
	}
	if counts[false] != 8 || counts[true] != 6 {
		t.Errorf("tools = %v, want 8 and with the window nearly full 6", fmt.Sprint(counts))
	}
}
