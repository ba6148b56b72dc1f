package source

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

func load(t *testing.T, cfg TreeConfig) (*Tree, capability.Batch) {
	t.Helper()
	tree := NewTree(cfg)
	t.Cleanup(func() { tree.Close() })
	b, err := tree.Load(context.Background())
	must(t, err)
	return tree, b
}

func TestRefreshKeepsPointersOfWhatDidNotChange(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", sourcetest.Card)
	path := sourcetest.Write(t, dir, "cards/b.md", "---\nid: b\ntriggers: {keywords: [b]}\n---\nOld.\n")
	tree, before := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	sourcetest.Write(t, dir, "cards/b.md", "---\nid: b\ntriggers: {keywords: [b]}\n---\nNew.\n")
	after, err := tree.Refresh(context.Background(), []string{path})
	must(t, err)
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

func TestTreeMayBeginAtAFolderThatSaysWhatItHolds(t *testing.T) {
	for folder, want := range map[string]capability.ID{
		"x/.claude/commands": "command:fix", "x/cards": "fix", "x/docs/capabilities": "fix",
	} {
		dir := t.TempDir()
		sourcetest.Write(t, dir, folder+"/fix.md", "Fix $ARGUMENTS.\n")
		_, b := load(t, TreeConfig{Path: filepath.Join(dir, filepath.FromSlash(folder)), Trust: capability.TrustUser})
		switch {
		case want == "fix": // a card without frontmatter is refused, not passed over
			if len(b.Problems) != 1 || b.Problems[0].Code != "bad-frontmatter" {
				t.Errorf("%s: problems %v, want one about the frontmatter", folder, b.Problems)
			}
		case len(b.Capabilities) != 1 || b.Capabilities[0].ID != want:
			t.Errorf("%s: %v, want %s", folder, b.Capabilities, want)
		}
	}
}

func TestProjectFolderThatLeavesTheProjectIsRefused(t *testing.T) {
	project, outside := t.TempDir(), t.TempDir()
	sourcetest.Write(t, outside, "cards/a.md", sourcetest.Card)
	sourcetest.Write(t, project, "real/cards/a.md", sourcetest.Card)
	for link, target := range map[string]string{"out": outside, "in": "real"} {
		must(t, os.Symlink(target, filepath.Join(project, link)))
	}
	cfg := TreeConfig{Path: filepath.Join(project, "out"), Within: project, Trust: capability.TrustWorkspace, Optional: true}
	if b, err := NewTree(cfg).Load(t.Context()); err == nil {
		t.Errorf("Load of a link that leaves the project = %v, want an error", b.Capabilities)
	}
	cfg.Path = filepath.Join(project, "in")
	if _, b := load(t, cfg); len(b.Capabilities) != 1 {
		t.Errorf("a link inside the project gives %d capabilities, want 1: %v", len(b.Capabilities), b.Problems)
	}
}
