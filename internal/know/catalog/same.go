package catalog

import (
	"reflect"
	"slices"

	"ken/capability"
)

// A loadedBatch is what a source brought last.
type loadedBatch struct {
	// batch has the capability of before in the place of each that is no
	// different, so that what was made of it stays good.
	batch capability.Batch

	given []*capability.Capability // those of batch, as the source gave them
}

// takeLocked keeps what a source brought, or why it could not, and reports
// whether that is anything new.
func (c *Catalog) takeLocked(name string, b capability.Batch, err error) (news bool) {
	before, had := c.batches[name]
	was, broken := c.broken[name]
	if err == nil {
		now := before.next(b)
		c.batches[name] = now
		delete(c.broken, name)
		return !had || broken || !now.same(before)
	}
	p := capability.Problem{Code: "source-unreadable", Origin: capability.Origin{Source: name}, Message: err.Error()}
	if had {
		p.Fix = "what it held before is still used"
	}
	c.broken[name] = p
	return !broken || p != was
}

// next returns what is loaded after t. Sources give what stayed by the same
// pointers while they watch, so only what lies between the first and the last
// new pointer is compared.
func (t loadedBatch) next(b capability.Batch) loadedBatch {
	next := loadedBatch{batch: b, given: b.Capabilities}
	first, most := 0, min(len(t.given), len(next.given))
	for first < most && t.given[first] == next.given[first] {
		first++
	}
	last := 0 // counted from the end
	for last < most-first && t.given[len(t.given)-1-last] == next.given[len(next.given)-1-last] {
		last++
	}
	if first+last == len(t.given) { // there is nothing to compare with, as at the start
		next.batch.Capabilities = slices.Concat(t.batch.Capabilities[:first], next.given[first:len(next.given)-last], t.batch.Capabilities[first:])
		return next
	}
	// Of several with one id the first is compared with the first, and so on.
	type nth struct {
		id capability.ID
		n  int
	}
	old, met := map[nth]int{}, map[capability.ID]int{}
	for i, cp := range t.given[first : len(t.given)-last] {
		old[nth{cp.ID, met[cp.ID]}] = first + i
		met[cp.ID]++
	}
	clear(met)
	list := make([]*capability.Capability, 0, len(next.given))
	list = append(list, t.batch.Capabilities[:first]...)
	for _, cp := range next.given[first : len(next.given)-last] {
		i, ok := old[nth{cp.ID, met[cp.ID]}]
		met[cp.ID]++
		if ok && (t.given[i] == cp || t.given[i].Hash == cp.Hash && reflect.DeepEqual(t.given[i], cp)) {
			cp = t.batch.Capabilities[i]
		}
		list = append(list, cp)
	}
	next.batch.Capabilities = append(list, t.batch.Capabilities[len(t.given)-last:]...)
	return next
}

func (t loadedBatch) same(before loadedBatch) bool {
	x, y := t.batch, before.batch
	return slices.Equal(x.Capabilities, y.Capabilities) && slices.EqualFunc(x.Presets, y.Presets, samePreset) &&
		slices.Equal(x.Documents, y.Documents) && slices.Equal(x.Problems, y.Problems)
}

func samePreset(x, y capability.Preset) bool {
	return x.Name == y.Name && x.Origin == y.Origin && slices.Equal(x.Members, y.Members)
}

// same reports whether two snapshots of one catalog have the same content.
func (s *Snapshot) same(other *Snapshot) bool {
	return slices.EqualFunc(s.entries, other.entries, sameEntry) && slices.EqualFunc(s.shadowed, other.shadowed, sameEntry) &&
		slices.EqualFunc(s.presets, other.presets, samePreset) && slices.Equal(s.documents, other.documents) &&
		slices.EqualFunc(s.reported, other.reported, slices.Equal[[]capability.Problem]) && slices.Equal(s.problems, other.problems)
}

func sameEntry(x, y *Entry) bool {
	return x == y || x.Capability == y.Capability && x.State == y.State && x.Available == y.Available && x.SideEffects == y.SideEffects &&
		x.Withheld == y.Withheld && x.Off == y.Off && x.Standing == y.Standing && slices.Equal(x.Reasons, y.Reasons) &&
		slices.Equal(x.Missing, y.Missing) && slices.Equal(x.Requires, y.Requires)
}
