package source

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ken/capability"
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
	names := make([]string, 0, len(refreshPool))
	for name := range refreshPool {
		names = append(names, name)
	}
	slices.Sort(names)
	folders := []string{"d1", "d1/sub", "d2", "d2/deep", "d3", "cards"}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		g := &refreshGame{T: rt, dir: dir}
		tree := NewTree(TreeConfig{Name: "tree", Path: dir, Trust: capability.TrustUser})
		defer tree.Close()
		if _, err := tree.Load(context.Background()); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			g.changed = nil
			for range rapid.IntRange(1, 4).Draw(rt, "changes") {
				switch rapid.SampledFrom([]string{"write", "write", "write", "remove", "move", "link"}).Draw(rt, "what") {
				case "write":
					g.write(rapid.SampledFrom(names).Draw(rt, "file"), rapid.IntRange(0, 9).Draw(rt, "version"))
				case "remove":
					g.remove(rapid.SampledFrom(append(slices.Clone(folders), names...)).Draw(rt, "gone"))
				case "move":
					g.move(rapid.SampledFrom(folders).Draw(rt, "from"), rapid.SampledFrom(folders).Draw(rt, "to"))
				case "link":
					g.link(rapid.SampledFrom(names).Draw(rt, "target"), rapid.SampledFrom([]string{"link.md", "d3/link.md"}).Draw(rt, "link"))
				}
			}
			var got capability.Batch
			if rapid.Bool().Draw(rt, "all") {
				got, _, err = tree.refresh(context.Background(), sighting{all: true})
			} else {
				got, err = tree.Refresh(context.Background(), g.changed)
			}
			if err != nil {
				rt.Fatal(err)
			}
			fresh := NewTree(tree.cfg)
			want, err := fresh.Load(context.Background())
			if err != nil {
				rt.Fatal(err)
			}
			fresh.Close()
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("after %v: refreshed and loaded differ (-load +refresh):\n%s", g.changed, diff)
			}
		}
	})
}

type refreshGame struct {
	*rapid.T
	dir     string
	changed []string
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
