package shim

import (
	"encoding/json"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// A play has one client and one daemon after another at a relay.
type play struct {
	*testing.T
	relay
}

func start(t *testing.T) *play {
	p := &play{T: t}
	p.joined(1)
	p.daemon(`{"ok":true}`)
	return p
}

// client has the client say a line.
func (p *play) client(line string) { p.says([]byte(line + "\n")) }

// daemon has the daemon say a line.
func (p *play) daemon(line string) {
	p.Helper()
	if err := p.hears([]byte(line + "\n")); err != nil {
		p.Fatalf("the daemon's %s: %v", line, err)
	}
}

// read returns the lines that the daemon gets.
func (p *play) read() string {
	var all []byte
	for b := p.next(); len(b) > 0; b = p.next() {
		all = append(all, b...)
		p.written(len(b))
	}
	return string(all)
}

// gets returns the lines that the client gets.
func (p *play) gets() string {
	out := string(p.to)
	p.to = nil
	return out
}

// restart has the daemon die and another be joined.
func (p *play) restart(pid int) {
	p.lost()
	p.joined(pid)
	p.Helper()
	p.daemon(`{"ok":true}`)
}

func (p *play) want(what, got string, parts ...string) {
	p.Helper()
	rest := got
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			p.Errorf("%s = %s; want %q in it, in order", what, got, parts)
			return
		}
		rest = after
	}
	if len(parts) == 0 && got != "" {
		p.Errorf("%s = %s; want nothing", what, got)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			p.Errorf("%s has the line %q, which is no JSON", what, line)
		}
	}
}

const (
	handshake   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"c"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	welcome     = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}`
	again       = `{"jsonrpc":"2.0","id":"ken-again-1","result":{"protocolVersion":"2025-06-18"}}`
)

// begin makes the handshake.
func (p *play) begin() {
	p.client(handshake)
	p.read()
	p.daemon(welcome)
	p.client(initialized)
	p.read()
	p.gets()
}

// TestUnsentGoesToTheNext: only what a daemon could not have understood is sent
// again.
func TestUnsentGoesToTheNext(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"}}`
	for _, tt := range []struct {
		name    string
		written int
		resent  bool
	}{
		{"nothing", 0, true}, {"a part", 20, true}, {"all but the brace", len(call) - 1, true}, {"all but the end of the line", len(call), false}, {"all", len(call) + 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t)
			p.client(call)
			p.client(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
			p.next()
			p.written(tt.written)
			p.restart(2)
			got, told := p.read(), p.gets()
			if tt.resent {
				p.want("the next daemon hears", got, call+"\n", `"id":8`)
				p.want("the client hears", told)
				return
			}
			if strings.Contains(got, "pay") {
				t.Errorf("the next daemon hears %s: a call is made twice", got)
			}
			p.want("the client hears", told, `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"tools/call with id 7: the daemon (process 1) ended before it answered. Whether it ran is unknown`, `"outcome":"unknown"`)
		})
	}
}

// TestHandshakeAgain: the new daemon gets the client's own handshake and what the
// session had come to; the client sees none of the answers.
func TestHandshakeAgain(t *testing.T) {
	p := start(t)
	p.begin()
	p.client(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
	p.client(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"note://a"}}`)
	p.client(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"note://b"}}`)
	p.client(`{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"note:\/\/a"}}`)
	p.client(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	p.read()
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		p.daemon(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	}
	p.gets()
	p.client(`{"jsonrpc":"2.0","id":6,"method":"tools/call"}`) // not taken yet
	p.restart(2)
	p.want("first the new daemon hears", p.read(), `{"jsonrpc":"2.0","id":"ken-again-1","method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"c"}}}`)
	p.want("the client hears", p.gets())
	p.daemon(again)
	got := p.read()
	p.want("then the new daemon hears", got, initialized, `"logging/setLevel"`, `"resources/list"`, `"note://b"`, `"id":6`)
	if strings.Contains(got, "note://a") {
		t.Errorf("a subscription that was ended is made again: %s", got)
	}
	p.want("the client hears", p.gets(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	p.daemon(`{"jsonrpc":"2.0","id":"ken-again-2","result":{}}`)
	p.daemon(`{"jsonrpc":"2.0","id":"ken-again-3","result":{}}`)
	p.daemon(`{"jsonrpc":"2.0","id":"ken-again-4","error":{"code":-32002,"message":"Resource not found"}}`)
	p.want("the client hears", p.gets())
	p.want("the daemon hears", p.read())
	p.daemon(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`) // its server is there now
	p.want("the daemon hears", p.read(), `"resources/subscribe"`, "note://b")
	p.daemon(`{"jsonrpc":"2.0","id":6,"result":{"content":[]}}`)
	p.want("the client hears", p.gets(), "resources/list_changed", `"id":6,"result"`)
	if len(p.flights) > 0 {
		t.Errorf("flights = %+v, want none", p.flights)
	}
}

// TestHandshakeUnanswered: an initialize that the dead daemon did not answer is
// answered by the next.
func TestHandshakeUnanswered(t *testing.T) {
	p := start(t)
	p.client(handshake)
	p.read()
	p.restart(2)
	p.want("the daemon hears", p.read(), handshake)
	p.daemon(welcome)
	p.want("the client hears", p.gets(), welcome)
}

// TestAnotherVersion: a session does not go on in another version.
func TestAnotherVersion(t *testing.T) {
	for _, answer := range []string{`"result":{"protocolVersion":"2024-11-05"}`, `"error":{"code":1,"message":"no"}`} {
		p := start(t)
		p.begin()
		p.restart(2)
		p.read()
		if err := p.hears([]byte(`{"jsonrpc":"2.0","id":"ken-again-1",` + answer + "}\n")); err == nil || !strings.Contains(err.Error(), "start this server again") {
			t.Errorf("the answer %s = %v, want a refusal", answer, err)
		}
	}
}

// TestQuestions: an answer goes to the daemon that asked and to no other, though
// each counts its questions from one.
func TestQuestions(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"pay?"}}`
	p := start(t)
	p.begin()
	p.daemon(ask)
	p.want("the client hears", p.gets(), ask)
	p.restart(2)
	p.want("the client hears", p.gets(), `"notifications/cancelled","params":{"requestId":1,`)
	p.read()
	p.daemon(again)
	p.read()
	p.daemon(ask)
	p.want("the client hears", p.gets(), `"id":"ken1:1"`, "elicitation/create")
	p.client(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`) // to the first
	p.client(`[{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}]`)
	p.want("the second daemon hears", p.read())
	p.client(`{"jsonrpc":"2.0","id":"ken1:1","result":{"action":"decline"}}`)
	p.want("the second daemon hears", p.read(), `{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`)
	p.daemon(`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{}}`)
	p.daemon(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x","requestId":2}}`)
	p.want("the client hears", p.gets(), `"id":"ken1:2"`, `"requestId":"ken1:2"`)
}

// TestListenAgain: a client without sessions keeps what it listens to.
func TestListenAgain(t *testing.T) {
	const (
		listening = `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":false},"_meta":{}}}`
		ack       = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{}}}`
	)
	p := start(t)
	p.client(listening)
	p.read()
	p.daemon(ack)
	p.want("the client hears", p.gets(), ack)
	p.client(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
	p.read()
	p.restart(2)
	p.want("the client hears", p.gets(), `"id":2,"error"`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`)
	p.want("the second daemon hears", p.read(), listening)
	p.daemon(ack)
	p.want("the client hears", p.gets())
	p.daemon(ack) // whatever this one is, it is not ours
	p.want("the client hears", p.gets(), ack)
	p.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`)
	p.read()
	p.restart(3)
	p.want("the third daemon hears", p.read())
}

// TestCancelledIsNotAnswered: who gave a call up hears no more of it.
func TestCancelledIsNotAnswered(t *testing.T) {
	p := start(t)
	p.client(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]`)
	p.client(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	p.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	p.read()
	p.restart(2)
	p.want("the client hears", p.gets(), `"id":2,"error"`, `"id":3,"error"`, "Ask again.")
	p.client(`[{"jsonrpc":"2.0","id":4,"method":"tools/call"}]`)
	p.want("the daemon hears", p.read(), `[{"jsonrpc":"2.0","id":4,"method":"tools/call"}]`)
	p.daemon(`[{"jsonrpc":"2.0","id":4,"result":{}}]`)
	p.restart(3)
	p.want("the client hears", p.gets(), `[{"jsonrpc":"2.0","id":4,"result":{}}]`)
}

// TestHalfLines: what a daemon did not finish is not passed on, and the rest of a
// line that is too long to keep does not go to the next one.
func TestHalfLines(t *testing.T) {
	p := start(t)
	testkit.OK(t, p.hears([]byte(`{"jsonrpc":"2.0","id":1,"res`)))
	p.says([]byte(strings.Repeat("x", longest+1)))
	if got := len(p.read()); got != longest+1 {
		t.Errorf("%d bytes of a long line are passed on, want %d", got, longest+1)
	}
	p.says([]byte("more"))
	p.restart(2)
	p.says([]byte("and more"))
	p.client("")
	p.client(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got, want := p.read(), `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"; got != want {
		t.Errorf("the daemon hears %.80q, want %q", got, want)
	}
	p.want("the client hears", p.gets())
	p.says([]byte(`{"last":1}`))
	p.up.closed = true
	if got := p.read(); got != `{"last":1}` || !p.done() {
		t.Errorf("the last line = %q, done %v", got, p.done())
	}
}

// TestGiveUp: nothing that was asked stays without an answer.
func TestGiveUp(t *testing.T) {
	p := start(t)
	p.client(handshake)
	p.client(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	p.read()
	p.client(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
	p.client("nonsense")
	p.giveUp("daemon not running")
	p.want("the client hears", p.gets(), `"id":1,"error"`, `"outcome":"unknown"`, `"id":0,"error"`, "daemon not running", `"id":2,"error"`, "it was not sent: daemon not running", `"outcome":"unsent"`)
}

func TestKey(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{`"a<b"`, `"a\u003cb"`}, {`"a/b"`, `"a\/b"`}, {`"😀"`, `"\ud83d\ude00"`}, {`"\n\t\r\b\f\\\""`, `"\u000a\u0009\u000d\u0008\u000c\u005c\u0022"`}, {"7", "7"},
	} {
		if key([]byte(tt.a)) != key([]byte(tt.b)) {
			t.Errorf("key(%s) = %q, key(%s) = %q; want the same", tt.a, key([]byte(tt.a)), tt.b, key([]byte(tt.b)))
		}
	}
	if key([]byte("7")) == key([]byte(`"7"`)) {
		t.Error("a number and a text have the same key")
	}
}

// FuzzReadMessage: of what is JSON, the shim reads what the decoder does.
func FuzzReadMessage(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"a\u0062","params":{"x":[{"id":2},"}"]}}`))
	f.Add([]byte(` { "id" : "x\\" , "result" : { } } `))
	f.Add([]byte(`[{"id":1},{"id":2}]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, ok := readMessage(line, true)
		elements(line)
		var want map[string]json.RawMessage
		if json.Unmarshal(line, &want) != nil || want == nil {
			return
		}
		if !ok {
			t.Fatalf("readMessage(%q) = false", line)
		}
		names := 0
		members(line, func(string, int, func() []byte) bool { names++; return true })
		if names < len(want) {
			t.Errorf("members(%q) = %d, want at least %d", line, names, len(want))
		}
		for name := range want {
			if name != lower(name) {
				return
			}
		}
		if names == len(want) && (string(m.id) != string(want["id"]) || string(m.params) != string(want["params"])) {
			t.Errorf("readMessage(%q) = id %s, params %s; want %s, %s", line, m.id, m.params, want["id"], want["params"])
		}
		if m.id != nil && string(line[m.idAt:m.idAt+len(m.id)]) != string(m.id) {
			t.Errorf("readMessage(%q) has its id at %d", line, m.idAt)
		}
	})
}
