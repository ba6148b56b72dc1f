package extensions_test

import (
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/executor/api"
	"ken/internal/run/executor/browser"
)

// TestPackages: every package is read without a complaint, says what it needs
// and how it is used, has three actions or more, and each example in it is a
// line that makes a command.
func TestPackages(t *testing.T) {
	b := newBench(t, "tools.text")
	for _, p := range b.batch.Problems {
		t.Errorf("problem: %v", p)
	}
	actions := map[string]int{}
	examples := map[string]bool{}
	for _, c := range b.batch.Capabilities {
		_, d, err := b.lookup(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(d.Usage, "\n## What it cannot do\n") {
			t.Errorf("%s: its usage does not say what it cannot do", c.ID)
		}
		if c.Kind == capability.KindExtension {
			actions[string(c.ID)] += 0
			continue
		}
		actions[c.RequiredTools[0]]++
		if c.Run == nil || c.Run.TimeoutSec == 0 || len(c.Run.Argv) == 0 && !strings.HasPrefix(c.Run.Runner, "browser.") && !strings.HasPrefix(c.Run.Runner, "api.") {
			t.Errorf("%s: recipe %+v, want a template and a time limit", c.ID, c.Run)
		}
		_, list, _ := strings.Cut(d.Body, "Examples:\n\n")
		for line := range strings.Lines(list) {
			examples[strings.TrimSpace(line)] = true
		}
	}
	if len(actions) < 5 || len(examples) < 20 {
		t.Errorf("%d packages and %d examples, want at least 5 and 20", len(actions), len(examples))
	}
	for id, n := range actions {
		if n < 3 {
			t.Errorf("%s has %d actions, want 3 or more", id, n)
		}
	}
	pages, err := browser.New(browser.Config{Extensions: filepath.Join(b.dir, "extensions"), Lookup: b.lookup})
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	requests, err := api.New(api.Config{Lookup: b.lookup})
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Close()
	for line := range examples {
		call, err := b.call(t, line)
		if err != nil {
			t.Errorf("example %s: %v", line, err)
			continue
		}
		var by executor.Executor = b.executor
		switch {
		case strings.HasPrefix(line, "/browse "):
			by = pages
		case strings.HasPrefix(line, "/api "):
			by = requests
		}
		if _, err := by.Facts(t.Context(), call, nil); err != nil {
			t.Errorf("example %s: %v", line, err)
		}
	}
}
