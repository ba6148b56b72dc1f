package health

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRoomAgain: that a disk or a share of one was full stands until a write
// goes through in every folder; any other error stands.
func TestRoomAgain(t *testing.T) {
	good := t.TempDir()
	gone := filepath.Join(good, "gone") // nothing can be written there
	broken := errors.New("the disk is broken")
	for _, tt := range []struct {
		name    string
		err     error
		folders []string
		want    error
	}{
		{"nothing was wrong", nil, []string{gone}, nil},
		{"full, and no more", fmt.Errorf("write: %w", syscall.ENOSPC), []string{good, good}, nil},
		{"a quota, and no more", fmt.Errorf("write: %w", syscall.EDQUOT), []string{good, good}, nil},
		{"full for the record", syscall.ENOSPC, []string{gone, good}, os.ErrNotExist},
		{"full for its heads", syscall.ENOSPC, []string{good, gone}, os.ErrNotExist},
		{"a quota still", syscall.EDQUOT, []string{good, gone}, os.ErrNotExist},
		{"broken", broken, []string{good}, broken},
	} {
		if err := roomAgain(tt.err, tt.folders...); !errors.Is(err, tt.want) {
			t.Errorf("%s: roomAgain() = %v, want %v", tt.name, err, tt.want)
		}
	}
	if left, err := os.ReadDir(good); err != nil || len(left) > 0 {
		t.Errorf("roomAgain() left %v, %v; want nothing", left, err)
	}
}
