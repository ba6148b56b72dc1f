package pin

import (
	"context"
	"encoding/json"
	"slices"

	"ken/capability"
	"ken/internal/store"
)

// What is kept of texts. Where one is larger, or all of them together are, the
// tool is still pinned, and a difference can only be told as such.
const (
	keepTool   = 1 << 20
	keepServer = 32 << 20

	// mostWaiting bounds what waits for a person. Past it, what is not listed
	// at the moment waits no longer, and is new again when it comes back.
	mostWaiting = 10_000

	// oneBatch and oneBatchBytes are how many texts are written in one batch.
	oneBatch      = 400
	oneBatchBytes = 4 << 20
)

// A change is what is about to become of a book.
type change struct {
	was, next *book
	names     *names // nil: no name is given
	namesAt   int64
	texts     []text
	size      int      // of texts
	drop      []string // hashes of texts that are not needed any more
}

type text struct {
	hash  string
	value []byte
}

// keep adds the text of an entry, unless it is too large.
func (c *change) keep(e *entry) {
	value, err := encodeText(e.tools)
	if err != nil || len(value) > keepTool || c.size+len(value) > keepServer {
		return
	}
	c.texts = append(c.texts, text{e.hash, value})
	c.size += len(value)
}

// expose assigns a tool its exposed name, once. Anything else has none.
func (d *Desk) expose(ctx context.Context, c *change, tool string) (string, error) {
	if isOffers(c.next.Server) {
		return "", nil
	}
	if c.names == nil {
		var err error
		if c.names, c.namesAt, err = d.readNames(ctx); err != nil {
			return "", err
		}
	}
	return c.names.take(c.next.Server, tool, d.conf.Plain(), d.conf.Reserved), nil
}

// settle writes what a listing says that is not in the book yet.
func (d *Desk) settle(ctx context.Context, b *book, l listing, p Policy) (*book, error) {
	first := b.version == 0
	c := &change{was: b, next: b.copy()}
	if first {
		c.next.First = d.now()
	}
	var accepted, noticed []string
	for i := range l {
		e := &l[i]
		pin, w := c.next.Pins[e.name], c.next.Waiting[e.name]
		switch {
		case pin != nil && pin.Hash == e.hash:
			if w != nil {
				delete(c.next.Waiting, e.name)
				c.drop = append(c.drop, w.Hash)
			}
		case first || p.rule(pin) == Accept:
			if err := d.acceptEntry(ctx, c, e, first); err != nil {
				return nil, err
			}
			accepted = append(accepted, e.name)
		case w == nil || w.Hash != e.hash:
			if err := d.quarantine(ctx, c, e); err != nil {
				return nil, err
			}
			noticed = append(noticed, e.name)
		}
	}
	c.bound(l)
	if len(noticed) > 0 {
		// Before the write: a record too many is better than none.
		if err := d.conf.Log(ctx, c.noticed(noticed)); err != nil {
			return nil, err
		}
	}
	if len(accepted) == 0 {
		return d.write(ctx, c)
	}
	word := wordPolicy
	if first {
		word = wordFirst
	}
	return d.recorded(ctx, c, word, capability.Principal{}, accepted)
}

// acceptEntry pins an entry as it is, for the first listing or for a policy.
func (d *Desk) acceptEntry(ctx context.Context, c *change, e *entry, first bool) error {
	pin := &pinned{Hash: e.hash, Raw: e.raw}
	if !first {
		pin.By, pin.At = "mcp.pins", d.now()
	}
	if was := c.next.Pins[e.name]; was != nil {
		pin.Exposed = was.Exposed
		c.drop = append(c.drop, was.Hash)
	} else {
		var err error
		if pin.Exposed, err = d.expose(ctx, c, e.name); err != nil {
			return err
		}
	}
	if w := c.next.Waiting[e.name]; w != nil {
		delete(c.next.Waiting, e.name)
		c.drop = append(c.drop, w.Hash)
	}
	c.keep(e)
	c.next.Pins[e.name] = pin
	return nil
}

// quarantine lets an entry wait, in place of what waited under its name.
func (d *Desk) quarantine(ctx context.Context, c *change, e *entry) error {
	w := &waiting{Hash: e.hash, Raw: e.raw, Since: d.now()}
	if was := c.next.Waiting[e.name]; was != nil {
		c.drop = append(c.drop, was.Hash)
	}
	var old []Tool
	pin := c.next.Pins[e.name]
	if pin != nil {
		var err error
		if old, err = d.text(ctx, c.next.Server, pin.Hash); err != nil {
			return err
		}
	}
	w.Diff = short(differences(pin != nil, old, e.tools))
	c.keep(e)
	c.next.Waiting[e.name] = w
	return nil
}

// bound keeps a server that lists other names each time from filling the store.
func (c *change) bound(l listing) {
	if len(c.next.Waiting) <= mostWaiting {
		return
	}
	listed := make(map[string]bool, len(l))
	for i := range l {
		listed[l[i].name] = true
	}
	for name, w := range c.next.Waiting {
		if !listed[name] {
			delete(c.next.Waiting, name)
			c.drop = append(c.drop, w.Hash)
		}
	}
}

// write makes a change durable: the book, its mark and the names in one batch,
// under the precondition that they were not changed since they were read. Texts
// that do not fit into it are written before, under their hashes, so that no
// book ever speaks of one that is still to come.
func (d *Desk) write(ctx context.Context, c *change) (*book, error) {
	value, err := json.Marshal(c.next)
	if err != nil {
		return nil, err
	}
	server := c.next.Server
	if err := d.writeTexts(ctx, c); err != nil {
		return nil, err
	}
	var b store.Batch
	for _, t := range c.texts {
		b.Put(textKey(server, t.hash), t.value)
	}
	for _, hash := range c.idle() {
		b.Delete(textKey(server, hash))
	}
	if c.names != nil {
		if err := c.names.put(&b, c.namesAt); err != nil {
			return nil, err
		}
	}
	b.At(bookKey(server), c.was.version)
	b.Put(bookKey(server), value)
	b.Put(markKey(server), []byte("1"))
	version, err := d.store.Apply(ctx, &b)
	if err != nil {
		return nil, err
	}
	c.next.version = version
	d.keep(c.next)
	return c.next, nil
}

// writeTexts writes texts until the rest fits into the batch of the book.
func (d *Desk) writeTexts(ctx context.Context, c *change) error {
	for len(c.texts) > oneBatch || c.size > oneBatchBytes {
		var b store.Batch
		n, size := 0, 0
		for n < len(c.texts) && n < oneBatch && (n == 0 || size+len(c.texts[n].value) <= oneBatchBytes) {
			b.Put(textKey(c.next.Server, c.texts[n].hash), c.texts[n].value)
			size += len(c.texts[n].value)
			n++
		}
		if _, err := d.store.Apply(ctx, &b); err != nil {
			return err
		}
		c.texts, c.size = c.texts[n:], c.size-size
	}
	return nil
}

// idle returns the texts that the new book does not speak of, as many as a batch
// takes: the rest goes with the server.
func (c *change) idle() []string {
	needed := map[string]bool{}
	for _, p := range c.next.Pins {
		needed[p.Hash] = true
	}
	for _, w := range c.next.Waiting {
		needed[w.Hash] = true
	}
	slices.Sort(c.drop)
	out := slices.DeleteFunc(slices.Compact(c.drop), func(hash string) bool { return needed[hash] })
	return out[:min(len(out), oneBatch)]
}
