package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"ken"

	"ken/internal/testkit"
)

// TestPlaygroundExamples: each example that the playground offers finds the right
// capability first, and above the threshold, with the starter catalog.
func TestPlaygroundExamples(t *testing.T) {
	testkit.CI(t, "loads the whole program")
	want := map[string]string{
		"show the latest commits of this repository": "tool:git-log",
		"how many words are in README.md":            "tool:word-count",
		"translate this letter into French":          "skill:translation",
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "web", "src", "views", "Playground.svelte"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`const examples = \[(.*)\]`).FindSubmatch(page)
	if line == nil {
		t.Fatal("the playground has no examples")
	}
	examples := regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(line[1], -1)
	if len(examples) != len(want) {
		t.Errorf("the playground has %d examples, want %d", len(examples), len(want))
	}
	t.Chdir(t.TempDir())
	k, err := ken.Open(t.Context(), ken.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, e := range examples {
		message := string(e[1])
		sel, err := k.Select(t.Context(), ken.Query{Message: message})
		if err != nil {
			t.Fatal(err)
		}
		if len(sel.Found) == 0 || string(sel.Found[0].Capability.ID) != want[message] {
			t.Errorf("Select(%q) finds %v, want %s first", message, sel.Found, want[message])
		}
	}
}
