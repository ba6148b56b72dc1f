package source

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"ken/internal/know/source/safefs"
)

// listen sends what the system tells about the tree until ctx ends. The error
// says why the system cannot tell.
func (t *Tree) listen(ctx context.Context, cfg WatchConfig, out chan<- sighting) error {
	name, err := filepath.Abs(t.cfg.Path)
	if err != nil {
		return err
	}
	w, err := t.notify()
	if err != nil {
		return err
	}
	l := &lookout{
		tree: t, watcher: w, path: name, most: cfg.MaxFolders,
		watched: map[string]bool{}, errs: make(chan error, 1),
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		l.drain()
	}()
	defer func() {
		w.Close() // ends drain
		<-drained
	}()
	l.arm()
	return l.run(ctx, cfg.Poll, out)
}

// A lookout asks the system to tell of changes in one tree: every folder of
// it, and the folder above, where the tree itself may come, go and be
// exchanged. It knows folders, not units; what it tells is read by others.
type lookout struct {
	tree    *Tree
	watcher *fsnotify.Watcher
	path    string // the tree's, absolute
	most    int

	watched map[string]bool // folders that the system tells about
	above   string          // the nearest folder above path that exists
	target  string          // what path names, when it is a link to a file
	armed   fs.FileInfo     // what path was; nil when it was not there
	pending sighting
	broken  error // why the system cannot tell
	faults  int   // errors since the last time all was well
	errs    chan error
}

// drain takes errors off the watcher at once: it may hold its lock while it
// sends one, and adding a folder takes the same lock.
func (l *lookout) drain() {
	for err := range l.watcher.Errors {
		select {
		case l.errs <- err:
		default: // one is as good as many: everything is looked through
		}
	}
}

func (l *lookout) run(ctx context.Context, every time.Duration, out chan<- sighting) error {
	check := time.NewTicker(every)
	defer check.Stop()
	for {
		if l.broken != nil {
			return l.broken
		}
		to := out
		if l.pending.isEmpty() {
			to = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case to <- l.pending:
			l.pending = sighting{}
		case e, ok := <-l.watcher.Events:
			if !ok {
				return fsnotify.ErrClosed
			}
			l.event(e)
		case err := <-l.errs:
			l.fault(err)
		case <-check.C:
			// A folder further above may have been replaced, for which
			// there is no event.
			l.faults = 0
			l.check()
			l.addTargets()
		}
	}
}

// fault handles an error of the watcher. Mostly events were lost, and with them
// the names of new folders, so the tree is watched from scratch.
func (l *lookout) fault(err error) {
	const maxFaults = 8
	if l.faults++; l.faults > maxFaults {
		l.broken = err
		return
	}
	l.arm()
}

// arm watches the tree from scratch, as it is now, and tells that anything may
// have changed.
func (l *lookout) arm() {
	for _, dir := range l.watcher.WatchList() {
		_ = l.watcher.Remove(dir) // it may be gone already
	}
	clear(l.watched)
	l.pending.merge(sighting{all: true})
	l.armAbove()
	l.target = ""
	info, err := os.Stat(l.path)
	if err != nil {
		l.armed = nil
		return
	}
	l.armed = info
	if info.IsDir() {
		l.addTree(l.path, 0)
	} else if target, err := filepath.EvalSymlinks(l.path); err == nil && target != l.path {
		l.target = target
		l.add(filepath.Dir(target))
	}
	l.addTargets()
}

// base returns the folder that paths within the tree start from.
func (l *lookout) base() string {
	if l.armed != nil && !l.armed.IsDir() {
		return filepath.Dir(l.path)
	}
	return l.path
}

// within returns the path within the tree of a file.
func (l *lookout) within(name string) (rel string, ok bool) {
	const slash = string(filepath.Separator)
	rel, ok = strings.CutPrefix(name, strings.TrimSuffix(l.base(), slash)+slash)
	return filepath.ToSlash(rel), ok
}

// addTargets watches the folders of files that units hang on and that are not
// watched as part of the tree: for a single file all of them.
func (l *lookout) addTargets() {
	if l.armed == nil {
		return
	}
	for _, p := range l.tree.targetFiles() {
		dir := filepath.Dir(filepath.Join(l.base(), filepath.FromSlash(p)))
		if !l.watched[dir] && l.add(dir) {
			l.pending.add(p) // it may have changed before
		}
	}
}

// armAbove watches the nearest folder above the path.
func (l *lookout) armAbove() {
	for l.broken == nil {
		l.above = nearestFolder(filepath.Dir(l.path))
		l.add(l.above)
		if nearestFolder(filepath.Dir(l.path)) == l.above {
			return // no nearer one came meanwhile; later ones are told
		}
	}
}

func nearestFolder(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}

// check watches the tree from scratch when the path names something else than it
// did.
func (l *lookout) check() {
	info, err := os.Stat(l.path)
	same := err != nil && l.armed == nil ||
		err == nil && l.armed != nil && os.SameFile(info, l.armed) && info.IsDir() == l.armed.IsDir()
	if !same || nearestFolder(filepath.Dir(l.path)) != l.above {
		l.arm()
	}
}

// add watches one folder, and reports whether it is watched.
func (l *lookout) add(dir string) bool {
	if l.watched[dir] || l.broken != nil {
		return l.broken == nil
	}
	if len(l.watched) >= l.most {
		l.broken = errTooManyFolders
		return false
	}
	err := l.watcher.Add(dir)
	switch {
	case err == nil:
		l.watched[dir] = true
		return true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return false // gone again, or closed; the walk says so where it matters
	}
	l.broken = err
	return false
}

// addTree watches a folder and those below it. Each is watched before it is
// listed, so that a folder made meanwhile is told.
func (l *lookout) addTree(dir string, depth int) {
	if depth > maxTreeDepth || !l.add(dir) {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && !safefs.SkipFolder(e.Name()) {
			l.addTree(filepath.Join(dir, e.Name()), depth+1)
		}
	}
}

// removeTree stops watching a folder that was moved away, and those below it.
// They would still be told about, under names that are no longer theirs.
func (l *lookout) removeTree(dir string) {
	for name := range l.watched {
		if name == dir || strings.HasPrefix(name, dir+string(filepath.Separator)) {
			_ = l.watcher.Remove(name) // it may be gone already
			delete(l.watched, name)
		}
	}
}

// event takes in one thing that the system tells.
func (l *lookout) event(e fsnotify.Event) {
	if e.Name == "" {
		return // the watcher's way of saying nothing
	}
	e.Name = filepath.Clean(e.Name)
	folder := l.watched[e.Name]
	switch {
	case folder && e.Has(fsnotify.Create|fsnotify.Rename):
		l.removeTree(e.Name)
	case folder && e.Has(fsnotify.Remove):
		delete(l.watched, e.Name)
	}
	rel, inside := l.within(e.Name)
	switch {
	case inside && l.armed != nil && l.armed.IsDir():
		l.eventInside(e, rel, folder)
	case inside && l.tree.hangsOn(rel):
		l.pending.add(rel)
	case e.Name == l.path && l.armed != nil && !l.armed.IsDir():
		l.eventFile(e, path.Base(filepath.ToSlash(e.Name)))
	case e.Name == l.target:
		l.eventFile(e, path.Base(filepath.ToSlash(l.path)))
	case (e.Name == l.path || e.Name == l.above) && e.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename):
		l.arm() // even if it looks the same, it is watched no longer
	case e.Name == l.path && e.Has(fsnotify.Chmod):
		l.arm() // it may open only now, or no longer
	default:
		// Something beside the path: it may be a link on the way to it.
		l.check()
	}
}

// eventFile takes in what happens to the one file of a tree.
func (l *lookout) eventFile(e fsnotify.Event, rel string) {
	if e.Op == fsnotify.Chmod && !l.tree.caresAboutMode(rel) {
		return
	}
	if e.Has(fsnotify.Create | fsnotify.Remove | fsnotify.Rename) {
		l.check() // the file may be a folder or a link now
	}
	l.pending.add(rel)
}

// eventInside takes in what happens within a folder. folder says that it
// happens to one that was watched.
func (l *lookout) eventInside(e fsnotify.Event, rel string, folder bool) {
	if safefs.SkipFolder(path.Base(rel)) {
		return
	}
	if e.Op == fsnotify.Chmod && !l.tree.caresAboutMode(rel) {
		return
	}
	if e.Has(fsnotify.Create | fsnotify.Chmod) {
		if info, err := os.Lstat(e.Name); err == nil && info.IsDir() {
			folder = true
			l.addTree(e.Name, 1+strings.Count(rel, "/"))
		}
	}
	if folder && e.Op != fsnotify.Write || l.tree.caresAbout(rel) {
		l.pending.add(rel)
	}
}

// caresAbout reports whether a change of a file can make a difference: it is a
// document, or lies in a folder unit, where every file is part of the unit.
// Folders always can.
func (t *Tree) caresAbout(p string) bool {
	if isDocument(p) {
		return true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.units[p] != nil || t.targets[p] != nil {
		return true
	}
	_, ok := t.folderUnitLocked(p)
	return ok
}

// caresAboutMode reports whether a change of nothing but permissions can make
// a difference: the file does not open, or was not read.
func (t *Tree) caresAboutMode(p string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.root == nil {
		return true
	}
	h := t.units[p]
	if h == nil {
		h, _ = t.folderUnitLocked(p)
	}
	if h != nil && len(faultsOf(h.problems)) > 0 {
		return true
	}
	if h == nil && !t.root.IsFolder(p) {
		return isDocument(p)
	}
	f, err := t.root.OpenFile(p)
	if err != nil {
		return true
	}
	f.Close()
	return false
}

// hangsOn reports whether a unit hangs on a file that is not its own.
func (t *Tree) hangsOn(p string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.targets[p] != nil
}

// targetFiles returns the files that units hang on beside their own.
func (t *Tree) targetFiles() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.targets))
}

// folderUnitLocked returns the folder unit that a path lies in.
func (t *Tree) folderUnitLocked(p string) (*loadedUnit, bool) {
	for p != "." {
		p = path.Dir(p)
		if h := t.units[p]; h != nil && h.folder {
			return h, true
		}
	}
	return nil, false
}
