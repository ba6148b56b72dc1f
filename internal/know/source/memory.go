package source

import (
	"context"
	"iter"
	"slices"
	"sync"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/know/source/seal"
)

// A Memory is a source whose capabilities the program itself puts in, such as
// functions of a host program and tools made at run time. Its zero value is
// not usable; see [NewMemory].
type Memory struct {
	name  string
	trust capability.Trust

	mu      sync.Mutex
	list    []*capability.Capability
	loaded  []*capability.Capability // what Load gave last; nil before
	details map[capability.ID]capability.Detail
	changed chan struct{} // closed and replaced at each change
}

// NewMemory makes an empty Memory.
func NewMemory(name string, trust capability.Trust) *Memory {
	return &Memory{
		name: name, trust: trust,
		details: map[capability.ID]capability.Detail{}, changed: make(chan struct{}),
	}
}

// Name returns the source's name.
func (m *Memory) Name() string { return m.name }

// Put adds a capability, or replaces the one of the same id. The capability is
// copied and completed; the caller's value is not touched. One that lives only
// as long as a session (Meta "tier" is "session") is not taken, and Put says
// so.
func (m *Memory) Put(c capability.Capability, d capability.Detail) (taken bool) {
	if c.Meta["tier"] == "session" {
		return false
	}
	if c.Kind == "" {
		c.Kind = capability.KindTool
	}
	c.Origin = capability.Origin{Source: m.name, Format: "memory", Location: capability.Local}
	c.Trust = m.trust
	c.Findings = nil
	seal.Seal(&c, d)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(slices.Clone(m.list), func(old *capability.Capability) bool { return old.ID == c.ID })
	m.list = append(m.list, &c)
	m.details[c.ID] = d
	m.announceLocked()
	return true
}

// Remove takes a capability out and reports whether it was there.
func (m *Memory) Remove(id capability.ID) bool {
	id = capability.ID(norm.NFC.String(string(id)))
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.list)
	m.list = slices.DeleteFunc(slices.Clone(m.list), func(c *capability.Capability) bool { return c.ID == id })
	delete(m.details, id)
	if len(m.list) == n {
		return false
	}
	m.announceLocked()
	return true
}

func (m *Memory) announceLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Load returns what is in the source now.
func (m *Memory) Load(context.Context) (capability.Batch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loaded = append([]*capability.Capability{}, m.list...)
	return capability.Batch{Capabilities: m.list}, nil
}

// Watch yields a batch after each change. Nothing is debounced: the program
// knows what it does.
func (m *Memory) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		m.mu.Lock()
		seen := m.loaded
		m.mu.Unlock()
		for {
			m.mu.Lock()
			list, changed := m.list, m.changed
			m.mu.Unlock()
			// The first look catches what came between Load and Watch.
			if seen == nil || !slices.Equal(seen, list) {
				seen = append([]*capability.Capability{}, list...)
				if !yield(capability.Batch{Capabilities: list}, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

// Detail returns the schema and body of a capability.
func (m *Memory) Detail(_ context.Context, c *capability.Capability) (capability.Detail, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.details[c.ID]
	if !ok {
		return capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "read", Target: string(c.ID)}
	}
	return d, seal.Unchanged(c, d)
}
