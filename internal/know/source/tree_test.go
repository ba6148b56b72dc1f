package source

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func load(t *testing.T, cfg TreeConfig) (*Tree, capability.Batch) {
	t.Helper()
	tree := NewTree(cfg)
	t.Cleanup(func() { tree.Close() })
	b, err := tree.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return tree, b
}

const plainCard = "---\ncapability_id: token-economy\ntriggers:\n  keywords: [cost, tokens]\npriority: 10\n---\nSaves tokens.\n"

func TestRefreshKeepsPointersOfWhatDidNotChange(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cards/a.md", plainCard)
	path := write(t, dir, "cards/b.md", "---\nid: b\ntriggers: {keywords: [b]}\n---\nOld.\n")
	tree, before := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	write(t, dir, "cards/b.md", "---\nid: b\ntriggers: {keywords: [b]}\n---\nNew.\n")
	after, err := tree.Refresh(context.Background(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Capabilities) != 2 {
		t.Fatalf("Refresh gave %d capabilities, want 2: %v", len(after.Capabilities), after.Problems)
	}
	if after.Capabilities[1] == before.Capabilities[1] || after.Capabilities[1].Hash == before.Capabilities[1].Hash {
		t.Error("the changed card is still the old one")
	}
	if after.Capabilities[0] != before.Capabilities[0] {
		t.Error("the card that did not change is another pointer")
	}
	d, err := tree.Detail(context.Background(), after.Capabilities[1])
	if err != nil || d.Body != "New." {
		t.Errorf("Detail = %q, %v, want New.", d.Body, err)
	}
	if _, err := tree.Detail(context.Background(), before.Capabilities[1]); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Detail of the old card: %v, want a conflict", err)
	}
}
