//go:build unix

package files

import (
	"syscall"
	"testing"

	"ken/internal/testkit/executortest"
)

func fifo(t *testing.T, name string) {
	t.Helper()
	executortest.Must(t, syscall.Mkfifo(name, 0o644))
}
