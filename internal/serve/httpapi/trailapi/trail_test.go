package trailapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/testkit"
)

// append writes records to the trail.
func (rg *rig) append(records ...audit.Record) {
	rg.t.Helper()
	if _, err := rg.log.Append(rg.t.Context(), records...); err != nil {
		rg.t.Fatal(err)
	}
}

// TestTrail: filters, and who sees what. The script api_calls has the pages.
func TestTrail(t *testing.T) {
	rg := newRig(t)
	for i := range 10 {
		rec := audit.Record{Event: audit.Executed, Status: audit.Completed, UserID: "ann", Tenant: "acme", SessionID: fmt.Sprint("s", i%2), Target: fmt.Sprint("tool:t", i), EffectID: fmt.Sprint("e", i), ExtensionID: "x"}
		switch i {
		case 3:
			rec.UserID = "bob"
		case 4:
			rec.Tenant = "other" // cyn, who has ann's name
		case 5:
			rec.Event, rec.Status, rec.Decision, rec.Error = audit.Violation, audit.Denied, "deny", new("Not Allowed")
		case 6:
			rec.CommandLine = "grep -r secret ."
		}
		rg.append(rec)
	}
	for _, c := range []struct{ who, query, want string }{
		{"root", "", "e9 e8 e7 e6 e5 e4 e3 e2 e1 e0"},
		{"ann", "", "e9 e8 e7 e6 e5 e2 e1 e0"},
		{"ann", "?all=true", "e9 e8 e7 e6 e5 e2 e1 e0"},
		{"ann", "?user=bob", ""},
		{"bob", "", "e3"},
		{"cyn", "", "e4"},
		{"none", "", ""},
		{"root", "?user=bob", "e3"},
		{"root", "?session=s1", "e9 e7 e5 e3 e1"},
		{"root", "?target=tool:t7", "e7"},
		{"root", "?event=security_violation", "e5"},
		{"root", "?event=EXT_RUN_DENIED", "e5"},
		{"root", "?status=DENIED&level=ERROR&decision=deny&ext=x", "e5"},
		{"root", "?ext=y", ""},
		{"root", "?text=not%20allowed", "e5"},
		{"root", "?text=GREP", "e6"},
		{"root", "?text=tool:t8", "e8"},
		{"root", "?since=1h&limit=2", "e9 e8"},
		{"root", "?until=1h", ""},
		{"root", "?limit=0", "e9"},
	} {
		if got := field(rg.records(c.who, c.query), "effect_id"); got != c.want {
			t.Errorf("%s: audit%s = %q, want %q", c.who, c.query, got, c.want)
		}
	}
	all := rg.records("root", "?all=true")
	if last := all[len(all)-1]; last["event"] != "audit_chain_opened" || len(all) != 11 {
		t.Errorf("all=true ends with %v", last)
	}
}

// TestTrailBadLine: what cannot be read is told, to operators with its place, and
// hides nothing else.
func TestTrailBadLine(t *testing.T) {
	rg := newRig(t)
	rg.append(audit.Record{Event: audit.Executed, UserID: "ann", Tenant: "acme"})
	segments, _ := filepath.Glob(rg.audit.Dir + "/*.jsonl")
	f := testkit.Must(os.OpenFile(segments[0], os.O_APPEND|os.O_WRONLY, 0))(t)
	fmt.Fprintln(f, `{"half":1,"user_id":"ann","tenant":"acme"`)
	f.Close()
	x := rg.want(200, "", "root", "GET", "/api/v1/audit", nil)
	if !strings.Contains(x.body, "jsonl: byte") || len(objects(x.doc["records"])) != 1 {
		t.Errorf("an operator is told %s", x.body)
	}
	rg.append(audit.Record{Event: audit.Executed, UserID: "ann", Tenant: "acme"})
	x = rg.want(200, "", "ann", "GET", "/api/v1/audit", nil)
	if problems := fmt.Sprint(x.doc["problems"]); strings.Contains(problems, "jsonl") || !strings.Contains(problems, "cannot be read") {
		t.Errorf("others are told %s", x.body)
	}
}

// TestStory: from any of its records, one call's records are all there, oldest
// first, with the question, the answer and the beginning of the result; for each
// what concerns him.
func TestStory(t *testing.T) {
	rg := newRig(t)
	id := rg.asked("ann", "a")
	rg.want(200, "", "boss", "POST", "/api/v1/approvals/"+id, object{"effect": "grant"})
	rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:destroy", "arguments": object{"text": "a"}, "session": "s", "asPerson": true})
	rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:look", "session": "s"})
	const whole = "capability_asked approval_settled capability_started capability_executed"
	stories := map[string][]string{}
	for _, rec := range rg.records("root", "?target=tool:destroy") {
		for _, who := range []string{"ann", "boss", "root"} {
			x := rg.ask(who, "GET", "/api/v1/audit/"+rec["id"].(string), nil)
			told := fmt.Sprint(x.status)
			if x.status == 200 {
				ticket, _ := x.doc["ticket"].(object)
				told = fmt.Sprint(field(objects(x.doc["records"]), "event"), " ", ticket["id"] == id)
			}
			stories[who] = append(stories[who], told)
		}
	}
	want := map[string][]string{ // newest first; the second record is boss's
		"ann":  {whole + " true", whole + " true", "404", whole + " true"},
		"boss": {"404", "404", "approval_settled true", "404"},                           // sees what he did, and to what
		"root": {whole + " false", whole + " false", whole + " false", whole + " false"}, // an operator who may not settle has no ticket
	}
	if !reflect.DeepEqual(stories, want) {
		t.Errorf("the stories are %v\nwant %v", stories, want)
	}
	look := rg.records("ann", "?target=tool:look&event=capability_executed")[0]
	x := rg.want(200, "", "ann", "GET", "/api/v1/audit/"+look["id"].(string), nil)
	res, _ := x.doc["result"].(object)
	if got := field(objects(x.doc["records"]), "event"); got != "capability_started capability_executed" || res["text"] != "did " || res["session"] != "s" {
		t.Errorf("story = %s with result %v", got, res)
	}
	x = rg.want(200, "", "root", "GET", "/api/v1/audit/"+look["id"].(string), nil)
	if res, _ := x.doc["result"].(object); res["handle"] == nil || res["text"] != nil {
		t.Errorf("an operator gets %v of another's result, want its handle alone", res)
	}
}

// TestProofsAreMadeOneByOne: each reads a chain, and anyone may ask for many. One
// who goes does not wait for those before.
func TestProofsAreMadeOneByOne(t *testing.T) {
	rg := newRig(t)
	rg.append(audit.Record{Event: audit.Executed, UserID: "ann", Tenant: "acme"})
	id := rg.records("ann", "")[0]["id"].(string)
	entered, hold := make(chan struct{}, 2), make(chan struct{})
	rg.Prove = func(audit.ID) (audit.Proof, string, error) {
		entered <- struct{}{}
		<-hold
		return audit.Proof{}, "", nil
	}
	mux := wire.NewMux(nil, nil, rg.routes()...)
	ask := func(ctx context.Context) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeAs(w, httptest.NewRequest("GET", "/api/v1/audit/"+id+"/proof", nil).WithContext(ctx), people()["ann"])
		return w
	}
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- ask(t.Context()) }()
	<-entered
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if w := ask(gone); w.Code != 499 || len(entered) != 0 {
		t.Errorf("a second, whose client has gone, = %d, and %d more are being made; want 499 and none", w.Code, len(entered))
	}
	close(hold)
	if w := <-first; w.Code != http.StatusOK {
		t.Errorf("the first = %d %s, want 200", w.Code, w.Body)
	}
}

// TestProof: whoever sees a record can prove it to others.
func TestProof(t *testing.T) {
	rg := newRig(t)
	rg.append(audit.Record{Event: audit.Executed, UserID: "ann", Tenant: "acme"}, audit.Record{Event: audit.Failed, UserID: "bob", Tenant: "acme"})
	id := rg.records("ann", "")[0]["id"].(string)
	for _, who := range []string{"ann", "root"} {
		x := rg.want(200, "", who, "GET", "/api/v1/audit/"+id+"/proof", nil)
		var p proof
		testkit.OK(t, json.Unmarshal([]byte(x.body), &p))
		if err := audit.CheckProof(p.Proof, p.PublicKey); err != nil || !strings.Contains(p.Line, `"user_id":"ann"`) {
			t.Errorf("%s: the proof does not hold: %v", who, err)
		}
	}
	heads, _ := filepath.Glob(rg.audit.CheckpointDir + "/*")
	for _, h := range heads {
		testkit.OK(t, os.Truncate(h, 0))
	}
	x := rg.want(409, "unproven", "ann", "GET", "/api/v1/audit/"+id+"/proof", nil)
	if strings.Contains(x.body, rg.audit.Dir) {
		t.Errorf("a file of the server is named: %s", x.body)
	}
	rg.want(409, "unproven", "root", "GET", "/api/v1/audit/"+id+"/proof", nil)
}

// TestVerify: only operators ask, one at a time, also where the first client has
// gone. The script api_calls has what is found.
func TestVerify(t *testing.T) {
	rg := newRig(t)
	rg.want(403, "operator-only", "ann", "POST", "/api/v1/audit/verify", object{})
	hold, begun := make(chan struct{}), make(chan struct{}, 1)
	rg.Verify = func(context.Context) (audit.Report, error) {
		begun <- struct{}{}
		<-hold
		return audit.Report{}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	req := httptest.NewRequest("POST", "/api/v1/audit/verify", strings.NewReader("{}")).WithContext(ctx)
	req.Header.Set("Content-Type", "application/json")
	wire.NewMux(nil, nil, rg.routes()...).ServeAs(httptest.NewRecorder(), req, auth.Identity{Operator: true, Principal: capability.Principal{ID: "root"}})
	rg.want(409, "busy", "root", "POST", "/api/v1/audit/verify", object{})
	close(hold)
	testkit.Wait(t, "verify is free", func() bool { return rg.ask("root", "POST", "/api/v1/audit/verify", object{}).status == 200 })
}

// TestApart: what is somebody else's answers exactly as what does not exist, on
// every route, within a tenant and across.
func TestApart(t *testing.T) {
	rg := newRig(t)
	id := rg.asked("ann", "a")
	wide := rg.wide("ann", "s")
	rg.want(200, "", "ann", "POST", "/api/v1/approvals/"+wide, object{"effect": "grant", "scope": "always"})
	grant := objects(rg.want(200, "", "ann", "GET", "/api/v1/grants", nil).doc["grants"])[0]["id"].(string)
	look := rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:look", "session": "s"}).doc["result"].(object)
	handle, rec := look["handle"].(string), look["meta"].(object)["record"].(string)
	rg.want(200, "", "ann", "GET", "/api/v1/results/"+handle+"?session=s", nil)
	rg.want(404, "not-found", "ann", "GET", "/api/v1/results/"+handle, nil) // another session
	otherHandle := handle[:len(handle)-2] + "aa"
	otherRecord := rec[:strings.LastIndexByte(rec, ':')] + ":999999"
	for _, c := range []struct {
		method, path string
		real, made   string
		body         any
	}{
		{"POST", "/api/v1/approvals/%s", id, "abcdefghijkl", object{"effect": "grant"}},
		{"POST", "/api/v1/approvals/%s", wide, "abcdefghijkl", object{"effect": "grant"}}, // settled by now
		{"POST", "/api/v1/approvals/%s", id, "../../x%20y", object{"effect": "nonsense"}},
		{"POST", "/api/v1/grants/%s/revoke", grant, strings.Replace(grant, wide, "abcdefghijkl", 1), object{}},
		{"POST", "/api/v1/grants/%s/revoke", id, "nonsense", object{}},
		{"GET", "/api/v1/audit/%s", rec, otherRecord, nil},
		{"GET", "/api/v1/audit/%s", rec, "nonsense", nil},
		{"GET", "/api/v1/audit/%s/proof", rec, otherRecord, nil},
		{"GET", "/api/v1/results/%s?session=s", handle, otherHandle, nil},
		{"GET", "/api/v1/results/%s?session=s", handle, "nonsense", nil},
	} {
		for _, who := range []string{"bob", "cyn"} {
			got := rg.ask(who, c.method, fmt.Sprintf(c.path, c.real), c.body)
			none := rg.ask(who, c.method, fmt.Sprintf(c.path, url.PathEscape(c.made)), c.body)
			if got.status != 404 || got.status != none.status || got.body != none.body {
				t.Errorf("%s: %s %s = %d %s\nof what is not there: %d %s", who, c.method, c.path, got.status, got.body, none.status, none.body)
			}
		}
	}
	// Lists do not name it, and their own session of the same name has nothing.
	for _, who := range []string{"bob", "cyn"} {
		for _, path := range []string{"/api/v1/approvals?state=all", "/api/v1/grants", "/api/v1/audit", "/api/v1/audit?session=s&user=ann&all=true", "/api/v1/audit?text=tool"} {
			if x := rg.want(200, "", who, "GET", path, nil); strings.Contains(x.body, "tool:") {
				t.Errorf("%s: %s = %s, want nothing of ann's", who, path, x.body)
			}
		}
		rg.want(404, "not-found", who, "GET", "/api/v1/results/last?session=s", nil)
	}
	// And a consent of ann's is none of another's.
	rg.want(409, "unapproved", "bob", "POST", "/api/v1/invoke", object{"target": "tool:write", "session": "s", "asPerson": true})
	rg.want(409, "unapproved", "cyn", "POST", "/api/v1/invoke", object{"target": "tool:write", "session": "s", "asPerson": true})
}

// BenchmarkTrailPage: the first page, by HTTP, of a trail of 200,000 records.
func BenchmarkTrailPage(b *testing.B) {
	rg := newRig(b)
	records := make([]audit.Record, 1000)
	for i := range records {
		records[i] = audit.Record{
			Event: audit.Executed, ExtensionID: "tools.postman", Command: "/postman", Action: "get", Runner: "exec.postman_cli", SessionID: "s", UserID: "ann", Tenant: "acme",
			Status: audit.Completed, EffectID: "eff_0123456789abcdef", Decision: "allow", Rule: "personal.read", Target: "tool:postman", CommandLine: "postman get https://api.example.com/users",
		}
	}
	for range 200 {
		rg.append(records...)
	}
	for name, c := range map[string]struct {
		who, query string
		n          int
	}{"own": {"ann", "", 100}, "operator": {"root", "", 100}, "most": {"root", "?limit=500", 500}} {
		b.Run(name, func(b *testing.B) {
			rg.t = b
			for b.Loop() {
				resp := rg.open(b.Context(), c.who, "GET", "/api/v1/audit"+c.query, nil, "application/json")
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if n := strings.Count(string(body), `"effect_id"`); err != nil || n != c.n {
					b.Fatal(n, err)
				}
			}
		})
	}
}
