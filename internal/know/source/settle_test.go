package source

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

const (
	rowOne   = `{"id":"tool:one","name":"one","description":"The first."}` + "\n"
	rowTwo   = `{"id":"tool:two","name":"two","description":"The second."}` + "\n"
	rowThree = `{"id":"tool:three","name":"three","description":"The third."}` + "\n"
	rowBad   = `{"id":"tool:bad","name":` + "\n"

	packageManifest = `{"id":"pack","name":"Pack","description":"A package.","permissions_required":["exec"]}`
	packageCommands = "commands:\n  - name: pack\n    description: Packs things.\n    actions:\n      - name: run\n        description: Runs.\n        runner: exec.pack\n"
)

// TestSettle tells what is left of a unit when one of its files changes for
// the worse, and that what the user takes out is out.
func TestSettle(t *testing.T) {
	tests := []struct {
		name   string
		before map[string]string
		after  map[string]string // "-" deletes
		want   []string
		code   string // of one problem; empty when none is of "last-good"
	}{
		{
			"a catalog cut within a row", map[string]string{"c.jsonl": rowOne + rowTwo + rowThree},
			map[string]string{"c.jsonl": rowOne + rowTwo[:20]},
			[]string{"tool:one", "tool:three", "tool:two"}, "last-good",
		},
		{
			"a catalog with a row that broke", map[string]string{"c.jsonl": rowOne + rowTwo},
			map[string]string{"c.jsonl": rowOne + rowBad + rowThree},
			[]string{"tool:one", "tool:three", "tool:two"}, "last-good",
		},
		{
			"a row taken out", map[string]string{"c.jsonl": rowOne + rowTwo},
			map[string]string{"c.jsonl": rowOne}, []string{"tool:one"}, "",
		},
		{
			"a row taken out of a catalog that was never whole", map[string]string{"c.jsonl": rowOne + rowBad + rowTwo},
			map[string]string{"c.jsonl": rowTwo + rowBad}, []string{"tool:two"}, "",
		},
		{
			"a catalog that was never whole and broke altogether", map[string]string{"c.jsonl": rowOne + rowBad},
			map[string]string{"c.jsonl": rowBad}, []string{"tool:one"}, "last-good",
		},
		{
			"an empty catalog", map[string]string{"c.jsonl": rowOne},
			map[string]string{"c.jsonl": ""}, []string{"tool:one"}, "empty-file",
		},
		{
			"a skill cut within its frontmatter", map[string]string{"s/SKILL.md": "---\nname: s\ndescription: Does s.\n---\nDo s.\n"},
			map[string]string{"s/SKILL.md": "---\nname: s\ndescr"}, []string{"skill:s"}, "last-good",
		},
		{
			"an empty skill", map[string]string{"s/SKILL.md": "---\nname: s\ndescription: Does s.\n---\nDo s.\n"},
			map[string]string{"s/SKILL.md": ""}, []string{"skill:s"}, "empty-file",
		},
		{
			"a manifest that no longer shows what it is",
			map[string]string{"p/manifest.json": packageManifest, "p/usage.md": "How to use it.\n"},
			map[string]string{"p/manifest.json": packageManifest[:20]}, []string{"extension:pack"}, "last-good",
		},
		{
			"an empty document of a package",
			map[string]string{"p/manifest.json": packageManifest, "p/commands.yaml": packageCommands},
			map[string]string{"p/commands.yaml": ""}, nil, "empty-file",
		},
		{
			"commands that broke",
			map[string]string{"p/manifest.json": packageManifest, "p/commands.yaml": packageCommands},
			map[string]string{"p/commands.yaml": packageCommands[:30] + ": [\n"}, nil, "last-good",
		},
		{
			"commands taken out",
			map[string]string{"p/manifest.json": packageManifest, "p/commands.yaml": packageCommands},
			map[string]string{"p/commands.yaml": "-"}, []string{"extension:pack"}, "",
		},
		{
			"a folder that stops being a unit",
			map[string]string{"p/manifest.json": packageManifest, "p/commands.yaml": packageCommands, "p/a.md": cardNamed("a", "A.")},
			map[string]string{"p/manifest.json": "-"}, []string{"a"}, "",
		},
		{
			"a card that became another", map[string]string{"cards/a.md": cardNamed("a", "A.")},
			map[string]string{"cards/a.md": cardNamed("b", "B.")}, []string{"b"}, "",
		},
		{
			"a card that is refused", map[string]string{"cards/a.md": cardNamed("a", "A.")},
			map[string]string{"cards/a.md": strings.Replace(cardNamed("a", "A."), "triggers:", "priority: 101\ntriggers:", 1)}, []string{"a"}, "last-good",
		},
	}
	for _, tt := range tests {
		for _, all := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				dir := t.TempDir()
				for name, text := range tt.before {
					sourcetest.Write(t, dir, name, text)
				}
				tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
				want := tt.want
				if want == nil {
					want = ids(b) // all of it stays
				}
				if len(ids(b)) == 0 {
					t.Fatalf("nothing was read before: %v", b.Problems)
				}
				var seen sighting
				for name, text := range tt.after {
					if text == "-" {
						must(t, os.RemoveAll(filepath.Join(dir, name)))
					} else {
						sourcetest.Write(t, dir, name, text)
					}
					seen.add(name)
				}
				if all {
					seen = sighting{all: true}
				}
				after, changed, err := tree.refresh(context.Background(), seen)
				if err != nil || !changed {
					t.Fatalf("refresh = changed %t, %v, want a change", changed, err)
				}
				if !slices.Equal(ids(after), want) {
					t.Errorf("capabilities %v, want %v; problems %v", ids(after), want, after.Problems)
				}
				if tt.code == "" && hasProblem("last-good")(after) || tt.code != "" && (!hasProblem(tt.code)(after) || !hasProblem("last-good")(after)) {
					t.Errorf("problems %v, want code %q", after.Problems, tt.code)
				}
				// Mended, nothing of it remains.
				for name, text := range tt.before {
					sourcetest.Write(t, dir, name, text)
				}
				mended, _, err := tree.refresh(context.Background(), seen)
				if err != nil || !slices.Equal(ids(mended), ids(b)) || len(mended.Problems) != len(b.Problems) {
					t.Errorf("fixed: capabilities %v, %v, problems %v, want %v and %v", ids(mended), err, mended.Problems, ids(b), b.Problems)
				}
			})
		}
	}
}

// TestRefreshKeepsPointersWithinAUnit changes a part of a file, and then
// nothing of it.
func TestRefreshKeepsPointersWithinAUnit(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "c.jsonl", rowOne+rowTwo)
	tree, before := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	for _, text := range []string{rowOne + rowTwo + rowThree, rowOne + rowTwo + rowThree} {
		sourcetest.Write(t, dir, "c.jsonl", text)
		after, changed, err := tree.refresh(context.Background(), sighting{paths: map[string]bool{"c.jsonl": true}})
		if err != nil || changed != (len(before.Capabilities) == 2) {
			t.Fatalf("refresh = changed %t, %v, with %d capabilities before", changed, err, len(before.Capabilities))
		}
		for i, c := range before.Capabilities {
			if after.Capabilities[i] != c {
				t.Errorf("%s did not change, and is another pointer", c.ID)
			}
		}
		before = after
	}
}

// TestRefreshFollowsWhatHangsOnWhat changes a file that a link leads to, which
// a registry names.
func TestRefreshFollowsWhatHangsOnWhat(t *testing.T) {
	dir := t.TempDir()
	file := sourcetest.Write(t, dir, "real/text.txt", cardNamed("a", "A."))
	sourcetest.Write(t, dir, "registry.yaml", "- id: a\n  filePath: cards/a.md\n  triggers: {keywords: [a]}\n")
	must(t, os.Mkdir(filepath.Join(dir, "cards"), 0o755))
	must(t, os.Symlink("../real/text.txt", filepath.Join(dir, "cards/a.md")))
	tree, before := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	if c := find(before, "a"); c == nil || c.Origin.Format != "registry" {
		t.Fatalf("the card is %+v, want it from the registry", c)
	}
	sourcetest.Write(t, dir, "real/text.txt", cardNamed("a", "Changed."))
	after, err := tree.Refresh(context.Background(), []string{file})
	must(t, err)
	if d, err := tree.Detail(context.Background(), find(after, "a")); err != nil || d.Body != "Changed." {
		t.Errorf("Detail = %q, %v, want the changed text", d.Body, err)
	}
}

// TestRefreshWithoutEndLeavesEverything ends the context while a tree is read.
func TestRefreshWithoutEndLeavesEverything(t *testing.T) {
	dir := t.TempDir()
	file := sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	tree, before := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "Changed."))
	if _, err := tree.Refresh(ctx, []string{file}); err == nil {
		t.Error("Refresh with an ended context gave no error")
	}
	if _, err := tree.Load(ctx); err == nil {
		t.Error("Load with an ended context gave no error")
	}
	tree.mu.RLock()
	now := tree.batchLocked()
	tree.mu.RUnlock()
	if !slices.Equal(now.Capabilities, before.Capabilities) {
		t.Errorf("the tree holds %v, want what it held before", now.Capabilities)
	}
}

// TestRefreshPassesOverPathsOutside gives names that are not of the tree.
func TestRefreshPassesOverPathsOutside(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "tree")
	sourcetest.Write(t, dir, "a.md", cardNamed("a", "A."))
	outside := sourcetest.Write(t, above, "b.md", cardNamed("b", "B."))
	hidden := sourcetest.Write(t, dir, ".git/c.md", cardNamed("c", "C."))
	must(t, os.Symlink("..", filepath.Join(dir, "up")))
	must(t, os.Symlink(".", filepath.Join(dir, "self")))
	tree, _ := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	b, err := tree.Refresh(context.Background(), []string{
		outside, hidden, filepath.Join(dir, "up", "b.md"), filepath.Join(dir, "self", "a.md"), filepath.Join(dir, "..", "b.md"),
		filepath.Join(dir, "self"), "relative.md", "", string([]byte{0}),
	})
	if err != nil || !slices.Equal(ids(b), []string{"a"}) {
		t.Errorf("Refresh = %v, %v, want only a", ids(b), err)
	}
}
