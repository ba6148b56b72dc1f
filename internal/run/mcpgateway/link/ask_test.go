//go:build unix

//lint:file-ignore SA1019 Servers of the older protocols need what the newest calls deprecated.

package link_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/testkit/linktest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDeniedQuestions: a form that asks for a secret, sampling with the context
// of other servers, and sampling where models are denied do not reach a client.
// The server hears the rule.
func TestDeniedQuestions(t *testing.T) {
	form := func(field string) string {
		return `"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{` + field + `}}}`
	}
	sampling := `"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"includeContext":%q}`
	for _, test := range []struct {
		request, rule string
		deny          bool
	}{
		{form(`"db_password":{"type":"string"}`), link.RuleSecrets, false},
		{form(`"x":{"type":"string","title":"API key"}`), link.RuleSecrets, false},
		{form(`"x":{"type":"string","format":"password"}`), link.RuleSecrets, false},
		{fmt.Sprintf(sampling, "allServers"), link.RuleContext, false},
		{fmt.Sprintf(sampling, "none"), link.RuleSampling, true},
		{form(`"tokens":{"type":"integer"}`), "", false},
		{fmt.Sprintf(sampling, "none"), "", false},
	} {
		var call json.RawMessage
		server := linktest.Old(`{"tools":{}}`, func(m linktest.Line, say func(string, ...any)) {
			switch {
			case m.Method == "tools/call":
				call = m.ID
				say(`{"jsonrpc":"2.0","id":"r",%s}`, test.request)
			case string(m.ID) == `"r"`:
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, call, m.Error)
			}
		})
		l := open(t, link.Config{Target: link.Target{Start: server}, DenySampling: func() bool { return test.deny }})
		res, err := l.Call(soon(t), callOf(`{}`), "x")
		if test.rule == "" {
			if capability.KindOf(err) != capability.InputNeeded {
				t.Errorf("%s: Call = %v, %v, want a question", test.request, res, err)
			}
			continue
		}
		if err != nil || !strings.Contains(textOf(res), "denied by rule "+test.rule) {
			t.Errorf("%s: the server hears %q, %v, want rule %s", test.request, textOf(res), err, test.rule)
		}
	}
}

// TestParams: a question without parameters reaches the client with empty ones,
// whatever the server's age.
func TestParams(t *testing.T) {
	const want = `{"method":"roots/list","params":{}}`
	for _, request := range []string{`"method":"roots/list"`, `"method":"roots/list","params":null`, `"method":"roots/list","params":{}`} {
		l := to(t, linktest.Asker(request))
		call := callOf(`{}`)
		_, err := l.Call(soon(t), call, "x")
		q := inquiryOf(t, err)
		if got := string(q.Requests["q1"]); got != want {
			t.Errorf("%s: request = %s, want %s", request, got, want)
		}
		call.State, call.Answers = q.State, map[string]json.RawMessage{"q1": json.RawMessage(`{"roots":[{"uri":"file:///mine"}]}`)}
		wantText(t, l, call, "x", `{"roots":[{"uri":"file:///mine"}]}`)
	}
	s := newServer(false)
	addTool(s, "ask", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if got, ok := r.Params.InputResponses["where"].(*mcp.ListRootsResult); ok {
			return say(got.Roots[0].URI + " " + r.Params.RequestState), nil
		}
		var none *mcp.ListRootsParams
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"where": none}, RequestState: "s1"}, nil
	})
	l := to(t, linktest.SDK(s))
	call := callOf(`{}`)
	_, err := l.Call(soon(t), call, "ask")
	q := inquiryOf(t, err)
	if got := string(q.Requests["where"]); got != want || q.State != "s1" {
		t.Errorf("request = %s with state %q, want %s with s1", got, q.State, want)
	}
	call.State, call.Answers = q.State, map[string]json.RawMessage{"where": json.RawMessage(`{"roots":[{"uri":"file:///mine"}]}`)}
	wantText(t, l, call, "ask", "file:///mine s1")
}

// TestRootsDeclared: a server with a handshake is told of roots only if there are
// some; a newer one may ask the caller.
func TestRootsDeclared(t *testing.T) {
	for _, roots := range [][]string{nil, {"/outside"}} {
		told := make(chan bool, 1)
		eachWay(t, func(old bool) *mcp.Server {
			s := newServer(old)
			addTool(s, "x", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("x"), nil })
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					switch p := req.GetParams().(type) {
					case *mcp.InitializeParams:
						told <- p.Capabilities.RootsV2 != nil
						if p.Capabilities.Sampling == nil || p.Capabilities.Elicitation == nil {
							t.Errorf("initialize tells of %+v, want sampling and elicitation", p.Capabilities)
						}
					case *mcp.DiscoverParams:
						text, err := json.Marshal(p.Meta)
						if err != nil {
							t.Error(err)
						}
						if !old {
							told <- strings.Contains(string(text), `"roots":`)
						}
					}
					return next(ctx, method, req)
				}
			})
			return s
		}, func(t *testing.T, cfg link.Config, old bool) {
			cfg.Roots = roots
			open(t, cfg)
			if got, want := <-told, !old || len(roots) > 0; got != want {
				t.Errorf("with roots %q the server is told of roots: %v, want %v", roots, got, want)
			}
		})
	}
}

// TestRootsOutside: a server that asks for roots outside of a call hears of
// those that are configured, which may be none.
func TestRootsOutside(t *testing.T) {
	for want, roots := range map[string][]string{
		`{"roots":[]}`: nil,
		`{"roots":[{"uri":"file:///outside/a%20b","name":"a b"}]}`: {"/outside/a b"},
	} {
		heard := make(chan string, 1)
		open(t, link.Config{Roots: roots, Target: link.Target{Start: linktest.Old(`{"tools":{}}`, func(m linktest.Line, say func(string, ...any)) {
			switch {
			case m.Method == "notifications/initialized":
				say(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
			case string(m.ID) == `"r"`:
				heard <- string(m.Result)
			}
		})}})
		if got := <-heard; got != want {
			t.Errorf("roots %q: the server hears %s, want %s", roots, got, want)
		}
	}
}

const defaultsForm = `{"type":"object","properties":{` +
	`"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":9007199254740993},` +
	`"score":{"type":"number","default":95.5},"tags":{"type":"array","default":["a"]},"on":{"type":"boolean","default":false},` +
	`"empty":{"type":"string"},"null":{"type":"string","default":null}},"required":["name"]}`

// TestDefaults: what a person left as it was goes to the server as the form
// says, and nothing is filled in where he did not agree.
func TestDefaults(t *testing.T) {
	const all = `"age":9007199254740993,"name":"John Doe","on":false,"score":95.5,"tags":["a"]`
	for _, test := range []struct{ answer, want string }{
		{`{"action":"accept"}`, `{"action":"accept","content":{` + all + `}}`},
		{`{"action":"accept","content":null}`, `{"action":"accept","content":{` + all + `}}`},
		{`{"action":"accept","content":{}}`, `{"action":"accept","content":{` + all + `}}`},
		{`{"action":"accept","content":{"age":3,"on":true,"empty":""},"_meta":{"a":1}}`,
			`{"_meta":{"a":1},"action":"accept","content":{"age":3,"empty":"","name":"John Doe","on":true,"score":95.5,"tags":["a"]}}`},
		{`{"action":"accept","content":{"age":null,"name":"","on":true,"score":1,"tags":[]}}`,
			`{"action":"accept","content":{"age":null,"name":"","on":true,"score":1,"tags":[]}}`},
		{`{"action":"decline"}`, `{"action":"decline"}`},
		{`{"action":"cancel","content":{}}`, `{"action":"cancel","content":{}}`},
		{`{"action":"accept","content":"text"}`, `{"action":"accept","content":"text"}`},
	} {
		request := `"method":"elicitation/create","params":{"message":"?","requestedSchema":` + defaultsForm + `}`
		l := to(t, linktest.Asker(request))
		if got := answered(t, l, "q1", test.answer, ""); got != test.want {
			t.Errorf("%s: the old server hears %s, want %s", test.answer, got, test.want)
		}
		for _, state := range []string{"", "s1", "ken-forms.x"} {
			l = to(t, linktest.NewAsker(t, defaultsForm, state))
			if got, want := answered(t, l, "which", test.answer, ""), test.want+" "+state; got != want {
				t.Errorf("%s: the new server hears %s, want %s", test.answer, got, want)
			}
		}
	}
}

// TestNoDefaults: without defaults the server's state and the answer are
// untouched, and a made-up state is refused.
func TestNoDefaults(t *testing.T) {
	for _, state := range []string{"", "s1", "ken-forms.x"} {
		l := open(t, link.Config{Target: link.Target{Start: linktest.NewAsker(t, `{"type":"object","properties":{"c":{"type":"string"}}}`, state)}})
		want := state
		if state == "ken-forms.x" {
			want = "" // it must be told from Ken's own
		}
		const answer = `{ "action":"accept", "content":{"c":"<x>"}}`
		if got := answered(t, l, "which", answer, want); got != `{"action":"accept","content":{"c":"<x>"}} `+state {
			t.Errorf("state %q: the server hears %s", state, got)
		}
		call := callOf(`{}`)
		call.State = "ken-forms.!"
		if _, err := l.Call(soon(t), call, "ask"); capability.KindOf(err) != capability.Conflict {
			t.Errorf("Call() with a made-up state = %v, want a conflict", err)
		}
	}
}

// answered makes a call, answers its one question, and gives what it comes to.
// The inquiry must have the state, unless that is empty.
func answered(t *testing.T, l *link.Link, name, answer, state string) string {
	t.Helper()
	call := callOf(`{}`)
	_, err := l.Call(soon(t), call, "ask")
	q := inquiryOf(t, err)
	if state != "" && q.State != state {
		t.Errorf("state = %q, want %q", q.State, state)
	}
	call.State, call.Answers = q.State, map[string]json.RawMessage{name: json.RawMessage(answer)}
	res, err := l.Call(soon(t), call, "ask")
	if err != nil {
		t.Fatalf("Call(ask) with the answer %s = %v", answer, err)
	}
	return textOf(res)
}

// TestPartialLists: what cannot be listed costs nothing else, and is said.
func TestPartialLists(t *testing.T) {
	const everything = `{"tools":{},"prompts":{},"resources":{}}`
	lists := map[string]string{
		"tools/list":               `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
		"prompts/list":             `{"prompts":[{"name":"greet"}]}`,
		"resources/list":           `{"resources":[{"name":"a","uri":"mem:///a"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"name":"t","uriTemplate":"mem:///{x}"}]}`,
	}
	for _, test := range []struct {
		method, what string
		answer       string // of the method
		says         string
	}{
		{"prompts/list", "prompts", `"error":{"code":-32603,"message":"no database"}`, "the server says: no database (code -32603)"},
		{"resources/list", "resources", `"error":{"code":-32603,"message":"connect ECONNREFUSED \u001b[1m"}`, "connect ECONNREFUSED"},
		{"resources/templates/list", "resource templates", `"result":{"resourceTemplates":"none"}`, "cannot unmarshal"},
		{"prompts/list", "prompts", "", "the server did not answer in time"},
		{"tools/list", "tools", `"error":{"code":-32603,"message":"no database"}`, "no database"},
		{"prompts/list", "", "dies", "it ended"}, // it has no lists, not empty ones
	} {
		t.Run(test.method+" "+test.says, func(t *testing.T) {
			l := open(t, link.Config{Target: link.Target{Start: linktest.Old(everything, func(m linktest.Line, say func(string, ...any)) {
				switch {
				case m.Method == test.method && test.answer == "":
				case m.Method == test.method && test.answer == "dies":
					say("")
				case m.Method == test.method:
					say(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, test.answer)
				case lists[m.Method] != "":
					say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, lists[m.Method])
				}
			})}})
			ctx := soon(t)
			if test.answer == "" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
			}
			got, err := l.Lists(ctx)
			if test.method == "tools/list" || test.answer == "dies" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("Lists() = %v, want an error that says %q", err, test.says)
				}
				return
			}
			if err != nil {
				t.Fatalf("Lists() = %v, want what there is", err)
			}
			n := len(got.Tools) + len(got.Prompts) + len(got.Resources) + len(got.Templates)
			notes := strings.Join(got.Notes, "\n")
			if n != 3 || len(got.Tools) != 1 || len(got.Notes) != 1 || !strings.Contains(notes, "the "+test.what+" cannot be listed: ") ||
				!strings.Contains(notes, test.says) || strings.Contains(notes, "\x1b") {
				t.Errorf("Lists() = %+v, want three, and a note about %s that says %q", got, test.what, test.says)
			}
		})
	}
}
