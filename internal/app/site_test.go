package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/chatapi"
	"ken/internal/serve/mcpbridge"
	"ken/internal/serve/settings"
	"ken/internal/talk/consent"
	"ken/internal/talk/event"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// stranger is somebody who does not run Ken, of another tenant.
var stranger = auth.Identity{Principal: capability.Principal{ID: "bob", Tenant: "elsewhere"}, Name: "Bob", Decides: true}

// site serves an App for one identity, until the test ends.
func site(t *testing.T, a *App) (s *Site, as func(auth.Identity) string) {
	t.Helper()
	waiting, stop := context.WithCancel(context.Background())
	s, err := a.NewSite(waiting, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s, func(who auth.Identity) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeAs(w, r, who) }))
		t.Cleanup(func() {
			stop() // feeds end
			srv.Close()
		})
		return srv.URL
	}
}

// TestSiteCountsEverybodysQuestions: the number of those who wait is of all
// tenants.
func TestSiteCountsEverybodysQuestions(t *testing.T) {
	a := open(t, Config{})
	s, _ := site(t, a)
	desk, err := a.Desk()
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []capability.Principal{a.Principal, stranger.Principal} {
		if _, err := desk.Ask(t.Context(), approval.Question{Call: capability.Call{Principal: who, Target: "tool:x", Session: "s", Key: who.ID, CapabilityHash: "sha256:x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if text := string(s.numbers.Text()); !strings.Contains(text, "ken_approvals_pending 2\n") {
		t.Errorf("two questions wait in two tenants, and there is no ken_approvals_pending 2 in\n%s", text)
	}
}

// TestSiteMCPFromAListedSite: the guard has judged where a page is from; MCP does
// not judge again, by less.
func TestSiteMCPFromAListedSite(t *testing.T) {
	a := open(t, Config{})
	_, as := site(t, a)
	header := http.Header{"Origin": {"https://tools.example"}, "Accept": {"application/json, text/event-stream"}}
	if status, _, answer := request(t, "POST", as(auth.Owner(a.Principal))+"/mcp", mcpHello, header); status != http.StatusOK {
		t.Errorf("POST /mcp = %d %s, want 200", status, answer)
	}
}

const mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// TestSiteEndsWithTheApp: nothing of a site works on after its App was closed,
// also where nobody said that the server stops.
func TestSiteEndsWithTheApp(t *testing.T) {
	a := open(t, Config{})
	before := goleak.IgnoreCurrent()
	if _, err := a.NewSite(context.Background(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}

// request asks once and gives the status, the type and the answer; of a stream
// only those before its events.
func request(t *testing.T, method, url, body string, header http.Header) (status int, kind string, answer []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer res.Body.Close()
	if kind = res.Header.Get("Content-Type"); kind == "text/event-stream" {
		return res.StatusCode, kind, nil
	}
	if answer, err = io.ReadAll(res.Body); err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return res.StatusCode, kind, answer
}

// TestSite makes each request as each kind of caller: the guard lets in who may make it.
// Each is answered with what the operation says, or with a problem. What an
// operation says of itself is all that decides; what is open to others than
// operators, what agents may change, and what a person decides is listed here, so
// that a new one is placed deliberately.
func TestSite(t *testing.T) {
	a := open(t, Config{Model: &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "Hello."})}})
	s, as := site(t, a)
	tokens, err := auth.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	guard, err := auth.Guard(s, auth.Config{Tokens: tokens, Owner: auth.Owner(a.Principal), Loopback: true, SignOuts: a.SignOuts})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(guard)
	t.Cleanup(srv.Close)
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	entered, err := stay.Get(tokens.Link(srv.URL))
	if err != nil || len(entered.Cookies()) != 1 {
		t.Fatalf("the link = %v, %v; want a cookie", entered, err)
	}
	entered.Body.Close()
	elsewhere := as(stranger)
	callers := map[string]http.Header{
		"owner":    {"Authorization": {"Bearer " + tokens.Token().Reveal()}},
		"agent":    {"Authorization": {"Bearer " + tokens.Agent().Reveal()}},
		"cookie":   {"Cookie": {entered.Cookies()[0].Name + "=" + entered.Cookies()[0].Value}, "Origin": {srv.URL}},
		"nobody":   {},
		"stranger": {},
	}
	forAll := []string{
		"abortTurn", "addJob", "answerTurn", "beginSession", "cancelJob", "compactSession", "complete", "deleteSession", "discover", "drawGraph", "examples", "feed", "followJob", "followSession", "health",
		"inspectTurn", "invoke", "lintCatalog", "listApprovals", "listCatalog", "listGrants", "listJobs", "listSessions", "me", "play", "proveRecord", "readResult", "readSession",
		"readStory", "readTrail", "readiness", "retryJob", "retryTurn", "revokeGrant", "rewindSession", "say", "searchCatalog", "settleApproval", "showCapability", "showJob", "waitForChanges", "whyCapability",
	}
	agentsMay := []string{"abortTurn", "addJob", "beginSession", "cancelJob", "compactSession", "invoke", "play", "retryJob", "retryTurn", "say"}
	decisions := []string{
		"answerReview", "answerTurn", "changePrice", "changeSetting", "deleteSession", "resetSetting", "revokeGrant", "rewindSession", "setProviderKey", "settleApproval",
		"add", "beginLogin", "connectClient", "disconnectClient", "discardAddition", "planAddition", "planConnection", "removeAdded", "removeSecret", "setSecret", "tryAddition",
	}
	placeholder := regexp.MustCompile(`\{[^}]*\}`)
	for _, route := range s.routes(t.Context()) {
		decides, body := route.Decision != "", ""
		if route.Name == "" || route.Group == "" || route.Summary == "" {
			t.Errorf("%s %s has the name %q, the group %q and the summary %q", route.Method, route.Path, route.Name, route.Group, route.Summary)
		}
		if slices.Contains(forAll, route.Name) == route.Operator {
			t.Errorf("%s is for operators: %v, want %v", route.Name, route.Operator, !route.Operator)
		}
		if decides != slices.Contains(decisions, route.Name) {
			t.Errorf("%s is a person's decision: %v, want %v", route.Name, decides, !decides)
		}
		if open := !decides && !route.Operator && route.Method != http.MethodGet; open != slices.Contains(agentsMay, route.Name) {
			t.Errorf("%s may be asked by agents, and changes something: %v, want %v", route.Name, open, !open)
		}
		if route.Body != nil {
			body = "{}"
		}
		for name, header := range callers {
			url := srv.URL
			if name == "stranger" {
				url = elsewhere
			}
			status, kind, answer := request(t, route.Method, url+placeholder.ReplaceAllString(route.Path, "1"), body, header)
			var problem struct{ Code, Detail string }
			switch {
			case status >= 500:
				t.Errorf("%s for %s = %d %.300s", route.Name, name, status, answer)
			case status >= 400:
				if err := json.Unmarshal(answer, &problem); err != nil || kind != "application/problem+json" || problem.Code == "" || problem.Detail == "" {
					t.Errorf("%s for %s = %d %s %.300s, want a problem with its code and why", route.Name, name, status, kind, answer)
				}
			case status == http.StatusNoContent, kind == "application/json" && json.Valid(answer):
			case route.Stream != nil && kind == "text/event-stream", route.Name == "metrics":
			default:
				t.Errorf("%s for %s is %s %.300s", route.Name, name, kind, answer)
			}
			want := ""
			switch {
			case name == "nobody" && status == http.StatusTooManyRequests:
				want = "too-many-attempts"
			case name == "nobody" && route.Name != "health":
				want = "unauthorized"
			case name == "agent" && decides:
				want = "person-decides"
			case (name == "agent" || name == "stranger") && route.Operator:
				want = "operator-only"
			}
			refusals := []string{"unauthorized", "too-many-attempts", "person-decides", "operator-only", "wrong-origin"}
			if refused := slices.Contains(refusals, problem.Code); problem.Code != want && (refused || want != "") {
				t.Errorf("%s for %s = %d %s, want %q", route.Name, name, status, problem.Code, want)
			}
		}
	}
}

// TestSiteCountsStreams: who listens is counted while they do.
func TestSiteCountsStreams(t *testing.T) {
	a := open(t, Config{})
	_, as := site(t, a)
	url := as(auth.Owner(a.Principal))
	open := func() string {
		_, _, text := request(t, "GET", url+"/metrics", "", nil)
		_, rest, _ := strings.Cut(string(text), "\nken_http_streams ")
		n, _, _ := strings.Cut(rest, "\n")
		return n
	}
	if n := open(); n != "0" {
		t.Fatalf("ken_http_streams is %q before anybody listens", n)
	}
	res, err := http.Get(url + "/api/v1/feed")
	if err != nil {
		t.Fatal(err)
	}
	if n := open(); n != "1" {
		t.Errorf("ken_http_streams is %q while somebody listens, want 1", n)
	}
	res.Body.Close()
	testkit.Wait(t, "the stream ends", func() bool { return open() == "0" })
}

// TestSiteMCPBody: a message that stalls or is too large ends, also where the
// server is about to stop; one that comes is answered, however long that takes.
func TestSiteMCPBody(t *testing.T) {
	testkit.CI(t, "sends megabytes")
	a := open(t, Config{})
	waiting, stop := context.WithCancel(t.Context())
	s, err := a.NewSite(waiting, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan bool, 9)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came <- true
		s.ServeAs(w, r, auth.Owner(a.Principal))
	}))
	defer srv.Close()
	send := func(size int, text string) (status int, answer string) {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", size, text)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b := make([]byte, 4096)
		n, _ := res.Body.Read(b)
		return res.StatusCode, string(b[:n])
	}
	if status, answer := send(len(mcpHello), mcpHello); status != 200 || !strings.Contains(answer, "serverInfo") {
		t.Errorf("a whole message = %d %s, want 200", status, answer)
	}
	if status, answer := send(mcpbridge.MaxBody+1, strings.Repeat(" ", mcpbridge.MaxBody+1)); status != 413 || !strings.Contains(answer, `"too-large"`) {
		t.Errorf("one that is too large = %d %s, want 413", status, answer)
	}
	for len(came) > 0 {
		<-came
	}
	go func() {
		<-came
		stop() // with half an hour to go
	}()
	s.mcp.Slowest = 30 * time.Minute
	if status, answer := send(len(mcpHello), mcpHello[:9]); status != 408 || !strings.Contains(answer, `"too-slow"`) {
		t.Errorf("one that stalls while the server stops = %d %s, want 408", status, answer)
	}
	s.mcp.Slowest = time.Millisecond
	if status, answer := send(len(mcpHello), mcpHello[:9]); status != 408 || !strings.Contains(answer, `"too-slow"`) {
		t.Errorf("one that stalls = %d %s, want 408", status, answer)
	}
}

// TestSiteIsDescribed: the description is valid, and has exactly what is served.
func TestSiteIsDescribed(t *testing.T) {
	a := open(t, Config{})
	s, as := site(t, a)
	_, _, text := request(t, "GET", as(stranger)+"/api/v1/openapi.json", "", nil)
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err == nil {
		err = doc.Validate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"GET /api/v1/openapi.json": true}
	for _, r := range s.routes(t.Context()) {
		want[r.Method+" "+strings.ReplaceAll(r.Path, "...", "")] = true
	}
	got := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			got[method+" "+path] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("described: %v\nserved: %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestSiteDrain: a turn that waits for a person is left open when the server
// stops, at once, and its question can be answered later.
func TestSiteDrain(t *testing.T) {
	fake := &llmtest.Fake{Script: llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{called("q", "ask_user", `{"question":"Which harbour?"}`)}}, llmtest.Reply{Text: "Done."},
	)}
	a := open(t, Config{Model: fake})
	s, as := site(t, a)
	url := as(auth.Owner(a.Principal))
	_, _, answer := request(t, "POST", url+"/api/v1/sessions", "{}", nil)
	var head struct{ ID string }
	if err := json.Unmarshal(answer, &head); err != nil {
		t.Fatal(err)
	}
	if status, _, answer := request(t, "POST", url+"/api/v1/sessions/"+head.ID+"/turns", `{"text":"moor"}`, nil); status != http.StatusAccepted {
		t.Fatalf("say = %d %s", status, answer)
	}
	asked := awaitAsked(t, url+"/api/v1/sessions/"+head.ID+"/events")
	if err := s.Drain(t.Context()); err != nil {
		t.Fatalf("Drain = %v", err)
	}
	if status, _, answer := request(t, "POST", url+"/api/v1/sessions/"+head.ID+"/turns", `{"continue":true}`, nil); status != 503 || !bytes.Contains(answer, []byte(`"stopping"`)) {
		t.Errorf("a turn after Drain = %d %s, want 503 stopping", status, answer)
	}
	sessions, err := a.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	if now, err := sessions.Head(t.Context(), a.Principal, head.ID); err != nil || !now.Open {
		t.Fatalf("Head = %+v, %v; want it open", now, err)
	}
	next, _ := site(t, a)
	if err := a.Questions.Reply(t.Context(), a.Principal, head.ID, asked, consent.Answer{Text: "the old one"}); err != nil {
		t.Fatal(err)
	}
	var last event.Event
	for ev, err := range next.turn(t.Context(), event.Input{Principal: a.Principal, Session: head.ID, Continue: true, Alone: true}) {
		if err != nil {
			t.Fatal(err)
		}
		last = ev
	}
	if done, ok := last.(event.Done); !ok || done.Reason != event.EndAnswer {
		t.Errorf("the turn went on to %+v, want its answer", last)
	}
}

// awaitAsked follows a session until it asks.
func awaitAsked(t *testing.T, url string) event.Asked {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && strings.Contains(data, `"type":"asked"`) {
			var it struct {
				ID   string
				What event.Question
			}
			if err := json.Unmarshal([]byte(data), &it); err != nil {
				t.Fatal(err)
			}
			return event.Asked{ID: it.ID, What: it.What}
		}
	}
	t.Fatal("nothing was asked")
	return event.Asked{}
}

// TestOpenSettings: what a page may change exists, and governs nothing.
func TestOpenSettings(t *testing.T) {
	a := open(t, Config{})
	keys := map[string]bool{}
	for _, s := range a.settingsPage().List() {
		keys[s.Key] = true
		if s.Writable != slices.Contains(settings.Writable(), s.Key) || s.Writable == (s.Why != "") {
			t.Errorf("%s is writable: %v, because %q", s.Key, s.Writable, s.Why)
		}
	}
	for _, key := range settings.Writable() {
		if !keys[key] {
			t.Errorf("%s may be changed and does not exist", key)
		}
	}
	governs := []string{
		"policy.", "serve.", "mcp.", "providers", "extensions.", "approvals.", "audit.", "secrets.", "store.", "limits.", "sandbox.", "shell.", "trace.", "work.", "sources",
		"capabilities.rollout", "capabilities.killSwitch", "chat.toolFailure", "chat.cost", "chat.tokens", "chat.requests", "chat.keep",
	}
	for _, key := range settings.Writable() {
		if i := slices.IndexFunc(governs, func(p string) bool { return strings.HasPrefix(key, p) }); i >= 0 {
			t.Errorf("%s may be changed by a page, and %s governs", key, governs[i])
		}
	}
	if _, err := a.settingsPage().Set(t.Context(), auth.Owner(a.Principal), "policy.profile", "open"); capability.KindOf(err) != capability.Denied {
		t.Errorf("setSetting(policy.profile) = %v, want Denied", err)
	}
}

// TestSiteCovers: consent that is given in the page covers what the person chose,
// and nothing more.
func TestSiteCovers(t *testing.T) {
	home, getenv := home(t, nil)
	servers(t, filepath.Join(home, ".ken", "mcp.json"), map[string]map[string]any{"s": {}})
	a := open(t, Config{Getenv: getenv, Servers: true})
	s, _ := site(t, a)
	for _, c := range []struct {
		scope  approval.Scope
		covers approval.Cover
		want   approval.Cover
	}{
		{approval.Session, approval.CoverCall, approval.CoverCall},
		{approval.Session, "", approval.CoverTool},
		{approval.Always, approval.CoverTool, approval.CoverTool},
		{approval.Always, "", approval.CoverCall},
	} {
		call := capability.Call{Target: "mcp:s/change", Arguments: json.RawMessage(`{"text":"x"}`), Session: "of " + string(c.scope) + string(c.covers)}
		_, err := a.Door.Invoke(t.Context(), asModel(a), call)
		q, ok := errors.AsType[*door.Question](err)
		if !ok {
			t.Fatalf("Invoke = %v, want a question", err)
		}
		asked := event.Asked{What: event.Consent, Ticket: q.Ticket}
		if err := s.chat().Reply(t.Context(), a.Principal, call.Session, asked, chatapi.Answer{Yes: true, Scope: c.scope, Covers: c.covers}); err != nil {
			t.Fatal(err)
		}
		desk, err := a.Desk()
		if err != nil {
			t.Fatal(err)
		}
		ticket, err := desk.Get(t.Context(), q.Ticket)
		if err != nil || ticket.Answer == nil || ticket.Answer.Covers != c.want {
			t.Errorf("an answer for %s with covers %q is %+v, %v; want it to cover %s", c.scope, c.covers, ticket.Answer, err, c.want)
		}
		if err := a.Approvals.Revoke(t.Context(), q.Ticket, a.Principal, "the next case"); err != nil {
			t.Fatal(err)
		}
	}
}
