//go:build darwin || freebsd || linux || netbsd || openbsd

package result

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestNoRoom: when the disk takes no more, the beginning is kept, the rest is
// counted, and the entry says why. A process of its own has the real limit.
func TestNoRoom(t *testing.T) {
	if os.Getenv("KEN_TEST_NO_ROOM") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoRoom$", "-test.v")
		cmd.Env = append(os.Environ(), "KEN_TEST_NO_ROOM=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("limit was hit")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	const most = 200_000
	s := open(t, Config{})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		t.Skip("cannot here: " + err.Error())
	}
	w, err := s.Create(ada, About{})
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("a line\n", 10_000))
	for range 20 {
		if n, err := w.Write(line); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v, want all taken", n, err)
		}
	}
	e, err := w.Commit(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e.Bytes != 1_400_000 || e.Kept.Bytes != most || e.Lost != 1_200_000 || !strings.Contains(e.Note, "file too large") {
		t.Errorf("entry = %+v, want %d bytes kept and the reason", e, most)
	}
	x := read(t, s, Query{Op: OpHead, Count: 1})
	if x.Text != "a line\n" || !strings.Contains(x.Left, "1200000 bytes of the output were never kept") {
		t.Errorf("head = %q, left %q", x.Text, x.Left)
	}
	t.Log("the limit was hit")
}
