package prompt_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
)

// flat returns blocks one after the other, with who says them.
func flat(list []llm.Message) (out []string) {
	for _, m := range list {
		for _, b := range m.Blocks {
			data, err := json.Marshal(b)
			if err != nil {
				panic(err)
			}
			out = append(out, string(m.Role)+" "+string(data))
		}
	}
	return out
}

// TestMessagesAppendOnly: the messages of a longer history begin with those of
// a shorter one, block by block always, and message by message wherever a
// request was made; they are ones that every wire takes.
func TestMessagesAppendOnly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		live := session.Live(drawTalk(rt, 30).entries)
		all := prompt.Messages(live)
		wantPairs(rt, all, true)
		blocks := flat(all)
		for n := range live {
			part := prompt.Messages(live[:n])
			if got := flat(part); !slices.Equal(got, blocks[:min(len(got), len(blocks))]) {
				rt.Fatalf("the blocks of the first %d entries are no prefix:\n%s\nof\n%s", n, strings.Join(got, "\n"), strings.Join(blocks, "\n"))
			}
			if live[n].Kind != session.Assistant {
				continue
			}
			if len(openCalls(part)) > 0 {
				continue // no request is made before all results are there
			}
			if why := prompt.Broke(llm.Request{Messages: part}, llm.Request{Messages: all}); why != "" {
				rt.Fatalf("before entry %d a request was made that the last does not begin with: %s", n+1, why)
			}
			if !reflect.DeepEqual(part, all[:len(part)]) && saysSomething(live[n]) {
				rt.Fatalf("message %d grew after an answer", len(part))
			}
		}
		if again := prompt.Messages(live); !reflect.DeepEqual(again, all) {
			rt.Fatal("Messages gives something else the second time")
		}
	})
}

func openCalls(list []llm.Message) map[string]bool {
	open := map[string]bool{}
	for _, m := range list {
		for _, b := range m.Blocks {
			if b.Call != nil {
				open[b.Call.ID] = true
			}
			if b.Result != nil {
				delete(open, b.Result.ID)
			}
		}
	}
	return open
}

func saysSomething(e session.Entry) bool {
	return slices.ContainsFunc(e.Blocks, func(b llm.Block) bool { return b.Call != nil || strings.TrimSpace(b.Text) != "" })
}

func TestMessages(t *testing.T) {
	result := func(id string) session.Entry {
		return session.Entry{Turn: 1, Kind: session.Results, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: id, Name: "look", Blocks: []llm.Block{{Text: "r" + id}}}}}}
	}
	call := func(ids ...string) session.Entry {
		e := session.Entry{Turn: 1, Kind: session.Assistant}
		for _, id := range ids {
			e.Blocks = append(e.Blocks, llm.Block{Call: &llm.ToolCall{ID: id, Name: "look"}})
		}
		return e
	}
	say := func(turn int, kind session.Kind, s string) session.Entry {
		e := text(kind, s)
		e.Turn = turn
		return e
	}
	for _, tt := range []struct {
		name string
		live []session.Entry
		want string
	}{
		{"nothing", nil, ""},
		{"beside what was said", []session.Entry{{Kind: session.Prefix, System: "s"}, say(1, session.User, "u"), say(1, session.Added, "x"), say(1, session.Assistant, "a")}, "user:u+x assistant:a"},
		{"results in one message", []session.Entry{say(1, session.User, "u"), call("1", "2"), result("1"), result("2"), say(1, session.Added, "x")}, "user:u assistant:?1+?2 user:=1+=2+x"},
		{"two turns without an answer", []session.Entry{say(1, session.User, "u"), say(2, session.User, "v")}, "user:u user:v"},
		{"calls without results", []session.Entry{say(1, session.User, "u"), call("1", "2"), result("2"), say(2, session.User, "v")}, "user:u assistant:?1+?2 user:=2+!1 user:v"},
		{"no result at all", []session.Entry{say(1, session.User, "u"), call("1"), say(2, session.User, "v")}, "user:u assistant:?1 user:!1+v"},
		{"still open", []session.Entry{say(1, session.User, "u"), call("1")}, "user:u assistant:?1"},
		{"a result that nobody waits for", []session.Entry{say(1, session.User, "u"), result("9"), call("1"), result("1"), result("1")}, "user:u assistant:?1 user:=1"},
		{"an answer that says nothing", []session.Entry{say(1, session.User, "u"), {Turn: 1, Kind: session.Assistant, Blocks: []llm.Block{{Reasoning: &llm.Reasoning{Text: "hm"}}}}, say(2, session.User, "v")}, "user:u user:v"},
		{"blank text", []session.Entry{say(1, session.User, "u"), {Turn: 1, Kind: session.Assistant, Blocks: []llm.Block{{Text: " \n"}, {Text: "a"}}}}, "user:u assistant:a"},
		{"a summary alone", []session.Entry{say(1, session.User, "u"), say(1, session.Summary, "s"), say(1, session.Added, "x")}, "user:u user:s user:x"},
	} {
		var words []string
		for _, m := range prompt.Messages(tt.live) {
			var blocks []string
			for _, b := range m.Blocks {
				switch {
				case b.Call != nil:
					blocks = append(blocks, "?"+b.Call.ID)
				case b.Result != nil && b.Result.Failed:
					blocks = append(blocks, "!"+b.Result.ID)
				case b.Result != nil:
					blocks = append(blocks, "="+b.Result.ID)
				default:
					blocks = append(blocks, b.Text)
				}
			}
			words = append(words, string(m.Role)+":"+strings.Join(blocks, "+"))
		}
		if got := strings.Join(words, " "); got != tt.want {
			t.Errorf("%s: Messages = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestBroke(t *testing.T) {
	tool := func(name, desc string) llm.Tool {
		return llm.Tool{Name: name, Description: desc, Schema: json.RawMessage(`{}`)}
	}
	user := func(texts ...string) llm.Message {
		m := llm.Message{Role: llm.User}
		for _, s := range texts {
			m.Blocks = append(m.Blocks, llm.Block{Text: s})
		}
		return m
	}
	answer := llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Text: "a"}}}
	base := llm.Request{Model: "m", Tools: []llm.Tool{tool("a", ""), tool("b", "")}, System: "be good", Messages: []llm.Message{user("u"), answer, user("v")}, Cache: "c"}
	for _, tt := range []struct {
		name   string
		change func(*llm.Request)
		want   string
	}{
		{"nothing", func(*llm.Request) {}, ""},
		{"one more message", func(r *llm.Request) { r.Messages = append(r.Messages, answer) }, ""},
		{"more in the last message", func(r *llm.Request) { r.Messages[2] = user("v", "w") }, ""},
		{"what may be called", func(r *llm.Request) { r.Allowed, r.MaxTokens = []string{"a"}, 7 }, ""},
		{"more in an earlier message", func(r *llm.Request) { r.Messages[0] = user("u", "w") }, "message 1: it has more blocks"},
		{"other words", func(r *llm.Request) { r.Messages[2] = user("w") }, "message 3: block 1 is different"},
		{"less", func(r *llm.Request) { r.Messages = r.Messages[:1] }, "message 2: it is no longer there"},
		{"another speaker", func(r *llm.Request) { r.Messages[1] = user("a") }, "message 2: it was the assistant's and is the user's"},
		{"system", func(r *llm.Request) { r.System = "be bad" }, "system: it is different from byte 4 on"},
		{"a tool came", func(r *llm.Request) { r.Tools = append(r.Tools, tool("c", "")) }, "tools: c came"},
		{"a tool went", func(r *llm.Request) { r.Tools = r.Tools[1:] }, "tools: a went"},
		{"a tool changed", func(r *llm.Request) { r.Tools[1] = tool("b", "x") }, "tools: b is different"},
		{"order", func(r *llm.Request) { r.Tools[0], r.Tools[1] = r.Tools[1], r.Tools[0] }, "tools: their order is different"},
		{"model", func(r *llm.Request) { r.Model = "" }, "model: m became the default"},
		{"effort", func(r *llm.Request) { r.Effort = "high" }, "effort: the default became high"},
		{"cache", func(r *llm.Request) { r.Cache = "d" }, "cache: it has another name"},
	} {
		after := base
		after.Tools, after.Messages = slices.Clone(base.Tools), slices.Clone(base.Messages)
		tt.change(&after)
		if got := prompt.Broke(base, after); got != tt.want {
			t.Errorf("%s: Broke = %q, want %q", tt.name, got, tt.want)
		}
	}
}
