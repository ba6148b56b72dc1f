package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestCreateWithoutLinks: without hard links too, of many one wins, and what is
// there stays; what else goes wrong is told.
func TestCreateWithoutLinks(t *testing.T) {
	for _, tt := range []struct {
		err  error
		make bool
	}{{syscall.EPERM, true}, {errors.ErrUnsupported, true}, {syscall.ENOSYS, true}, {syscall.EIO, false}} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "key")
			var winners, won atomic.Int64
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					err := create(path, fmt.Append(nil, i), func(from, to string) error {
						return &os.LinkError{Op: "link", Old: from, New: to, Err: tt.err}
					})
					switch {
					case err == nil:
						won.Store(int64(i))
						winners.Add(1)
					case tt.make && !errors.Is(err, fs.ErrExist) || !tt.make && !errors.Is(err, tt.err):
						t.Errorf("create = %v", err)
					}
				})
			}
			wg.Wait()
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != int(winners.Load()) || tt.make != (len(left) == 1) {
				t.Fatalf("%d won, and the folder has %v, %v", winners.Load(), left, err)
			}
			if !tt.make {
				return
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != fmt.Sprint(won.Load()) {
				t.Errorf("the file has %q, %v; want what %d wrote", got, err, won.Load())
			}
		})
	}
}
