package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ken/capability"
)

// TreeConfig describes a [Tree].
type TreeConfig struct {
	// Name is the source's name; Path when empty.
	Name string

	// Path is a directory, or a single file.
	Path string

	// Files, when not nil, is read instead of Path: files that are part of
	// the program.
	Files fs.FS

	// Trust is given to everything found here. Below TrustUser, files with
	// more than one hard link are refused.
	Trust capability.Trust

	// Optional makes a missing Path an empty source instead of an error.
	Optional bool

	// Cache, when not nil, keeps what large files were parsed to.
	Cache *Cache

	// Watch says how changes are noticed.
	Watch WatchConfig
}

// A Tree is a folder or file of capabilities in any mixture of formats. Its
// methods may be called at the same time, except Load and Watch, which one
// goroutine calls in turn.
type Tree struct {
	cfg     TreeConfig
	formats []format

	mu    sync.RWMutex
	root  *root
	only  string           // the one file to read, when Path is a file
	units map[string]*held // by path of the unit
	order []string         // keys of units, sorted
}

// held is a unit as it was last read.
type held struct {
	format       string
	print        uint64 // of the files it was read from
	capabilities []*capability.Capability
	details      map[capability.ID]capability.Detail // only for formats that keep them
	presets      []capability.Preset
	documents    []capability.Document
	problems     []capability.Problem
}

// NewTree makes a Tree. Nothing is read before Load.
func NewTree(cfg TreeConfig) *Tree {
	if cfg.Name == "" {
		cfg.Name = cfg.Path
	}
	return &Tree{cfg: cfg, formats: formats()}
}

// Name gives the source's name.
func (t *Tree) Name() string { return t.cfg.Name }

// Trust gives the trust of all that the tree holds.
func (t *Tree) Trust() capability.Trust { return t.cfg.Trust }

// Load reads the whole tree.
func (t *Tree) Load(ctx context.Context) (capability.Batch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.openLocked(); err != nil {
		if t.cfg.Optional && errors.Is(err, fs.ErrNotExist) {
			return capability.Batch{}, nil
		}
		return capability.Batch{}, fmt.Errorf("load %s: %w", t.cfg.Path, explainOpen(err))
	}
	t.units, t.order = map[string]*held{}, nil
	if err := t.walkLocked(ctx, "."); err != nil {
		return capability.Batch{}, err
	}
	return t.batchLocked(), nil
}

// Close releases the directory.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.root == nil {
		return nil
	}
	err := t.root.close()
	t.root = nil
	return err
}

// openLocked opens the root anew: the path may by now be another directory.
func (t *Tree) openLocked() error {
	if t.cfg.Files != nil {
		t.root = &root{name: t.cfg.Name, fsys: t.cfg.Files}
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
	r, err := openRoot(dir, t.cfg.Trust < capability.TrustUser)
	if err != nil {
		return err
	}
	if t.root != nil {
		_ = t.root.close() // a directory that was only read
	}
	t.root, t.only = r, only
	return nil
}

// batchLocked puts the units together in the order of their paths.
func (t *Tree) batchLocked() capability.Batch {
	n := 0
	for _, h := range t.units {
		n += len(h.capabilities)
	}
	b := capability.Batch{Capabilities: make([]*capability.Capability, 0, n)}
	for _, key := range t.order {
		h := t.units[key]
		b.Capabilities = append(b.Capabilities, h.capabilities...)
		b.Presets = append(b.Presets, h.presets...)
		b.Documents = append(b.Documents, h.documents...)
		b.Problems = append(b.Problems, h.problems...)
	}
	return b
}

func (t *Tree) putLocked(key string, h *held) {
	if _, have := t.units[key]; !have {
		i, _ := slices.BinarySearch(t.order, key)
		t.order = slices.Insert(t.order, i, key)
	}
	t.units[key] = h
}

// dropLocked forgets the unit of a path and all below it.
func (t *Tree) dropLocked(p string) {
	if p == "." {
		clear(t.units)
		t.order = nil
		return
	}
	t.order = slices.DeleteFunc(t.order, func(key string) bool {
		gone := key == p || strings.HasPrefix(key, p+"/")
		if gone {
			delete(t.units, key)
		}
		return gone
	})
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
	key, ok := t.ownerLocked(t.relative(c.Origin.Path))
	if !ok {
		return capability.Detail{}, gone
	}
	h := t.units[key]
	if d, ok := h.details[c.ID]; ok {
		return d, unchanged(c, d)
	}
	if c.Origin.Length > 0 {
		return t.recordLocked(key, c)
	}
	again := t.readUnitLocked(ctx, key, h.format)
	for i, found := range again.capabilities {
		if found.ID == c.ID {
			return again.details[i], unchanged(c, again.details[i])
		}
	}
	return capability.Detail{}, gone
}

// unchanged fails when a text is not the one that was scanned and hashed.
func unchanged(c *capability.Capability, d capability.Detail) error {
	if hashOf(c, d) == c.Hash {
		return nil
	}
	return &capability.Error{
		Kind: capability.Conflict, Op: "read", Target: string(c.ID),
		Err: fmt.Errorf("%s changed since it was loaded", c.Origin), Fix: "reload the catalog",
	}
}

// relative turns a displayed path back into a path of the tree.
func (t *Tree) relative(display string) string {
	rel, err := filepath.Rel(t.root.name, display)
	if err != nil {
		return display
	}
	return filepath.ToSlash(rel)
}

// Reference reads a document that is kept out of memory.
func (t *Tree) Reference(d capability.Document) (string, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.root == nil {
		return "", &capability.Error{Kind: capability.NotFound, Op: "read", Target: d.Origin.Path, Fix: "reload the catalog"}
	}
	data, _, err := t.root.read(t.relative(d.Origin.Path), bodyLimit)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", d.Origin.Path, err)
	}
	return normalizeNewlines(data), nil
}
