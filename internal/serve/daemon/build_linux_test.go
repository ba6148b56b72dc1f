package daemon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ken/internal/serve/shim"
	"ken/internal/testkit"
)

// otherBuild makes a copy of this program that takes itself for another build,
// made so much later.
func otherBuild(t *testing.T, mark byte, later time.Duration) (exe string) {
	t.Helper()
	own := testkit.Must(os.Executable())(t)
	b := testkit.Must(os.ReadFile(own))(t)
	info := testkit.Must(os.Stat(own))(t)
	id, _ := shim.Build()
	at := bytes.Index(b, []byte(id))
	if at < 0 || at > 4<<10 {
		t.Skip("cannot here: this program has no build id to change")
	}
	b[at] = mark
	exe = filepath.Join(t.TempDir(), "ken")
	testkit.OK(t, os.WriteFile(exe, b, 0o755))
	when := info.ModTime().Add(later)
	testkit.OK(t, os.Chtimes(exe, when, when))
	return exe
}

// TestBuilds: an older daemon makes room and finishes its clients; a newer one
// with clients is used; one without clients makes room for any.
func TestBuilds(t *testing.T) {
	h := newHome(t)
	own := h.exe
	newer := otherBuild(t, '=', time.Hour)

	w1 := h.open(t)
	old := w1.ask(t, "who")
	h.exe = newer
	w2 := h.open(t)
	next := w2.ask(t, "who")
	if next == old {
		t.Errorf("a newer shim joined the older daemon %d", old)
	}
	testkit.Equal(t, "the first window is now served by", w1.ask(t, "still"), old)
	h.exe = own
	w3 := h.open(t)
	testkit.Equal(t, "an older shim is served by", w3.ask(t, "who"), next)
	w1.close(t, 0)
	testkit.Wait(t, "the daemon ends", func() bool { return gone(old) }) // a retired daemon ends with its last client
	w2.close(t, 0)
	w3.close(t, 0)
	settle(t, h, 0)
	w4 := h.open(t)
	if pid := w4.ask(t, "who"); pid == next {
		t.Errorf("an older shim joined the newer daemon %d, which had no clients", next)
	}
	w4.close(t, 0)
	if got := h.starts(t); len(got) != 3 {
		t.Errorf("%d daemons were started, want 3", len(got))
	}
}

// settle waits until the daemon serves so many.
func settle(t *testing.T, h *home, clients int) {
	t.Helper()
	testkit.Wait(t, "the daemon's clients", func() bool {
		g, err := shim.Ask(h.place(t))
		return err == nil && g.Clients == clients
	})
}

// TestTwoBuildsAtOnce: windows of two builds that start at once all work, and
// the newer build wins.
func TestTwoBuildsAtOnce(t *testing.T) {
	h := newHome(t)
	exes := []string{h.exe, otherBuild(t, '=', time.Hour)}
	var windows []*window
	for i := range 6 {
		h.exe = exes[i%2]
		windows = append(windows, h.open(t))
	}
	for _, w := range windows {
		w.ask(t, "who")
	}
	if got := h.starts(t); len(got) > 2 {
		t.Errorf("%d daemons were started for two builds, want at most 2", len(got))
	}
	for _, w := range windows {
		w.close(t, 0)
	}
}

func TestRetire(t *testing.T) {
	h := newHome(t)
	testkit.Equal(t, "Retire without a daemon", shim.Retire(h.place(t)), nil)
	w := h.open(t)
	pid := w.ask(t, "who")
	testkit.Equal(t, "Retire", shim.Retire(h.place(t)), nil)
	if g, err := shim.Ask(h.place(t)); err == nil {
		t.Errorf("Ask after Retire = %v, want no daemon", g)
	}
	w.ask(t, "still")
	w.close(t, 0)
	testkit.Wait(t, "the daemon ends", func() bool { return gone(pid) })
}
