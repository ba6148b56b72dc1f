package ranking_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/know/index"
	"ken/internal/testkit"
	"ken/internal/testkit/findtest"
)

// counting is an Indexer that says how often it was asked.
type counting struct{ builds atomic.Int32 }

func (c *counting) Build(list []*capability.Capability) *index.Segment {
	c.builds.Add(1)
	return index.Build(list)
}

// fixed is a source of some capabilities.
type fixed struct {
	name string
	list []*capability.Capability
}

func (f fixed) Name() string { return f.name }
func (f fixed) Load(context.Context) (capability.Batch, error) {
	return capability.Batch{Capabilities: f.list}, nil
}

func described(name, description string) *capability.Capability {
	return &capability.Capability{
		ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name,
		Description: description, Category: "general", Trust: capability.TrustUser, Hash: "sha256:" + name,
	}
}

// loaded returns a catalog of some capabilities, of the source a.
func loaded(t *testing.T, indexer ranking.Indexer, list ...*capability.Capability) *catalog.Catalog {
	t.Helper()
	cfg := catalog.Config{Sources: []capability.Source{fixed{"a", list}}}
	if indexer != nil {
		cfg.Attachment = ranking.IndexedBy(indexer)
	}
	return findtest.Catalog(t, cfg)
}

// finds returns the ids that a search of a snapshot finds.
func finds(s *catalog.Snapshot, text string) []string {
	x := ranking.IndexOf(s)
	var out []string
	for _, h := range ranking.NewView(ranking.Part{Segment: x.Segment}).Search(ranking.Query{Text: text}, 50, nil).Hits {
		out = append(out, string(s.Entries()[x.Ordinal(h.Slot)].ID))
	}
	return out
}

// agree says where the slots of an index and the entries of its snapshot do not
// agree.
func agree(s *catalog.Snapshot) error {
	x := ranking.IndexOf(s)
	used := map[int]bool{}
	for ordinal, e := range s.Entries() {
		slot := x.Slot(ordinal)
		if x.Segment.At(slot) != e.Capability {
			return fmt.Errorf("slot %d of entry %d has %v, want %s", slot, ordinal, x.Segment.At(slot), e.ID)
		}
		if x.Ordinal(slot) != ordinal {
			return fmt.Errorf("Ordinal(%d) = %d, want %d", slot, x.Ordinal(slot), ordinal)
		}
		used[slot] = true
	}
	for slot := range x.Segment.Len() {
		if !used[slot] && (x.Segment.At(slot) != nil || x.Ordinal(slot) != -1) {
			return fmt.Errorf("slot %d has %v, ordinal %d, want it free", slot, x.Segment.At(slot), x.Ordinal(slot))
		}
	}
	return nil
}

// TestIndexFollowsOneChange: what did not change stays in its slot, and the older
// snapshot finds what it did.
func TestIndexFollowsOneChange(t *testing.T) {
	var list []*capability.Capability
	for i := range 40 {
		list = append(list, described(fmt.Sprintf("m%02d", i), fmt.Sprintf("gauge number%c", 'a'+i%26)))
	}
	indexer := &counting{}
	c := loaded(t, indexer, list...)
	before := c.Snapshot()
	was := ranking.IndexOf(before)
	next := slices.Delete(slices.Clone(list), 5, 6)
	next[2] = described("m02", "thermometer")
	after := c.Replace("a", capability.Batch{Capabilities: append(next, described("a-first", "hygrometer"))}) // which shifts every ordinal
	now := ranking.IndexOf(after)
	for i, e := range after.Entries() {
		if old, ok := before.Ordinal(e.ID); ok && e.ID != "tool:m02" && was.Slot(old) != now.Slot(i) {
			t.Errorf("%s moved from slot %d to %d", e.ID, was.Slot(old), now.Slot(i))
		}
	}
	if err := errors.Join(agree(before), agree(after)); err != nil {
		t.Error(err)
	}
	for s, want := range map[*catalog.Snapshot][]string{before: {"tool:m02", "tool:m28"}, after: {"tool:m28"}} {
		if got := finds(s, "numberc"); !slices.Equal(got, want) {
			t.Errorf("version %d finds(numberc) = %v, want %v", s.Version(), got, want)
		}
	}
	if n := indexer.builds.Load(); n != 1 {
		t.Errorf("%d indexes were built, want 1: a change is none", n)
	}
}

// TestIndexWhenNeeded: a snapshot that nobody searches costs no index, and the
// next one that somebody searches starts from the last index there was.
func TestIndexWhenNeeded(t *testing.T) {
	indexer := &counting{}
	list := []*capability.Capability{described("a", "gauge"), described("b", "valve"), described("c", "pump")}
	c := loaded(t, indexer, list...)
	for i := range 5 {
		c.Replace("a", capability.Batch{Capabilities: append(slices.Clone(list), described("d", fmt.Sprint("turbine ", i)))})
	}
	if n := indexer.builds.Load(); n != 0 {
		t.Fatalf("%d indexes were built before anybody searched, want 0", n)
	}
	first := ranking.IndexOf(c.Snapshot())
	for i := range 5 {
		c.Replace("a", capability.Batch{Capabilities: append(slices.Clone(list), described("d", fmt.Sprint("rotor ", i)))})
	}
	if got := slices.Concat(finds(c.Snapshot(), "rotor"), finds(c.Snapshot(), "turbine")); !slices.Equal(got, []string{"tool:d"}) {
		t.Errorf("finds(rotor) and finds(turbine) = %v, want d once", got)
	}
	if n := indexer.builds.Load(); n != 1 {
		t.Errorf("%d indexes were built, want 1 and changes of it", n)
	}
	if x := ranking.IndexOf(c.Snapshot()); x.Segment.Len() != first.Segment.Len() {
		t.Errorf("the index has %d slots, want %d: freed ones are used again", x.Segment.Len(), first.Segment.Len())
	}
	// A change of nothing that is searched shares all.
	same := c.Snapshot()
	after := c.Replace("b", capability.Batch{Problems: []capability.Problem{{Code: "x"}}})
	if after == same || ranking.IndexOf(after).Segment != ranking.IndexOf(same).Segment {
		t.Error("a snapshot of the same capabilities has another segment")
	}
	// One of nearly everything is built anew.
	var others []*capability.Capability
	for i := range 60 {
		others = append(others, described(fmt.Sprint("other", i), "gauge"))
	}
	if err := agree(c.Replace("a", capability.Batch{Capabilities: others})); err != nil {
		t.Error(err)
	}
	if n := indexer.builds.Load(); n != 2 {
		t.Errorf("%d indexes were built, want 2", n)
	}
}

// TestIndexedAgreesAfterAnyChanges: whatever changes, and whichever snapshots
// are searched, slots and ordinals agree and the search finds what a new index
// would.
func TestIndexedAgreesAfterAnyChanges(t *testing.T) {
	texts := []string{"gauge", "valve pump", "reads a gauge", "der die das Ventil und mit", "turbine_blade", ""}
	cfg := catalog.Config{Sources: []capability.Source{fixed{name: "a"}, fixed{name: "b"}}}
	rapid.Check(t, func(t *rapid.T) {
		c := testkit.Must(catalog.New(cfg))(t)
		current := map[string]map[string]*capability.Capability{"a": {}, "b": {}} // by source and name
		last := map[string]capability.Batch{}
		var searched []*catalog.Snapshot
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			source := rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "source")
			now := current[source]
			for range rapid.IntRange(0, 6).Draw(t, "edits") {
				name := fmt.Sprintf("n%02d", rapid.IntRange(0, 30).Draw(t, "name"))
				if rapid.Bool().Draw(t, "remove") {
					delete(now, name)
				} else {
					now[name] = described(name, rapid.SampledFrom(texts).Draw(t, "text"))
				}
			}
			var batch capability.Batch
			for _, name := range slices.Sorted(maps.Keys(now)) {
				if rapid.Bool().Draw(t, "read again") {
					again := *now[name]
					now[name] = &again
				}
				batch.Capabilities = append(batch.Capabilities, now[name])
			}
			last[source] = batch
			s := c.Replace(source, batch)
			if !rapid.Bool().Draw(t, "searched") {
				continue
			}
			searched = append(searched, s)
			fresh := testkit.Must(catalog.New(cfg))(t)
			fresh.Replace("a", last["a"])
			anew := fresh.Replace("b", last["b"])
			for _, text := range texts {
				if got, want := finds(s, text), finds(anew, text); !slices.Equal(got, want) {
					t.Fatalf("finds(%q) = %v, want %v", text, got, want)
				}
			}
		}
		for i, s := range searched {
			if err := agree(s); err != nil {
				t.Fatalf("searched snapshot %d: %v", i, err)
			}
		}
	})
}

func TestIndexFromManyGoroutines(t *testing.T) {
	indexer := &counting{}
	c := loaded(t, indexer, described("a", "gauge"), described("b", "valve"))
	var wg sync.WaitGroup
	for range 8 { // whoever needs the first one first makes it, for all
		wg.Go(func() { ranking.IndexOf(c.Snapshot()) })
	}
	wg.Wait()
	if n := indexer.builds.Load(); n != 1 {
		t.Errorf("%d indexes were built of one snapshot, want 1", n)
	}
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				s := c.Snapshot()
				if g == 0 {
					s = c.Replace("more", capability.Batch{Capabilities: []*capability.Capability{described("c", fmt.Sprint("pump ", i))}})
				}
				if x, y := ranking.IndexOf(s), ranking.IndexOf(s); x != y {
					t.Error("one snapshot has two indexes")
				}
				if err := agree(s); err != nil {
					t.Error(err)
				}
				if got := finds(s, "gauge"); !slices.Equal(got, []string{"tool:a"}) {
					t.Errorf("finds(gauge) = %v, want a", got)
				}
			}
		})
	}
	wg.Wait()
	if n := indexer.builds.Load(); n != 1 {
		t.Errorf("%d indexes were built, want 1", n)
	}
}

// letters is an embedder that counts the letters of a text.
type letters struct {
	model string
	dims  int
	blank bool // it gives zeros
	short bool // it gives fewer than it was asked for
	err   error
	asked []string
	after func() // each call
}

func (l *letters) Model() string   { return l.model }
func (l *letters) Dimensions() int { return l.dims }
func (l *letters) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.asked = append(l.asked, texts...)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, l.dims)
		for _, r := range text {
			if !l.blank {
				out[i][int(r)%l.dims] += 0.1
			}
		}
	}
	if l.after != nil {
		l.after()
	}
	if l.short {
		out = out[1:]
	}
	return out, nil
}

func TestEmbed(t *testing.T) {
	var list []*capability.Capability
	for i := range 150 {
		list = append(list, described(fmt.Sprintf("m%03d", i), "gauge"))
	}
	c := loaded(t, nil, list...)
	vectors := func() int {
		_, n := ranking.IndexOf(c.Snapshot()).Segment.Vectors()
		return n
	}
	one := &letters{model: "one", dims: 16}
	testkit.OK(t, ranking.Embed(t.Context(), c, one))
	if vectors() != 150 || len(one.asked) != 150 {
		t.Errorf("%d vectors after %d texts, want 150 after 150", vectors(), len(one.asked))
	}
	if err := agree(c.Snapshot()); err != nil {
		t.Error(err)
	}
	// Only what changed is read again.
	next := slices.Clone(list)
	next[3] = described("m003", "barometer")
	c.Replace("a", capability.Batch{Capabilities: next})
	one.asked = nil
	testkit.OK(t, ranking.Embed(t.Context(), c, one))
	if len(one.asked) != 1 || !strings.Contains(one.asked[0], "barometer") || vectors() != 150 {
		t.Errorf("after one change %q were read, and %d have vectors; want the barometer and 150", one.asked, vectors())
	}
	// Another model's do not mix with them.
	two := &letters{model: "two", dims: 8}
	testkit.OK(t, ranking.Embed(t.Context(), c, two))
	if model, n := ranking.IndexOf(c.Snapshot()).Segment.Vectors(); model != "two" || n != 150 || len(two.asked) != 150 {
		t.Errorf("%d vectors of %s after %d texts, want 150 of two", n, model, len(two.asked))
	}
}

// TestEmbedMeetsChange: a catalog that changes while texts are read ends with a
// vector for everything.
func TestEmbedMeetsChange(t *testing.T) {
	c := loaded(t, nil, described("a", "gauge"))
	rounds := 0
	e := &letters{model: "one", dims: 4}
	e.after = func() {
		if rounds++; rounds <= 3 {
			ranking.IndexOf(c.Replace("b", capability.Batch{Capabilities: []*capability.Capability{described("b", fmt.Sprint("valve ", rounds))}}))
		}
	}
	testkit.OK(t, ranking.Embed(t.Context(), c, e))
	s := c.Snapshot()
	if _, n := ranking.IndexOf(s).Segment.Vectors(); n != 2 || s.Len() != 2 {
		t.Errorf("%d of %d have vectors, want 2 of 2", n, s.Len())
	}
	if err := agree(s); err != nil {
		t.Error(err)
	}
}

// TestEmbedBroken: an embedder that does not do what it should ends the matter;
// words find as before.
func TestEmbedBroken(t *testing.T) {
	down := errors.New("connection refused")
	for what, e := range map[string]*letters{
		"fails": {model: "m", dims: 4, err: down}, "gives too few": {model: "m", dims: 4, short: true}, "gives zeros": {model: "m", dims: 4, blank: true},
	} {
		c := loaded(t, nil, described("a", "gauge"), described("b", "valve"))
		err := ranking.Embed(t.Context(), c, e)
		if (err == nil) != e.blank || e.err != nil && !errors.Is(err, down) {
			t.Errorf("%s: Embed = %v", what, err)
		}
		if got := finds(c.Snapshot(), "gauge"); !slices.Equal(got, []string{"tool:a"}) {
			t.Errorf("%s: finds(gauge) = %v, want a", what, got)
		}
	}
}

// TestIndexDoesNotWear: a source whose texts change for ever, as those with a
// time in them do, does not make the index grow for ever; and an index that was
// made anew is right about who is where, with its vectors.
func TestIndexDoesNotWear(t *testing.T) {
	words := func(n int) string {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, " %s", strings.Map(func(r rune) rune { return 'a' + r - '0' }, fmt.Sprint(1_000_000+n*1000+i)))
		}
		return b.String()
	}
	stays := []*capability.Capability{described("files", "Reads files"), described("mail", "Sends mail"), described("zip", "Packs files")}
	c := loaded(t, nil, stays...)
	e := &letters{model: "letters", dims: 26}
	testkit.OK(t, ranking.Embed(t.Context(), c, e))
	for n := range 60 {
		s := c.Replace("a", capability.Batch{Capabilities: append(slices.Clone(stays), described("news", "Tells"+words(n)))})
		segment := ranking.IndexOf(s).Segment
		if segment.Fragmented() {
			t.Fatalf("after %d changes the index is fragmented", n)
		}
		testkit.OK(t, agree(s))
		for _, kept := range []string{"tool:files", "tool:mail", "tool:zip"} {
			i, _ := s.Ordinal(capability.ID(kept))
			if !segment.HasVector("letters", ranking.IndexOf(s).Slot(i)) {
				t.Fatalf("after %d changes %s has lost its vector", n, kept)
			}
		}
		if got := finds(s, "reads files"); len(got) == 0 || got[0] != "tool:files" {
			t.Fatalf("after %d changes reads files finds %v", n, got)
		}
	}
}

// TestIndexOfReplacedSnapshot: a search that began before a change and one after it
// make one whole index between them, and each finds what its own snapshot has.
func TestIndexOfReplacedSnapshot(t *testing.T) {
	indexer := &counting{}
	var list []*capability.Capability
	for i := range 40 {
		list = append(list, described(fmt.Sprint("tool", i), fmt.Sprint("does something, number ", i)))
	}
	c := loaded(t, indexer, list...)
	before := c.Snapshot()
	after := c.Replace("a", capability.Batch{Capabilities: append(slices.Clone(list), described("new", "does more"))})
	if before == after {
		t.Fatal("the change made no snapshot")
	}
	for _, s := range []*catalog.Snapshot{before, after} {
		if err := agree(s); err != nil {
			t.Errorf("version %d: %v", s.Version(), err)
		}
	}
	if n := indexer.builds.Load(); n != 1 {
		t.Errorf("%d whole indexes were made, want 1", n)
	}
}
