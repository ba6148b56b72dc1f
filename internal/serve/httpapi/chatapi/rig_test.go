package chatapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/know/source"
	"ken/internal/run/runner"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/stream"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/engine"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/talk/slash"
	"ken/internal/testkit"
	"ken/internal/testkit/runtest"
	"ken/internal/testkit/storetest"
	"ken/llm"
	"ken/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rig is the routes on a real server, over a real engine, door, runner, desk
// and store, with tools that are Go functions and a model that follows a script.
type rig struct {
	t        testing.TB
	url      string
	client   *http.Client
	hub      *stream.Hub
	engine   *engine.Engine
	sessions *session.Store
	desk     *approval.Desk
	memory   *source.Memory

	mu    sync.Mutex
	does  map[capability.ID]capability.InvokerFunc
	model llm.Model
	made  []string
	kept  map[string][]byte
	inp   event.Input // of the last turn
}

func (r *rig) Facts(context.Context, capability.Call, *capability.Capability) (runner.Facts, error) {
	return runner.Facts{}, nil
}

func (r *rig) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	r.mu.Lock()
	does := r.does[call.Target]
	r.made = append(r.made, string(call.Target))
	r.mu.Unlock()
	return does(ctx, call)
}

func said(text string) (capability.Result, error) {
	return capability.Result{Parts: []capability.Part{{Text: text}}}, nil
}

func (r *rig) tool(id, about string, e capability.Effects, f capability.InvokerFunc) {
	_, name, _ := strings.Cut(id, ":")
	r.memory.Put(capability.Capability{
		ID: capability.ID(id), Kind: capability.KindTool, Name: name, Description: about, Category: "test", Effects: e,
		Run: &capability.Recipe{Runner: "mcp.call"},
	}, capability.Detail{Schema: json.RawMessage(`{"type":"object"}`)})
	r.does[capability.ID(id)] = f
}

var (
	reading  = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}
	changing = capability.Effects{ReadOnly: capability.No, OpenWorld: capability.No, Destructive: capability.No}
)

func open(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, does: map[capability.ID]capability.InvokerFunc{}, memory: source.NewMemory("test", capability.TrustUser), kept: map[string][]byte{}}
	r.tool("tool:greet", "Greet somebody by name", reading, func(_ context.Context, c capability.Call) (capability.Result, error) {
		return said("hello " + string(c.Arguments))
	})
	r.tool("tool:save", "Save a note to the notebook", changing, func(context.Context, capability.Call) (capability.Result, error) { return said("saved") })
	r.tool("tool:wait", "Waits until it is stopped", reading, func(ctx context.Context, _ capability.Call) (capability.Result, error) {
		<-ctx.Done()
		return capability.Result{}, ctx.Err()
	})
	d := runtest.Open(t, runtest.Load(t, r.memory), nil, func(s *policy.Settings) {
		s.Intents, s.Permissions = policy.Off, map[policy.Permission]policy.Effect{}
		s.Rules = []policy.Rule{{ID: "ask.save", Effect: policy.Ask, Capabilities: []string{"tool:save"}, Reason: "the tests say so", Where: "test:1"}}
		all := policy.Mode{Groups: []policy.Group{policy.GroupRead, policy.GroupEdit, policy.GroupCommand, policy.GroupMCP}}
		s.Modes = map[string]policy.Mode{"plan": all, "build": all}
	})
	d.Run(t, storetest.Address(t), nil, func() runner.Executors { return runner.Executors{"mcp.*": r} })
	r.desk = d.Desk
	r.sessions = session.New(d.Store, session.Config{})
	r.engine = engine.New(engine.Config{
		Door: d.Door, Sessions: r.sessions,
		Model: func(context.Context, session.Head, engine.Retry) (engine.Model, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return engine.Model{Model: r.model, Name: "m", Row: model.Row{Window: 200_000, Images: true}}, nil
		},
		Reads: func(e *door.Entry) bool { return policy.Of(e.Capability).Class == policy.Read },
		Layers: func(_ context.Context, in engine.LayerInput) ([]prompt.Layer, []event.Notice, error) {
			return []prompt.Layer{{Name: prompt.Base, Text: "You are Ken.", Must: true}, {Name: prompt.Map, Text: in.Map}}, nil, nil
		},
		Command: func(_ context.Context, in event.Input) (event.Command, bool, error) {
			word, _, _ := strings.Cut(in.Text, " ")
			args, ok := map[string]string{"/greet": `{"name":"you"}`, "/save": `{}`}[word]
			return event.Command{Call: capability.Call{Target: capability.ID("tool:" + strings.TrimPrefix(word, "/")), Arguments: []byte(args), Principal: in.Principal}}, ok, nil
		},
		Ticket: func(context.Context, string) (event.Ticket, error) { return event.Ticket{}, nil },
		Wait: func(ctx context.Context, id string) (bool, error) {
			ticket, err := r.desk.Wait(ctx, id)
			if err != nil {
				return false, err
			}
			return ticket.State == approval.Granted, ticket.Err()
		},
	})
	r.hub = stream.New(stream.Config{
		Turn: func(ctx context.Context, in event.Input) iter.Seq2[event.Event, error] {
			r.mu.Lock()
			r.inp = in
			r.mu.Unlock()
			return r.engine.Turn(ctx, in)
		},
		Keep: func(_ context.Context, who capability.Principal, id string, turn int, record []byte) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.kept[fmt.Sprint(who.Tenant, who.ID, id, turn)] = record
			return nil
		},
		Last: func(ctx context.Context, who capability.Principal, id string) (int, error) {
			h, err := r.sessions.Head(ctx, who, id)
			return h.Last, err
		},
	})
	r.serve()
	return r
}

// reply does what the program does: consent at the desk, the rest to the engine.
func (r *rig) reply(ctx context.Context, who capability.Principal, id string, asked event.Asked, a Answer) error {
	if asked.What != event.Consent {
		return r.engine.Reply(ctx, who, id, asked.ID, event.Reply{Yes: a.Yes, Text: a.Text, Answers: a.Answers})
	}
	answer := approval.Answer{By: who, Effect: approval.No, Scope: approval.Once}
	if a.Yes {
		answer.Effect = approval.Yes
	}
	if a.Scope != "" {
		answer.Scope = a.Scope
	}
	_, err := r.desk.Settle(ctx, asked.Ticket, answer)
	return err
}

// serve puts the routes on a server. Who asks is what the header says.
func (r *rig) serve() {
	seen := slash.New([]slash.Command{{Name: "greet", Summary: "Greet somebody"}, {Name: "save", Summary: "Save a note"}})
	index := slash.New([]slash.Command{{Name: "greet", Summary: "Greet somebody"}, {Name: "hidden", Summary: "Not for agents"}, {Name: "save", Summary: "Save a note"}})
	routes := Routes(Config{
		Hub: r.hub, Folder: "/work", Modes: func() []string { return []string{"plan", "build"} }, Reply: r.reply,
		Sessions: func() (*session.Store, error) { return r.sessions, nil },
		Engine:   func() (Engine, error) { return r.engine, nil },
		Commands: func(who auth.Identity) *slash.Index {
			if !who.Decides {
				return seen
			}
			return index
		},
		Inspect: func(_ context.Context, who capability.Principal, id string, turn int) ([]byte, bool, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			record, ok := r.kept[fmt.Sprint(who.Tenant, who.ID, id, turn)]
			return record, ok, nil
		},
		FindAgain: func(_ context.Context, _ capability.Principal, _ session.Head, text string) (door.Found, error) {
			var f door.Found
			f.Query = text
			return f, nil
		},
	})
	mux := wire.NewMux(slog.New(slog.DiscardHandler), auth.HandlerFunc(func(w http.ResponseWriter, _ *http.Request, _ auth.Identity) {
		wire.Missing("nothing").Write(w)
	}), routes...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		tenant, id, _ := strings.Cut(q.Header.Get("Who"), "/")
		id, agent := strings.CutSuffix(id, "'s agent")
		mux.ServeAs(w, q, auth.Identity{Principal: capability.Principal{Tenant: tenant, ID: id}, Operator: q.Header.Get("Operator") != "", Decides: !agent})
	}))
	r.url, r.client = server.URL, server.Client()
	r.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.hub.Drain(ctx) // what still runs is aborted
		server.Close()
	})
}

const ada = "acme/ada"

// script lets the model answer so.
func (r *rig) script(replies ...llmtest.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model = &llmtest.Fake{Script: llmtest.Replies(replies...)}
}

func (r *rig) calls() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.made, " ")
}

func invoke(id, args string) llm.ToolCall {
	return llm.ToolCall{Name: "invoke_capability", Arguments: fmt.Appendf(nil, `{"capability":%q,"arguments":%s}`, id, args)}
}

// A reply of the server, read whole.
type answer struct {
	status int
	body   []byte
}

func (a answer) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(a.body, &p)
	return p.Code
}

// request makes a request of somebody's.
func (r *rig) request(who, method, path, body string, header ...string) *http.Response {
	r.t.Helper()
	req := testkit.Must(http.NewRequest(method, r.url+path, strings.NewReader(body)))(r.t)
	req.Header.Set("Who", who)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res := testkit.Must(r.client.Do(req))(r.t)
	return res
}

func (r *rig) ask(who, method, path, body string) answer {
	r.t.Helper()
	res := r.request(who, method, path, body)
	defer res.Body.Close()
	data := testkit.Must(io.ReadAll(res.Body))(r.t)
	return answer{res.StatusCode, data}
}

// want makes a request whose answer must have a status and, for a problem, a code.
func (r *rig) want(status int, code, who, method, path, body string) {
	r.t.Helper()
	if a := r.ask(who, method, path, body); a.status != status || code != "" && a.code() != code {
		r.t.Errorf("%s: %s %s %s = %d %s, want %d %s", who, method, path, body, a.status, a.body, status, code)
	}
}

// do makes a request that must succeed, and reads the answer.
func do[T any](r *rig, method, path, body string) (v T) {
	r.t.Helper()
	a := r.ask(ada, method, path, body)
	if a.status >= 300 {
		r.t.Fatalf("%s %s = %d %s", method, path, a.status, a.body)
	}
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &v); err != nil {
			r.t.Fatalf("%s %s = %s: %v", method, path, a.body, err)
		}
	}
	return v
}

func (r *rig) begin() string {
	r.t.Helper()
	return do[SessionHead](r, "POST", "/api/v1/sessions", "{}").ID
}

func at(id, rest string) string { return "/api/v1/sessions/" + id + rest }

// streamed is an event as a client reads it.
type streamed struct {
	id, name string
	data     map[string]any
}

// A follower reads events.
type follower struct {
	t     testing.TB
	body  io.ReadCloser
	lines *bufio.Reader
	stop  *time.Timer
}

func (r *rig) follow(path, after string) *follower {
	r.t.Helper()
	header := []string{"Accept", "text/event-stream"}
	if after != "" {
		header = append(header, "Last-Event-ID", after)
	}
	return r.read(r.request(ada, "GET", path, "", header...))
}

func (r *rig) read(res *http.Response) *follower {
	r.t.Helper()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		r.t.Fatalf("following = %d %s", res.StatusCode, body)
	}
	f := &follower{t: r.t, body: res.Body, lines: bufio.NewReader(res.Body)}
	f.stop = time.AfterFunc(testkit.Patience, func() { _ = res.Body.Close() })
	return f
}

func (f *follower) close() {
	f.stop.Stop()
	_ = f.body.Close()
}

// next returns the next event; not ok: the stream is over.
func (f *follower) next() (e streamed, ok bool) {
	f.t.Helper()
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			return e, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e.name != "":
			return e, true
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			dec := json.NewDecoder(bytes.NewReader([]byte(value)))
			dec.UseNumber()
			if err := dec.Decode(&e.data); err != nil || e.data["type"] != e.name || !strings.HasPrefix(value, `{"type":`) {
				f.t.Errorf("the data of %s is %s: %v", e.name, value, err)
			}
		}
	}
}

// until reads up to the first event of a name.
func (f *follower) until(name string) (list []streamed) {
	f.t.Helper()
	for {
		e, ok := f.next()
		if !ok {
			f.t.Fatalf("the stream ended after %s, before %s", names(list), name)
		}
		if list = append(list, e); e.name == name {
			return list
		}
	}
}

func names(list []streamed) string {
	var out []string
	for _, e := range list {
		if n := len(out); e.name != "delta" || n == 0 || out[n-1] != "delta" {
			out = append(out, e.name)
		}
	}
	return strings.Join(out, " ")
}
