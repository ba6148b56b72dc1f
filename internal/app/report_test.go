package app

import (
	"os"
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
	_, getenv := home(t, nil)
	used := llm.Usage{Input: 100, Output: 7, CachedRead: 40, CachedWrite: 30}
	fake := &llmtest.Fake{Script: llmtest.Replies(llmtest.Reply{Text: "Hello.", Usage: used}, llmtest.Reply{Text: "Again.", Usage: used})}
	tools := source.NewMemory("test", capability.TrustUser)
	tools.Put(capability.Capability{Name: "greet", Description: "Greet somebody", Run: &capability.Recipe{Runner: "mcp.call"}}, capability.Detail{})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Model: fake, Sources: []capability.Source{tools}})
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
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		b.Skip("KEN_BENCH is not set: the catalogs to measure on are not here")
	}
	home := b.TempDir()
	a, err := Open(b.Context(), Config{
		Catalogs: []string{filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl")}, Dir: home,
		Getenv: func(name string) string { return map[string]string{"KEN_HOME": home}[name] },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	view, began := a.View(), time.Now()
	a.Door.AwaitAllToolTokens(b.Context(), view)
	took := time.Since(began)
	for b.Loop() {
		a.Door.AllToolTokens(view)
	}
	b.ReportMetric(float64(took.Milliseconds()), "first-ms")
	b.ReportMetric(float64(a.Door.AllToolTokens(view)), "tokens")
}
