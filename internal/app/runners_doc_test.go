package app

import (
	"os"
	"regexp"
	"testing"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/run/executors"
)

// TestDocumentedRunners: docs/sources.md names the runners that exist, and none
// besides.
func TestDocumentedRunners(t *testing.T) {
	text, err := os.ReadFile("../../docs/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile(`(?s)These runners exist:\n\n(.*?)\n\n`).FindSubmatch(text)
	if sentence == nil {
		t.Fatal("docs/sources.md does not say which runners exist")
	}
	names := regexp.MustCompile("`([a-z]+\\.[A-Za-z]+)`").FindAllSubmatch(sentence[1], -1)
	if len(names) < 3 {
		t.Fatalf("docs/sources.md names %d runners: %s", len(names), sentence[1])
	}
	unrun := executors.Unrunnable(nil, func() []config.Database { return []config.Database{{Name: "shop"}} })
	runs := func(c *capability.Capability) bool { return unrun(c) == "" }
	by := func(runner string) *capability.Capability {
		return &capability.Capability{Kind: capability.KindTool, Name: "x", Run: &capability.Recipe{Runner: runner, Argv: []string{"shop"}, Ask: &capability.Ask{Prompt: "x"}}}
	}
	for _, name := range names {
		if !runs(by(string(name[1]))) {
			t.Errorf("docs/sources.md names the runner %s, and nothing runs it", name[1])
		}
	}
	for _, name := range []string{"db.drop", "browser.print", "llm.complete", "shell", "files.read"} {
		if runs(by(name)) {
			t.Errorf("a file's capability with the runner %s is run; docs/sources.md does not say so", name)
		}
	}
}
