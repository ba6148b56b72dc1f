package billtest

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/talk/model"
	"ken/llm"
)

// words counts words: tests can do that in their heads.
func words(text string) int { return len(strings.Fields(text)) }

func said(role llm.Role, n int) llm.Message {
	return llm.Message{Role: role, Blocks: []llm.Block{{Text: strings.Repeat(string(role)+" ", n)}}}
}

// grow plays a conversation in which each request has one more pair of messages
// of 96 words, and 4 tokens around each.
func grow(row model.Row, requests int) []llm.Usage {
	m := New(row, words)
	var list []llm.Usage
	messages := []llm.Message{said(llm.User, 96)}
	for range requests {
		list = append(list, m.Add(llm.Request{System: strings.Repeat("s ", 96), Messages: messages}, said(llm.Assistant, 96).Blocks))
		messages = append(messages, said(llm.Assistant, 96), said(llm.User, 96))
	}
	return list
}

// TestMeterRules: what is read and written follows each sort of rule.
func TestMeterRules(t *testing.T) {
	tests := []struct {
		name  string
		cache model.Cache
		want  []llm.Usage
	}{
		{"no cache", model.Cache{}, []llm.Usage{{Input: 200, Output: 96}, {Input: 400, Output: 96}}},
		{"implicit", model.Cache{Least: 1, Life: time.Minute}, []llm.Usage{
			{Input: 200, Output: 96}, {Input: 400, CachedRead: 200, Output: 96}, {Input: 600, CachedRead: 400, Output: 96},
		}},
		{"implicit in steps", model.Cache{Least: 100, Step: 128, Life: time.Minute}, []llm.Usage{
			{Input: 200, Output: 96}, {Input: 400, CachedRead: 128, Output: 96}, {Input: 600, CachedRead: 384, Output: 96},
		}},
		{"implicit from a size", model.Cache{Least: 300, Life: time.Minute}, []llm.Usage{
			{Input: 200, Output: 96}, {Input: 400, Output: 96}, {Input: 600, CachedRead: 400, Output: 96},
		}},
		{"marked", model.Cache{Marked: true, Marks: 4, Lookback: 20, Least: 1}, []llm.Usage{
			{Input: 200, CachedWrite: 200, Output: 96}, {Input: 400, CachedRead: 200, CachedWrite: 200, Output: 96},
		}},
		{"marked from a size", model.Cache{Marked: true, Marks: 4, Lookback: 20, Least: 300}, []llm.Usage{
			{Input: 200, Output: 96}, {Input: 400, CachedWrite: 400, Output: 96}, {Input: 600, CachedRead: 400, CachedWrite: 200, Output: 96},
		}},
	}
	for _, tt := range tests {
		got := grow(model.Row{Cache: tt.cache}, len(tt.want))
		for i := range tt.want {
			if got[i] != tt.want[i] {
				t.Errorf("%s: request %d is billed %+v, want %+v", tt.name, i+1, got[i], tt.want[i])
			}
		}
	}
}

// TestMeterLookback: a message with more blocks than a provider looks back over
// finds nothing but what the mark at the message before it has.
func TestMeterLookback(t *testing.T) {
	play := func(lookback, blocks int) llm.Usage {
		m := New(model.Row{Cache: model.Cache{Marked: true, Marks: 4, Lookback: lookback, Least: 1}}, words)
		messages := []llm.Message{said(llm.User, 96)}
		m.Add(llm.Request{Messages: messages}, nil)
		wide := llm.Message{Role: llm.Assistant}
		for range blocks {
			wide.Blocks = append(wide.Blocks, llm.Block{Text: "more"})
		}
		// Two more messages of the user's, so that no mark stands at the first.
		messages = append(messages, wide, said(llm.User, 1), said(llm.Assistant, 1), said(llm.User, 1))
		return m.Add(llm.Request{Messages: messages}, nil)
	}
	if got := play(20, 10); got.CachedRead != 100 {
		t.Errorf("10 blocks after it: %+v, want 100 tokens read", got)
	}
	if got := play(20, 30); got.CachedRead != 0 {
		t.Errorf("30 blocks after it: %+v, want none read", got)
	}
	if got := play(0, 30); got.CachedRead != 100 {
		t.Errorf("without a limit: %+v, want 100 tokens read", got)
	}
}

// TestMeterBrokenPrefix: with one more tool at the front everything is read again;
// with one more at the end of the tools those before it are kept, if no mark is
// needed.
func TestMeterBrokenPrefix(t *testing.T) {
	tool := func(name string) llm.Tool { return llm.Tool{Name: name, Description: strings.Repeat("d ", 87)} } // 100 tokens
	messages := []llm.Message{said(llm.User, 96)}
	for _, tt := range []struct {
		name  string
		cache model.Cache
		tools []llm.Tool
		read  int
	}{
		{"the same", model.Cache{Least: 1, Life: time.Minute}, []llm.Tool{tool("a"), tool("b")}, 300},
		{"at the end", model.Cache{Least: 1, Life: time.Minute}, []llm.Tool{tool("a"), tool("b"), tool("c")}, 200},
		{"at the front", model.Cache{Least: 1, Life: time.Minute}, []llm.Tool{tool("0"), tool("a"), tool("b")}, 0},
		{"marked, the same", model.Cache{Marked: true, Marks: 4, Lookback: 20, Least: 1}, []llm.Tool{tool("a"), tool("b")}, 300},
		{"marked, at the end", model.Cache{Marked: true, Marks: 4, Lookback: 20, Least: 1}, []llm.Tool{tool("a"), tool("b"), tool("c")}, 200},
		{"marked, at the front", model.Cache{Marked: true, Marks: 4, Lookback: 20, Least: 1}, []llm.Tool{tool("0"), tool("a"), tool("b")}, 0},
	} {
		m := New(model.Row{Cache: tt.cache}, words)
		m.Add(llm.Request{Tools: []llm.Tool{tool("a"), tool("b")}, Messages: messages}, nil)
		if got := m.Add(llm.Request{Tools: tt.tools, Messages: messages}, nil); got.CachedRead != tt.read {
			t.Errorf("%s: %+v, want %d read", tt.name, got, tt.read)
		}
	}
}

// TestMeterToolsInTheMiddle: tools given in a message or in a result are priced
// there and break nothing before them.
func TestMeterToolsInTheMiddle(t *testing.T) {
	row := model.Row{Cache: model.Cache{Least: 1, Life: time.Minute}, Price: model.Price{Input: 1, CachedRead: 0.1, CacheWrite: 1, Output: 5}}
	given := llm.Block{Tools: []llm.Tool{{Name: "a", Description: strings.Repeat("d ", 87)}}} // 100 tokens and 4
	for name, msg := range map[string]llm.Message{
		"message": {Role: llm.User, Blocks: []llm.Block{given}},
		"result":  {Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "1", Blocks: []llm.Block{given}}}}},
	} {
		m := New(row, words)
		messages := []llm.Message{said(llm.User, 96)}
		m.Add(llm.Request{Messages: messages}, nil)
		got := m.Add(llm.Request{Messages: append(messages, msg)}, nil)
		if got.CachedRead != 100 || got.Input < 204 || got.Input > 220 {
			t.Errorf("%s: %+v, want 100 read and the tool's 100 more", name, got)
		}
	}
}

// TestMeterTotals: nothing is counted twice or lost, whatever the rule, and a
// conversation that only grows never costs more with a cache than without one,
// unless writing does.
func TestMeterTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cache := model.Cache{
			Marked: rapid.Bool().Draw(t, "marked"), Marks: rapid.IntRange(1, 4).Draw(t, "marks"), Lookback: rapid.IntRange(0, 20).Draw(t, "lookback"),
			Least: rapid.IntRange(0, 500).Draw(t, "least"), Step: rapid.IntRange(0, 200).Draw(t, "step"), Life: time.Minute,
		}
		price := model.Price{Input: 1, CachedRead: 0.1, CacheWrite: 1, Output: 1}
		n := rapid.IntRange(1, 12).Draw(t, "requests")
		var with, without float64
		var sum llm.Usage
		for _, u := range grow(model.Row{Cache: cache}, n) {
			if u.CachedRead < 0 || u.CachedWrite < 0 || u.CachedRead+u.CachedWrite > u.Input {
				t.Fatalf("%+v: more is cached than there is", u)
			}
			with += price.Cost(u)
			without += price.Cost(llm.Usage{Input: u.Input, Output: u.Output})
			sum.Add(u)
		}
		if with > without+1e-12 {
			t.Errorf("with a cache it costs %v, without %v", with, without)
		}
		if want := 100 * n * (n + 1); sum.Input != want {
			t.Errorf("input = %d, want %d", sum.Input, want)
		}
	})
}
