// Package catalog is the live list of all capabilities.
//
// A [Catalog] holds the latest batch of every source and makes of them an
// immutable [Snapshot] behind one pointer. Each change of a source makes a new
// snapshot; a caller that holds an older one keeps a consistent view. Each
// capability appears as an [Entry] that adds the catalog's judgement: whether
// it may be shown, whether it can be used on this machine, and why not.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"ken/capability"
	"ken/internal/untrusted"
)

// Config says what a Catalog is made of. The zero value is a catalog of
// nothing on a machine that has nothing.
type Config struct {
	// Sources in order of precedence, lowest first: where two bring the same
	// id, the later wins and the earlier is reported as shadowed. See Overrides
	// for the cases in which trust decides instead.
	Sources []capability.Source

	// Fallback, when not nil, is used only while no source from outside brings a
	// tool, or anything else that is more than a text: skills, cards and commands
	// go along with it. Its precedence is the lowest.
	Fallback capability.Source

	// Pins release a quarantined capability, and hold any capability to its
	// text, by id and content hash.
	Pins map[capability.ID]string

	// Overrides lists, by id and content hash, the capabilities of a workspace
	// or a URL that may replace another of the same id. Without an entry they
	// never replace one that is trusted more.
	Overrides map[capability.ID]string

	// WorkspaceBodies lets bodies of workspace and remote capabilities reach
	// a prompt.
	WorkspaceBodies bool

	// SeedSanitizer puts every body through the seed's literal sanitizer
	// instead of showing it as it is.
	SeedSanitizer bool

	// Own are ids of tools that are part of the program. A capability from a
	// place that is trusted less than the user's own cannot take their place. A
	// capability that requires such a tool always finds it.
	Own []capability.ID

	// Off returns which of the packages are disabled, each with the text to
	// show instead of its own. It is called at each rebuild that contains
	// packages. Nil: none are disabled.
	Off func(all []*capability.Capability) map[*capability.Capability]string

	// Mentions are ids that the configuration names; one that is nowhere is
	// reported.
	Mentions []Mention

	// Attachment, when not nil, is that of the empty snapshot before Load. See
	// [Snapshot.Attach].
	Attachment Attachment

	// Machine answers what is here. Its zero value has nothing.
	Machine Machine
}

// A Mention is an id that a setting names.
type Mention struct {
	ID      capability.ID
	By      string // "capabilities.exclude"
	Origin  string // where the setting is said
	Pattern bool   // ID may also be a name that several have, with * for any part
}

// A Catalog is safe for use by any number of goroutines.
type Catalog struct {
	cfg     Config
	sources atomic.Pointer[[]capability.Source] // cfg.Sources, what was added, then the fallback
	current atomic.Pointer[Snapshot]

	reserved map[string]string // names of Ken's own tools by what they look like

	mu      sync.Mutex    // one rebuild at a time
	swapped chan struct{} // closed and replaced at each swap
	added   chan struct{} // closed and replaced at each Add
	history [][]Change    // of the latest versions, oldest first
	batches map[string]loadedBatch
	broken  map[string]capability.Problem // by source: why it could not be read
	judged  map[*capability.Capability]judgement
	bins    map[string]bool // programs that the last build asked about
	stale   bool            // a source brought news since the last rebuild

	waiting atomic.Int32 // watched sources that have a batch and wait for mu
}

// New makes a Catalog that is empty until Load.
func New(cfg Config) (*Catalog, error) {
	c := &Catalog{
		cfg: cfg, batches: map[string]loadedBatch{}, broken: map[string]capability.Problem{},
		judged: map[*capability.Capability]judgement{}, reserved: reservedSkeletons(),
		swapped: make(chan struct{}), added: make(chan struct{}),
	}
	list := slices.Clone(cfg.Sources)
	if cfg.Fallback != nil {
		list = append(list, cfg.Fallback)
	}
	c.sources.Store(&list)
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.Name()] {
			return nil, fmt.Errorf("catalog: two sources are called %q; name one of them differently", s.Name())
		}
		seen[s.Name()] = true
	}
	empty := emptySnapshot()
	if cfg.Attachment != nil {
		empty.attached.Store(&cfg.Attachment)
	}
	c.current.Store(empty)
	return c, nil
}

// Snapshot returns the latest view. It never changes and is never nil.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Next waits for a snapshot with a version above after and returns it.
func (c *Catalog) Next(ctx context.Context, after uint64) (*Snapshot, error) {
	for {
		c.mu.Lock()
		s, swapped := c.current.Load(), c.swapped
		c.mu.Unlock()
		if s.version > after {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-swapped:
		}
	}
}

// kept is how many versions back changes can be told.
const kept = 64

// ChangesSince returns what is different between a version and the latest
// snapshot, by id. complete is false when that version is too long ago, or was
// never there: then everything may be different.
func (c *Catalog) ChangesSince(version uint64) (latest *Snapshot, changes []Change, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest = c.current.Load()
	behind := latest.version - version
	if version > latest.version || behind > uint64(len(c.history)) {
		return latest, nil, false
	}
	return latest, merged(c.history[len(c.history)-int(behind):]), true
}

// Load reads every source and makes one snapshot of them. A source that cannot
// be read is a problem of the snapshot and costs only itself; what it brought
// before stays. Where nothing is different, here or on the machine, the snapshot
// stays the one it is. The error is ctx's.
func (c *Catalog) Load(ctx context.Context) error {
	type loaded struct {
		batch capability.Batch
		err   error
	}
	sources := *c.sources.Load()
	results := make([]loaded, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		wg.Go(func() {
			b, err := s.Load(ctx)
			results[i] = loaded{b, err}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("load catalog: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range sources {
		c.takeLocked(s.Name(), results[i].batch, results[i].err)
	}
	c.rebuildLocked()
	return nil
}

// Replace takes a new batch for one source: what the batch lacks is deleted,
// what it has is added or updated, and other sources are not touched. A batch
// that says what is known already makes no new snapshot.
func (c *Catalog) Replace(name string, b capability.Batch) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.takeLocked(name, b, nil) {
		return c.current.Load()
	}
	return c.rebuildLocked()
}

// Renew publishes the catalog as it stands under a new version, which wakes
// callers that wait for one. It is called when something outside the catalog changed that
// decides what is visible. The catalog does not know what changed for which
// viewer, so [Catalog.ChangesSince] of an earlier version is not complete. Before
// Load, Renew does nothing.
func (c *Catalog) Renew() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current.Load().version == 0 {
		return c.current.Load()
	}
	next := c.buildLocked()
	c.history = nil
	c.putLocked(next)
	return next
}

// LookAgain asks the machine again what is here: a secret may have been set, a
// program installed or removed, and no source tells of that. Where it makes no
// difference the snapshot stays the one it is. Before Load it does nothing.
func (c *Catalog) LookAgain() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.current.Load(); now.version == 0 || c.answersLocked(now) {
		return now
	}
	return c.rebuildLocked()
}

// Add loads one more source and takes it, with a higher precedence than all
// before it. One whose name is taken is not.
func (c *Catalog) Add(ctx context.Context, s capability.Source) error {
	b, failed := s.Load(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("add to catalog: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Clone(*c.sources.Load())
	if slices.ContainsFunc(list, func(other capability.Source) bool { return other.Name() == s.Name() }) {
		return fmt.Errorf("catalog: two sources are called %q; name one of them differently", s.Name())
	}
	at := len(list)
	if c.cfg.Fallback != nil {
		at--
	}
	list = slices.Insert(list, at, s)
	c.sources.Store(&list)
	c.takeLocked(s.Name(), b, failed)
	c.rebuildLocked()
	close(c.added)
	c.added = make(chan struct{})
	return nil
}

// Watch follows every source that can be watched until ctx ends, and makes a
// new snapshot after each change; a batch like the one before is none. Load must
// have been called. It returns nil when ctx ends.
func (c *Catalog) Watch(ctx context.Context) error {
	var wg sync.WaitGroup
	followed := map[string]bool{}
	for ctx.Err() == nil {
		c.mu.Lock()
		added := c.added
		c.mu.Unlock()
		for _, s := range *c.sources.Load() {
			w, ok := s.(capability.Watcher)
			if !ok || followed[s.Name()] {
				continue
			}
			followed[s.Name()] = true
			wg.Go(func() { c.follow(ctx, w) })
		}
		select {
		case <-added:
		case <-ctx.Done():
		}
	}
	wg.Wait()
	if err := ctx.Err(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (c *Catalog) follow(ctx context.Context, w capability.Watcher) {
	for b, err := range w.Watch(ctx) {
		c.news(w.Name(), b, err)
	}
}

// news takes what a watched source brought. Where others wait with theirs, the last
// of them makes one snapshot of all: with many capabilities a snapshot takes most of
// a second, and thirty sources may learn at once that they cannot be watched.
func (c *Catalog) news(name string, b capability.Batch, err error) {
	c.waiting.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.waiting.Add(-1) == 0
	if c.takeLocked(name, b, err) {
		c.stale = true
	}
	if c.stale && last {
		c.rebuildLocked()
	}
}

// Detail reads what a capability holds beyond its description, as it may be
// shown to a model: the body of a capability whose place is not trusted that
// far is withheld, with the reason in the error's place ([Entry.Withheld]).
func (c *Catalog) Detail(ctx context.Context, e *Entry) (capability.Detail, error) {
	d, err := c.Inspect(ctx, e)
	if err != nil {
		return capability.Detail{}, err
	}
	if e.Withheld != "" {
		d.Body, d.Usage = "", ""
	}
	if c.cfg.SeedSanitizer {
		if d.Body, err = untrusted.SeedSanitize(d.Body); err != nil {
			return capability.Detail{}, &capability.Error{
				Kind: capability.Denied, Op: "show", Target: string(e.ID), Err: err,
				Rule: "catalog.sanitizer: seed", Fix: "change the text, or set catalog.sanitizer to reveal",
			}
		}
	}
	return d, nil
}

// A referrer is a source that holds documents which are read on demand.
type referrer interface {
	Reference(d capability.Document) (string, error)
}

// Reference reads the deep reference of the instance. It is shown only on
// request.
func (c *Catalog) Reference() (string, error) {
	missing := &capability.Error{
		Kind: capability.NotFound, Op: "read", Target: "the reference", Fix: "put a SYSTEM_ARCHITECTURE.md beside your capabilities",
	}
	d, ok := c.Snapshot().Document(capability.Reference, capability.TrustRemote)
	if !ok {
		return "", missing
	}
	for _, s := range *c.sources.Load() {
		if r, ok := s.(referrer); ok && s.Name() == d.Origin.Source {
			return r.Reference(d)
		}
	}
	return "", missing
}

// Inspect is Detail for the person who runs Ken: nothing is withheld or
// sanitised. Its result must not reach a model.
func (c *Catalog) Inspect(ctx context.Context, e *Entry) (capability.Detail, error) {
	for _, s := range *c.sources.Load() {
		if s.Name() != e.Origin.Source {
			continue
		}
		d, ok := s.(capability.Detailer)
		if !ok {
			return capability.Detail{}, nil
		}
		return d.Detail(ctx, e.Capability)
	}
	return capability.Detail{}, &capability.Error{
		Kind: capability.NotFound, Op: "read", Target: string(e.ID),
		Err: fmt.Errorf("source %q is not part of this catalog", e.Origin.Source),
	}
}
