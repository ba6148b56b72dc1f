package shim

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"ken/internal/testkit"
)

// TestInput: what is read from a pipe is the same, its end is seen, and a read that
// waits can be ended.
func TestInput(t *testing.T) {
	open := func() (in io.Reader, w *os.File) {
		t.Helper()
		var ends [2]int
		testkit.OK(t, syscall.Pipe(ends[:]))
		r, w := os.NewFile(uintptr(ends[0]), "r"), os.NewFile(uintptr(ends[1]), "w")
		t.Cleanup(func() { r.Close(); w.Close() })
		if in = Input(r); in == io.Reader(r) {
			t.Fatal("a pipe is read as it was given")
		}
		t.Cleanup(func() { in.(io.Closer).Close() })
		return in, w
	}
	in, w := open()
	if _, err := w.WriteString("a line\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got, err := io.ReadAll(in); string(got) != "a line\n" || err != nil {
		t.Errorf("read %q and %v", got, err)
	}

	in, _ = open()
	ended := make(chan error, 1)
	go func() {
		_, err := in.Read(make([]byte, 1))
		ended <- err
	}()
	testkit.OK(t, in.(io.Closer).Close())
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("a read that was ended says %v", err)
	}

	file := testkit.Must(os.Create(t.TempDir() + "/f"))(t)
	defer file.Close()
	if Input(file) != io.Reader(file) {
		t.Error("a file is opened again, and would be read from its beginning")
	}
}
