package pin

import "slices"

// A listing is what a server lists, an entry for each name in the order in
// which they first came.
type listing []entry

type entry struct {
	name  string
	tools []Tool // more than one where the server lists the name again
	raw   sum
	hash  string
}

func group(tools []Tool) listing {
	l := make(listing, 0, len(tools))
	at := make(map[string]int, len(tools))
	for i := range tools {
		name := tools[i].Name
		if j, twice := at[name]; twice {
			// Clipped, so that the caller's slice is not written to.
			l[j].tools = append(slices.Clip(l[j].tools), tools[i])
			continue
		}
		at[name] = len(l)
		l = append(l, entry{name: name, tools: tools[i : i+1 : i+1]})
	}
	return l
}

// name sets the hash of every entry. One whose bytes are those that were pinned,
// or wait, or were seen the last time, is not decoded.
func (d *Desk) name(b *book, l listing) {
	d.mu.Lock()
	known := d.hashes[b.Server]
	d.mu.Unlock()
	used := map[sum]string{}
	var room []byte
	for i := range l {
		e := &l[i]
		e.raw, room = rawSum(room, e.tools)
		if p := b.Pins[e.name]; p != nil && p.Raw == e.raw {
			e.hash = p.Hash
			continue
		}
		if w := b.Waiting[e.name]; w != nil && w.Raw == e.raw {
			e.hash = w.Hash
			continue
		}
		hash, ok := known[e.raw]
		if !ok {
			hash = hashOf(e.tools)
		}
		e.hash, used[e.raw] = hash, hash
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.hashes) >= mostServers {
		clear(d.hashes)
	}
	if len(used) == 0 {
		delete(d.hashes, b.Server)
	} else {
		d.hashes[b.Server] = used
	}
}

// settled says that the book already has all that the listing and the policy
// have to say.
func (b *book) settled(l listing, p Policy) bool {
	if b.version == 0 {
		return false
	}
	for i := range l {
		e := &l[i]
		pin, w := b.Pins[e.name], b.Waiting[e.name]
		switch {
		case pin != nil && pin.Hash == e.hash:
			if w != nil {
				return false // it is back
			}
		case w == nil || w.Hash != e.hash || p.rule(pin) == Accept:
			return false
		}
	}
	return true
}

// rule returns the rule for a tool that is not what was accepted.
func (p Policy) rule(pin *pinned) Rule {
	if pin == nil {
		return p.New
	}
	return p.Changed
}

func (b *book) verdicts(l listing) map[string]Verdict {
	out := make(map[string]Verdict, len(l))
	for i := range l {
		e := &l[i]
		v := Verdict{State: Added, Hash: e.hash}
		pin := b.Pins[e.name]
		if pin != nil {
			v.State, v.Exposed = Changed, pin.Exposed
			if pin.Hash == e.hash {
				v.State = Accepted
			}
		}
		if w := b.Waiting[e.name]; v.State != Accepted && w != nil && w.Hash == e.hash {
			v.Diff = w.Diff
		}
		out[e.name] = v
	}
	return out
}
