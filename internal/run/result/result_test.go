package result

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/testkit"
)

var ada = Scope{Tenant: "t", Principal: "ada", Session: "s1"}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(t.TempDir(), "results")
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func keep(t testing.TB, s *Store, scope Scope, extension, text string, failed bool) Entry {
	t.Helper()
	e, err := s.Keep(scope, About{Target: "command:x/get", Extension: extension, Command: "/x", Action: "get"}, []byte(text), failed, map[string]string{"exit": "0"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func read(t testing.TB, s *Store, q Query) Excerpt {
	t.Helper()
	x, err := s.Read(context.Background(), ada, q)
	if err != nil {
		t.Fatalf("Read(%+v): %v", q, err)
	}
	return x
}

// gone fails unless there is no such result for a scope.
func gone(t *testing.T, s *Store, scope Scope, handle string) {
	t.Helper()
	if x, err := s.Read(context.Background(), scope, Query{Handle: handle}); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Read(%+v, %s) = %+v, %v, want that it is not found", scope, handle, x, err)
	}
}

func wantFiles(t *testing.T, s *Store, want int) {
	t.Helper()
	if n := files(t, s.cfg.Dir); n != want {
		t.Errorf("%d files are left, want %d", n, want)
	}
}

func TestLastIsBySessionAndExtension(t *testing.T) {
	s := open(t, Config{})
	keep(t, s, ada, "a", "first of a", false)
	keep(t, s, ada, "b", "only of b", false)
	keep(t, s, ada, "a", "failure of a", true)
	keep(t, s, Scope{Tenant: "t", Principal: "ada", Session: "s2"}, "a", "other session", false)
	for _, tt := range []struct {
		q    Query
		want string
	}{
		{Query{}, "failure of a"},
		{Query{Handle: "last_response"}, "failure of a"},
		{Query{Handle: "last", Succeeded: true}, "only of b"},
		{Query{Handle: "last", Extension: "b"}, "only of b"},
		{Query{Handle: "last", Extension: "a", Succeeded: true}, "first of a"},
	} {
		if got := read(t, s, tt.q).Text; got != tt.want {
			t.Errorf("Read(%+v) = %q, want %q", tt.q, got, tt.want)
		}
	}
	entries := read(t, s, Query{Op: OpList}).Entries
	if len(entries) != 3 || !entries[0].Failed || entries[0].Meta["exit"] != "0" || entries[2].Command != "/x" {
		t.Errorf("list = %+v, want three, newest first", entries)
	}
	if got := read(t, s, Query{Handle: entries[2].Handle, Op: OpInfo}); got.Text != "" || got.Entry.Chars != 10 {
		t.Errorf("info = %+v", got)
	}
}

// TestHandlesAreScoped: with another principal, tenant or session a handle is
// like one that never was, to the letter.
func TestHandlesAreScoped(t *testing.T) {
	s := open(t, Config{})
	e := keep(t, s, ada, "a", "secret", false)
	if got := read(t, s, Query{Handle: e.Handle}).Text; got != "secret" {
		t.Fatalf("own result = %q", got)
	}
	ctx := context.Background()
	_, err := s.Read(ctx, ada, Query{Handle: "rnone"})
	want := fmt.Sprint(err)
	if capability.KindOf(err) != capability.NotFound {
		t.Fatalf("unknown handle: %v, want %v", err, capability.NotFound)
	}
	other, _ := s.newHandle()
	for _, tt := range []struct {
		scope  Scope
		handle string
	}{
		{Scope{"t", "eve", "s1"}, e.Handle}, {Scope{"u", "ada", "s1"}, e.Handle}, {Scope{"t", "ada", "s2"}, e.Handle},
		{Scope{"", "tada", "s1"}, e.Handle}, {ada, other}, {ada, "../" + e.Handle}, {ada, e.Handle + ".text"}, {ada, e.Handle[:20]},
		{ada, strings.ToUpper(e.Handle)}, {Scope{"t", "eve", "s1"}, "last"},
	} {
		if x, err := s.Read(ctx, tt.scope, Query{Handle: tt.handle}); fmt.Sprint(err) != want {
			t.Errorf("Read(%+v, %q) = %+v, %v, want %s", tt.scope, tt.handle, x, err, want)
		}
		if err := s.Remove(tt.scope, tt.handle); capability.KindOf(err) != capability.NotFound {
			t.Errorf("Remove(%+v, %q) = %v, want not found", tt.scope, tt.handle, err)
		}
	}
	for _, err := range []error{
		second(s.Read(ctx, Scope{}, Query{})), second(s.Create(Scope{Session: "s1"}, About{})), s.RemoveSession(Scope{}),
	} {
		if capability.KindOf(err) != capability.Denied {
			t.Errorf("nobody: %v, want %v", err, capability.Denied)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		h, _ := s.newHandle()
		if seen[h[20:]] {
			t.Fatalf("handle %s repeats its random part", h)
		}
		seen[h[20:]] = true
	}
}

func second[T any](_ T, err error) error { return err }

// TestExpiry: 24 hours, and the files go with the sweep.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{})
		e := keep(t, s, ada, "a", strings.Repeat("x", 100_000), false)
		if want := e.Made.Add(24 * time.Hour); s.Expires(e) != want {
			t.Errorf("Expires = %v, want %v", s.Expires(e), want)
		}
		time.Sleep(24*time.Hour - time.Millisecond)
		young := keep(t, s, ada, "a", "young", false)
		if _, err := s.Read(context.Background(), ada, Query{Handle: e.Handle}); err != nil {
			t.Errorf("before the hour: %v", err)
		}
		time.Sleep(2 * time.Millisecond)
		gone(t, s, ada, e.Handle)
		if got := read(t, s, Query{Op: OpList}).Entries; len(got) != 1 || got[0].Handle != young.Handle {
			t.Errorf("list = %+v, want the young one", got)
		}
		swept, err := s.Sweep(context.Background())
		if err != nil || swept.Results != 1 || swept.Removed != 2 {
			t.Errorf("Sweep = %+v, %v, want one left and two files gone", swept, err)
		}
		time.Sleep(25 * time.Hour)
		if swept, err := s.Sweep(context.Background()); err != nil || swept.Results != 0 || files(t, s.cfg.Dir) != 0 {
			t.Errorf("Sweep = %+v, %v, %d files left, want none", swept, err, files(t, s.cfg.Dir))
		}
	})
}

func files(t *testing.T, dir string) (n int) {
	t.Helper()
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	return n
}

func TestSweepRemovesWhatDeadWritersLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{})
		w, err := s.Create(ada, About{})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(make([]byte, 100_000))
		w.file.Close() // it dies here
		if got := read(t, s, Query{Op: OpList}).Entries; len(got) != 0 {
			t.Errorf("list = %+v, want nothing of a result without an end", got)
		}
		s.Sweep(context.Background())
		wantFiles(t, s, 1) // which may still be written
		time.Sleep(7 * 24 * time.Hour)
		s.Sweep(context.Background())
		wantFiles(t, s, 0)
	})
}

func TestBounds(t *testing.T) {
	s := open(t, Config{PerSession: 5, MaxTotal: 1 << 20})
	var last Entry
	for i := range 40 {
		last = keep(t, s, ada, "a", fmt.Sprint(i), false)
	}
	entries := read(t, s, Query{Op: OpList}).Entries
	if len(entries) != 5 || entries[0].Handle != last.Handle {
		t.Errorf("list has %d, want the newest 5", len(entries))
	}
	if n := files(t, s.cfg.Dir); n > 5+pruneEach {
		t.Errorf("%d files, want at most %d", n, 5+pruneEach)
	}
	for i := range 30 {
		last = keep(t, s, Scope{Principal: "p", Session: fmt.Sprint(i)}, "a", strings.Repeat("x", 100_000), false)
	}
	swept, err := s.Sweep(context.Background())
	if err != nil || swept.Bytes > 1<<20 || swept.Results < 8 {
		t.Errorf("Sweep = %+v, %v, want at most 1 MiB and not much less", swept, err)
	}
	if _, err := s.Read(context.Background(), Scope{Principal: "p", Session: "29"}, Query{}); err != nil {
		t.Errorf("the newest is gone: %v", err)
	}
	gone(t, s, Scope{Principal: "p", Session: "0"}, "last")
}

// TestLargeResults: up to a million a result is one piece, then it is
// spilled and still all there.
func TestLargeResults(t *testing.T) {
	testkit.CI(t, "keeps results of a million characters")
	s := open(t, Config{})
	for _, n := range []int{0, 1, inline, inline + 1, Whole, Whole + 1} {
		text := strings.Repeat("é", n)
		e := keep(t, s, ada, "a", text, false)
		if e.Chars != int64(n) || e.Bytes != int64(2*n) || e.Spilled != (n > Whole) || e.Lost != 0 || e.Binary {
			t.Errorf("%d characters: %+v", n, e)
		}
		x := read(t, s, Query{Handle: e.Handle, Limit: Whole, Op: OpChars})
		if want := text[:2*min(n, Whole)]; x.Text != want {
			t.Errorf("%d characters: read %d bytes, want %d", n, len(x.Text), len(want))
		}
		if n > Whole {
			if x := read(t, s, Query{Handle: e.Handle, Op: OpChars, From: Whole + 1}); x.Text != "é" {
				t.Errorf("the last character = %q", x.Text)
			}
		}
	}
	filepath.WalkDir(s.cfg.Dir, func(p string, d os.DirEntry, err error) error {
		if info, _ := d.Info(); runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, want it closed to others", p, info.Mode())
		}
		return err
	})
}

// TestT10Flood: much more than is kept goes through, is counted to the byte, and both
// ends can be read.
func TestT10Flood(t *testing.T) {
	const size = 4 << 20
	s := open(t, Config{MaxBytes: 1 << 20})
	w, err := s.Create(ada, About{})
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("0123456é\n", 4096))
	io.WriteString(w, "the beginning\n")
	total, lines := int64(14), int64(1)
	for total < size {
		n, err := w.Write(line)
		if err != nil || n != len(line) {
			t.Fatalf("Write = %d, %v", n, err)
		}
		total, lines = total+int64(n), lines+4096
	}
	io.WriteString(w, "the end")
	e, err := w.Commit(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	chars := total - (lines - 1) // one é of two bytes a line
	if e.Bytes != total+7 || e.Lines != lines+1 || e.Chars != chars+7 || e.Kept.Bytes > 1<<20 || e.Lost <= 0 || !e.Spilled || e.Binary {
		t.Errorf("entry = %+v, want %d bytes and %d lines", e, total+7, lines+1)
	}
	head, tail := read(t, s, Query{Op: OpHead, Count: 1}), read(t, s, Query{Op: OpTail, Count: 2})
	if head.Text != "the beginning\n" || tail.Text != "0123456é\nthe end" || !strings.Contains(tail.Left, "were never kept") {
		t.Errorf("head = %q, tail = %q, left %q", head.Text, tail.Text, tail.Left)
	}
	gap := read(t, s, Query{Op: OpSearch, Pattern: "were not kept here"})
	if gap.Found != 1 || !strings.Contains(gap.Matches[0].Text, fmt.Sprintf("[%d bytes in ", e.Lost)) {
		t.Errorf("the gap = %+v, want one line that says %d bytes", gap, e.Lost)
	}
	if got := head.Entry.Kept.Bytes - int64(len(gap.Matches[0].Text)+2) + e.Lost; got != e.Bytes {
		t.Errorf("kept and lost make %d, want %d", got, e.Bytes)
	}
}

// TestFullDisk: a result that cannot be written does not stop its maker.
func TestFullDisk(t *testing.T) {
	s := open(t, Config{})
	w, err := s.Create(ada, About{})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(bytes.Repeat([]byte("a"), 2*inline))
	w.file.Close() // from here on every write fails
	if n, err := w.Write(bytes.Repeat([]byte("b"), 3*inline)); n != 3*inline || err != nil {
		t.Errorf("Write = %d, %v, want all taken", n, err)
	}
	if e, err := w.Commit(false, nil); err == nil {
		t.Errorf("Commit = %+v, want the error of the file", e)
	} else if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "make room in") {
		t.Errorf("Commit: %v, want it unavailable with the fix", err)
	}
	wantFiles(t, s, 0)
}

func TestAbortAndReuse(t *testing.T) {
	s := open(t, Config{})
	w, _ := s.Create(ada, About{})
	w.Write(make([]byte, 100_000))
	w.Abort()
	w.Abort()
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("Write after Abort = nil, want an error")
	}
	if _, err := w.Commit(false, nil); err == nil {
		t.Error("Commit after Abort = nil, want an error")
	}
	wantFiles(t, s, 0)
	e := keep(t, s, ada, "a", strings.Repeat("x", 100_000), false)
	if err := s.Remove(ada, e.Handle); err != nil || files(t, s.cfg.Dir) != 0 {
		t.Errorf("Remove = %v, %d files left", err, files(t, s.cfg.Dir))
	}
	keep(t, s, ada, "a", "x", false)
	if err := s.RemoveSession(ada); err != nil || files(t, s.cfg.Dir) != 0 {
		t.Errorf("RemoveSession = %v, %d files left", err, files(t, s.cfg.Dir))
	}
}

// TestSharedFolder: several stores on one folder, writing, reading and
// sweeping at once, as several processes do; nothing readable is ever broken
// and nothing that fits the bounds is lost.
func TestSharedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	var stores []*Store
	for range 3 {
		stores = append(stores, open(t, Config{Dir: dir, PerSession: 1000}))
	}
	const writers, each = 4, 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				s := stores[(i+n)%3]
				scope := Scope{Principal: "p", Session: fmt.Sprint(n % 2)}
				text := strings.Repeat(fmt.Sprintf("%d/%d\n", i, n), 1+n*2000)
				e, err := s.Keep(scope, About{Extension: fmt.Sprint(i)}, []byte(text), false, nil)
				if err != nil {
					t.Errorf("Keep: %v", err)
					return
				}
				x, err := stores[(i+n+1)%3].Read(context.Background(), scope, Query{Handle: e.Handle, Op: OpChars, Limit: Whole})
				if err != nil || x.Text != text {
					t.Errorf("Read = %d bytes, %v, want %d", len(x.Text), err, len(text))
				}
				if n%7 == 0 {
					s.Sweep(context.Background())
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, session := range []string{"0", "1"} {
		entries, err := stores[0].List(Scope{Principal: "p", Session: session}, Filter{})
		if err != nil {
			t.Fatal(err)
		}
		total += len(entries)
	}
	if total != writers*each {
		t.Errorf("%d results, want %d", total, writers*each)
	}
}

// TestSweepTakesTheFolderAway: an empty folder may go at any moment, also
// between a writer's beginning and its end.
func TestSweepTakesTheFolderAway(t *testing.T) {
	s := open(t, Config{})
	w, err := s.Create(ada, About{})
	if err != nil {
		t.Fatal(err)
	}
	s.Sweep(context.Background())
	w.Write([]byte("kept"))
	if _, err := w.Commit(false, nil); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	if got := read(t, s, Query{}).Text; got != "kept" {
		t.Errorf("Read = %q, want kept", got)
	}
}

func TestSurvivesRestartAndIgnoresWhatIsBroken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	s := open(t, Config{Dir: dir})
	good := keep(t, s, ada, "a", strings.Repeat("good\n", 20_000), false)
	torn, short := keep(t, s, ada, "a", "torn", false), keep(t, s, ada, "a", strings.Repeat("short\n", 20_000), false)
	folder := filepath.Join(dir, ada.folder())
	if err := os.Truncate(filepath.Join(folder, torn.Handle), 30); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(folder, short.Handle+".text"), 30); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("not ours"), 0o600)
	s.Close()
	s = open(t, Config{Dir: dir})
	for _, e := range []Entry{torn, short} {
		gone(t, s, ada, e.Handle)
	}
	if x := read(t, s, Query{Handle: good.Handle, Op: OpTail, Count: 1}); x.Text != "good\n" {
		t.Errorf("tail = %q", x.Text)
	}
	if diff := cmp.Diff(good, read(t, s, Query{Handle: good.Handle, Op: OpInfo}).Entry); diff != "" {
		t.Errorf("entry after a restart (-want +got):\n%s", diff)
	}
	s.Sweep(context.Background())
	if _, err := os.Stat(filepath.Join(folder, "notes.txt")); err != nil {
		t.Errorf("the sweep took a file that is not its own: %v", err)
	}
}

func TestOpenRefusesAnOpenFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("cannot here: files have no modes")
	}
	dir := t.TempDir()
	os.Chmod(dir, 0o755)
	_, err := Open(Config{Dir: dir})
	if capability.KindOf(err) != capability.Denied || !strings.Contains(err.Error(), "chmod 700 "+dir) {
		t.Errorf("Open = %v, want a refusal with the fix", err)
	}
	if _, err := Open(Config{}); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Open without a folder = %v", err)
	}
}
