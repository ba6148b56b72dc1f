package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
	"ken/plugin"
)

// TestS502SlashCommand: a command runs under the person's own authority, without
// a model and without an intent, and is part of the history (C32).
func TestS502SlashCommand(t *testing.T) {
	var ended event.Done
	r := open(t, setting{rules: strict, config: func(c *Config) {
		c.Ended = func(d event.Done, _ time.Time) { ended = d }
		c.Command = func(_ context.Context, in event.Input) (event.Command, bool, error) {
			return event.Command{Call: capability.Call{Target: "tool:save", Arguments: []byte(`{"name":"it"}`)}}, in.Text == "/save it", nil
		}
	}})
	id := r.begin(llmtest.Always(text("Hello.")))
	r.cfg.Model = func(context.Context, session.Head, Retry) (Model, error) {
		return Model{}, errors.New("no model is chosen")
	}
	r.Engine = New(r.cfg)
	events := r.say(id, "/save it")
	if d := done(t, events, event.EndCommand); d.Text != "saved" || d.Calls != 1 || ended.Steps != 0 || ended.Account != (event.Account{}) {
		t.Errorf("Done = %+v, %+v, want one call and nothing shown to a model", d, ended)
	}
	if c := r.calls[0]; c.Origin != capability.ByPerson || c.Intent != "" {
		t.Errorf("the call is %+v, want the person's own", c)
	}
	contains(t, "why", done(t, r.say(id, "/else"), event.EndFailed).Why, "no model is chosen")
	fake := &llmtest.Fake{Script: llmtest.Always(text("I see."))}
	r.cfg.Model = func(context.Context, session.Head, Retry) (Model, error) { return Model{Model: fake, Row: r.row}, nil }
	r.Engine = New(r.cfg)
	done(t, r.say(id, "what did I do?"), event.EndAnswer)
	sent, _ := json.Marshal(fake.Requests()[0].Request.Messages)
	contains(t, "what the model knows", string(sent), "/save it", "saved")
	r.entries(id)
}

// TestS311OrderOfAStep: the map is made, then the layers, what was found is added,
// the model is asked, its answer is written down, and only then are its calls made
// and their results written (S2.58, S3.11, S3.17).
func TestS311OrderOfAStep(t *testing.T) {
	var order []string
	note := func(s string) {
		if n := len(order); n == 0 || order[n-1] != s {
			order = append(order, s)
		}
	}
	r := open(t, setting{config: func(c *Config) {
		layers := c.Layers
		c.Layers = func(ctx context.Context, in LayerInput) ([]prompt.Layer, []event.Notice, error) {
			if in.Map == "" {
				t.Error("the layers come before the map")
			}
			note("layers")
			return layers(ctx, in)
		}
	}})
	var id string
	before := r.does["tool:greet"]
	written := 0
	r.does["tool:greet"] = func(ctx context.Context, c capability.Call) (capability.Result, error) {
		_, entries, err := r.sessions.Read(ctx, ada, id)
		for _, e := range entries {
			written += len(callsOf(e.Blocks))
		}
		if err != nil {
			return capability.Result{}, err
		}
		return before(ctx, c)
	}
	script := llmtest.Replies(answers(greet("A")), text("Done."))
	id = r.begin(func(s llmtest.Seen) llmtest.Reply { note("asked"); return script(s) })
	r.watch(t.Context(), event.Input{Session: id, Text: "hello"}, func(e event.Event) { note(strings.TrimPrefix(fmt.Sprintf("%T", e), "event.")) })
	if want := "layers Selected asked Step Started Finished asked Delta Step Done"; strings.Join(order, " ") != want {
		t.Errorf("order = %v, want %v", order, want)
	}
	if written != 1 {
		t.Errorf("when the call was made %d calls were written down, want it alone", written)
	}
}

// TestS2U10FindingBreaks: finding that breaks once is tried again. The turn goes on
// with what is found, or without it, and says so, or ends if configured to (C21).
func TestS2U10FindingBreaks(t *testing.T) {
	testkit.CI(t, "finds among hundreds of tools")
	for _, c := range []struct {
		name   string
		times  int
		closed bool
	}{{"once", 1, false}, {"always", 9, false}, {"closed", 9, true}} {
		times := 0
		r := open(t, setting{tools: many(300), config: terms(Terms{Closed: c.closed}), find: func() {
			if times++; times <= c.times {
				panic("the index is gone")
			}
		}})
		events := r.say(r.begin(llmtest.Always(text("Hello."))), "please do thing number 7 with colours")
		if c.closed {
			contains(t, "why", done(t, events, event.EndFailed).Why, "fail_open")
			continue
		}
		done(t, events, event.EndAnswer)
		if n := of[event.Notice](events); len(n) == 0 || n[0].Name != "degraded" {
			t.Errorf("%s: notices = %v, want that it is degraded", c.name, n)
		}
		if s := of[event.Selected](events); len(s) != 1 || (len(s[0].Added) > 0) != (c.name == "once") {
			t.Errorf("%s: Selected = %+v", c.name, s)
		}
		if tools := r.fake.Requests()[0].Request.Tools; !slices.ContainsFunc(tools, func(x llm.Tool) bool { return x.Name == toolDiscover }) {
			t.Errorf("%s: the core tools are gone too", c.name)
		}
	}
}

// TestAppendOnly: within a session a request begins with the bytes of the one
// before, whatever happens in it but for a compaction.
func TestAppendOnly(t *testing.T) {
	testkit.CI(t, "finds among hundreds of tools")
	r := open(t, setting{tools: many(300)})
	n := 0
	id := r.begin(func(llmtest.Seen) llmtest.Reply {
		n++
		if n%3 != 0 {
			return answers(invoke(fmt.Sprintf("tool:thing%d", n), `{}`), call(toolDiscover, fmt.Sprintf(`{"query":"thing number %d"}`, n)))
		}
		return text("Done.")
	})
	for i := range 6 {
		done(t, r.say(id, fmt.Sprintf("please do thing number %d with colours", i*7)), event.EndAnswer)
		if n := of[event.Notice](r.events); len(n) > 0 {
			t.Errorf("notices %+v", n)
		}
	}
	appendOnly(t, r.fake.Requests())
}

// appendOnly checks that each request begins with the one before.
func appendOnly(t *testing.T, seen []llmtest.Seen) {
	t.Helper()
	for i := 1; i < len(seen); i++ {
		if why := prompt.Broke(seen[i-1].Request, seen[i].Request); why != "" {
			t.Errorf("request %d broke the prefix: %s", i+1, why)
		}
	}
}

// TestCatalogNews: what changed in the catalog is told in the newest message; the
// prefix stays.
func TestCatalogNews(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Always(text("Hello.")))
	r.say(id, "hello")
	becomes("tool:weather", "Weather forecast for a city", anySchema, reading, "sunny")(r, id)
	r.say(id, "hello again")
	r.say(id, "and again")
	seen := r.fake.Requests()
	appendOnly(t, seen)
	last, _ := json.Marshal(seen[2].Request.Messages)
	if n := strings.Count(string(last), "The capabilities have changed"); n != 1 {
		t.Errorf("the news was told %d times, want once", n)
	}
	contains(t, "the news", string(last), "weather")
}

// TestS141Filters: a plugin sees what was injected, after AGENTS.md, and what it
// leaves out is out.
func TestS141Filters(t *testing.T) {
	testkit.CI(t, "finds among hundreds of tools")
	for _, what := range []string{"keep", "drop", "change", "fail"} {
		f := &filter{do: what}
		r := open(t, setting{config: func(c *Config) { c.Filters = []plugin.ContextFilter{f} }, tools: many(300)})
		id := r.begin(llmtest.Always(text("Hello.")))
		done(t, r.say(id, "please do thing number 7 with colours"), event.EndAnswer)
		if !f.saw {
			t.Errorf("%s: the plugin did not see CAPABILITIES.md", what)
		}
		sent, _ := json.Marshal(r.fake.Requests()[0].Request.Messages)
		if shown := strings.Contains(string(sent), "Does thing number 7"); shown != (what == "keep") {
			t.Errorf("%s: shown %v: %s", what, shown, sent)
		}
		if what == "change" {
			contains(t, "the message", string(sent), "nothing to see")
		}
	}
}

type filter struct {
	do  string
	saw bool
}

func (*filter) Name() string { return "filter" }

func (f *filter) FilterContext(_ context.Context, files []plugin.File) ([]plugin.File, error) {
	for i := range files {
		if files[i].Name == prompt.CapabilitiesFile {
			f.saw = true
			switch f.do {
			case "drop":
				return slices.Delete(files, i, i+1), nil
			case "change":
				files[i].Text = "nothing to see"
			case "fail":
				return nil, errors.New("it broke")
			}
		}
	}
	return files, nil
}

// TestOutputComesLive: what a call writes is told while it runs, in whole
// characters.
func TestOutputComesLive(t *testing.T) {
	r := open(t, setting{tools: func(r *rig) {
		r.tool("tool:talk", "Talks", anySchema, reading, func(_ context.Context, c capability.Call) (capability.Result, error) {
			for _, b := range []byte("héllo €") {
				if _, err := c.Live.Write([]byte{b}); err != nil {
					return capability.Result{}, err
				}
			}
			return said("done")
		})
	}})
	id := r.begin(llmtest.Replies(answers(invoke("tool:talk", `{}`)), text("Done.")))
	got := ""
	for _, o := range of[event.Output](r.say(id, "talk")) {
		if strings.ContainsRune(o.Text, '\uFFFD') {
			t.Errorf("half a character: %q", o.Text)
		}
		got += o.Text
	}
	if got != "héllo €" {
		t.Errorf("output = %q", got)
	}
}

// TestParallelReads: neighbours that read run at once, and what changes something
// runs alone.
func TestParallelReads(t *testing.T) {
	var now, alone atomic.Int32
	gate := make(chan struct{})
	r := open(t, setting{config: terms(Terms{Limits: Limits{Parallel: 3}}), tools: func(r *rig) {
		r.tool("tool:look", "Looks", anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) {
			defer now.Add(-1)
			if n := now.Add(1); n == 3 {
				close(gate)
			} else if n > 3 {
				t.Errorf("%d at once, want 3", n)
			}
			<-gate // until there are three
			return said("seen")
		})
		r.tool("tool:slow", "Changes", anySchema, changing, func(context.Context, capability.Call) (capability.Result, error) {
			alone.Store(now.Load())
			return said("changed")
		})
	}})
	look := func(n int) llm.ToolCall { return invoke("tool:look", fmt.Sprintf(`{"n":%d}`, n)) }
	id := r.begin(llmtest.Replies(answers(look(1), look(2), look(3), invoke("tool:slow", `{}`)), text("Done.")))
	done(t, r.say(id, "look"), event.EndAnswer)
	if r.count("tool:slow") != 1 || alone.Load() != 0 {
		t.Errorf("%d ran beside what changes, want none", alone.Load())
	}
}

// TestEnded: Ended is called once for every turn, with how it ended and when it
// began.
func TestEnded(t *testing.T) {
	var ends []event.Done
	began := time.Now()
	r := open(t, setting{config: func(c *Config) {
		c.Ended = func(d event.Done, at time.Time) {
			if at.Before(began) || at.After(time.Now()) {
				t.Errorf("the turn began at %v", at)
			}
			ends = append(ends, d)
		}
	}})
	id := r.begin(llmtest.Replies(text("Done."), llmtest.Reply{Fault: llmtest.Auth}))
	r.say(id, "hello")
	r.say(id, "again")
	if len(ends) != 2 || ends[0].Reason != event.EndAnswer || ends[0].Session != id || ends[0].Turn != 1 || ends[1].Reason != event.EndFailed || ends[1].Turn != 2 {
		t.Errorf("ends = %+v", ends)
	}
}

// many adds tools.
func many(n int) func(*rig) {
	return func(r *rig) {
		for i := range n {
			r.tool(fmt.Sprintf("tool:thing%d", i), fmt.Sprintf("Does thing number %d with colours", i), anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) { return said("did") })
		}
	}
}

// TestManyTurnsAtOnce: nothing is left behind when they are over.
func TestManyTurnsAtOnce(t *testing.T) {
	r := open(t, setting{tools: many(100)})
	atOnce(t, r, 20, func() {})
	if n := r.waiters.Len(); n != 0 {
		t.Errorf("%d questions are left behind", n)
	}
}

// BenchmarkManyTurns is what a turn takes that waits for its model, and a session
// at rest, with a thousand of them.
func BenchmarkManyTurns(b *testing.B) {
	for b.Loop() {
		const turns = 1000
		r := open(b, setting{tools: many(100)})
		before := heap()
		atOnce(b, r, turns, func() { b.ReportMetric(float64(heap()-before)/turns/1000, "waiting-KB") })
		b.ReportMetric((float64(heap())-float64(before))/turns/1000, "resting-KB")
	}
}

// atOnce takes turns that wait for their models at the same time, calls between
// while all of them do, and lets them end.
func atOnce(t testing.TB, r *rig, turns int, between func()) {
	t.Helper()
	hold := make(chan struct{})
	var waiting, all sync.WaitGroup
	waiting.Add(turns)
	r.model = holding{hold, &waiting}
	for range turns {
		id := r.session()
		all.Go(func() {
			events, err := r.try(context.Background(), event.Input{Session: id, Text: "please do thing number 7 with colours", Alone: true})
			if err != nil || events[len(events)-1].(event.Done).Reason != event.EndAnswer {
				t.Errorf("turn = %v, %v", events, err)
			}
		})
	}
	waiting.Wait()
	between()
	close(hold)
	all.Wait()
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// holding is a model that answers when it is let go.
type holding struct {
	hold    <-chan struct{}
	waiting *sync.WaitGroup
}

func (h holding) Generate(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		h.waiting.Done()
		<-h.hold
		if yield(llm.Chunk{Text: "Hello."}, nil) {
			yield(llm.Chunk{Stop: llm.StopEnd, Usage: &llm.Usage{}}, nil)
		}
	}
}

// TestAccount: what stands in a prompt for capabilities is what the session
// holds for them, and a later turn adds only what is new.
func TestAccount(t *testing.T) {
	for _, delivery := range []model.DeliveryMode{model.Bridge, model.Whole} {
		var ends []event.Done
		r := open(t, setting{config: func(c *Config) {
			c.Terms, c.Ended = Terms{Delivery: delivery}.Always, func(d event.Done, _ time.Time) { ends = append(ends, d) }
		}})
		id := r.begin(llmtest.Replies(
			text("Hello."), answers(llm.ToolCall{ID: "d1", Name: toolDescribe, Arguments: []byte(`{"id":"tool:greet"}`)}), text("Done.")))
		done(t, r.say(id, "greet somebody by name"), event.EndAnswer)
		done(t, r.say(id, "greet somebody by name"), event.EndAnswer)
		if len(ends) != 2 {
			t.Fatalf("%s: %d turns ended, want 2", delivery, len(ends))
		}
		_, entries, err := r.sessions.Read(t.Context(), ada, id)
		if err != nil {
			t.Fatal(err)
		}
		var added, looked, catalog int
		for _, e := range session.Live(entries) {
			switch e.Kind {
			case session.Added:
				added += e.Tokens
			case session.Results:
				if delivery == model.Bridge { // with all tools listed, what is read counts on neither side
					looked += e.Tokens // the description alone
				}
			case session.Prefix:
				for _, tool := range e.Tools {
					if tool.Name != toolRead && tool.Name != toolAsk && tool.Name != toolFinish {
						catalog += prompt.ToolTokens(r.Engine.cfg.Count, []llm.Tool{tool})
					}
				}
			}
		}
		first, second := ends[0].Account, ends[1].Account
		if second.Shown < added+looked+catalog || second.Shown > added+looked+catalog+300 { // and the map
			t.Errorf("%s: Shown = %d, want %d and the map", delivery, second.Shown, added+looked+catalog)
		}
		if first.Added != first.Shown || first.Shown == 0 || second.Added != second.Shown-first.Shown || second.Added < looked {
			t.Errorf("%s: accounts = %+v, %+v; want the first to add all of it, the second the rest", delivery, first, second)
		}
	}
}
