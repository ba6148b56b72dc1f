package chatapi

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

func say(turn int, k session.Kind, blocks ...llm.Block) session.Entry {
	return session.Entry{Turn: turn, Kind: k, Blocks: blocks}
}

func called(id, name, args string) llm.Block {
	return llm.Block{Call: &llm.ToolCall{ID: id, Name: name, Arguments: []byte(args)}}
}

func came(id, text string, failed bool) llm.Block {
	return llm.Block{Result: &llm.ToolResult{ID: id, Failed: failed, Blocks: []llm.Block{{Text: text}, {Image: &llm.Image{}}}}}
}

func note(turn int, name, text string) session.Entry {
	return session.Entry{Turn: turn, Kind: session.Note, Name: name, Text: text}
}

// TestFold is how a person reads what the engine wrote.
func TestFold(t *testing.T) {
	prefix := session.Entry{Turn: 1, Kind: session.Prefix, Offers: []session.Offer{{Tool: "git_push", ID: "tool:git", Action: "push"}}}
	found := session.Entry{Turn: 1, Kind: session.Added, Blocks: []llm.Block{{Text: "found things"}}, Offers: []session.Offer{{Tool: "greet", ID: "tool:greet"}}}
	usage := say(1, session.Assistant,
		llm.Block{Reasoning: &llm.Reasoning{Text: "hm"}}, llm.Block{Text: "So."},
		called("c1", "select_active_intent", `{"intent":"edit"}`), called("c2", "git_push", `{"force":`), called("c3", "invoke_capability", `{"id":"greet","arguments":{"a":1}}`),
	)
	usage.Usage, usage.Cost = &llm.Usage{Input: 5}, 0.5
	handle := "0123456789abcdef0123"
	turns := turnsOf([]session.Entry{
		note(0, "sessionType", "main"), prefix, say(1, session.User, llm.Block{Text: " /path "}, llm.Block{Image: &llm.Image{}}), found, usage,
		note(1, "intent", "edit: to change"), say(1, session.Results, came("c1", "ok", false)),
		note(1, "refused", "c2 denied"), say(1, session.Results, came("c2", "no", true)), note(1, "end", "aborted"),
		say(2, session.Results, came("c3", strings.Repeat("é", 10_000)+" (The whole result: read_result, handle "+handle+")", false)),
		say(2, session.User, llm.Block{Text: "next"}), {Turn: 2, Kind: session.Summary, From: 3, To: 5},
		say(2, session.Assistant, called("c1", "finish", `{"answer":"All done."}`)), say(2, session.Results, came("c1", "over", false)), note(2, "end", "answer"),
		say(3, session.Results, came("nobody", "?", false)),
	})
	got := testkit.Must(json.Marshal(turns))(t)
	long := strings.Repeat("é", 8192)
	want := `[{"turn":1,"time":"0001-01-01T00:00:00Z","said":"/path","images":1,"items":[{"type":"thought","text":"hm"},{"type":"text","text":"So."},` +
		`{"type":"call","id":"c1","target":"select_active_intent","arguments":{"intent":"edit"},"result":{"text":"ok","failed":false,"images":1}},` +
		`{"type":"call","id":"c2","target":"tool:git","action":"push","arguments":"{\"force\":","intent":"edit","result":{"text":"no","failed":true,"kind":"denied","images":1}},` +
		`{"type":"call","id":"c3","target":"tool:greet","arguments":{"a":1},"intent":"edit","result":{"text":"` + long + `","failed":false,"handle":"` + handle + `","images":1,"cut":true}}],` +
		`"usage":{"input":5,"cachedRead":0,"cachedWrite":0,"output":0,"thought":0},"cost":0.5,"end":"aborted","inspectable":false},` +
		`{"turn":2,"time":"0001-01-01T00:00:00Z","said":"next","items":[{"type":"notice","text":"Earlier messages were summarised for the model.","name":"compact"},` +
		`{"type":"call","id":"c1","target":"finish","arguments":{"answer":"All done."},"result":{"text":"over","failed":false,"images":1}},{"type":"text","text":"All done."}],"end":"answer","inspectable":false}]`
	if string(got) != want {
		t.Errorf("fold =\n%s\nwant\n%s", got, want)
	}
}

// TestFoldCommand: the note says what a command came to, whatever its output
// says. A session from before there was such a note reads the same.
func TestFoldCommand(t *testing.T) {
	output := func(said string) session.Entry {
		return say(1, session.Added, llm.Block{Text: "[[data 1]] from the command that the user ran themselves. " + said + "\nIt did not work\n[[end 1]]"})
	}
	typed := []session.Entry{say(1, session.User, llm.Block{Text: "/greet you"}), note(1, "command", "/greet you")}
	for name, c := range map[string]struct {
		after []session.Entry
		want  string
	}{
		"worked":        {[]session.Entry{note(1, "commandResult", `{"id":"command_1"}`), output("It gave:")}, `{"text":"It did not work","failed":false}`},
		"denied":        {[]session.Entry{note(1, "commandResult", `{"id":"command_1","failed":true,"kind":"denied"}`), output("It did not work:")}, `{"text":"It did not work","failed":true,"kind":"denied"}`},
		"worked before": {[]session.Entry{output("It gave:")}, `{"text":"It did not work","failed":false}`},
		"denied before": {[]session.Entry{note(1, "refused", "command_1 denied"), output("It did not work:")}, `{"text":"It did not work","failed":true,"kind":"denied"}`},
		"of another":    {[]session.Entry{note(1, "commandResult", `{"id":"command_7","failed":true}`), output("It gave:")}, `{"text":"It did not work","failed":false}`},
	} {
		got, err := json.Marshal(turnsOf(append(typed[:2:2], c.after...))[0].Items[0])
		if want := `{"type":"call","id":"command_1","target":"greet","result":` + c.want + `}`; err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", name, got, err, want)
		}
	}
}

// TestFoldAnything: whatever is in a session can be read and written as JSON, and
// no text of an answer is lost.
func TestFoldAnything(t *testing.T) {
	ids := rapid.SampledFrom([]string{"a", "b", ""})
	block := rapid.Custom(func(r *rapid.T) llm.Block {
		switch rapid.IntRange(0, 4).Draw(r, "kind") {
		case 0:
			return llm.Block{Text: "said " + rapid.String().Draw(r, "text")}
		case 1:
			return called(ids.Draw(r, "id"), rapid.SampledFrom([]string{toolInvoke, toolFinish, "x", ""}).Draw(r, "name"), rapid.SampledFrom([]string{"", "{", "null", `{"capability":"x","arguments":[`, `{"capability":"y"}`, `{"arguments":7}`, "\xff"}).Draw(r, "args"))
		case 2:
			return came(ids.Draw(r, "id"), rapid.String().Draw(r, "text"), true)
		case 3:
			return llm.Block{Reasoning: &llm.Reasoning{Text: "hm"}}
		}
		return llm.Block{}
	})
	entry := rapid.Custom(func(r *rapid.T) session.Entry {
		return session.Entry{
			Turn: rapid.IntRange(0, 3).Draw(r, "turn"), Name: rapid.SampledFrom([]string{"end", "intent", "command", "commandResult", "refused", ""}).Draw(r, "name"), Text: rapid.String().Draw(r, "note"),
			Kind:   rapid.SampledFrom([]session.Kind{session.User, session.Added, session.Assistant, session.Results, session.Summary, session.Marker, session.Note, session.Prefix}).Draw(r, "kind"),
			Blocks: rapid.SliceOfN(block, 0, 3).Draw(r, "blocks"),
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		entries := rapid.SliceOfN(entry, 0, 20).Draw(r, "entries")
		turns := turnsOf(entries)
		if _, err := json.Marshal(turns); err != nil {
			r.Fatalf("fold cannot be written: %v", err)
		}
		have, want, began := 0, 0, 0
		for _, t := range turns {
			for _, i := range t.Items {
				if i.Type == "text" && strings.HasPrefix(i.Text, "said ") {
					have++
				}
			}
		}
		for i := range entries {
			if entries[i].Kind == session.User {
				began = entries[i].Turn
			}
			for _, b := range entries[i].Blocks {
				if entries[i].Kind == session.Assistant && b.Text != "" && len(turns) > 0 && entries[i].Turn == began && i > firstUser(entries) {
					want++
				}
			}
		}
		if have != want {
			r.Fatalf("%d texts of answers are there, want %d", have, want)
		}
	})
}

func firstUser(entries []session.Entry) int {
	for i := range entries {
		if entries[i].Kind == session.User {
			return i
		}
	}
	return len(entries)
}

// Why a turn did not end well is still there when it is read again.
func TestFailedTurnSaysWhy(t *testing.T) {
	r := open(t)
	r.script(llmtest.Reply{Fault: llmtest.Auth})
	id := r.begin()
	ended := do[Ended](r, "POST", at(id, "/turns?wait=true"), `{"text":"hello"}`)
	if ended.Done.Reason != event.EndFailed || ended.Done.Why == "" {
		t.Fatalf("the turn ended as %s: %s; want it failed, with a reason", ended.Done.Reason, ended.Done.Why)
	}
	kept := do[Session](r, "GET", at(id, ""), "").Turns
	if len(kept) != 1 || kept[0].End != "failed" || kept[0].Why != ended.Done.Why {
		t.Errorf("read again it is %+v, want failed: %s", kept, ended.Done.Why)
	}
}
