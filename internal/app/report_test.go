package app

import (
	"path/filepath"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/outcome"
	"ken/internal/know/source"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestTurnsAreRecorded: each finished turn, including the first, has a record
// of its cost and of the cost of all schemas.
func TestTurnsAreRecorded(t *testing.T) {
	used := llm.Usage{Input: 100, Output: 7, CachedRead: 40, CachedWrite: 30}
	fake := &llmtest.Fake{Script: llmtest.Replies(llmtest.Reply{Text: "Hello.", Usage: used}, llmtest.Reply{Text: "Again.", Usage: used})}
	tools := source.NewMemory("test", capability.TrustUser)
	tools.Put(capability.Capability{Name: "greet", Description: "Greet somebody", Run: &capability.Recipe{Runner: "mcp.call"}}, capability.Detail{})
	a := open(t, Config{Model: fake, Sources: []capability.Source{tools}})
	say(t, a, "hello")
	view := a.Door.ViewFor(door.Viewer{Principal: a.Principal, Surface: "chat"})
	dump := a.Door.AwaitAllToolTokens(t.Context(), view)
	say(t, a, "hello again")
	say(t, a, "/nothing of that name") // asks nobody

	log, err := outcome.Open(filepath.Join(a.Places.State, "outcomes"), outcome.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var turns []outcome.Event
	for e, err := range log.Events(time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == outcome.Ended {
			turns = append(turns, e)
		}
	}
	if len(turns) != 3 {
		t.Fatalf("turns = %+v, want three", turns)
	}
	want := outcome.Usage{Input: 100, Output: 7, CachedRead: 40, CachedWrite: 30}
	if e := turns[0]; e.Usage != want || e.Requests != 1 || e.End != "answer" || e.Turn != "1" || e.Shown <= 0 || e.Shown != e.Added || e.TookUS <= 0 || e.AllToolTokens != dump || dump == 0 {
		t.Errorf("the first turn = %+v, want a dump of %d", e, dump)
	}
	if e := turns[1]; e.AllToolTokens != dump {
		t.Errorf("the second turn = %+v, want a dump of %d", e, dump)
	}
	if e := turns[2]; e.Requests != 0 || e.End != "failed" || e.Usage != (outcome.Usage{}) {
		t.Errorf("the turn that asked nobody = %+v", e)
	}
}

// BenchmarkDump weighs all schemas of the large catalog, as is done once, and
// asks for what is known, as every turn does.
func BenchmarkDump(b *testing.B) {
	a := alone(b, "", Config{Catalogs: []string{filepath.Join(corpora(b), "catalog", "npm-mcp", "corpus.jsonl")}})
	view, began := a.View(), time.Now()
	a.Door.AwaitAllToolTokens(b.Context(), view)
	took := time.Since(began)
	for b.Loop() {
		a.Door.AllToolTokens(view)
	}
	b.ReportMetric(float64(took.Milliseconds()), "first-ms")
	b.ReportMetric(float64(a.Door.AllToolTokens(view)), "tokens")
}
