package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/testkit"
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

// loadForWatch loads a tree that is to be watched.
func loadForWatch(t *testing.T, cfg TreeConfig) *watching {
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
	return &watching{t: t, tree: tree, got: make(chan yielded), last: yielded{batch: b}}
}

// watchTree loads a tree and watches it until the test ends.
func watchTree(t *testing.T, cfg TreeConfig) *watching {
	t.Helper()
	w := loadForWatch(t, cfg)
	w.start()
	return w
}

func (w *watching) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b, err := range w.tree.Watch(ctx) {
			select {
			case w.got <- yielded{b, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// until waits for what is wanted. Other batches may come before it: one change
// of many files may be seen in parts.
func (w *watching) until(what string, wanted func(yielded) bool) capability.Batch {
	w.t.Helper()
	for limit := time.After(testkit.Patience); !wanted(w.last); {
		select {
		case w.last = <-w.got:
		case <-limit:
			w.t.Fatalf("Watch never gave %s; last: %v, problems %v, error %v", what, ids(w.last.batch), w.last.batch.Problems, w.last.err)
		}
	}
	return w.last.batch
}

// untilBatch waits for a batch that is as wanted.
func (w *watching) untilBatch(what string, wanted func(capability.Batch) bool) capability.Batch {
	w.t.Helper()
	return w.until(what, func(y yielded) bool { return y.err == nil && wanted(y.batch) })
}

// untilIDs waits for exactly these capabilities.
func (w *watching) untilIDs(want ...string) capability.Batch {
	w.t.Helper()
	return w.untilBatch(fmt.Sprint(want), func(b capability.Batch) bool { return slices.Equal(ids(b), append([]string{}, want...)) })
}

func (w *watching) untilError(part string) {
	w.t.Helper()
	w.until("an error with "+part, func(y yielded) bool { return y.err != nil && strings.Contains(y.err.Error(), part) })
}

// untilText waits until a card has the text.
func (w *watching) untilText(id, text string) capability.Batch {
	w.t.Helper()
	return w.untilBatch(id+" with "+text, func(b capability.Batch) bool {
		c := find(b, id)
		if c == nil {
			return false
		}
		d, err := w.tree.Detail(context.Background(), c)
		return err == nil && d.Body == text
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

// must ends the test where there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestT15HotReload is the whole list, once with the system telling of changes
// and once with polling.
func TestT15HotReload(t *testing.T) {
	a, err := txtar.ParseFile("testdata/watch/reload.txtar")
	must(t, err)
	for _, mode := range []WatchMode{WatchBySystem, WatchByPolling} {
		t.Run("mode "+string(mode), func(t *testing.T) {
			if mode == WatchByPolling {
				testkit.CI(t, "the same again")
			}
			for _, f := range a.Files {
				t.Run(f.Name, func(t *testing.T) { playWatch(t, mode, string(f.Data)) })
			}
			t.Run("half-written file", func(t *testing.T) { hotHalfWritten(t, mode) })
		})
	}
}

// playWatch does the steps of a script, which testdata/watch describes.
func playWatch(t *testing.T, mode WatchMode, script string) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	dir := filepath.Join(t.TempDir(), "all")
	var w *watching
	var first capability.Batch
	cfg := TreeConfig{Watch: WatchConfig{Mode: mode}}
	for step := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		name, rest, _ := strings.Cut(rest, " ")
		file := filepath.Join(dir, name)
		switch verb {
		case "put":
			id, text, _ := strings.Cut(rest, " ")
			sourcetest.Write(t, dir, name, cardNamed(id, text))
		case "write":
			sourcetest.Write(t, dir, name, rest)
		case "link":
			must(t, symlink(name, filepath.Join(dir, rest)))
		case "rename":
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, rest)), 0o755))
			must(t, os.Rename(file, filepath.Join(dir, rest)))
		case "remove":
			must(t, os.RemoveAll(file))
		case "load", "watch":
			if name != "" {
				cfg.Path, cfg.Optional = file, rest == "optional"
				if rest == "polled" {
					cfg.Watch.Poll = 10 * time.Millisecond
				}
				w = loadForWatch(t, cfg)
				first = w.last.batch
			}
			if verb == "watch" {
				w.start()
			}
		case "ids":
			w.untilIDs(strings.Fields(name + " " + rest)...)
		case "text":
			w.untilText(name, rest)
		case "at":
			w.untilBatch(step, func(b capability.Batch) bool {
				c := find(b, name)
				return c != nil && c.Origin.Path == filepath.Join(dir, rest)
			})
		case "problem":
			w.untilBatch(step, hasProblem(name))
		case "error":
			w.untilError(name + " " + rest)
		case "same":
			if find(w.last.batch, name) != find(first, name) {
				t.Errorf("%s did not change, and is another pointer", name)
			}
		case "#":
		default:
			t.Fatalf("unknown step %q", step)
		}
	}
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
				b := w.untilBatch("a complaint about "+place, hasProblem("last-good"))
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
				w.untilBatch("a complaint again", hasProblem("last-good"))
				must(t, os.Remove(filepath.Join(dir, place)))
				w.untilIDs("b")
			}
		})
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
			b := w.untilBatch("a complaint about "+place, hasProblem("no-permission"))
			if find(b, "a") != a || !hasProblem("last-good")(b) {
				t.Errorf("%q: without permission for %s: %v %v, want the last good state and a word about it", mode, place, ids(b), b.Problems)
			}
			must(t, os.Chmod(name, info.Mode()))
			w.untilBatch("no complaint about "+place, func(b capability.Batch) bool { return !hasProblem("no-permission")(b) })
			sourcetest.Write(t, dir, "cards/deep/a.md", cardNamed("a", "Changed."))
			w.untilText("a", "Changed.")
		}
	}
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
			w := loadForWatch(t, TreeConfig{Path: dir, Watch: WatchConfig{Poll: 10 * time.Millisecond, MaxFolders: tt.most}})
			w.tree.notify = tt.notify
			w.start()
			if tt.later {
				sourcetest.Write(t, dir, "more/b.md", cardNamed("b", "B."))
			}
			b := w.untilBatch("a word about polling", hasProblem("watch-polling"))
			for _, p := range b.Problems {
				if p.Code == "watch-polling" && (p.Severity != capability.Warning || !strings.Contains(p.Fix, tt.fix)) {
					t.Errorf("problem %+v, want a warning whose fix names %s", p, tt.fix)
				}
			}
			sourcetest.Write(t, dir, "other/c.md", cardNamed("c", "C."))
			b = w.untilBatch("c", func(b capability.Batch) bool { return find(b, "c") != nil })
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
	w := loadForWatch(t, TreeConfig{Path: dir})
	made := make(chan *fsnotify.Watcher, 1)
	w.tree.notify = func() (*fsnotify.Watcher, error) {
		watcher, err := fsnotify.NewWatcher()
		made <- watcher
		return watcher, err
	}
	w.start()
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
		must(t, os.Remove(filepath.Join(dir, name)))
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

// TestPollSeesWhatWasReadMeanwhile: a file that comes and goes between two
// looks may have been read, so the second look counts as a change.
func TestPollSeesWhatWasReadMeanwhile(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", cardNamed("a", "A."))
	before, _ := printTree(t.Context(), dir, nil)
	sourcetest.Write(t, dir, "cards/b.md", cardNamed("b", "B."))
	must(t, os.Remove(filepath.Join(dir, "cards", "b.md")))
	if now, vague := printTree(t.Context(), dir, nil); now == before && !vague {
		t.Error("the tree looks as it did, and nothing is said to be vague")
	}
}
