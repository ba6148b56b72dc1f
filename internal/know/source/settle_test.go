package source

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

// TestSettle holds what the changes of testdata/watch/settle.txtar leave against
// what is wanted, each seen by its name and by a look through all. Made good,
// nothing of them remains. KEN_UPDATE_GOLDEN=1 writes what is wanted anew.
func TestSettle(t *testing.T) {
	const path = "testdata/watch/settle.txtar"
	a, err := txtar.ParseFile(path)
	must(t, err)
	folders := map[string]map[string]string{"before": {}, "after": {}, "gone": {}}
	for i, f := range a.Files {
		when, name, inside := strings.Cut(f.Name, "/")
		if inside {
			name, text := unquoted(t, name, string(f.Data))
			folders[when][name] = text
			continue
		}
		for _, all := range []bool{false, true} {
			t.Run(strings.TrimPrefix(f.Name, "want: "), func(t *testing.T) {
				got := settled(t, folders["before"], folders["after"], folders["gone"], all)
				golden(t, string(f.Data), got)
				a.Files[i].Data = []byte(got)
			})
		}
		for _, files := range folders {
			clear(files)
		}
	}
	if os.Getenv("KEN_UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(path, txtar.Format(a), 0o644))
	}
}

// settled loads files, changes them, and returns what a refresh gives: the ids
// and the codes of problems.
func settled(t *testing.T, before, after, gone map[string]string, all bool) string {
	p := loaded(t, before)
	seen := sighting{all: all}
	for name, text := range after {
		sourcetest.Write(t, p.dir, name, text)
		seen.add(name)
	}
	for name := range gone {
		must(t, os.Remove(filepath.Join(p.dir, name)))
		seen.add(name)
	}
	b, changed, err := p.tree.refresh(context.Background(), seen)
	must(t, err)
	if !changed {
		t.Error("refresh says that nothing changed")
	}
	for name, text := range before {
		sourcetest.Write(t, p.dir, name, text)
	}
	mended, _, err := p.tree.refresh(context.Background(), seen)
	if err != nil || !slices.Equal(ids(mended), ids(p.Batch)) || len(mended.Problems) != len(p.Problems) {
		t.Errorf("made good: capabilities %v, %v, problems %v, want %v and %v", ids(mended), err, mended.Problems, ids(p.Batch), p.Problems)
	}
	p.Batch = b
	return strings.Join(ids(b), " ") + "\n" + strings.ReplaceAll(p.list(), p.dir+string(filepath.Separator), "")
}

// TestRefreshKeepsPointersWithinAUnit changes a part of a file, and then
// nothing of it.
func TestRefreshKeepsPointersWithinAUnit(t *testing.T) {
	dir := t.TempDir()
	row := func(name string) string {
		return `{"id":"tool:` + name + `","name":"` + name + `","description":"One."}` + "\n"
	}
	rows := row("one") + row("two")
	sourcetest.Write(t, dir, "c.jsonl", rows)
	tree, before := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	for _, text := range []string{rows + row("three"), rows + row("three")} {
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
