package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

// cardNamed returns a whole card.
func cardNamed(id, text string) string {
	return fmt.Sprintf("---\ncapability_id: %s\ntriggers:\n  keywords: [%s]\n---\n%s\n", id, id, text)
}

// A watching runs Watch on a tree and hands over what it yields.
type watching struct {
	t    *testing.T
	tree *Tree
	got  chan yielded
	last yielded
}

type yielded struct {
	batch capability.Batch
	err   error
}

// watchTree loads a tree and watches it until the test ends.
func watchTree(t *testing.T, cfg TreeConfig) *watching {
	t.Helper()
	if cfg.Trust == 0 {
		cfg.Trust = capability.TrustUser
	}
	if cfg.Watch.Debounce == 0 {
		cfg.Watch.Debounce = 10 * time.Millisecond
	}
	if cfg.Watch.Poll == 0 {
		cfg.Watch.Poll = 10 * time.Millisecond
		if cfg.Watch.Mode == WatchBySystem {
			cfg.Watch.Poll = time.Hour // events alone must do
		}
	}
	tree, b := load(t, cfg)
	return watchLoaded(t, tree, b)
}

func watchLoaded(t *testing.T, tree *Tree, b capability.Batch) *watching {
	w := &watching{t: t, tree: tree, got: make(chan yielded), last: yielded{batch: b}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b, err := range tree.Watch(ctx) {
			select {
			case w.got <- yielded{b, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// until waits for a batch that is as wanted. Others may come before it: one
// change of many files may be seen in parts.
func (w *watching) until(what string, wanted func(capability.Batch) bool) capability.Batch {
	w.t.Helper()
	if w.last.err == nil && wanted(w.last.batch) {
		return w.last.batch
	}
	deadline := time.After(time.Minute)
	for {
		select {
		case w.last = <-w.got:
			if w.last.err == nil && wanted(w.last.batch) {
				return w.last.batch
			}
		case <-deadline:
			w.t.Fatalf("Watch never gave %s; last: %v, problems %v, error %v", what, ids(w.last.batch), w.last.batch.Problems, w.last.err)
		}
	}
}

// untilIDs waits for exactly these capabilities.
func (w *watching) untilIDs(want ...string) capability.Batch {
	w.t.Helper()
	return w.until(fmt.Sprint(want), func(b capability.Batch) bool { return slices.Equal(ids(b), want) })
}

func (w *watching) untilError(part string) {
	w.t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case w.last = <-w.got:
			if w.last.err != nil && strings.Contains(w.last.err.Error(), part) {
				return
			}
		case <-deadline:
			w.t.Fatalf("Watch never gave an error with %q; last: %v, error %v", part, ids(w.last.batch), w.last.err)
		}
	}
}

// untilText waits until a card has the text.
func (w *watching) untilText(id, text string) capability.Batch {
	w.t.Helper()
	return w.until(id+" with "+text, func(b capability.Batch) bool {
		for _, c := range b.Capabilities {
			if string(c.ID) == id {
				d, err := w.tree.Detail(context.Background(), c)
				return err == nil && d.Body == text
			}
		}
		return false
	})
}

func ids(b capability.Batch) []string {
	out := []string{}
	for _, c := range b.Capabilities {
		out = append(out, string(c.ID))
	}
	slices.Sort(out)
	return out
}

func hasProblem(code string) func(capability.Batch) bool {
	return func(b capability.Batch) bool {
		return slices.ContainsFunc(b.Problems, func(p capability.Problem) bool { return p.Code == code })
	}
}

func find(b capability.Batch, id string) *capability.Capability {
	for _, c := range b.Capabilities {
		if string(c.ID) == id {
			return c
		}
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	must(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(dir, name)))
}

// TestT15HotReload is the whole list, once with the system telling of changes
// and once with polling.
func TestT15HotReload(t *testing.T) {
	tests := []struct {
		name string
		run  func(t *testing.T, mode WatchMode)
	}{
		{"add", hotAdd},
		{"change", hotChange},
		{"delete", hotDelete},
		{"rename", hotRename},
		{"half-written file", hotHalfWritten},
		{"directory created later", hotCreatedLater},
		{"replaced directory", hotReplaced},
		{"symlinked file target change", hotLink},
		{"single file", hotSingleFile},
	}
	for _, mode := range []WatchMode{WatchBySystem, WatchByPolling} {
		name := "system"
		if mode != WatchBySystem {
			name = string(mode)
		}
		t.Run(name, func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
					t.Run("", func(t *testing.T) { tt.run(t, mode) })
				})
			}
		})
	}
}

func hotAdd(t *testing.T, mode WatchMode) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
	a := find(w.last.batch, "a")
	sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
	if b := w.untilIDs("a", "b"); find(b, "a") != a {
		t.Error("the card that did not change is another pointer")
	}
	sourcetest.Write(t, dir, "new/deep/er/c.md", cardNamed("c", "C."))
	w.untilIDs("a", "b", "c")
	sourcetest.Write(t, dir, "new/deep/er/d.md", cardNamed("d", "D."))
	w.untilIDs("a", "b", "c", "d")

	// A folder that comes with files in it.
	outside := t.TempDir()
	sourcetest.Write(t, outside, "in/x/e.md", cardNamed("e", "E."))
	must(t, os.Rename(filepath.Join(outside, "in"), filepath.Join(dir, "in")))
	w.untilIDs("a", "b", "c", "d", "e")
	sourcetest.Write(t, dir, "in/x/e.md", cardNamed("e", "Another."))
	w.untilText("e", "Another.")
}

func hotChange(t *testing.T, mode WatchMode) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
	w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
	b := find(w.last.batch, "b")
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "In place."))
	if got := w.untilText("a", "In place."); find(got, "b") != b {
		t.Error("the card that did not change is another pointer")
	}
	// As careful editors do: another file, then its name.
	sourcetest.Write(t, dir, "cards/.a.md.tmp", cardNamed("a", "At once."))
	rename(t, dir, "cards/.a.md.tmp", "cards/a.md")
	w.untilText("a", "At once.")
	// A file that no format read before.
	sourcetest.Write(t, dir, "notes.md", "Nothing yet.\n")
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "Then."))
	w.untilText("a", "Then.")
	sourcetest.Write(t, dir, "notes.md", cardNamed("n", "Now."))
	w.untilIDs("a", "b", "n")
}

func hotDelete(t *testing.T, mode WatchMode) {
	dir := t.TempDir()
	for _, id := range []string{"a", "b", "c", "d"} {
		sourcetest.Write(t, dir, filepath.Join("cards", id, id+".md"), cardNamed(id, "Text."))
	}
	w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
	remove(t, dir, "cards/a/a.md")
	w.untilIDs("b", "c", "d")
	remove(t, dir, "cards/b")
	w.untilIDs("c", "d")
	// The same folder again.
	sourcetest.Write(t, dir, "cards/b/b.md", cardNamed("b", "Back."))
	w.untilIDs("b", "c", "d")
	sourcetest.Write(t, dir, "cards/b/b.md", cardNamed("b", "And changed."))
	w.untilText("b", "And changed.")
	remove(t, dir, "cards")
	b := w.untilIDs()
	for _, p := range b.Problems {
		if p.Code != "nothing-found" {
			t.Errorf("problem of an empty tree: %v, want none but that it is empty", p)
		}
	}
}

func hotRename(t *testing.T, mode WatchMode) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	sourcetest.Write(t, dir, "one/sub/b.md", cardNamed("b", "B."))
	w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
	at := func(id, want string) {
		t.Helper()
		w.until(id+" at "+want, func(b capability.Batch) bool {
			c := find(b, id)
			return c != nil && len(b.Capabilities) == 2 && c.Origin.Path == filepath.Join(dir, want)
		})
	}
	rename(t, dir, "cards/a.md", "cards/z.md")
	at("a", "cards/z.md")
	rename(t, dir, "one", "two")
	at("b", "two/sub/b.md")
	// What is inside a renamed folder is still watched, by its new name.
	sourcetest.Write(t, dir, "two/sub/b.md", cardNamed("b", "Changed."))
	w.untilText("b", "Changed.")
	rename(t, dir, "two/sub", "two/other")
	at("b", "two/other/b.md")
	// A folder that leaves the tree is not watched any longer.
	outside := t.TempDir()
	must(t, os.Rename(filepath.Join(dir, "two"), filepath.Join(outside, "two")))
	w.untilIDs("a")
	sourcetest.Write(t, outside, "two/other/b.md", cardNamed("b", "Elsewhere."))
	// Its name is free for another.
	sourcetest.Write(t, dir, "two/other/b.md", cardNamed("c", "Another."))
	w.untilIDs("a", "c")
	at("c", "two/other/b.md")
}

func hotHalfWritten(t *testing.T, mode WatchMode) {
	whole := cardNamed("a", "A.")
	tests := map[string]string{
		"empty":        "",
		"within key":   whole[:12],
		"within list":  whole[:strings.Index(whole, "[a")+1],
		"never ending": strings.TrimSuffix(whole[:strings.LastIndex(whole, "---")], "\n"),
		"no card":      "Nothing that Ken knows.\n",
		"zeros":        strings.Repeat("\x00", len(whole)),
	}
	for name, half := range tests {
		t.Run(name, func(t *testing.T) {
			for _, place := range []string{"cards/a.md", "a.md"} {
				dir := t.TempDir()
				sourcetest.Write(t, dir, place, whole)
				sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
				w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
				a := find(w.last.batch, "a")
				sourcetest.Write(t, dir, place, half)
				b := w.until("a complaint about "+place, hasProblem("last-good"))
				if find(b, "a") != a || len(b.Capabilities) != 2 {
					t.Errorf("half-written %s: capabilities %v, want the last good ones", place, ids(b))
				}
				for _, p := range b.Problems {
					if p.Code != "card-size" && (p.Origin.Path != filepath.Join(dir, place) || p.Fix == "" || p.Message == "") {
						t.Errorf("half-written %s: problem %+v names no file or no fix", place, p)
					}
				}
				if _, err := w.tree.Detail(context.Background(), a); capability.KindOf(err) != capability.Conflict {
					t.Errorf("Detail of what is only remembered: %v, want a conflict", err)
				}
				sourcetest.Write(t, dir, place, cardNamed("a", "Whole."))
				if b = w.untilText("a", "Whole."); hasProblem("last-good")(b) {
					t.Errorf("fixed %s: problems %v", place, b.Problems)
				}
				sourcetest.Write(t, dir, place, half)
				w.until("a complaint again", hasProblem("last-good"))
				remove(t, dir, place)
				w.untilIDs("b")
			}
		})
	}
}

func hotCreatedLater(t *testing.T, mode WatchMode) {
	above := t.TempDir()
	dir := filepath.Join(above, "not", "yet", "here")
	w := watchTree(t, TreeConfig{Path: dir, Optional: true, Watch: WatchConfig{Mode: mode}})
	if len(w.last.batch.Capabilities) > 0 {
		t.Fatalf("a missing folder holds %v", ids(w.last.batch))
	}
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	w.untilIDs("a")
	sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
	w.untilIDs("a", "b")
	remove(t, above, "not")
	w.untilIDs()
	// Step by step, each step seen or not.
	must(t, os.Mkdir(filepath.Join(above, "not"), 0o755))
	must(t, os.Mkdir(filepath.Join(above, "not", "yet"), 0o755))
	sourcetest.Write(t, above, "not/yet/other.md", cardNamed("other", "Not of this tree."))
	sourcetest.Write(t, dir, "c.md", cardNamed("c", "C."))
	w.untilIDs("c")
	sourcetest.Write(t, dir, "c.md", cardNamed("c", "Changed."))
	w.untilText("c", "Changed.")
}

func hotReplaced(t *testing.T, mode WatchMode) {
	above := t.TempDir()
	dir := filepath.Join(above, "tree")
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
	// Removed and made anew. In between a tree that must be there keeps what
	// it had.
	remove(t, above, "tree")
	w.untilError("not there")
	sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
	w.untilIDs("b")
	sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "Changed."))
	w.untilText("b", "Changed.")
	// Exchanged by names.
	sourcetest.Write(t, above, "next/cards/c.md", cardNamed("c", "C."))
	rename(t, above, "tree", "last")
	rename(t, above, "next", "tree")
	w.untilIDs("c")
	sourcetest.Write(t, above, "last/cards/b.md", cardNamed("x", "Not here."))
	sourcetest.Write(t, dir, "cards/c.md", cardNamed("c", "Changed."))
	w.untilText("c", "Changed.")
	// Exchanged further up.
	if runtime.GOOS != "windows" {
		hotReplacedByLink(t, mode)
	}
}

// hotReplacedByLink exchanges a link on the way to the tree, as deployments do.
func hotReplacedByLink(t *testing.T, mode WatchMode) {
	for path, every := range map[string]time.Duration{
		"current": 0, "tree": 0,
		"current/tree": 10 * time.Millisecond, // nobody tells of what happens that far up
	} {
		dir := t.TempDir()
		sourcetest.Write(t, dir, "v1/tree/a.md", cardNamed("a", "A."))
		sourcetest.Write(t, dir, "v2/tree/b.md", cardNamed("b", "B."))
		must(t, os.Symlink("v1", filepath.Join(dir, "current")))
		must(t, os.Symlink("current/tree", filepath.Join(dir, "tree")))
		w := watchTree(t, TreeConfig{Path: filepath.Join(dir, path), Watch: WatchConfig{Mode: mode, Poll: every}})
		sourcetest.Write(t, dir, "v1/tree/a.md", cardNamed("a", "Watched."))
		w.untilText("a", "Watched.")
		must(t, os.Symlink("v2", filepath.Join(dir, "next")))
		rename(t, dir, "next", "current")
		w.untilIDs("b")
		sourcetest.Write(t, dir, "v1/tree/a.md", cardNamed("x", "Not here."))
		sourcetest.Write(t, dir, "v2/tree/b.md", cardNamed("b", "Changed."))
		w.untilText("b", "Changed.")
	}
}

func hotLink(t *testing.T, mode WatchMode) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "v1/text.txt", cardNamed("a", "One."))
	sourcetest.Write(t, dir, "v2/text.txt", cardNamed("a", "Two."))
	must(t, os.Symlink("v1", filepath.Join(dir, "current")))
	must(t, os.Mkdir(filepath.Join(dir, "cards"), 0o755))
	must(t, os.Symlink("../current/text.txt", filepath.Join(dir, "cards/a.md")))
	w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
	w.untilText("a", "One.")
	sourcetest.Write(t, dir, "v1/text.txt", cardNamed("a", "One changed."))
	w.untilText("a", "One changed.")
	sourcetest.Write(t, dir, "v1/new.txt", cardNamed("a", "One exchanged."))
	rename(t, dir, "v1/new.txt", "v1/text.txt")
	w.untilText("a", "One exchanged.")
	must(t, os.Symlink("v2", filepath.Join(dir, "next")))
	rename(t, dir, "next", "current")
	w.untilText("a", "Two.")
	rename(t, dir, "v2", "v3")
	b := w.untilIDs()
	if !hasProblem("missing-file")(b) {
		t.Errorf("a link to nothing: problems %v, want missing-file", b.Problems)
	}
	rename(t, dir, "v3", "v2")
	w.untilText("a", "Two.")
	must(t, os.Symlink("../v1/text.txt", filepath.Join(dir, "cards/new")))
	rename(t, dir, "cards/new", "cards/a.md")
	w.untilText("a", "One exchanged.")
}

func hotSingleFile(t *testing.T, mode WatchMode) {
	for _, optional := range []bool{false, true} {
		dir := t.TempDir()
		file := sourcetest.Write(t, dir, "a.md", cardNamed("a", "A."))
		sourcetest.Write(t, dir, "b.md", cardNamed("b", "Not of this tree."))
		w := watchTree(t, TreeConfig{Path: file, Optional: optional, Watch: WatchConfig{Mode: mode}})
		sourcetest.Write(t, dir, "a.md", cardNamed("a", "Changed."))
		w.untilText("a", "Changed.")
		sourcetest.Write(t, dir, "a.tmp", cardNamed("a", "Exchanged."))
		rename(t, dir, "a.tmp", "a.md")
		w.untilText("a", "Exchanged.")
		sourcetest.Write(t, dir, "a.md", "")
		w.until("a complaint", hasProblem("last-good"))
		remove(t, dir, "a.md")
		if optional {
			w.untilIDs()
		} else {
			w.untilError("not there")
		}
		sourcetest.Write(t, dir, "a.md", cardNamed("a", "Back."))
		w.untilText("a", "Back.")
		// The whole folder around it goes and comes.
		remove(t, filepath.Dir(dir), filepath.Base(dir))
		sourcetest.Write(t, dir, "a.md", cardNamed("a", "Back again."))
		w.untilText("a", "Back again.")
		// A folder takes the file's place.
		remove(t, dir, "a.md")
		sourcetest.Write(t, dir, "a.md/x.md", cardNamed("x", "X."))
		w.untilIDs("x")
	}
}

func TestWatchSingleFileBehindLink(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "sub/real.md", cardNamed("a", "A."))
	must(t, os.Symlink("sub/real.md", filepath.Join(dir, "a.md")))
	w := watchTree(t, TreeConfig{Path: filepath.Join(dir, "a.md")})
	sourcetest.Write(t, dir, "sub/real.md", cardNamed("a", "Changed."))
	w.untilText("a", "Changed.")
	sourcetest.Write(t, dir, "sub/new.md", cardNamed("a", "Exchanged."))
	rename(t, dir, "sub/new.md", "sub/real.md")
	w.untilText("a", "Exchanged.")
}

// TestWatchSeesFilesThatUnitsHangOn changes files that are not units of the
// tree by themselves: what a registry names, what a link leads to.
func TestWatchSeesFilesThatUnitsHangOn(t *testing.T) {
	const registry = "- id: a\n  filePath: texts/a.md\n  triggers: {keywords: [a]}\n"
	tests := []struct {
		name, tree, file string
		files            map[string]string
	}{
		{"registry alone", "registry.yaml", "texts/a.md", map[string]string{"registry.yaml": registry}},
		{"link to a folder that is passed over", "", "node_modules/a.md", map[string]string{"cards/a.md": "-> ../node_modules/a.md"}},
	}
	for _, tt := range tests {
		for _, mode := range []WatchMode{WatchBySystem, WatchByPolling} {
			t.Run(tt.name+string(mode), func(t *testing.T) {
				dir := t.TempDir()
				sourcetest.Write(t, dir, tt.file, cardNamed("a", "A."))
				for name, text := range tt.files {
					if target, ok := strings.CutPrefix(text, "-> "); ok {
						must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
						must(t, os.Symlink(target, filepath.Join(dir, name)))
					} else {
						sourcetest.Write(t, dir, name, text)
					}
				}
				w := watchTree(t, TreeConfig{Path: filepath.Join(dir, tt.tree), Watch: WatchConfig{Mode: mode}})
				w.untilText("a", "A.")
				sourcetest.Write(t, dir, tt.file, cardNamed("a", "Changed."))
				w.untilText("a", "Changed.")
				sourcetest.Write(t, dir, "new.tmp", cardNamed("a", "Exchanged."))
				rename(t, dir, "new.tmp", tt.file)
				w.untilText("a", "Exchanged.")
			})
		}
	}
}

func TestWatchKeepsWhatCannotBeOpened(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("cannot here: runs as root, whom permissions do not stop")
	}
	for _, mode := range []WatchMode{WatchBySystem, WatchByPolling} {
		for _, place := range []string{"cards/deep/a.md", "cards/deep", "cards", "."} {
			dir := t.TempDir()
			sourcetest.Write(t, dir, "cards/deep/a.md", cardNamed("a", "A."))
			w := watchTree(t, TreeConfig{Path: dir, Watch: WatchConfig{Mode: mode}})
			a := find(w.last.batch, "a")
			name := filepath.Join(dir, place)
			info, err := os.Stat(name)
			must(t, err)
			must(t, os.Chmod(name, 0))
			if place == "." {
				w.untilError("permission denied")
				must(t, os.Chmod(name, info.Mode()))
				if b := w.untilIDs("a"); find(b, "a") != a {
					t.Errorf("%q: the card did not change, and is another pointer", mode)
				}
				continue
			}
			b := w.until("a complaint about "+place, hasProblem("no-permission"))
			if find(b, "a") != a || !hasProblem("last-good")(b) {
				t.Errorf("%q: without permission for %s: %v %v, want the last good state and a word about it", mode, place, ids(b), b.Problems)
			}
			must(t, os.Chmod(name, info.Mode()))
			w.until("no complaint about "+place, func(b capability.Batch) bool { return !hasProblem("no-permission")(b) })
			sourcetest.Write(t, dir, "cards/deep/a.md", cardNamed("a", "Changed."))
			w.untilText("a", "Changed.")
		}
	}
}

// TestWatchSeesWhatChangedAfterLoad shows that nothing is lost between the two.
func TestWatchSeesWhatChangedAfterLoad(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser, Watch: WatchConfig{Debounce: time.Millisecond, Poll: time.Hour}})
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "B."))
	sourcetest.Write(t, dir, "cards/c.md", cardNamed("c", "C."))
	w := watchLoaded(t, tree, b)
	w.untilIDs("a", "c")
	w.untilText("a", "B.")
}

func TestWatchPollsWhereTheSystemCannotTell(t *testing.T) {
	refuse := func(err error) func() (*fsnotify.Watcher, error) {
		return func() (*fsnotify.Watcher, error) { return nil, fmt.Errorf("no watcher: %w", err) }
	}
	tests := []struct {
		name   string
		notify func() (*fsnotify.Watcher, error)
		most   int
		later  bool // the folder that is too many comes while watching
		fix    string
	}{
		{"no watcher", refuse(syscall.EMFILE), 0, false, "max_user_instances"},
		{"no space", refuse(syscall.ENOSPC), 0, false, "max_user_watches"},
		{"too many folders", fsnotify.NewWatcher, 2, false, "smaller folders"},
		{"too many folders later", fsnotify.NewWatcher, 3, true, "smaller folders"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
			tree, b := load(t, TreeConfig{
				Path: dir, Trust: capability.TrustUser,
				Watch: WatchConfig{Debounce: 10 * time.Millisecond, Poll: 10 * time.Millisecond, MaxFolders: tt.most},
			})
			tree.notify = tt.notify
			w := watchLoaded(t, tree, b)
			if tt.later {
				sourcetest.Write(t, dir, "more/b.md", cardNamed("b", "B."))
			}
			b = w.until("a word about polling", hasProblem("watch-polling"))
			for _, p := range b.Problems {
				if p.Code == "watch-polling" && (p.Severity != capability.Warning || !strings.Contains(p.Fix, tt.fix)) {
					t.Errorf("problem %+v, want a warning whose fix names %s", p, tt.fix)
				}
			}
			sourcetest.Write(t, dir, "other/c.md", cardNamed("c", "C."))
			b = w.until("c", func(b capability.Batch) bool { return find(b, "c") != nil })
			if !hasProblem("watch-polling")(b) {
				t.Error("the next batch says nothing of polling")
			}
		})
	}
}

// TestWatchLooksThroughAllWhenEventsAreLost deafens the watcher and then lets
// it report the loss.
func TestWatchLooksThroughAllWhenEventsAreLost(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	tree, b := load(t, TreeConfig{
		Path: dir, Trust: capability.TrustUser, Watch: WatchConfig{Debounce: time.Millisecond, Poll: time.Hour},
	})
	made := make(chan *fsnotify.Watcher, 1)
	tree.notify = func() (*fsnotify.Watcher, error) {
		watcher, err := fsnotify.NewWatcher()
		made <- watcher
		return watcher, err
	}
	w := watchLoaded(t, tree, b)
	watcher := <-made
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "Heard."))
	w.untilText("a", "Heard.")
	for _, name := range watcher.WatchList() {
		must(t, watcher.Remove(name))
	}
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "Unheard."))
	sourcetest.Write(t, dir, "unheard/of/b.md", cardNamed("b", "B."))
	watcher.Errors <- fsnotify.ErrEventOverflow
	w.untilText("a", "Unheard.")
	w.untilIDs("a", "b")
	sourcetest.Write(t, dir, "unheard/of/b.md", cardNamed("b", "Heard again."))
	w.untilText("b", "Heard again.")
}

// TestListenPassesOverWhatNobodyReads sends noise and then one change that
// matters: nothing else may have been told by then.
func TestListenPassesOverWhatNobodyReads(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	sourcetest.Write(t, dir, ".git/HEAD", "ref\n")
	tree, _ := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	ctx, cancel := context.WithCancel(context.Background())
	out, done := make(chan sighting), make(chan error)
	go func() { done <- tree.listen(ctx, WatchConfig{}.withDefaults(), out) }()
	if s := <-out; !s.all {
		t.Fatalf("first sighting %+v, want all", s)
	}
	for _, name := range []string{
		".git/index.md", "cards/.a.md.swp", "cards/.#a.md", "cards/a.md~", "cards/4913", "cards/picture.png",
		"cards/README.md", "cards/#a.md#", "notes.txt", "cards/a.md.tmp",
	} {
		sourcetest.Write(t, dir, name, "noise")
		remove(t, dir, name)
	}
	must(t, os.Chmod(filepath.Join(dir, "cards/a.md"), 0o600))
	must(t, os.Chmod(filepath.Join(dir, "cards"), 0o700))
	must(t, os.Chtimes(filepath.Join(dir, "cards/a.md"), time.Unix(1, 0), time.Unix(1, 0)))
	sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
	if s := <-out; !reflect.DeepEqual(s, sighting{paths: map[string]bool{"cards/b.md": true}}) {
		t.Errorf("after noise and one change: sighting %+v, want only cards/b.md", s)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("listen = %v, want nil when its context ends", err)
	}
}

func TestWatchLeavesNothingBehind(t *testing.T) {
	for _, mode := range []WatchMode{WatchBySystem, WatchByPolling} {
		for _, stop := range []string{"caller", "context", "context at once"} {
			t.Run(string(mode)+" "+stop, func(t *testing.T) {
				dir := t.TempDir()
				sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
				tree, _ := load(t, TreeConfig{
					Path: dir, Watch: WatchConfig{Debounce: time.Millisecond, Poll: time.Millisecond, Mode: mode},
				})
				leaks := goleak.IgnoreCurrent()
				files := openFiles()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if stop == "context at once" {
					cancel()
				}
				sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
				for range tree.Watch(ctx) {
					if stop == "caller" {
						break
					}
					cancel()
				}
				if now := openFiles(); now != files { // first: goleak waits a moment
					t.Errorf("%d open files after Watch, %d before", now, files)
				}
				if err := goleak.Find(leaks); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // not this system
	}
	return len(entries)
}

func TestWatchNeedsLoad(t *testing.T) {
	tree := NewTree(TreeConfig{Path: t.TempDir(), Watch: WatchConfig{Debounce: time.Millisecond}})
	for _, err := range tree.Watch(context.Background()) {
		if err == nil || !strings.Contains(err.Error(), "call Load first") {
			t.Errorf("Watch before Load gave %v, want an error that says so", err)
		}
		break
	}
}

func TestWatchOfBuiltInFilesWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := Starter("starter")
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		for b, err := range tree.Watch(ctx) {
			t.Errorf("Watch of files that cannot change gave %v, %v", ids(b), err)
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Error("Watch ended before its context")
		}
	})
}

// TestGather pins the debounce: when a sighting comes out, and what is in it.
func TestGather(t *testing.T) {
	const quiet, most = 500 * time.Millisecond, 2500 * time.Millisecond
	type at struct {
		ms int
		p  string // "*" for anything, "!" for blindness
	}
	every := func(step, end int) []at {
		var out []at
		for ms := 0; ms <= end; ms += step {
			out = append(out, at{ms, "a"})
		}
		return out
	}
	tests := []struct {
		name string
		in   []at
		want []string // milliseconds and paths
	}{
		{"one", []at{{0, "a"}}, []string{"500 a"}},
		{"two close", []at{{0, "a"}, {499, "b"}}, []string{"999 a b"}},
		{"two apart", []at{{0, "a"}, {600, "b"}}, []string{"500 a", "1100 b"}},
		{"the same twice", []at{{0, "a"}, {100, "a"}, {200, "b"}}, []string{"700 a b"}},
		{"anything", []at{{0, "a"}, {100, "*"}, {200, "b"}}, []string{"700 *"}},
		{"blind", []at{{0, "a"}, {100, "!"}}, []string{"600 a !"}},
		{"never quiet", every(400, 5000), []string{"2500 a", "5300 a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				start := time.Now()
				seen := make(chan sighting)
				go func() {
					for _, e := range tt.in {
						time.Sleep(time.Until(start.Add(time.Duration(e.ms) * time.Millisecond)))
						switch e.p {
						case "*":
							seen <- sighting{all: true}
						case "!":
							seen <- sighting{blind: errors.New("blind")}
						default:
							seen <- sighting{paths: map[string]bool{e.p: true}}
						}
					}
					time.Sleep(time.Hour)
					cancel()
				}()
				var got []string
				for s := range gather(ctx, seen, quiet, most) {
					got = append(got, fmt.Sprint(time.Since(start).Milliseconds(), describe(s)))
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("gather(%v) = %q, want %q", tt.in, got, tt.want)
				}
			})
		})
	}
}

func describe(s sighting) string {
	var words []string
	for p := range s.paths {
		words = append(words, p)
	}
	slices.Sort(words)
	if s.all {
		words = append(words, "*")
	}
	if s.blind != nil {
		words = append(words, "!")
	}
	return " " + strings.Join(words, " ")
}

// TestPollWaitsForQuiet shows that polling, too, does not read a file that is
// being written: each look finds it changed, and the reading waits.
func TestPollWaitsForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file := sourcetest.Write(t, dir, "a.md", "")
		ctx, cancel := context.WithCancel(context.Background())
		cfg := WatchConfig{}.withDefaults()
		seen, done := make(chan sighting), make(chan struct{})
		start := time.Now()
		go func() {
			defer close(done)
			poll(ctx, NewTree(TreeConfig{Path: dir}), cfg, sighting{}, seen)
		}()
		go func() {
			time.Sleep(1900 * time.Millisecond)
			for range 5 { // until 2.7 s, with pauses shorter than the debounce
				f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteString("more")
					f.Close()
				}
				if err != nil {
					t.Error(err)
				}
				time.Sleep(200 * time.Millisecond)
			}
		}()
		for range gather(ctx, seen, cfg.Debounce, 5*cfg.Debounce) {
			break
		}
		if after := time.Since(start); after < 3200*time.Millisecond || after > 3600*time.Millisecond {
			t.Errorf("the change was read after %v, want about 3.3s: the first look after the last write, and the debounce", after)
		}
		cancel()
		<-done
	})
}
