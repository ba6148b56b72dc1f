package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/executor/analyze"
	"ken/internal/run/executor/files"
	"ken/internal/run/executor/shell"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/testkit"
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
// capability with the name of one of them gets another name. In the delivery mode
// search the wire knows from the first request on which tool searches, and in no
// other.
func TestOwnToolsInEveryRung(t *testing.T) {
	testkit.CI(t, "goes over every delivery mode")
	core := []string{"analyze_response", "analyze_schema", "apply_diff", "list_files", "read_file", "search_files", "shell", "write_to_file"}
	meta := []string{toolDiscover, toolDescribe, toolInvoke, toolRead, toolAsk, toolFinish}
	for _, delivery := range []model.DeliveryMode{model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn} {
		t.Run(string(delivery), func(t *testing.T) {
			r := open(t, setting{
				row: both, own: slices.Concat(files.Tools(), shell.Tools(), analyze.Tools()), config: terms(Terms{Delivery: delivery}),
				tools: func(r *rig) {
					r.memory.Put(capability.Capability{
						ID: "tool:theirs/shell", Kind: capability.KindTool, Name: "shell", Category: "sea", Description: "Opens a shell of the sea, with pearls", Effects: reading,
						Run: &capability.Recipe{Runner: "mcp.call"},
					}, capability.Detail{Schema: []byte(anySchema)})
				},
			})
			id := r.begin(llmtest.Always(text("Hello.")))
			for _, text := range []string{"open a shell of the sea with pearls", "greet somebody by name"} {
				done(t, r.say(id, text), event.EndAnswer)
			}
			meta := meta
			if delivery == model.Whole { // every tool is in the list: none is searched for, none is called by an id
				meta = slices.DeleteFunc(slices.Clone(meta), func(name string) bool { return name == toolInvoke || name == toolDiscover })
			}
			for i, seen := range r.fake.Requests() {
				got := toolNames(seen.Request.Tools)
				kept := slices.DeleteFunc(slices.Clone(got), func(name string) bool { return !slices.Contains(core, name) && !own(name) })
				if want := slices.Concat(core, meta); !slices.Equal(kept, want) {
					t.Errorf("request %d has %q, want %q", i+1, kept, want)
				}
				if want := map[bool]string{true: toolDiscover}[delivery == model.Search]; seen.Request.Search != want {
					t.Errorf("request %d: Search = %q, want %q", i+1, seen.Request.Search, want)
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

// TestOwnToolAppears: one of the program's that another mode shows is told of
// beside the next message, once, and can be called; the prefix stays.
func TestOwnToolAppears(t *testing.T) {
	r := open(t, setting{own: files.Tools()})
	id := r.begin(llmtest.Replies(text("Hello."), answers(call("write_to_file", `{"path":"a","content":"b"}`)), text("Done."), text("Yes.")))
	r.turn(event.Input{Session: id, Text: "hello", Mode: "ask"})
	events := r.turn(event.Input{Session: id, Text: "write", Mode: "code"})
	if f := of[event.Finished](events); len(f) != 1 || f[0].Target != "tool:write_to_file" || f[0].Kind == "not found" {
		t.Errorf("Finished = %+v, want that of tool:write_to_file", f)
	}
	r.turn(event.Input{Session: id, Text: "and?", Mode: "code"})
	seen := r.fake.Requests()
	last := seen[len(seen)-1].Request
	told := 0
	for _, m := range last.Messages {
		told += strings.Count(textOf(m.Blocks), "- write_to_file: ")
	}
	if told != 1 || len(last.Tools) != len(seen[0].Request.Tools) {
		t.Errorf("write_to_file was told of %d times, want once; %d tools before and %d after", told, len(seen[0].Request.Tools), len(last.Tools))
	}
}

// TestShortNames: what was shown under a name is called and read by it, through
// the tools that take any.
func TestShortNames(t *testing.T) {
	r := open(t, setting{config: terms(Terms{Delivery: model.Bridge}), tools: func(r *rig) {
		for _, x := range []string{"alpha", "beta"} {
			id := capability.ID("tool:" + x + "/paint")
			r.memory.Put(capability.Capability{
				ID: id, Kind: capability.KindTool, Name: "paint", Category: x, Description: "Paints a fence in colours, by the company " + x, Effects: reading,
				Run: &capability.Recipe{Runner: "mcp.call"},
			}, capability.Detail{Schema: []byte(anySchema)})
			r.does[id] = func(context.Context, capability.Call) (capability.Result, error) { return said("painted") }
		}
	}})
	id := r.begin(llmtest.Replies(
		answers(call(toolDescribe, `{"id":"beta__paint","part":"schema"}`), call(toolDescribe, `{"id":"alpha__paint","part":"schema"}`)),
		answers(invoke("alpha__paint", `{}`), invoke("beta__paint", `{}`), invoke("paint", `{}`), call("beta__paint", `{}`)),
		text("Done."),
	))
	done(t, r.say(id, "paint the fence in colours, by any company"), event.EndAnswer)
	names := map[string]capability.ID{}
	for _, e := range r.entries(id) {
		for _, o := range e.Offers {
			if e.Kind == session.Added {
				names[o.Tool] = o.ID
			}
		}
	}
	if want := map[string]capability.ID{"paint": "tool:alpha/paint", "beta__paint": "tool:beta/paint"}; !maps.Equal(names, want) {
		t.Fatalf("shown as %v, want %v", names, want)
	}
	got := resultTexts(r.entries(id))
	contains(t, "the schema", got[0], `"type":"object"`)
	contains(t, "what was not shown", got[1], "alpha__paint")
	if called := r.made(); !slices.Equal(slices.Sorted(slices.Values(called)), []string{"tool:alpha/paint", "tool:beta/paint", "tool:beta/paint"}) {
		t.Errorf("called %v, want alpha's once and beta's twice", called)
	}
}

// TestK311PerTurnOverGemini: a history with calls of tools that are not declared
// any more is one that Gemini takes.
func TestK311PerTurnOverGemini(t *testing.T) {
	testkit.CI(t, "finds among hundreds of tools")
	r := open(t, setting{tools: many(300), config: terms(Terms{Delivery: model.PerTurn})})
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
	testkit.CI(t, "finds among hundreds of tools")
	r := open(t, setting{row: both, tools: many(300), config: terms(Terms{Delivery: model.Inline})})
	id := r.begin(func(s llmtest.Seen) llmtest.Reply {
		if s.Number == 3 {
			return answers(invoke("thing7", `{}`))
		}
		return text("Hello.")
	})
	r.say(id, "please do thing number 7 with colours")
	if got := given(r.fake.Requests()[0].Request.Messages); !slices.Contains(got, "thing7") {
		t.Fatalf("given = %v", got)
	}
	r.row.DeliveryModes = nil
	r.say(id, "please do thing number 7 with colours, once more")
	second := r.fake.Requests()[1].Request
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

// given are the tools that a conversation was given in its middle.
func given(messages []llm.Message) []string {
	var out []string
	add := func(blocks []llm.Block) {
		for _, b := range blocks {
			for _, tool := range b.Tools {
				out = append(out, tool.Name)
			}
		}
	}
	for _, m := range messages {
		add(m.Blocks)
		for _, b := range m.Blocks {
			if b.Result != nil {
				add(b.Result.Blocks)
			}
		}
	}
	return out
}

// TestRungsOverTheWires: a found tool is called by its own name, by every delivery
// mode of every wire that has it, and the prefix stays. Searches of one answer give
// a tool once, and reading what becomes a tool is answered by its name alone.
func TestRungsOverTheWires(t *testing.T) {
	testkit.CI(t, "goes over every delivery mode")
	discover := func(query string) llm.ToolCall { return call(toolDiscover, fmt.Sprintf(`{"query":%q}`, query)) }
	read := call(toolDescribe, `{"id":"tool:thing9"}`)
	for _, w := range []llmtest.Wire{llmtest.Messages, llmtest.Responses} {
		for _, delivery := range []model.DeliveryMode{model.Inline, model.Search} {
			t.Run(string(w)+"/"+string(delivery), func(t *testing.T) {
				r := open(t, setting{row: both, tools: many(300), config: terms(Terms{Delivery: delivery})})
				var seen []llmtest.Seen
				replies := llmtest.Replies(
					answers(discover("thing number 7 with colours"), discover("number 7 thing"), read, read), answers(call("thing7", `{}`)), text("Done."),
					answers(discover("thing number 11 with colours")), answers(call("thing11", `{}`)), text("Done."),
				)
				r.model = wired(t, w, func(s llmtest.Seen) llmtest.Reply {
					seen = append(seen, s)
					return replies(s)
				})
				id := r.session()
				for _, text := range []string{"hello", "and another one"} {
					done(t, r.say(id, text), event.EndAnswer)
					if n := of[event.Notice](r.events); len(n) > 0 {
						t.Errorf("notices %+v", n)
					}
				}
				if got := r.made(); !slices.Equal(got, []string{"tool:thing7", "tool:thing11"}) {
					t.Errorf("calls = %v", got)
				}
				has := given(seen[len(seen)-1].Request.Messages)
				slices.Sort(has)
				if !slices.Contains(has, "thing9") || len(slices.Compact(slices.Clone(has))) != len(has) {
					t.Errorf("given = %v, want each once", has)
				}
				got := resultTexts(r.entries(id))
				contains(t, "the first reading", got[2], "You can call it now: thing9")
				contains(t, "the second reading", got[3], "thing number 9") // nothing became a tool
				for i := 1; i < len(seen); i++ {
					if why := prompt.Broke(seen[i-1].Request, seen[i].Request); why != "" && !strings.HasPrefix(why, "tools: ") {
						t.Errorf("request %d broke the prefix: %s", i+1, why)
					}
				}
			})
		}
	}
}

// TestPerTurnIsLiteral: by choice what was found stands in the system prompt,
// after AGENTS.md, and the tools are those of the turn (S1.31).
func TestPerTurnIsLiteral(t *testing.T) {
	testkit.CI(t, "finds among hundreds of tools")
	r := open(t, setting{tools: many(300), config: func(c *Config) {
		c.Terms = Terms{Delivery: model.PerTurn}.Always
		c.Layers = func(context.Context, LayerInput) ([]prompt.Layer, []event.Notice, error) {
			return []prompt.Layer{{Name: prompt.Base, Text: "You are Ken."}, {Name: prompt.Agents, Text: "Be kind."}, {Name: prompt.Soul, Text: "You are calm."}}, nil, nil
		}
	}})
	id := r.begin(llmtest.Always(text("Hello.")))
	r.say(id, "please do thing number 7 with colours")
	events := r.say(id, "and now thing number 11 with colours")
	seen := r.fake.Requests()
	for i, name := range []string{"thing7", "thing11"} {
		req := seen[i].Request
		order := []int{strings.Index(req.System, "Be kind."), strings.Index(req.System, "# Capability Context (auto-injected)"), strings.Index(req.System, "You are calm.")}
		if order[0] < 0 || !slices.IsSorted(order) {
			t.Errorf("turn %d: the system prompt is %q", i+1, req.System)
		}
		if !slices.ContainsFunc(req.Tools, func(x llm.Tool) bool { return x.Name == name }) {
			t.Errorf("turn %d: %s is not among the tools", i+1, name)
		}
	}
	if n := of[event.Notice](events); len(n) != 1 || n[0].Name != "prefix" {
		t.Errorf("notices = %v, want that the prefix is another one", n)
	}
	r.entries(id)
}
