package problem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"ken/capability"
	"ken/internal/store"
)

// TestOf: what Ken keeps and cannot reach is no fault inside: it is said what to
// do, and not where it lies, which is for the log.
func TestOf(t *testing.T) {
	at := func(kind error) error { return fmt.Errorf("apply to store /home/ann/ken.db: %w: something", kind) }
	for _, tt := range []struct {
		name     string
		err      error
		status   int
		code     string
		detail   string
		internal bool
	}{
		{"full", at(store.ErrFull), 503, "unavailable", "keeps its state is full; make room there, then ask again", true},
		{"full disk of somebody else", &fs.PathError{Op: "write", Path: "/home/ann/x", Err: syscall.ENOSPC}, 500, "internal", "the log says more", true},
		{"within another", &capability.Error{Kind: capability.Internal, Op: "keep", Err: at(store.ErrFull)}, 503, "unavailable", "make room there", true},
		{"away", at(store.ErrUnavailable), 503, "unavailable", "cannot be reached; ask again", true},
		{"locked", at(store.ErrBusy), 503, "unavailable", "locked by another process", true},
		{"read-only", at(store.ErrReadOnly), 503, "unavailable", "let Ken write it", true},
		{"damaged", at(store.ErrDamaged), 503, "unavailable", "ken doctor says why", true},
		{"newer", at(store.ErrNewer), 503, "unavailable", "ken doctor says why", true},
		{"restored", at(store.ErrRestored), 503, "unavailable", "put back to an earlier state", true},
		{"uncertain", fmt.Errorf("%w: %w", store.ErrUncertain, store.ErrUnavailable), 503, "unavailable", "read it again before you ask again", true},
		{"a server died", &capability.Error{Kind: capability.Upstream, Op: "call", Target: "mcp:s/x", Err: errors.New("it ended with exit status 7")}, 502, "upstream", "call mcp:s/x: it ended with exit status 7", false},
		{"a kind of its own", &capability.Error{Kind: capability.Unavailable, Op: "read", Target: "x", Err: errors.New("it is away")}, 503, "unavailable", "read x: it is away", false},
		{"a conflict", at(store.ErrConflict), 500, "internal", "the log says more", true},
		{"inside", errors.New("a secret detail"), 500, "internal", "the log says more", true},
		{"late", context.DeadlineExceeded, 504, "timeout", "longer", false},
	} {
		p, internal := Of(tt.err)
		if p.Status != tt.status || p.Code != tt.code || !strings.Contains(p.Detail, tt.detail) || internal != tt.internal {
			t.Errorf("%s: Of() = %d %s %q, %v; want %d %s %q, %v", tt.name, p.Status, p.Code, p.Detail, internal, tt.status, tt.code, tt.detail, tt.internal)
		}
		if strings.Contains(p.Detail, "/home") || strings.Contains(p.Detail, "secret") {
			t.Errorf("%s: Of() = %q, which tells what is for the log", tt.name, p.Detail)
		}
	}
}
