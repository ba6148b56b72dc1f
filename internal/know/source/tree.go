package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/markdown"
	"ken/internal/know/source/parsecache"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
)

// TreeConfig describes a [Tree].
type TreeConfig struct {
	// Name is the source's name; Path when empty.
	Name string

	// Path is a directory, or a single file.
	Path string

	// Within, when not empty, is a directory around Path that must not be
	// left on the way to it: a project's folder that is a link to somewhere
	// else is refused.
	Within string

	// Files, when not nil, is read instead of Path: files that are part of
	// the program.
	Files fs.FS

	// Trust is given to everything found here. Below TrustUser, files with
	// more than one hard link are refused.
	Trust capability.Trust

	// Optional makes a missing Path an empty source instead of an error.
	Optional bool

	// Cache, when not nil, keeps what large files were parsed to.
	Cache *parsecache.Cache

	// Watch says how changes are noticed.
	Watch WatchConfig

	// parsed, when not empty, is what Files were parsed to. They are parsed
	// again where it is of other files.
	parsed string
}

// A Tree is a folder or file of capabilities in any mixture of formats. Its
// methods may be called at the same time, except Load and Watch, which one
// goroutine calls in turn.
type Tree struct {
	cfg     TreeConfig
	around  string // the last names of Path, with slashes
	formats []format.Format
	notify  func() (*fsnotify.Watcher, error)

	// loading is held while the tree is read again. Reading holds mu for reading
	// only, so Detail does not wait for it; storing the result locks mu.
	loading sync.Mutex

	mu       sync.RWMutex
	loaded   bool
	root     *safefs.Root           // nil while there is nothing at Path
	only     string                 // the one file to read, when Path is a file
	units    map[string]*loadedUnit // by path of the unit
	order    []string               // keys of units, sorted
	list     []*loadedUnit          // the units, in that order
	targets  map[string][]string    // paths that links name, to the units that hang on them
	replaced map[string]bool        // see replacedLocked
}

// loadedUnit is a unit as it was last read, or a document that no format claims.
type loadedUnit struct {
	look
	format       string // empty when nothing was read
	folder       bool   // the unit is a folder
	capabilities []*capability.Capability
	details      map[capability.ID]capability.Detail // only for formats that keep them
	presets      []capability.Preset
	documents    []capability.Document
	problems     []capability.Problem
	also         []string // see format.Unit
	replaces     []string

	faults []capability.Problem // see faultsOf; when it was last read without a setback
	stale  bool                 // some of it could not be read again and stays as it was
}

// NewTree makes a Tree. Nothing is read before Load.
func NewTree(cfg TreeConfig) *Tree {
	if cfg.Name == "" {
		cfg.Name = cfg.Path
	}
	names := strings.Split(filepath.ToSlash(filepath.Clean(cfg.Path)), "/")
	around := path.Join(names[max(0, len(names)-2):]...)
	return &Tree{cfg: cfg, around: around, formats: formats(), notify: fsnotify.NewWatcher}
}

// Name returns the source's name.
func (t *Tree) Name() string { return t.cfg.Name }

// Trust returns the trust of all that the tree holds.
func (t *Tree) Trust() capability.Trust { return t.cfg.Trust }

// Load reads the whole tree. The result of an earlier Load stays in use until
// all of it was read again.
func (t *Tree) Load(ctx context.Context) (capability.Batch, error) {
	t.loading.Lock()
	defer t.loading.Unlock()
	if _, err := t.open(); err != nil {
		return capability.Batch{}, err
	}
	w := newWalk(ctx, t)
	w.fresh = true
	t.read(func() {
		if !w.takeParsed() {
			w.all()
		}
	})
	if err := ctx.Err(); err != nil {
		return capability.Batch{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = true
	t.replaceLocked(w, nil)
	return t.batchLocked(), nil
}

// read runs a part of a walk. While the tree has no root there is nothing to
// walk.
func (t *Tree) read(part func()) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.root != nil {
		part()
	}
}

// Close releases the directory.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.root == nil {
		return nil
	}
	err := t.root.Close()
	t.root = nil
	return err
}

// open makes sure that the root is what Path names by now, and reports whether
// it is another than before. The root is nil afterwards when nothing is there
// and nothing needs to be.
func (t *Tree) open() (moved bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.root != nil && t.root.IsStill(t.cfg.Path, t.only) {
		return false, nil
	}
	err = t.openLocked()
	if t.cfg.Optional && errors.Is(err, fs.ErrNotExist) {
		moved = t.root != nil
		if moved {
			_ = t.root.Close() // a directory that was only read
		}
		t.root = nil
		return moved, nil
	}
	if err != nil {
		return false, fmt.Errorf("load %s: %w", t.cfg.Path, safefs.Explain(err))
	}
	return true, nil
}

// openLocked opens the root again: the path may name another directory by now.
// It is called with mu held.
func (t *Tree) openLocked() error {
	if t.cfg.Files != nil {
		t.root = &safefs.Root{Name: t.cfg.Name, FS: t.cfg.Files}
		return nil
	}
	info, err := os.Stat(t.cfg.Path)
	if err != nil {
		return err
	}
	dir, only := t.cfg.Path, ""
	if !info.IsDir() {
		dir, only = filepath.Dir(t.cfg.Path), filepath.Base(t.cfg.Path)
	}
	r, err := safefs.Open(dir, t.cfg.Within, t.cfg.Trust < capability.TrustUser)
	if err != nil {
		return err
	}
	if t.root != nil {
		_ = t.root.Close() // a directory that was only read
	}
	t.root, t.only = r, only
	return nil
}

// batchLocked puts the units together in the order of their paths.
func (t *Tree) batchLocked() capability.Batch {
	capabilities, problems := 0, 0
	for _, h := range t.list {
		capabilities += len(h.capabilities)
		problems += len(h.problems)
	}
	b := capability.Batch{
		Capabilities: make([]*capability.Capability, 0, capabilities),
		Problems:     make([]capability.Problem, 0, problems),
	}
	for i, h := range t.list {
		if h.format == "card" && len(t.replaced) > 0 && t.replaced[t.order[i]] {
			continue
		}
		b.Capabilities = append(b.Capabilities, h.capabilities...)
		b.Presets = append(b.Presets, h.presets...)
		b.Documents = append(b.Documents, h.documents...)
		b.Problems = append(b.Problems, h.problems...)
	}
	b.Problems = append(b.Problems, t.emptyLocked()...)
	return b
}

// Detail reads the schema and body of a capability that the tree brought.
func (t *Tree) Detail(ctx context.Context, c *capability.Capability) (capability.Detail, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	gone := &capability.Error{
		Kind: capability.NotFound, Op: "read", Target: string(c.ID),
		Err: fmt.Errorf("%s is no longer there", c.Origin), Fix: "reload the catalog",
	}
	if t.root == nil {
		return capability.Detail{}, gone
	}
	key, ok := t.ownerLocked(t.root.Relative(c.Origin.Path))
	if !ok {
		return capability.Detail{}, gone
	}
	h := t.units[key]
	if d, ok := h.details[c.ID]; ok {
		return d, seal.Unchanged(c, d)
	}
	if c.Origin.Length > 0 {
		return t.recordLocked(key, c)
	}
	again := t.readUnitLocked(ctx, key, h.format)
	for i, found := range again.Capabilities {
		if found.ID == c.ID {
			return again.Details[i], seal.Unchanged(c, again.Details[i])
		}
	}
	if h.stale {
		return capability.Detail{}, seal.Outdated(c)
	}
	return capability.Detail{}, gone
}

// Reference reads a document that is kept out of memory. It fails with
// [capability.Conflict] when the text is not the one that was scanned.
func (t *Tree) Reference(d capability.Document) (string, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.root == nil {
		return "", &capability.Error{Kind: capability.NotFound, Op: "read", Target: d.Origin.Path, Fix: "reload the catalog"}
	}
	data, _, err := t.root.Read(t.root.Relative(d.Origin.Path), safefs.BodyLimit)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", d.Origin.Path, err)
	}
	text := markdown.DocumentText(data)
	if markdown.DocumentHash(text) != d.Hash {
		return "", &capability.Error{
			Kind: capability.Conflict, Op: "read", Target: d.Origin.Path,
			Err: errors.New("file changed since it was loaded"), Fix: "reload the catalog",
		}
	}
	return text, nil
}
