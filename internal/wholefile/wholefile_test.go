package wholefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/wholefile"
)

// only fails where a folder has other files than these.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries := testkit.Must(os.ReadDir(dir))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder has %v, want %v", got, want)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, c := range []struct {
		text string
		mode fs.FileMode
	}{{"one", 0o600}, {"", 0o644}, {"two", 0o600}} {
		testkit.OK(t, wholefile.Write(path, []byte(c.text), c.mode))
		got, err := os.ReadFile(path)
		info, serr := os.Lstat(path)
		if err != nil || serr != nil || string(got) != c.text || info.Mode() != c.mode {
			t.Errorf("after Write(%q, %v) there is %q of %v, %v", c.text, c.mode, got, info, errors.Join(err, serr))
		}
	}
	only(t, dir, "file")
}

// TestWriteOverLink: a link is replaced, and what it leads to stays.
func TestWriteOverLink(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(other, []byte("theirs"), 0o600), os.Symlink(other, path)); err != nil {
		t.Skip("cannot here: ", err)
	}
	testkit.OK(t, wholefile.Write(path, []byte("mine"), 0o600))
	if got, err := os.ReadFile(other); err != nil || string(got) != "theirs" {
		t.Errorf("what the link led to is %q, %v; want it untouched", got, err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("in the link's place is %v, %v; want a file", info, err)
	}
}

// TestWriteNothing: what cannot be written leaves all as it was.
func TestWriteNothing(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700))
	if err := wholefile.Write(filepath.Join(dir, "taken"), []byte("x"), 0o600); err == nil {
		t.Error("Write over a folder = nil, want an error")
	}
	if err := wholefile.Write(filepath.Join(dir, "none", "file"), []byte("x"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Write into no folder = %v, want ErrNotExist", err)
	}
	only(t, dir, "taken")
}

// TestReaders: nobody ever reads a part.
func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(i int) error {
		return wholefile.Write(path, bytes.Repeat([]byte{byte('a' + i%26)}, 10_000+i), 0o600)
	}
	testkit.OK(t, write(0))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			got, err := os.ReadFile(path)
			if err != nil || len(got) < 10_000 || got[0] != got[len(got)-1] || int(got[0]-'a') != (len(got)-10_000)%26 {
				t.Errorf("read %d bytes, %v; want a whole file", len(got), err)
				return
			}
		}
	})
	for i := range 100 {
		if err := write(i); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
}

// TestCreate: of many one wins, and its content is what all find.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			switch err := wholefile.Create(path, fmt.Append(nil, i)); {
			case err == nil:
				won.Store(int64(i))
			case !errors.Is(err, fs.ErrExist):
				t.Errorf("Create = %v, want nil or ErrExist", err)
			}
		})
	}
	wg.Wait()
	if got, err := os.ReadFile(path); err != nil || string(got) != fmt.Sprint(won.Load()) {
		t.Errorf("the file has %q, %v; want what %d wrote", got, err, won.Load())
	}
	only(t, dir, "key")
}

// TestLock: one at a time, by file and by folder; who waits too long is told.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	for name, lock := range map[string]func(wait time.Duration) (func(), error){
		"file":   func(wait time.Duration) (func(), error) { return wholefile.Lock(filepath.Join(dir, "lock"), wait) },
		"folder": func(wait time.Duration) (func(), error) { return wholefile.LockFolder(dir, wait) },
	} {
		t.Run(name, func(t *testing.T) {
			first, err := lock(0)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip("cannot here: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lock(0); !errors.Is(err, wholefile.ErrHeld) {
				t.Errorf("a second lock = %v, want ErrHeld", err)
			}
			first()
			var inside, most atomic.Int64
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					unlock, err := lock(time.Minute)
					if err != nil {
						t.Error(err)
						return
					}
					most.Store(max(most.Load(), inside.Add(1)))
					inside.Add(-1)
					unlock()
				})
			}
			wg.Wait()
			if most.Load() != 1 {
				t.Errorf("%d were inside at once, want 1", most.Load())
			}
		})
	}
}

// TestLockLink: a link in the place of a lock is not followed.
func TestLockLink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "lock")
	if err := os.Symlink(target, path); err != nil {
		t.Skip("cannot here: ", err)
	}
	if _, err := wholefile.Lock(path, 0); err == nil {
		t.Error("Lock of a link = nil, want an error")
	}
	only(t, dir, "lock")
}
