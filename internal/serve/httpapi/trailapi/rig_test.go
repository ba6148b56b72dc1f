package trailapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/run/queue"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/slash"
	"ken/internal/testkit"
	"ken/internal/testkit/runtest"
	"ken/internal/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The people: ann and bob work for one tenant, where boss may answer for others;
// cyn has ann's name elsewhere, and root runs Ken. Three sit at a browser; bot is a
// program with a token of ann's, imp an agent of hers, and aide one of boss's.
func people() map[string]auth.Identity {
	return map[string]auth.Identity{
		"ann":  {Principal: capability.Principal{ID: "ann", Tenant: "acme"}, Person: true, Decides: true},
		"bob":  {Principal: capability.Principal{ID: "bob", Tenant: "acme"}, Person: true, Decides: true},
		"boss": {Principal: capability.Principal{ID: "boss", Tenant: "acme", Roles: []string{"approver"}}, Decides: true},
		"cyn":  {Principal: capability.Principal{ID: "ann", Tenant: "other", Roles: []string{"approver"}}, Person: true, Decides: true},
		"root": {Principal: capability.Principal{ID: "root"}, Operator: true, Decides: true},
		"bot":  {Principal: capability.Principal{ID: "ann", Tenant: "acme"}, Decides: true},
		"imp":  {Principal: capability.Principal{ID: "ann", Tenant: "acme"}},
		"aide": {Principal: capability.Principal{ID: "boss", Tenant: "acme", Roles: []string{"approver"}}},
		"none": {},
	}
}

// tools are what can be called, by name: each is a tool that does what it says.
type tools struct{}

func (tools) Facts(_ context.Context, call capability.Call, _ *capability.Capability) (runner.Facts, error) {
	return runner.Facts{Keep: call.Target == "tool:big" || call.Target == "tool:look", Line: "run " + string(call.Arguments)}, nil
}

func (tools) Schema(*capability.Capability) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
}

func (tools) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	text := func(s string) capability.Result { return capability.Result{Parts: []capability.Part{{Text: s}}} }
	switch call.Target {
	case "tool:slow":
		<-ctx.Done()
		return capability.Result{}, ctx.Err()
	case "tool:big":
		return text(strings.Repeat("0123456789abcde\n", 200_000)), nil
	case "tool:image":
		return capability.Result{Parts: []capability.Part{{Text: "seen"}, {Data: make([]byte, 2<<20), MIME: "image/png"}}}, nil
	case "tool:fail":
		return capability.Result{Failed: true, Parts: []capability.Part{{Text: "it did not work"}}}, nil
	case "tool:asks":
		if call.Answers["city"] != nil {
			return text("in " + string(call.Answers["city"])), nil
		}
		return capability.Result{}, &capability.Error{Kind: capability.InputNeeded, Op: "call", Target: string(call.Target), Err: &capability.Inquiry{
			Requests: map[string]json.RawMessage{"city": json.RawMessage(`{"method":"elicitation/create"}`)}, State: "s1",
		}}
	case "tool:talk":
		if s, ok := call.Live.(capability.Streams); ok {
			io.WriteString(s, "one hush-hush\ntwo \xe2\x82")
			io.WriteString(s, "\xac\n")
			io.WriteString(s.Stderr(), "trouble")
			call.Live.(capability.Reporter).Progress(1, 2, "half")
		}
		return text("said"), nil
	}
	return text("did " + string(call.Arguments)), nil
}

func toolSource() *source.Memory {
	m := source.NewMemory("test", capability.TrustUser)
	for _, name := range []string{"look", "slow", "big", "image", "fail", "asks", "talk", "write", "destroy"} {
		c := capability.Capability{Name: name, Description: "does what its name says"}
		c.Effects = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No, Destructive: capability.No}
		if name == "write" || name == "destroy" {
			c.Effects.ReadOnly = capability.No
		}
		if name == "destroy" {
			c.Effects.Destructive = capability.Yes
		}
		m.Put(c, capability.Detail{})
	}
	return m
}

type rig struct {
	*api
	t       testing.TB
	desk    *approval.Desk
	log     *audit.Log
	audit   audit.Config
	source  *source.Memory
	catalog *catalog.Catalog
	server  *httptest.Server
	stop    context.CancelFunc // ends Waiting
}

func newRig(t testing.TB) *rig {
	t.Helper()
	rg := &rig{t: t, source: toolSource()}
	d := runtest.Open(t, runtest.Load(t, rg.source), nil, func(s *policy.Settings) {
		s.Rules = []policy.Rule{{ID: "test.ask", Effect: policy.Ask, Scope: policy.Session, Capabilities: []string{"tool:write"}, Reason: "it writes", Where: "test:1"}}
	})
	limits := runner.Limits{Timeout: testkit.Patience, Grace: 100 * time.Millisecond, Inline: 8 << 20, DataBytes: 8 << 20}.Always
	d.Run(t, storetest.SQLite(t), limits, func() runner.Executors { return runner.Executors{"tool:*": tools{}} }, "approver")
	rg.catalog, rg.desk, rg.log, rg.audit = d.Catalog, d.Desk, d.Log, d.Audit
	jobs, public := queue.NewStored(d.Store, queue.StoredConfig{}), d.Audit.Key.Public()
	waiting, stop := context.WithCancel(context.Background())
	rg.stop = stop
	rg.api = newAPI(Config{
		Door: d.Door, Desk: func() (*approval.Desk, error) { return rg.desk, nil }, Settle: rg.settleOnRecord, Revoke: rg.desk.Revoke,
		Route:    func(_ context.Context, _ auth.Identity, line string) (capability.Call, error) { return routed(line) },
		Lines:    func(t approval.Ticket) []approval.Line { return t.Lines() },
		AuditDir: rg.audit.Dir, Waiting: waiting,
		Verify: func(context.Context) (audit.Report, error) {
			return audit.Verify(rg.audit.Dir, rg.audit.CheckpointDir, public)
		},
		Prove: func(id audit.ID) (audit.Proof, string, error) {
			p, err := audit.Prove(rg.audit.Dir, rg.audit.CheckpointDir, public, id)
			return p, public, err
		},
		Read: readFrom(d.Kept),
		Jobs: func() (queue.Queue, error) { return jobs, nil }, AddJob: jobs.Add,
		RecordJob: func(ctx context.Context, event audit.Event, j queue.Job, by capability.Principal) error {
			rec := audit.ForCall(j.Call)
			rec.Event, rec.UserID = event, by.ID
			_, err := rg.log.Append(ctx, rec)
			return err
		},
		Opens: func(_ context.Context, who auth.Identity, session string) bool {
			return who.Principal.ID == "ann" && session == "begun-by-agent"
		},
		Redact: func(s string) string { return strings.ReplaceAll(s, "hush-hush", "[secret]") },
	})
	rg.serve()
	t.Cleanup(func() {
		stop()
		rg.server.Close()
	})
	return rg
}

// serve serves the routes, to whom the header Who names.
func (rg *rig) serve() {
	other := auth.HandlerFunc(func(w http.ResponseWriter, r *http.Request, _ auth.Identity) { wire.NoSuchPath(w, r) })
	mux := wire.NewMux(slog.New(slog.NewTextHandler(io.Discard, nil)), other, append(rg.routes(), rg.jobRoutes()...)...)
	who := people()
	rg.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeAs(w, r, who[r.Header.Get("Who")]) }))
}

func routed(line string) (capability.Call, error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	if name != "look" {
		return capability.Call{}, &capability.Error{Kind: capability.NotFound, Op: "route", Target: name, Err: &slash.Fault{Message: "there is no such command"}}
	}
	args, err := json.Marshal(map[string]string{"text": rest})
	return capability.Call{Target: "tool:look", Arguments: args, Origin: capability.ByPerson}, err
}

// settleOnRecord is what the application does.
func (rg *rig) settleOnRecord(ctx context.Context, id string, a approval.Answer) (approval.Ticket, error) {
	t, err := rg.desk.Settle(ctx, id, a)
	if err != nil {
		return t, err
	}
	rec := audit.ForCall(t.Question.Call)
	rec.Event, rec.UserID = audit.Approval, a.By.ID
	rec.Metadata.Notes = map[string]string{"ticket": t.ID, "answer": string(a.Effect), "scope": string(a.Scope)}
	_, err = rg.log.Append(ctx, rec)
	return t, err
}

// readFrom reads kept results as the application does.
func readFrom(kept *result.Store) func(context.Context, capability.Principal, string, string, int64) (Piece, error) {
	return func(ctx context.Context, who capability.Principal, session, handle string, from int64) (Piece, error) {
		x, err := kept.Read(ctx, result.Scope{Tenant: who.Tenant, Principal: who.ID, Session: session}, result.Query{Handle: handle, Op: result.OpChars, From: from, Limit: result.Whole})
		p := Piece{Handle: x.Entry.Handle, Target: string(x.Entry.Target), Text: x.Text, From: x.Chars.From, Chars: x.Entry.Kept.Chars, Left: x.Left}
		if x.Chars.To < p.Chars {
			p.Next = x.Chars.To + 1
		}
		return p, err
	}
}

// An exchange is a request and what was answered.
type exchange struct {
	status int
	body   string
	doc    map[string]any
}

func (rg *rig) ask(who, method, path string, body any) exchange {
	rg.t.Helper()
	resp := rg.open(rg.t.Context(), who, method, path, body, "application/json")
	defer resp.Body.Close()
	text := testkit.Must(io.ReadAll(resp.Body))(rg.t)
	x := exchange{status: resp.StatusCode, body: string(text)}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &x.doc); err != nil {
			rg.t.Fatalf("%s %s answers %q: %v", method, path, text, err)
		}
	}
	return x
}

func (rg *rig) open(ctx context.Context, who, method, path string, body any, accept string) *http.Response {
	rg.t.Helper()
	var in io.Reader
	if o, ok := body.(object); ok && path == "/api/v1/invoke" && o["asPerson"] == nil {
		o["intent"] = "READ_FILE" // a program says what for
	}
	if raw, ok := body.(string); ok {
		in = strings.NewReader(raw)
	} else if body != nil {
		b := testkit.Must(json.Marshal(body))(rg.t)
		in = bytes.NewReader(b)
	}
	req := testkit.Must(http.NewRequestWithContext(ctx, method, rg.server.URL+path, in))(rg.t)
	req.Header.Set("Who", who)
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp := testkit.Must(rg.server.Client().Do(req))(rg.t)
	return resp
}

// want asks and holds the answer to a status and, for a problem, its code.
func (rg *rig) want(status int, code, who, method, path string, body any) exchange {
	rg.t.Helper()
	x := rg.ask(who, method, path, body)
	if x.status != status || code != "" && x.doc["code"] != code {
		rg.t.Fatalf("%s: %s %s = %d %.600s, want %d %s", who, method, path, x.status, x.body, status, code)
	}
	return x
}

type object = map[string]any

// asked makes somebody ask for consent and gives the ticket.
func (rg *rig) asked(who, text string) string {
	rg.t.Helper()
	x := rg.want(409, "unapproved", who, "POST", "/api/v1/invoke", object{"target": "tool:destroy", "arguments": object{"text": text}, "session": "s", "asPerson": true})
	id, _ := x.doc["ticket"].(string)
	if id == "" {
		rg.t.Fatalf("unapproved without a ticket: %s", x.body)
	}
	return id
}

func (rg *rig) records(who, query string) []object {
	rg.t.Helper()
	x := rg.want(200, "", who, "GET", "/api/v1/audit"+query, nil)
	return objects(x.doc["records"])
}

func objects(v any) []object {
	list, _ := v.([]any)
	out := make([]object, 0, len(list))
	for _, one := range list {
		out = append(out, one.(object))
	}
	return out
}

// field returns one field of each.
func field(list []object, name string) string {
	var out []string
	for _, o := range list {
		out = append(out, fmt.Sprint(o[name]))
	}
	return strings.Join(out, " ")
}
