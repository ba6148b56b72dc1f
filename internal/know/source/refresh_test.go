package source

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/testkit"
)

// refreshPool holds the files that TestRefreshReadsWhatLoadReads plays with:
// kinds of units that change what the files around them mean.
var refreshPool = map[string]string{
	"cards/x.md":              "---\nid: x-VERSION\ntriggers: {keywords: [x]}\n---\nText.\n",
	"d1/a.md":                 "---\nid: a\ntriggers: {keywords: [a]}\n---\nText VERSION.\n",
	"d1/SKILL.md":             "---\nname: d1\ndescription: Skill VERSION.\n---\nDo it.\n",
	"d1/sub/b.md":             "---\nid: b\ntriggers: {keywords: [b]}\n---\nText VERSION.\n",
	"d1/sub/SKILL.md":         "---\nname: sub\ndescription: Skill VERSION.\n---\nDo it.\n",
	"d2/manifest.json":        `{"id": "ext-VERSION", "name": "Ext", "description": "An extension."}`,
	"d2/commands.yaml":        "commands:\n  - name: go\n    description: Goes VERSION.\n    actions:\n      - name: run\n        runner: exec.true\n",
	"d2/c.md":                 "---\nid: c\ntriggers: {keywords: [c]}\n---\nText VERSION.\n",
	"d2/deep/CAPABILITY.yaml": "id: tool:deep\nkind: tool\nname: deep\ndescription: Tool VERSION.\n",
	"d2/deep/d.md":            "---\nid: d\ntriggers: {keywords: [d]}\n---\nText VERSION.\n",
	"list.jsonl":              `{"id":"tool:r-VERSION","name":"r-VERSION","description":"A row."}` + "\n",
	"node_modules/no.md":      "---\nid: no\ntriggers: {keywords: [no]}\n---\nText VERSION.\n",
}

// TestRefreshReadsWhatLoadReads changes a tree at random, refreshes it by the
// names of what changed, or by a look through all, and compares with a tree
// that is read from scratch. Nothing here is half written.
func TestRefreshReadsWhatLoadReads(t *testing.T) {
	testkit.CI(t, "hundreds of trees")
	rapid.Check(t, func(rt *rapid.T) {
		g := newRefreshGame(t, rt)
		defer os.RemoveAll(g.dir)
		tree := NewTree(TreeConfig{Name: "tree", Path: g.dir, Trust: capability.TrustUser})
		defer tree.Close()
		_, err := tree.Load(context.Background())
		g.check(err)
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			g.changed = nil
			for range rapid.IntRange(1, 4).Draw(rt, "changes") {
				g.change()
			}
			var got capability.Batch
			if rapid.Bool().Draw(rt, "all") {
				got, _, err = tree.refresh(context.Background(), sighting{all: true})
			} else {
				got, err = tree.Refresh(context.Background(), g.changed)
			}
			g.check(err)
			if diff := cmp.Diff(g.loadFresh(tree), got); diff != "" {
				rt.Fatalf("after %v: refreshed and loaded differ (-load +refresh):\n%s", g.changed, diff)
			}
		}
	})
}

// TestWatchEndsWhereLoadDoes changes a tree at random while it is watched: in
// the end the batch is that of a tree read from scratch.
func TestWatchEndsWhereLoadDoes(t *testing.T) {
	testkit.CI(t, "hundreds of trees")
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]WatchMode{WatchBySystem, WatchByPolling}).Draw(rt, "mode")
		every := time.Hour // events alone must do
		if mode == WatchByPolling {
			every = 2 * time.Millisecond
		}
		g := newRefreshGame(t, rt)
		defer os.RemoveAll(g.dir)
		tree := NewTree(TreeConfig{
			Name: "tree", Path: g.dir, Trust: capability.TrustUser,
			Watch: WatchConfig{Debounce: time.Millisecond, Poll: every, Mode: mode},
		})
		defer tree.Close()
		first, err := tree.Load(context.Background())
		g.check(err)
		ctx, cancel := context.WithCancel(context.Background())
		last, done := make(chan capability.Batch, 1), make(chan struct{})
		last <- first
		go func() {
			defer close(done)
			for b, err := range tree.Watch(ctx) {
				if err == nil {
					select {
					case <-last: // only the last counts
					default:
					}
					last <- b
				}
			}
		}()
		defer func() {
			cancel()
			<-done
		}()
		for range rapid.IntRange(1, 12).Draw(rt, "changes") {
			g.change()
		}
		want, deadline := g.loadFresh(tree), time.After(testkit.Patience)
		for diff := "nothing yet"; diff != ""; {
			select {
			case got := <-last:
				diff = cmp.Diff(want, got)
			case <-deadline:
				rt.Fatalf("%q: after %v: watched and loaded differ (-load +watch):\n%s", mode, g.changed, diff)
			}
		}
	})
}

// A refreshGame changes the files of a tree.
type refreshGame struct {
	*rapid.T
	dir     string
	names   []string
	changed []string
}

func newRefreshGame(t *testing.T, rt *rapid.T) *refreshGame {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		rt.Fatal(err)
	}
	return &refreshGame{T: rt, dir: dir, names: slices.Sorted(maps.Keys(refreshPool))}
}

func (g *refreshGame) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(g.T, what)
}

// change does one thing to the tree.
func (g *refreshGame) change() {
	folders := []string{"d1", "d1/sub", "d2", "d2/deep", "d3", "cards"}
	switch g.pick("what", "write", "write", "write", "remove", "move", "link") {
	case "write":
		g.write(g.pick("file", g.names...), rapid.IntRange(0, 9).Draw(g.T, "version"))
	case "remove":
		g.remove(g.pick("gone", append(folders, g.names...)...))
	case "move":
		g.move(g.pick("from", folders...), g.pick("to", folders...))
	case "link":
		g.link(g.pick("target", "cards/x.md", "d1/a.md", "d2/deep/d.md"), g.pick("link", "link.md", "d3/link.md"))
	}
}

// loadFresh reads the tree from scratch.
func (g *refreshGame) loadFresh(tree *Tree) capability.Batch {
	fresh := NewTree(tree.cfg)
	defer fresh.Close()
	b, err := fresh.Load(context.Background())
	g.check(err)
	return b
}

func (g *refreshGame) touch(name string) string {
	full := filepath.Join(g.dir, filepath.FromSlash(name))
	g.changed = append(g.changed, full)
	return full
}

func (g *refreshGame) check(err error) {
	if err != nil {
		g.Fatal(err)
	}
}

func (g *refreshGame) write(name string, version int) {
	// The events of a new folder name the folder, not what is in it.
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		full := filepath.Join(g.dir, d)
		if info, err := os.Stat(full); err == nil && info.IsDir() {
			break
		}
		g.touch(d)
	}
	full := g.touch(name)
	g.check(os.MkdirAll(filepath.Dir(full), 0o755))
	g.check(os.RemoveAll(full))
	g.check(os.WriteFile(full, []byte(strings.ReplaceAll(refreshPool[name], "VERSION", fmt.Sprint(version))), 0o644))
}

func (g *refreshGame) remove(name string) { g.check(os.RemoveAll(g.touch(name))) }

func (g *refreshGame) move(from, to string) {
	if from == to || strings.HasPrefix(to, from+"/") || strings.HasPrefix(from, to+"/") {
		return
	}
	if _, err := os.Lstat(filepath.Join(g.dir, from)); err != nil {
		return
	}
	if _, err := os.Stat(filepath.Join(g.dir, path.Dir(to))); err != nil {
		return
	}
	g.remove(to)
	g.check(os.Rename(g.touch(from), g.touch(to)))
}

func (g *refreshGame) link(target, name string) {
	full := filepath.Join(g.dir, name)
	if _, err := os.Stat(filepath.Dir(full)); err != nil {
		return
	}
	up, err := filepath.Rel(filepath.Dir(full), filepath.Join(g.dir, target))
	g.check(err)
	g.check(os.RemoveAll(g.touch(name)))
	g.check(os.Symlink(up, full))
}
