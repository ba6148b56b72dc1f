package pin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"ken/internal/coldsort"
	"ken/internal/store"
)

// A Waiting is a tool that waits for a person.
type Waiting struct {
	Tool  string    `json:"tool"` // its own name, from outside
	State State     `json:"state"`
	Hash  string    `json:"hash"` // what Accept needs when a person agrees
	Since time.Time `json:"since"`

	// Differences are from what was accepted; of a new tool they are all that
	// it says.
	Differences []Difference `json:"differences"`
}

// Pending returns what waits for a person at a server, by name.
func (d *Desk) Pending(ctx context.Context, server string) ([]Waiting, error) {
	b, err := d.read(ctx, server)
	if err != nil {
		return nil, unavailable("read pending reviews", server, err)
	}
	var out []Waiting
	for _, tool := range slices.Sorted(maps.Keys(b.Waiting)) {
		w := b.Waiting[tool]
		one := Waiting{Tool: tool, State: Added, Hash: w.Hash, Since: w.Since}
		now, err := d.text(ctx, server, w.Hash)
		if err != nil {
			return out, unavailable("read pending reviews", server, err)
		}
		var old []Tool
		pin := b.Pins[tool]
		if pin != nil {
			one.State = Changed
			if old, err = d.text(ctx, server, pin.Hash); err != nil {
				return out, unavailable("read pending reviews", server, err)
			}
		}
		one.Differences = differences(pin != nil, old, now)
		out = append(out, one)
	}
	return out, nil
}

// Revision is a number that changes whenever something about a server is
// written: what waits, what was accepted, that it was forgotten. It costs one
// look into the store.
func (d *Desk) Revision(ctx context.Context, server string) (int64, error) {
	mark, _, err := d.store.Get(ctx, markKey(server))
	if err != nil {
		return 0, unavailable("read the pins", server, err)
	}
	return mark.Version, nil
}

// A Server is how a server stands.
type Server struct {
	Key      string    `json:"key"`
	Name     string    `json:"name"`
	Place    string    `json:"place,omitempty"`
	First    time.Time `json:"first"`    // when it was first listed, and trusted
	Accepted int       `json:"accepted"` // tools, also those that are not listed now
	New      int       `json:"new"`
	Changed  int       `json:"changed"`
}

// List returns every server that has pins, by name. What cannot be read is in the
// error, beside the rest.
func (d *Desk) List(ctx context.Context) ([]Server, error) {
	var out []Server
	var errs []error
	for item, err := range d.store.Scan(ctx, booksPrefix, store.Range{}) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		b, err := decodeBook(item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s := Server{Key: b.Server, Name: ServerName(b.Server), Place: serverPlace(b.Server), First: b.First, Accepted: len(b.Pins)}
		for tool := range b.Waiting {
			if b.Pins[tool] == nil {
				s.New++
			} else {
				s.Changed++
			}
		}
		out = append(out, s)
	}
	coldsort.By(out, func(a, b Server) int { return strings.Compare(a.Key, b.Key) })
	return out, errors.Join(errs...)
}
