package audit

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ken/internal/testkit"
)

// mountSmall returns a directory on a file system of its own, 256 KiB long.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot here: mount of a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestT14FullFileSystem fills a real file system with the chain, then with the
// checkpoints, and then makes room.
func TestT14FullFileSystem(t *testing.T) {
	testkit.CI(t, "mounts a file system")
	for _, which := range []string{"chain", "checkpoints"} {
		t.Run(which, func(t *testing.T) {
			cfg := testConfig(t)
			small := mountSmall(t)
			if which == "chain" {
				cfg.Dir = filepath.Join(small, "audit")
			} else {
				cfg.CheckpointDir, cfg.CheckpointEvery = filepath.Join(small, "checkpoints"), 1
			}
			mustWrite(t, filepath.Join(small, "ballast"), make([]byte, 64<<10))
			l := testOpen(t, cfg)
			acks := map[ID]string{}
			var err error
			for range 2000 {
				var id ID
				if id, err = l.Append(t.Context(), Record{Event: Executed, EffectID: "e", CommandLine: strings.Repeat("z", 1000)}); err != nil {
					break
				}
				acks[id] = "e"
			}
			if !errors.Is(err, ErrPoisoned) || !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("Append = %v, want poisoned by a full disk", err)
			}
			n, acked := len(acks), maps.Clone(acks)
			if lost, _ := missing(t, cfg.Dir, acks); len(lost) != 0 || n < 50 {
				t.Errorf("%d of %d acknowledged lost", len(lost), n)
			}
			if rep := only(t, cfg); !rep.State.OK() {
				t.Errorf("Verify = %v, want no alarm", rep)
			}
			testkit.OK(t, os.Remove(filepath.Join(small, "ballast")))
			after := testAppend(t, l, Record{Event: Executed, EffectID: "after"})
			if err := l.Close(); err != nil || l.Err() != nil {
				t.Errorf("Close() = %v, Err() = %v, want none: there is room again", err, l.Err())
			}
			if rep := only(t, cfg); rep.State != Whole || rep.Unfinished != 0 {
				t.Errorf("Verify = %v, want whole", rep)
			}
			if told := collect(t, cfg.Dir, Filter{Event: string(Resumed)}); len(told) != 1 || told[0].Record.Metadata.Notes["refused"] == "0" {
				t.Errorf("%d records tell of the gap, want 1", len(told))
			}
			acked[after] = "after"
			noneLost(t, cfg, acked)
		})
	}
}
