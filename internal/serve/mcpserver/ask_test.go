//lint:file-ignore SA1019 clients of before 2026-07-28 have what that version gave up

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/testkit"
)

// person is a client whose person answers consent with a decision, or with an
// action alone.
func person(asked *[]*mcp.ElicitParams, answer string) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		*asked = append(*asked, r.Params)
		if answer == "decline" || answer == "cancel" {
			return &mcp.ElicitResult{Action: answer}, nil
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": answer}}, nil
	}}
}

// TestConsent: a call that a person must agree to asks the person through the
// client, in every version, and shows exactly what will run. What the person
// says counts for as long as it was said.
func TestConsent(t *testing.T) {
	for _, test := range []struct {
		answer string
		calls  []bool // whether each call of two succeeds
		asks   int    // in both together
		same   bool   // both have the same arguments
	}{
		{"allow once", []bool{true, true}, 2, false},
		{"allow for this session", []bool{true, true}, 1, false},
		{"always allow", []bool{true, true}, 2, false}, // it covers the exact call
		{"always allow", []bool{true, true}, 1, true},
		{"deny", []bool{false, false}, 2, false},
		{"decline", []bool{false, false}, 2, false}, // at once, by no person
		{"cancel", []bool{false, false}, 2, false},
	} {
		t.Run(test.answer, func(t *testing.T) {
			_, s := directly(t, office)
			ways(t, func(t *testing.T, _ string, connect func(*testing.T, *Server, peer) *mcp.ClientSession) {
				var asked []*mcp.ElicitParams
				cs := connect(t, s, peer{opts: person(&asked, test.answer), who: capability.Principal{ID: t.Name()}})
				for i, want := range test.calls {
					name := fmt.Sprint("file", i)
					if test.same {
						name = "file0"
					}
					res := call(t, cs, "write", map[string]any{"name": name})
					if res.IsError == want {
						t.Errorf("call %d = %q, error %v; want success %v", i, text(res), res.IsError, want)
					}
					if test.answer == "cancel" && !strings.Contains(text(res), "ken approve grant ") {
						t.Errorf("cancelled = %q, want where to approve", text(res))
					}
				}
				if len(asked) != test.asks {
					t.Errorf("asked %d times, want %d", len(asked), test.asks)
				}
				if len(asked) > 0 && (!strings.Contains(asked[0].Message, `file0`) || !strings.Contains(asked[0].Message, "tool:write")) {
					t.Errorf("asked %q, want exactly what will run", asked[0].Message)
				}
			})
		})
	}
}

// TestAnswerByNobody: an answer that comes within a second is the client's own. It
// denies nothing and approves nothing: the request stays open for a person. A
// later answer is a person's.
func TestAnswerByNobody(t *testing.T) {
	testkit.CI(t, "14 kinds of clients")
	ways(t, func(t *testing.T, _ string, connect func(*testing.T, *Server, peer) *mcp.ClientSession) {
		b := newBench(t, office)
		cfg := b.config()
		cfg.Surface, cfg.Hasty = direct, 0
		s := New(cfg)
		var late atomic.Int64
		begun := time.Now()
		s.now = func() time.Time { return begun.Add(time.Duration(late.Load())) }
		var took time.Duration
		var agrees bool
		cs := connect(t, s, peer{name: "codex", opts: &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			late.Add(int64(took))
			if agrees {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}, nil
			}
			return &mcp.ElicitResult{Action: "decline"}, nil
		}}})
		for i, c := range []struct {
			took     time.Duration
			decision Decision
			said     string // by whom nobody was asked
		}{
			{0, Unasked, "The client declined by itself"}, {hasty - time.Millisecond, Unasked, "The client declined by itself"}, {hasty, Deny, ""},
			{0, Unasked, "The client agreed by itself"}, {hasty - time.Millisecond, Unasked, "The client agreed by itself"}, {hasty, AllowOnce, ""},
		} {
			took, agrees = c.took, i >= 3
			args := map[string]any{"name": fmt.Sprint(i)}
			res := call(t, cs, "write", args)
			if res.IsError != (c.decision != AllowOnce) || len(b.replies) != i+1 {
				t.Fatalf("%d: CallTool = %q, error %v, %d replies", i, text(res), res.IsError, len(b.replies))
			}
			ticket := b.replies[i].Ticket
			if want := (Reply{Ticket: ticket, Decision: c.decision, Client: "codex", Took: took}); b.replies[i] != want {
				t.Errorf("reply = %+v, want %+v", b.replies[i], want)
			}
			if open := c.decision == Unasked; open && !strings.Contains(text(res), c.said) || strings.Contains(text(res), "ken approve grant "+ticket) != open {
				t.Errorf("%d: CallTool = %q, want %q, and where to approve: %v", i, text(res), c.said, open)
			}
			got, err := b.desk.Get(t.Context(), ticket)
			if err != nil || (got.Answer == nil) != (c.decision == Unasked) {
				t.Errorf("ticket = %+v, %v; want an open one: %v", got, err, c.decision == Unasked)
			}
			if got.Answer != nil {
				continue
			}
			if _, err := b.desk.Settle(t.Context(), ticket, approval.Answer{By: ada, Effect: approval.Yes, Scope: approval.Once}); err != nil {
				t.Fatal(err)
			}
			if res := call(t, cs, "write", args); res.IsError {
				t.Errorf("the same call once a person approved = %q", text(res))
			}
		}
	})
}

// TestTooLongToShow: nobody can agree through a client to what it cannot show
// in full.
func TestTooLongToShow(t *testing.T) {
	_, s := directly(t, office)
	var asked []*mcp.ElicitParams
	cs := dial(t, s, peer{opts: person(&asked, "allow once")})
	res := call(t, cs, "write", map[string]any{"name": strings.Repeat("x", maxForm)})
	if !res.IsError || len(asked) != 0 || !strings.Contains(text(res), "ken approve grant ") {
		t.Errorf("CallTool = %.200q, asked %d times; want a refusal without a question", text(res), len(asked))
	}
}

// asking is a tool that asks for a name, a sampling and the roots, and then
// says what it got.
func asking(requests map[string]string, state string) capability.InvokerFunc {
	return func(_ context.Context, c capability.Call) (capability.Result, error) {
		missing := map[string]json.RawMessage{}
		for name, r := range requests {
			if c.Answers[name] == nil {
				missing[name] = json.RawMessage(r)
			}
		}
		if len(missing) > 0 {
			return capability.Result{}, &capability.Error{Kind: capability.InputNeeded, Op: "call", Target: string(c.Target), Err: &capability.Inquiry{Requests: missing, State: state}}
		}
		out := "state " + c.State
		for _, name := range []string{"who", "model", "roots"} {
			out += " " + string(c.Answers[name])
		}
		return capability.Result{Parts: []capability.Part{{Text: out}}}, nil
	}
}

const (
	askWho   = `{"method":"elicitation/create","params":{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{"decision":{"type":"string"}}}}}`
	askModel = `{"method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}}`
	askRoots = `{"method":"roots/list","params":{}}`
)

// TestInquiries: what a back end asks reaches the client, in the way of its
// version, and the answers reach the back end with its state.
func TestInquiries(t *testing.T) {
	b := newBench(t, func(b *bench) {
		b.tool("mcp:s/curious", `{"type":"object"}`, quiet, asking(map[string]string{"who": askWho, "model": askModel, "roots": askRoots}, "st8"))
	})
	var asked []*mcp.ElicitParams
	opts := person(&asked, "me")
	opts.CreateMessageHandler = func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{Model: "m1", Role: "assistant", Content: &mcp.TextContent{Text: "yo"}}, nil
	}
	each(t, New(b.config()), peer{name: "Visual Studio Code", opts: opts}, func(t *testing.T, cs *mcp.ClientSession) {
		res := call(t, cs, "curious", map[string]any{})
		got := text(res)
		for _, want := range []string{"state st8", `"decision":"me"`, `"model":"m1"`, `"roots":[]`} {
			if res.IsError || !strings.Contains(got, want) {
				t.Errorf("CallTool = %q, error %v; want %s in it", got, res.IsError, want)
			}
		}
	})
}

// TestInquiryBounds: a back end that never has enough ends, a client that
// cannot answer is told, and one that can answer some is asked only those.
func TestInquiryBounds(t *testing.T) {
	b := newBench(t, func(b *bench) {
		b.tool("mcp:s/endless", `{"type":"object"}`, quiet, func(_ context.Context, c capability.Call) (capability.Result, error) {
			return capability.Result{}, &capability.Error{Kind: capability.InputNeeded, Op: "call", Err: &capability.Inquiry{Requests: map[string]json.RawMessage{"who": json.RawMessage(askWho)}}}
		})
		b.tool("mcp:s/curious", `{"type":"object"}`, quiet, asking(map[string]string{"who": askWho}, ""))
		b.tool("mcp:s/both", `{"type":"object"}`, quiet, asking(map[string]string{"who": askWho, "model": askModel}, ""))
	})
	s := New(b.config())
	var asked []*mcp.ElicitParams
	cs := dial(t, s, peer{name: "Visual Studio Code", version: sessionful, opts: person(&asked, "x")})
	if res := call(t, cs, "endless", nil); !res.IsError || !strings.Contains(text(res), "asked 10 times") || len(asked) != maxRounds {
		t.Errorf("CallTool(endless) = %q after %d questions, want an end after %d", text(res), len(asked), maxRounds)
	}
	mute := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	cs = dial(t, s, peer{name: "Visual Studio Code", version: sessionful, opts: mute})
	if res := call(t, cs, "curious", nil); !res.IsError || !strings.Contains(text(res), "cannot answer") {
		t.Errorf("CallTool(curious) = %q, want that the client cannot answer", text(res))
	}
	cs = dial(t, s, peer{name: "Visual Studio Code", version: sessionless, opts: mute})
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "curious"}); code(err) != mcp.CodeMissingRequiredClientCapabilities {
		t.Errorf("CallTool(curious) = %v, want code %d", err, mcp.CodeMissingRequiredClientCapabilities)
	}
	sampling := &mcp.ClientOptions{CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{Model: "m1", Role: "assistant", Content: &mcp.TextContent{Text: "yo"}}, nil
	}}
	for _, version := range []string{sessionful, sessionless} {
		cs = dial(t, s, peer{name: "Visual Studio Code", version: version, opts: sampling})
		if res := call(t, cs, "both", nil); res.IsError || !strings.Contains(text(res), `{"action":"cancel"}`) || !strings.Contains(text(res), "m1") {
			t.Errorf("%s: CallTool(both) = %q, want the model's answer, and that nobody gave the other", version, text(res))
		}
	}
}

// TestRootsOfNobody: a client without roots has none, whatever a back end asks
// besides; it is not bothered with the question, and the call goes on.
func TestRootsOfNobody(t *testing.T) {
	b := newBench(t, func(b *bench) {
		b.tool("mcp:s/where", `{"type":"object"}`, quiet, asking(map[string]string{"roots": askRoots}, "st8"))
		b.tool("mcp:s/bare", `{"type":"object"}`, quiet, asking(map[string]string{"roots": `{"method":"roots/list"}`}, ""))
		b.tool("mcp:s/both", `{"type":"object"}`, quiet, asking(map[string]string{"who": askWho, "roots": askRoots}, ""))
		b.tool("mcp:s/model", `{"type":"object"}`, quiet, asking(map[string]string{"model": askModel, "roots": askRoots}, ""))
	})
	s := New(b.config())
	for _, version := range []string{sessionful, sessionless} {
		var asked []*mcp.ElicitParams
		opts := person(&asked, "me")
		opts.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}
		cs := dial(t, s, peer{name: "Visual Studio Code", version: version, opts: opts})
		for tool, want := range map[string]string{
			"where": `state st8   {"roots":[]}`,
			"bare":  `state    {"roots":[]}`,
			"both":  `{"roots":[]}`,
		} {
			if res := call(t, cs, tool, map[string]any{}); res.IsError || !strings.Contains(text(res), want) {
				t.Errorf("%s: CallTool(%s) = %q, error %v; want %q in it", version, tool, text(res), res.IsError, want)
			}
		}
		if len(asked) != 1 || asked[0].Message != "The MCP server s asks: who?" {
			t.Errorf("%s: asked %d times, want once for both, by the name of the server", version, len(asked))
		}
		// What the client truly lacks is still said.
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "model", Arguments: map[string]any{}})
		if version == sessionless && code(err) != mcp.CodeMissingRequiredClientCapabilities {
			t.Errorf("%s: CallTool(model) = %v, want code %d", version, err, mcp.CodeMissingRequiredClientCapabilities)
		}
		if version == sessionful && (err != nil || !res.IsError || !strings.Contains(text(res), "cannot answer [sampling/createMessage]")) {
			t.Errorf("%s: CallTool(model) = %v, %v, want that sampling is missing", version, res, err)
		}
	}
}

// raw is a client of 2026-07-28 that answers nothing by itself.
func raw(t *testing.T, s *Server, who capability.Principal) *mcp.ClientSession {
	return dialWeb(t, web(t, s), peer{version: sessionless, who: who, opts: &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
	}})
}

// TestStateIsSealed: a state that was changed, or is of another principal, tool or
// arguments, is an error of the protocol and settles nothing, and consent that
// nobody was asked for is none. With the bridge every call is one of
// invoke_capability.
func TestStateIsSealed(t *testing.T) {
	for _, surface := range []string{direct, bridge} {
		b := newBench(t, func(b *bench) {
			office(b)
			b.tool("tool:erase", nameSchema, capability.Effects{}, greet)
		})
		cfg := b.config()
		cfg.Surface = surface
		s := New(cfg)
		own, others := raw(t, s, ada), raw(t, s, eve)
		state := ""
		try := func(cs *mcp.ClientSession, tool, file string, answers mcp.InputResponseMap, state string) (string, *mcp.CallToolResult) {
			p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"name": file}, InputResponses: answers, RequestState: state}
			if surface == bridge { // the order of members means nothing
				format := `{"capability":"tool:%s","arguments":{"name":%q}}`
				if answers == nil {
					format = `{"arguments":{"name":%[2]q},"capability":"tool:%[1]s"}`
				}
				p.Name, p.Arguments = toolInvoke, json.RawMessage(fmt.Sprintf(format, tool, file))
			}
			res, err := cs.CallTool(t.Context(), p)
			switch {
			case err != nil:
				return fmt.Sprint("error ", code(err)), res
			case res.NeedsInput():
				return "question", res
			}
			return text(res), res
		}
		if said, res := try(own, "write", "f", nil, ""); said == "question" {
			state = res.RequestState
		}
		answer := func(decision string) mcp.InputResponseMap {
			return mcp.InputResponseMap{consentName: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}}
		}
		yes, forged, invalid := answer("allow once"), answer("allow once"), fmt.Sprint("error ", jsonrpc.CodeInvalidParams)
		forged["consent"], forged["run_again"] = &mcp.ElicitResult{Action: "accept"}, &mcp.ElicitResult{Action: "accept"}
		for _, c := range []struct {
			name       string
			cs         *mcp.ClientSession
			tool, file string
			answers    mcp.InputResponseMap
			state      string
			want       string
		}{
			{"changed", own, "write", "f", yes, state + "-TAMPERED", invalid},
			{"cut", own, "write", "f", yes, state[3:], invalid},
			{"of another tool", own, "erase", "f", yes, state, invalid},
			{"of other arguments", own, "write", "g", yes, state, invalid},
			{"of another principal", others, "write", "f", yes, state, invalid},
			{"none", own, "write", "f", forged, "", "question"},
			{"with an answer that was not offered", own, "write", "f", answer("allow everything"), state, "question"},
			{"as it was", own, "write", "f", yes, state, "hello f"},
		} {
			if ran := b.last().Target; ran != "" {
				t.Errorf("%s: before a state %s %s ran", surface, c.name, ran)
			}
			said, _ := try(c.cs, c.tool, c.file, c.answers, c.state)
			testkit.Equal(t, surface+": with a state "+c.name, said, c.want)
		}
	}
}

// TestConsentThenInquiry: a call that a person agreed to once, and whose back
// end then asks something, runs: no answer is lost on the way, whatever is asked
// in between.
func TestConsentThenInquiry(t *testing.T) {
	for _, version := range []string{sessionful, sessionless} {
		b := newBench(t, func(b *bench) {
			b.tool("mcp:s/curious", `{"type":"object"}`, capability.Effects{}, asking(map[string]string{"who": askWho}, "st8"))
		})
		var asked []*mcp.ElicitParams
		cs := dial(t, New(b.config()), peer{name: "Visual Studio Code", version: version, opts: person(&asked, "allow once")})
		res := call(t, cs, "curious", map[string]any{})
		var questions []string
		for _, q := range asked {
			questions = append(questions, strings.SplitN(q.Message, "\n", 2)[0])
		}
		if res.IsError || !strings.Contains(text(res), "state st8") {
			t.Errorf("%s: CallTool = %q after %q, want that it runs", version, text(res), questions)
		}
		if n := strings.Count(strings.Join(questions, "\n"), "who?"); n != 1 {
			t.Errorf("%s: asked %q, want the back end's question once", version, questions)
		}
	}
}
