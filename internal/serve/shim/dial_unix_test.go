//go:build linux || darwin

package shim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

// TestMain makes this program a daemon that never listens.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		os.Stderr.WriteString("warming up\n")
		<-time.After(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestReadLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.ByteRange('a', 'z'), 0, 5000).Draw(t, "line")
		after := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "after")
		all := append(append(bytes.Clone(before), '\n'), after...)
		var r io.Reader = bytes.NewReader(all)
		switch rapid.IntRange(0, 2).Draw(t, "reader") {
		case 0:
			r = iotest.OneByteReader(r)
		case 1:
			r = iotest.HalfReader(r)
		}
		const limit = 4 << 10
		line, rest, err := readLine(r, limit)
		if len(before) >= limit {
			if err == nil {
				t.Fatalf("readLine of %d bytes = nil, want a refusal over %d", len(before), limit)
			}
			return
		}
		if err != nil || !bytes.Equal(line, before) {
			t.Fatalf("readLine = %q, %v; want %q", line, err, before)
		}
		more, err := io.ReadAll(r)
		if got := append(bytes.Clone(rest), more...); err != nil || !bytes.Equal(got, after) {
			t.Fatalf("behind the line is %q, %v; want %q", got, err, after)
		}
	})
	if _, _, err := readLine(strings.NewReader("half"), 10); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("readLine of half a line = %v, want ErrUnexpectedEOF", err)
	}
	if _, _, err := readLine(strings.NewReader(""), 10); !errors.Is(err, io.EOF) {
		t.Errorf("readLine of nothing = %v, want EOF", err)
	}
}

// place makes a home with a short name.
func place(t *testing.T) Place {
	t.Helper()
	dir := testkit.Must(os.MkdirTemp("", "ken"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return Place{Home: dir, Socket: filepath.Join(dir, "ken.sock"), Log: filepath.Join(dir, "logs", "daemon.log")}
}

func TestDaemonNeverListens(t *testing.T) {
	s := &starter{place: place(t), exe: self(), deadline: time.Now().Add(300 * time.Millisecond)}
	l, err := s.join([]byte("{}\n"))
	if s.child != 0 {
		syscall.Kill(s.child, syscall.SIGKILL)
		syscall.Wait4(s.child, nil, 0, nil)
	}
	if err == nil || !strings.Contains(err.Error(), "does not listen") || !strings.Contains(err.Error(), s.place.Log) {
		t.Errorf("join = %v, %v; want what is wrong and where the log is", l, err)
	}
	if s.starts != 1 {
		t.Errorf("%d daemons were started, want 1", s.starts)
	}
	if free, err := TryLock(s.place.Socket + ".start"); free == nil {
		t.Errorf("the lock after that = %v, want it free", err)
	}
}

func TestLockHeld(t *testing.T) {
	p := place(t)
	unlock, err := TryLock(p.Socket + ".start")
	if err != nil || unlock == nil {
		t.Fatal(err)
	}
	s := &starter{place: p, exe: "/nonexistent", deadline: time.Now().Add(100 * time.Millisecond)}
	if l, err := s.join(nil); err == nil || !strings.Contains(err.Error(), "others have been starting it") {
		t.Errorf("join beside another = %v, %v; want it to wait and say so", l, err)
	}
	unlock()
	s = &starter{place: p, exe: "/nonexistent", deadline: time.Now().Add(time.Second)}
	if l, err := s.join(nil); err == nil || !strings.Contains(err.Error(), "--standalone") {
		t.Errorf("join without a program = %v, %v; want the way out", l, err)
	}
}

func TestSuits(t *testing.T) {
	s := &starter{build: "b", made: 10}
	for _, tt := range []struct {
		g    Greeting
		want bool
	}{
		{Greeting{V: Protocol, Build: "b", Made: 10}, true},
		{Greeting{V: Protocol, Build: "b", Made: 1}, true}, // a copy of the same
		{Greeting{V: Protocol, Build: "c", Made: 9, Clients: 3}, false},
		{Greeting{V: Protocol, Build: "c", Made: 9}, false},
		{Greeting{V: Protocol, Build: "c", Made: 11}, false},
		{Greeting{V: Protocol, Build: "c", Made: 11, Clients: 1}, true},
		{Greeting{V: Protocol + 1, Build: "c", Made: 11, Clients: 1}, false},
		{Greeting{}, false},
	} {
		if got := s.suits(tt.g); got != tt.want {
			t.Errorf("suits(%+v) = %v, want %v", tt.g, got, tt.want)
		}
	}
}

func TestPrivateFolder(t *testing.T) {
	p := place(t)
	p.Private = true
	testkit.OK(t, os.Chmod(p.Home, 0o755))
	if err := p.MakeFolder(); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("MakeFolder of a folder that others can look into = %v, want a refusal", err)
	}
	p.Private = false
	if err := p.MakeFolder(); err != nil {
		t.Errorf("MakeFolder of a home that others can read = %v", err)
	}
}

func TestLogIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "daemon.log")
	for _, size := range []int64{0, maxLog, maxLog + 1, 5} {
		f := testkit.Must(openLog(path))(t)
		testkit.OK(t, f.Truncate(size))
		f.Close()
	}
	old, err := os.Stat(path + ".old")
	if err != nil || old.Size() != maxLog+1 {
		t.Errorf("the log put aside is %v, %v; want one of %d bytes", old, err, maxLog+1)
	}
	if now, err := os.Stat(path); err != nil || now.Size() != 5 || now.Mode().Perm() != 0o600 {
		t.Errorf("the log is %v, %v; want a new one of mode 0600", now, err)
	}
}
