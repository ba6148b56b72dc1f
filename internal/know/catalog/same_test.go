package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"ken/capability"
)

// copied returns a batch as a source gives it that read everything again.
func copied(b capability.Batch) capability.Batch {
	out := b
	out.Capabilities = nil
	for _, c := range b.Capabilities {
		again := *c
		again.Tags = slices.Clone(c.Tags)
		out.Capabilities = append(out.Capabilities, &again)
	}
	out.Presets, out.Documents, out.Problems = slices.Clone(b.Presets), slices.Clone(b.Documents), slices.Clone(b.Problems)
	return out
}

// TestNothingNew: what says nothing new makes no version, wakes nobody, and
// leaves the index as it is; whatever differs does.
func TestNothingNew(t *testing.T) {
	needy := tool("needy", func(c *capability.Capability) { c.RequiredTools = []string{"one", "nowhere"} })
	src := from("s", tool("one", func(c *capability.Capability) { c.Tags = []string{"x"} }), needy, tool("one"))
	src.batch.Presets = []capability.Preset{{Name: "both", Members: []string{"one", "needy"}}}
	src.batch.Documents = []capability.Document{{Role: capability.Map, Text: "# All"}}
	src.batch.Problems = []capability.Problem{{Code: "bad-file", Message: "it is bad"}}
	change := func(f func(b *capability.Batch)) capability.Batch {
		b := copied(src.batch)
		f(&b)
		return b
	}
	for _, tt := range []struct {
		name  string
		batch capability.Batch
		err   error
		news  bool
	}{
		{name: "the same", batch: src.batch},
		{name: "read again", batch: copied(src.batch)},
		{name: "a tag", batch: change(func(b *capability.Batch) { b.Capabilities[0].Tags[0] = "y" }), news: true},
		{name: "a line", batch: change(func(b *capability.Batch) { b.Capabilities[1].Origin.Line = 9 }), news: true},
		{name: "one less", batch: change(func(b *capability.Batch) { b.Capabilities = b.Capabilities[1:] }), news: true},
		{name: "one that is shadowed", batch: change(func(b *capability.Batch) { b.Capabilities[2].Description = "else" }), news: true},
		{name: "a preset", batch: change(func(b *capability.Batch) { b.Presets[0].Members = []string{"one"} }), news: true},
		{name: "a document", batch: change(func(b *capability.Batch) { b.Documents[0].Text = "# Some" }), news: true},
		{name: "a problem", batch: change(func(b *capability.Batch) { b.Problems[0].Message = "it is worse" }), news: true},
		{name: "no problem", batch: change(func(b *capability.Batch) { b.Problems = nil }), news: true},
		{name: "unreadable", err: errors.New("permission denied"), news: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := loaded(t, Config{Sources: []capability.Source{src}})
			before := c.Snapshot()
			attached := before.Attach(func() Attachment { return &counted{} })
			for _, again := range []bool{false, true} { // the second time it is never new
				c.mu.Lock()
				news := c.takeLocked("s", tt.batch, tt.err)
				c.mu.Unlock()
				if want := tt.news && !again; news != want {
					t.Errorf("takeLocked, again: %v, = %v, want %v", again, news, want)
				}
			}
			c.mu.Lock()
			after := c.rebuildLocked()
			c.mu.Unlock()
			if (after != before) != tt.news || after.Version() != before.Version() && !tt.news {
				t.Errorf("version went from %d to %d; news: %v", before.Version(), after.Version(), tt.news)
			}
			if follows := after.Attach(nil) != attached; follows != tt.news {
				t.Errorf("the snapshot has another attachment: %v; news: %v", follows, tt.news)
			}
		})
	}
}

// TestNewsTogether: sources that have news at once share one snapshot, also where the
// last in line has nothing new.
func TestNewsTogether(t *testing.T) {
	const n = 30
	var sources []capability.Source
	for i := range n {
		sources = append(sources, from(fmt.Sprintf("s%d", i)))
	}
	c := loaded(t, Config{Sources: sources})
	before := c.Snapshot().Version()
	c.mu.Lock()
	var wg sync.WaitGroup
	for i := range n {
		b := capability.Batch{}
		if i > 0 {
			b.Capabilities = []*capability.Capability{tool(fmt.Sprintf("one%d", i))}
		}
		wg.Go(func() { c.news(fmt.Sprintf("s%d", i), b, nil) })
	}
	for c.waiting.Load() < n {
		runtime.Gosched()
	}
	c.mu.Unlock()
	wg.Wait()
	if s := c.Snapshot(); s.Version() != before+1 || s.Len() != n-1 {
		t.Errorf("there are %d capabilities in version %d, want %d in version %d", s.Len(), s.Version(), n-1, before+1)
	}
}

// counted is an attachment that knows how many came before it.
type counted struct{ before int }

func (c *counted) Next() Attachment { return &counted{c.before + 1} }

func TestAttachmentsFollow(t *testing.T) {
	first := &counted{}
	c := loaded(t, Config{Attachment: first})
	same := func() Attachment { t.Error("an attachment is made although there is one"); return nil }
	if got := c.Snapshot().Attach(same); *got.(*counted) != (counted{1}) {
		t.Errorf("after Load the attachment is %v, want the next one", got)
	}
	c = loaded(t, Config{})
	var wg sync.WaitGroup
	got := make([]Attachment, 8)
	for i := range got {
		wg.Go(func() { got[i] = c.Snapshot().Attach(func() Attachment { return &counted{} }) })
	}
	wg.Wait()
	for _, a := range got {
		if a != got[0] {
			t.Error("one snapshot has two attachments")
		}
	}
	if next := c.Renew().Attach(same); *next.(*counted) != (counted{1}) {
		t.Errorf("after a change the attachment is %v, want the next one", next)
	}
}

func TestNothingNewWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := from("s", tool("one"))
		c := loaded(t, Config{Sources: []capability.Source{src}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = c.Watch(ctx) }()
		woken := make(chan uint64, 1)
		go func() {
			if s, err := c.Next(ctx, 1); err == nil {
				woken <- s.Version()
			}
		}()
		src.changes <- src.batch
		src.changes <- copied(src.batch)
		must(t, c.Load(ctx))
		if s := c.Replace("s", copied(src.batch)); s.Version() != 1 {
			t.Errorf("Replace by the same gave version %d, want 1", s.Version())
		}
		synctest.Wait()
		select {
		case v := <-woken:
			t.Errorf("Next(1) gave version %d, and nothing happened", v)
		default:
		}
		src.changes <- capability.Batch{}
		if v := <-woken; v != 2 {
			t.Errorf("Next(1) gave version %d, want 2", v)
		}
	})
}

// TestMachineIsSeen: files are the same, but a program came.
func TestMachineIsSeen(t *testing.T) {
	for name, look := range map[string]func(*Catalog) error{
		"Load":      func(c *Catalog) error { return c.Load(t.Context()) },
		"LookAgain": func(c *Catalog) error { c.LookAgain(); return nil },
	} {
		t.Run(name, func(t *testing.T) { machineIsSeen(t, look) })
	}
	empty, err := New(Config{})
	must(t, err)
	if v := empty.LookAgain().Version(); v != 0 {
		t.Errorf("LookAgain before Load gives version %d, want 0", v)
	}
}

func machineIsSeen(t *testing.T, look func(*Catalog) error) {
	has := false
	src := from("s", tool("one", func(c *capability.Capability) { c.RequiredBins = []string{"jq"} }))
	c := loaded(t, Config{Sources: []capability.Source{src}, Machine: Machine{HasBin: func(string) bool { return has }}})
	for _, want := range []bool{false, true, true} {
		has = want
		must(t, look(c))
		if e, _ := c.Snapshot().Get("tool:one"); e.Available != want {
			t.Errorf("with jq here: %v, tool:one is available: %v", want, e.Available)
		}
	}
	if v := c.Snapshot().Version(); v != 2 {
		t.Errorf("version %d, want 2: it changed once", v)
	}
}

// TestLookAgainSeesWhatSkillsNeed: a skill may need programs by RequiredTools, which
// is decided after all that it needs by itself.
func TestLookAgainSeesWhatSkillsNeed(t *testing.T) {
	bin, secret := false, true
	skill := func(c *capability.Capability) {
		c.Kind, c.ID, c.RequiredTools, c.RequiredSecrets = capability.KindSkill, "skill:one", []string{"jq", "other"}, []string{"KEY"}
	}
	src := from("s", tool("one", skill), tool("other", func(c *capability.Capability) { c.RequiredBins = []string{"jq"} }))
	c := loaded(t, Config{Sources: []capability.Source{src}, Machine: Machine{
		HasBin: func(string) bool { return bin }, HasSecret: func(string) bool { return secret },
	}})
	version := c.Snapshot().Version()
	for _, now := range []struct{ bin, secret, changed bool }{
		{false, true, false}, {true, true, true}, {true, true, false}, {true, false, true}, {false, false, true}, {false, false, false}, {true, true, true},
	} {
		bin, secret = now.bin, now.secret
		s := c.LookAgain()
		if e, _ := s.Get("skill:one"); e.Available != (bin && secret) {
			t.Errorf("with %+v skill:one is available: %v (%v)", now, e.Available, e.Missing)
		}
		if changed := s.Version() != version; changed != now.changed {
			t.Errorf("with %+v there is a new version: %v", now, changed)
		}
		version = s.Version()
	}
}

// TestVersionsTellOfEveryDifference: whatever sources bring, there is a new
// version exactly when there is something to see, and what is seen is what a
// catalog shows that knows only the latest.
func TestVersionsTellOfEveryDifference(t *testing.T) {
	type visible struct {
		List     Listing
		Shadowed int
	}
	seen := func(s *Snapshot) string {
		v := visible{List: s.Listing()}
		v.List.Stats.Version = 0
		text, err := json.Marshal(v)
		must(t, err)
		return string(text)
	}
	batch := rapid.Custom(func(r *rapid.T) capability.Batch {
		var b capability.Batch
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 4).Draw(r, "names") {
			b.Capabilities = append(b.Capabilities, tool(name, func(c *capability.Capability) {
				c.Description = rapid.SampledFrom([]string{"does it", "does not"}).Draw(r, "description")
				if rapid.Bool().Draw(r, "needs") {
					c.RequiredTools = []string{"a"}
				}
			}))
		}
		return b
	})
	rapid.Check(t, func(r *rapid.T) {
		c := loaded(t, Config{Sources: []capability.Source{from("x"), from("y")}})
		last := map[string]capability.Batch{}
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			before := c.Snapshot()
			name := rapid.SampledFrom([]string{"x", "y"}).Draw(r, "source")
			b, ok := last[name]
			if !ok || rapid.Bool().Draw(r, "other") {
				b = batch.Draw(r, "batch")
			} else {
				b = copied(b)
			}
			last[name] = b
			after := c.Replace(name, b)
			if same := seen(before) == seen(after); same != (before.Version() == after.Version()) {
				r.Fatalf("looks the same: %v, versions %d and %d", same, before.Version(), after.Version())
			}
			fresh := loaded(t, Config{Sources: []capability.Source{&fixed{name: "x", batch: last["x"]}, &fixed{name: "y", batch: last["y"]}}})
			if got, want := seen(after), seen(fresh.Snapshot()); got != want {
				r.Fatalf("after changes the catalog shows\n%s\nand one that knows only the latest\n%s", got, want)
			}
		}
	})
}
