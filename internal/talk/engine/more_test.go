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
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
	"ken/plugin"
)

// TestS502SlashCommand: a command runs under the person's own authority, without
// a model and without an intent, and is part of the history (C32).
func TestS502SlashCommand(t *testing.T) {
	r := open(t, setting{rules: strict, config: func(c *Config) {
		c.Command = func(_ context.Context, in event.Input) (event.Command, bool, error) {
			switch word, rest, _ := strings.Cut(in.Text, " "); word {
			case "/save":
				args, _ := json.Marshal(map[string]string{"name": rest})
				return event.Command{Call: capability.Call{Target: "tool:save", Arguments: args}}, true, nil
			case "/help":
				return event.Command{Text: "There is /save."}, true, nil
			case "/wrong":
				return event.Command{}, true, errors.New("no such command")
			}
			return event.Command{}, false, nil
		}
	}})
	id := r.begin(llmtest.Always(text("Hello.")))
	r.cfg.Model = func(context.Context, session.Head, Retry) (Model, error) {
		return Model{}, errors.New("no model is chosen")
	}
	r.Engine = New(r.cfg)
	events := r.say(id, "/save it")
	if d := done(t, events, event.EndCommand); d.Text != "saved" || d.Calls != 1 {
		t.Errorf("Done = %+v", d)
	}
	if c := r.calls[0]; c.Origin != capability.ByPerson || c.Intent != "" {
		t.Errorf("the call is %+v, want the person's own", c)
	}
	if d := done(t, r.say(id, "/help"), event.EndCommand); d.Text != "There is /save." {
		t.Errorf("Done = %+v", d)
	}
	contains(t, "why", done(t, r.say(id, "/wrong"), event.EndFailed).Why, "no such command")
	contains(t, "why", done(t, r.say(id, "/else"), event.EndFailed).Why, "no model is chosen")
	r.cfg.Model = nil
	fake := &llmtest.Fake{Script: llmtest.Always(text("I see."))}
	r.cfg.Model = func(context.Context, session.Head, Retry) (Model, error) { return Model{Model: fake, Row: r.row}, nil }
	r.Engine = New(r.cfg)
	done(t, r.say(id, "what did I do?"), event.EndAnswer)
	sent, _ := json.Marshal(fake.Requests()[0].Request.Messages)
	contains(t, "what the model knows", string(sent), "/save it", "saved")
	r.entries(id)
}

// TestS258Order: discover, list tools, render, build the prompt, complete.
func TestS258Order(t *testing.T) {
	var order []string
	var mu sync.Mutex
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
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
	id := r.begin(func(llmtest.Seen) llmtest.Reply { note("complete"); return text("Hello.") })
	for e := range r.Turn(context.Background(), event.Input{Principal: ada, Session: id, Text: "greet"}) {
		if _, ok := e.(event.Selected); ok {
			note("selected")
		}
	}
	if want := []string{"layers", "selected", "complete"}; !slices.Equal(order, want) {
		t.Errorf("order = %v, want %v", order, want)
	}
}

// TestS2U10FindingBreaks: the turn goes on without what was not found and says
// so, or ends if configured to (C21).
func TestS2U10FindingBreaks(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := open(t, setting{find: func() { panic("the index is gone") }, config: func(c *Config) { c.Terms = Terms{Closed: closed}.Always }})
		fake := &llmtest.Fake{Script: llmtest.Always(text("Hello."))}
		r.model = fake
		id := r.session()
		events := r.say(id, "greet somebody")
		if closed {
			contains(t, "why", done(t, events, event.EndFailed).Why, "fail_open")
			continue
		}
		done(t, events, event.EndAnswer)
		if n := of[event.Notice](events); len(n) == 0 || n[0].Name != "degraded" {
			t.Errorf("notices = %v, want that it is degraded", n)
		}
		if tools := fake.Requests()[0].Request.Tools; !slices.ContainsFunc(tools, func(x llm.Tool) bool { return x.Name == toolDiscover }) {
			t.Error("the core tools are gone too")
		}
	}
}

// TestAppendOnly: within a session a request begins with the bytes of the one
// before, whatever happens in it but for a compaction.
func TestAppendOnly(t *testing.T) {
	r := open(t, setting{tools: many(300)})
	n := 0
	fake := &llmtest.Fake{Script: func(llmtest.Seen) llmtest.Reply {
		n++
		if n%3 != 0 {
			return answers(invoke(fmt.Sprintf("tool:thing%d", n), `{}`), call(toolDiscover, fmt.Sprintf(`{"query":"thing number %d"}`, n)))
		}
		return text("Done.")
	}}
	r.model = fake
	id := r.session()
	for i := range 6 {
		events := r.say(id, fmt.Sprintf("please do thing number %d with colours", i*7))
		done(t, events, event.EndAnswer)
		for _, x := range of[event.Notice](events) {
			t.Errorf("notice %+v", x)
		}
	}
	seen := fake.Requests()
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
	fake := &llmtest.Fake{Script: llmtest.Always(text("Hello."))}
	r.model = fake
	id := r.session()
	r.say(id, "hello")
	r.tool("tool:weather", "Weather forecast for a city", anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) { return said("sunny") })
	if err := r.catalog.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.say(id, "hello again")
	r.say(id, "and again")
	seen := fake.Requests()
	if why := prompt.Broke(seen[0].Request, seen[1].Request); why != "" {
		t.Errorf("the prefix broke: %s", why)
	}
	last, _ := json.Marshal(seen[2].Request.Messages)
	if n := strings.Count(string(last), "The capabilities have changed"); n != 1 {
		t.Errorf("the news was told %d times, want once", n)
	}
	contains(t, "the news", string(last), "weather")
}

// TestS141Filters: a plugin sees what was injected, after AGENTS.md, and what it
// leaves out is out.
func TestS141Filters(t *testing.T) {
	for _, what := range []string{"keep", "drop", "change", "fail"} {
		f := &filter{do: what}
		r := open(t, setting{config: func(c *Config) { c.Filters = []plugin.ContextFilter{f} }, tools: many(300)})
		fake := &llmtest.Fake{Script: llmtest.Always(text("Hello."))}
		r.model = fake
		id := r.session()
		done(t, r.say(id, "please do thing number 7 with colours"), event.EndAnswer)
		if !f.saw {
			t.Errorf("%s: the plugin did not see CAPABILITIES.md", what)
		}
		sent, _ := json.Marshal(fake.Requests()[0].Request.Messages)
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

// TestParallelReads: neighbours that read run at once, at most as many as may,
// and what changes something runs alone.
func TestParallelReads(t *testing.T) {
	var now, most, alone atomic.Int32
	gate := make(chan struct{})
	r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Limits: Limits{Parallel: 3}}.Always }, tools: func(r *rig) {
		r.tool("tool:look", "Looks", anySchema, reading, func(ctx context.Context, _ capability.Call) (capability.Result, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for {
				m := most.Load()
				if n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			if n == 3 {
				close(gate)
			}
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return said("seen")
		})
		r.tool("tool:slow", "Changes", anySchema, changing, func(context.Context, capability.Call) (capability.Result, error) {
			alone.Store(now.Load())
			return said("changed")
		})
	}})
	var calls []llm.ToolCall
	for i := range 3 {
		calls = append(calls, invoke("tool:look", fmt.Sprintf(`{"n":%d}`, i)))
	}
	calls = append(calls, invoke("tool:slow", `{}`))
	id := r.begin(llmtest.Replies(answers(calls...), text("Done.")))
	done(t, r.say(id, "look"), event.EndAnswer)
	if most.Load() != 3 || alone.Load() != 0 {
		t.Errorf("%d at once, want 3; %d beside what changes, want none", most.Load(), alone.Load())
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
			r.tool(fmt.Sprintf("tool:thing%d", i), fmt.Sprintf("Does thing number %d with colours", i), anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) {
				return said("did")
			})
		}
	}
}

// TestAThousandTurnsAtOnce: memory stays bounded, and nothing is left behind
// when they are over.
func TestAThousandTurnsAtOnce(t *testing.T) {
	turns := 1000
	if testing.Short() {
		turns = 200
	}
	r := open(t, setting{tools: many(100)})
	hold := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Add(turns)
	r.model = holding{hold, &waiting}
	ids := make([]string, turns)
	for i := range ids {
		ids[i] = r.session()
	}
	before := heap()
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			defer func() {
				select {
				case <-hold:
				default: // it ended before it asked the model, and the test must not wait for it
					waiting.Done()
				}
			}()
			events, err := r.try(context.Background(), event.Input{Session: id, Text: "please do thing number 7 with colours", Alone: true})
			if err != nil {
				t.Error(err)
				return
			}
			if d, ok := events[len(events)-1].(event.Done); !ok || d.Reason != event.EndAnswer {
				t.Errorf("Done = %+v", d)
			}
		})
	}
	waiting.Wait()
	each := int64(heap()-before) / int64(turns)
	close(hold)
	wg.Wait()
	if each > 100<<10 {
		t.Errorf("a turn that waits for its model takes %d KB, want at most 100", each>>10)
	}
	after := (int64(heap()) - int64(before)) / int64(turns)
	t.Logf("a turn takes %d KB, and a session at rest %d bytes", each>>10, after)
	if after > 20<<10 {
		t.Errorf("a session at rest takes %d bytes, want at most 20 KB", after)
	}
	if n := r.waiters.Len(); n != 0 {
		t.Errorf("%d questions are left behind", n)
	}
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
