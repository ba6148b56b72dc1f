package source

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/safefs"
)

// Refresh reads again what the changed paths belong to and returns the whole
// batch. Paths are as the file system names them; those outside are passed
// over. What is wrong with a unit that was good before leaves it as it was,
// with a problem that says so; a file that is gone takes what it held along.
func (t *Tree) Refresh(ctx context.Context, changed []string) (capability.Batch, error) {
	t.mu.RLock()
	base := t.cfg.Path
	if t.root != nil {
		base = t.root.Name
	}
	t.mu.RUnlock()
	var seen sighting
	for _, name := range changed {
		rel, err := filepath.Rel(base, name)
		if err == nil && filepath.IsLocal(rel) {
			seen.add(filepath.ToSlash(rel))
		}
	}
	b, _, err := t.refresh(ctx, seen)
	return b, err
}

// refresh reads again what was seen to change, and reports whether that
// changed the batch.
func (t *Tree) refresh(ctx context.Context, seen sighting) (b capability.Batch, changed bool, err error) {
	t.loading.Lock()
	defer t.loading.Unlock()
	t.mu.RLock()
	loaded := t.loaded
	t.mu.RUnlock()
	if !loaded {
		return capability.Batch{}, false, fmt.Errorf("refresh %s: it was never loaded; call Load first", t.cfg.Name)
	}
	moved, err := t.open()
	if err != nil {
		return capability.Batch{}, false, err
	}
	w := newWalk(ctx, t)
	var scopes []string // nil: everything
	t.read(func() {
		if moved || seen.all {
			w.lazy = true
			w.all()
			return
		}
		scopes = w.again(seen.paths)
	})
	if err := ctx.Err(); err != nil {
		return capability.Batch{}, false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	empty := t.emptyLocked()
	changed = t.replaceLocked(w, scopes)
	return t.batchLocked(), changed || !slices.Equal(empty, t.emptyLocked()), nil
}

// again reads what the changed paths belong to, and returns the paths that were
// read: each stands for itself and all below it, except that a folder unit
// with a trailing slash stands for itself alone.
func (w *walk) again(changed map[string]bool) []string {
	scopes := map[string]bool{}
	for p := range w.t.withDependents(changed) {
		for _, scope := range w.scopesOf(p) {
			scopes[scope] = true
		}
	}
	maps.DeleteFunc(scopes, func(p string, _ bool) bool { return isCovered(strings.TrimSuffix(p, "/"), p, scopes) })
	out := slices.Sorted(maps.Keys(scopes))
	for _, scope := range out {
		if p, alone := strings.CutSuffix(scope, "/"); alone {
			w.unit(p, w.shape(p))
		} else {
			w.at(scope)
		}
	}
	if out == nil {
		out = []string{}
	}
	return out
}

// isCovered reports whether a path is read along with another one.
func isCovered(p, scope string, scopes map[string]bool) bool {
	if p != scope && scopes[p] {
		return true
	}
	for p != "." {
		p = path.Dir(p)
		if scopes[p] {
			return true
		}
	}
	return false
}

// withDependents adds the units that hang on a changed path, and those that
// hang on these.
func (t *Tree) withDependents(changed map[string]bool) map[string]bool {
	if len(t.targets) == 0 || len(changed) == 0 {
		return changed
	}
	out := maps.Clone(changed)
	for before := 0; before < len(out); {
		before = len(out)
		for target, units := range t.targets {
			if !out[target] && !isCovered(target, target, out) {
				continue
			}
			for _, key := range units {
				out[key] = true
			}
		}
	}
	return out
}

// scopesOf decides what to read again because of one path.
func (w *walk) scopesOf(p string) []string {
	if w.t.only != "" {
		if p == w.t.only || p == "." {
			return []string{"."}
		}
		return nil
	}
	if p == "." || !fs.ValidPath(p) {
		return []string{"."}
	}
	var units []string
	for i, r := range p + "/" {
		if r != '/' {
			continue
		}
		dir := "."
		if j := strings.LastIndexByte(p[:i], '/'); j >= 0 {
			dir = p[:j]
		}
		if safefs.SkipFolder(path.Base(p[:i])) || w.t.written(p[:i]) {
			return nil
		}
		// A folder that went away, came, or turned from a unit into a plain
		// folder or back is read as a whole.
		if dir != "." && !w.t.root.IsFolder(dir) || w.hasTurned(dir) {
			return append(near(units, dir), dir)
		}
		if w.shape(dir) != nil {
			units = append(units, dir+"/")
		}
	}
	if len(units) == 0 || w.t.root.IsFolder(p) || w.t.hasRead(p) {
		return append(near(units, p), p)
	}
	return near(units, p)
}

// near leaves of the units around p, outermost first, those that look as deep
// as p, and the innermost in any case.
func near(units []string, p string) []string {
	depth := strings.Count(p, "/") + 1
	for len(units) > 1 {
		above := 0
		if units[0] != "./" {
			above = strings.Count(units[0], "/")
		}
		if depth-above <= lookDepth {
			break
		}
		units = units[1:]
	}
	return units
}

// hasTurned reports whether a folder is another kind of unit than it was.
func (w *walk) hasTurned(dir string) bool {
	was := ""
	if h := w.t.units[dir]; h != nil && h.folder {
		was = h.format
	}
	is := ""
	if f := w.shape(dir); f != nil {
		is = f.Name
	}
	return is != was
}

// hasRead reports whether anything at or below a path was read before.
func (t *Tree) hasRead(p string) bool {
	if t.units[p] != nil {
		return true
	}
	i, _ := slices.BinarySearch(t.order, p+"/")
	return i < len(t.order) && strings.HasPrefix(t.order[i], p+"/")
}
