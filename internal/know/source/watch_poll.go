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
// What was touched so lately that its time cannot tell counts as changed at the
// next look: whoever read the tree meanwhile may have read what is gone again.
func poll(ctx context.Context, t *Tree, cfg WatchConfig, first sighting, out chan<- sighting) {
	before, vague := printTree(ctx, t.cfg.Path, t.targetFiles())
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
		now, again := printTree(ctx, t.cfg.Path, t.targetFiles())
		if now != before || vague {
			wait = min(cfg.Debounce/2, cfg.Poll)
			pending.merge(sighting{all: true})
		}
		before, vague = now, again
		timer.Reset(wait)
	}
}

// printTree sums up the metadata of a file and of others that it hangs on, or
// of all files and folders below a folder that a walk would look at. It is vague
// when some of them could change again without its telling.
func printTree(ctx context.Context, name string, hangsOn []string) (sum uint64, vague bool) {
	l := &looker{sum: fnv.New64a()}
	info, err := os.Stat(name)
	if err != nil {
		return 0, false
	}
	l.printTimed("", info)
	base := name
	if !info.IsDir() {
		base = filepath.Dir(name)
	}
	slices.Sort(hangsOn)
	for _, p := range hangsOn {
		if info, err := os.Stat(filepath.Join(base, filepath.FromSlash(p))); err == nil {
			l.printTimed(p, info)
		}
	}
	if !info.IsDir() {
		return l.sum.Sum64(), l.vague
	}
	if name, err = filepath.Abs(name); err != nil {
		return 0, false
	}
	const slash = string(filepath.Separator)
	name = strings.TrimSuffix(name, slash) + slash // so that a link is followed
	above, files := strings.Count(name, slash), 0
	_ = filepath.WalkDir(name, func(p string, e fs.DirEntry, err error) error {
		if files++; ctx.Err() != nil || files > maxTreeFiles {
			return filepath.SkipAll
		}
		if err != nil {
			l.put(p, 0)
			return nil
		}
		if e.IsDir() && p != name && (safefs.SkipFolder(e.Name()) || strings.Count(p, slash)-above >= maxTreeDepth) {
			return filepath.SkipDir
		}
		l.printEntry(p, e)
		return nil
	})
	return l.sum.Sum64(), l.vague
}

// printTimed takes in a file, or a folder with the time at which something came
// into it or left it.
func (l *looker) printTimed(p string, info fs.FileInfo) {
	l.printFile(p, info)
	if info.IsDir() {
		l.put(p, uint64(info.ModTime().UnixNano()))
	}
	l.vague = l.vague || isRecent(info.ModTime(), time.Now())
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
	l.printTimed(p, info)
}
