package source

import (
	"context"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/internal/know/source/safefs"
)

// poll sends first, and from then on that anything may have changed whenever
// the files of the tree do not look as they did. After a change it looks again
// sooner, so that a file which is still being written is not taken for quiet.
func poll(ctx context.Context, t *Tree, cfg WatchConfig, first sighting, out chan<- sighting) {
	before := printTree(ctx, t.cfg.Path, t.targetFiles())
	pending := first
	timer := time.NewTimer(cfg.Poll)
	defer timer.Stop()
	for {
		to := out
		if pending.isEmpty() {
			to = nil
		}
		select {
		case <-ctx.Done():
			return
		case to <- pending:
			pending = sighting{}
			continue
		case <-timer.C:
		}
		wait := cfg.Poll
		if now := printTree(ctx, t.cfg.Path, t.targetFiles()); now != before {
			before, wait = now, min(cfg.Debounce/2, cfg.Poll)
			pending.merge(sighting{all: true})
		}
		timer.Reset(wait)
	}
}

// printTree sums up the metadata of a file and of others that it hangs on, or
// of all files below a folder that a walk would look at.
func printTree(ctx context.Context, name string, hangsOn []string) uint64 {
	l := &looker{sum: fnv.New64a()}
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	l.printFile("", info)
	base := name
	if !info.IsDir() {
		base = filepath.Dir(name)
	}
	slices.Sort(hangsOn)
	for _, p := range hangsOn {
		if info, err := os.Stat(filepath.Join(base, filepath.FromSlash(p))); err == nil {
			l.printFile(p, info)
		}
	}
	if !info.IsDir() {
		return l.sum.Sum64()
	}
	if name, err = filepath.Abs(name); err != nil {
		return 0
	}
	const slash = string(filepath.Separator)
	name = strings.TrimSuffix(name, slash) + slash // so that a link is followed
	above, files := strings.Count(name, slash), 0
	_ = filepath.WalkDir(name, func(p string, e fs.DirEntry, err error) error {
		if files++; ctx.Err() != nil || files > maxTreeFiles {
			return filepath.SkipAll
		}
		switch {
		case err != nil:
			l.put(p, 0)
		case e.IsDir():
			if p != name && (safefs.SkipFolder(e.Name()) || strings.Count(p, slash)-above >= maxTreeDepth) {
				return filepath.SkipDir
			}
			l.put(p)
		default:
			l.printEntry(p, e)
		}
		return nil
	})
	return l.sum.Sum64()
}

func (l *looker) printEntry(p string, e fs.DirEntry) {
	info, err := e.Info()
	if err == nil && e.Type()&fs.ModeSymlink != 0 {
		info, err = os.Stat(p)
	}
	if err != nil {
		l.put(p, 0)
		return
	}
	l.printFile(p, info)
}
