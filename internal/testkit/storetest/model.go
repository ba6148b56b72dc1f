package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/store"
)

// A machine does random things with two actors and with a map, which must
// agree; and so must what a watch tells, put together.
type machine struct {
	a, b    actor
	root    string // of this run
	model   map[string]entry
	gone    map[string]int64 // versions that were
	version int64
	changes <-chan store.Change
	told    map[string]entry
}

type entry struct {
	value   string
	version int64
}

func model(t *testing.T, a, b actor) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &machine{a: a, b: b, root: fmt.Sprintf("run%d/", run), model: map[string]entry{}, gone: map[string]int64{}, told: map[string]entry{}}
		changes, stop := b.watch(m.root, store.FromNow)
		defer stop()
		m.changes = changes
		for range rapid.IntRange(1, 12).Draw(rt, "actions") {
			switch rapid.IntRange(0, 5).Draw(rt, "action") {
			case 0:
				m.get(rt)
			case 1:
				m.scan(rt)
			default:
				m.apply(rt)
			}
		}
		m.settle(t, rt)
	})
}

func (m *machine) actor(rt *rapid.T) actor {
	if rapid.Bool().Draw(rt, "second") {
		return m.b
	}
	return m.a
}

func (m *machine) key(rt *rapid.T) string {
	return m.root + rapid.SampledFrom([]string{"a", "a/b", "a/c", "ab", "b", "b/1"}).Draw(rt, "key")
}

func (m *machine) apply(rt *rapid.T) {
	var steps []step
	next := maps.Clone(m.model)
	gone := maps.Clone(m.gone)
	var conflict *store.Conflict
	changed := false
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "a/b", "a/c", "ab", "b", "b/1"}), 0, 3, rapid.ID[string]).Draw(rt, "on") {
		key = m.root + key
		have := m.model[key].version
		want := rapid.SampledFrom([]int64{0, have, have, have, m.gone[key]}).Draw(rt, "want")
		steps = append(steps, at(key, want))
		if want != have && conflict == nil {
			conflict = &store.Conflict{Key: key, Want: want, Have: have}
		}
	}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "a/b", "a/c", "ab", "b", "b/1"}), 0, 4, rapid.ID[string]).Draw(rt, "write") {
		key = m.root + key
		value := rapid.StringN(0, 8, -1).Draw(rt, "value")
		old, was := next[key]
		if was {
			gone[key] = old.version
		}
		switch rapid.IntRange(0, 5).Draw(rt, "how") {
		case 0, 1:
			steps = append(steps, drop(key))
			changed = changed || was
			delete(next, key)
		case 2: // gone at once
			steps = append(steps, putFor(key, value, time.Microsecond))
			changed = true
			delete(next, key)
		case 3:
			steps = append(steps, putFor(key, value, time.Hour))
			changed = true
			next[key] = entry{value, -1}
		default:
			steps = append(steps, put(key, value))
			changed = true
			next[key] = entry{value, -1}
		}
	}
	version, err := m.actor(rt).apply(steps...)
	if conflict != nil {
		var got *store.Conflict
		if !errors.As(err, &got) || *got != *conflict {
			rt.Fatalf("Apply(%+v) = %v, want %v", steps, err, conflict)
		}
		return
	}
	if err != nil || version < m.version || changed && version == m.version {
		rt.Fatalf("Apply(%+v) = %d, %v after version %d, changed %v", steps, version, err, m.version, changed)
	}
	for key, e := range next {
		if e.version == -1 {
			next[key] = entry{e.value, version}
		}
	}
	m.model, m.gone, m.version = next, gone, version
}

func (m *machine) get(rt *rapid.T) {
	key := m.key(rt)
	item, ok, err := m.actor(rt).get(key)
	want, there := m.model[key]
	if err != nil || ok != there || ok && (entry{string(item.Value), item.Version}) != want {
		rt.Fatalf("Get(%s) = %q at %d, %v, %v; want %+v, %v", key, item.Value, item.Version, ok, err, want, there)
	}
}

func (m *machine) scan(rt *rapid.T) {
	prefix := m.root + rapid.SampledFrom([]string{"", "a", "a/", "b", "c"}).Draw(rt, "prefix")
	r := store.Range{Limit: rapid.IntRange(0, 3).Draw(rt, "limit")}
	if rapid.Bool().Draw(rt, "from") {
		r.After = m.key(rt)
	}
	items, err := m.actor(rt).scan(prefix, r)
	if err != nil {
		rt.Fatal(err)
	}
	var got, want []string
	for _, item := range items {
		got = append(got, fmt.Sprintf("%s@%d=%q", item.Key, item.Version, item.Value))
	}
	for _, key := range slices.Sorted(maps.Keys(m.model)) {
		if strings.HasPrefix(key, prefix) && key > r.After && (r.Limit == 0 || len(want) < r.Limit) {
			want = append(want, fmt.Sprintf("%s@%d=%q", key, m.model[key].version, m.model[key].value))
		}
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("Scan(%s, %+v) = %v, want %v", prefix, r, got, want)
	}
}

// settle waits until the watch has told all, and compares.
func (m *machine) settle(t *testing.T, rt *rapid.T) {
	end := m.root + "end"
	if _, err := m.a.apply(put(end, "")); err != nil {
		rt.Fatal(err)
	}
	last := int64(0)
	for {
		c := next(t, m.changes)
		if c.Version < last {
			rt.Fatalf("the watch told version %d after %d", c.Version, last)
		}
		last = c.Version
		if c.Key == end {
			break
		}
		if c.Gone {
			delete(m.told, c.Key)
		} else {
			m.told[c.Key] = entry{string(c.Value), c.Version}
		}
	}
	if !maps.Equal(m.told, m.model) {
		rt.Fatalf("the watch told %v, want %v", m.told, m.model)
	}
}
