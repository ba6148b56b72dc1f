package door

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

// dumps caches what an equally informative prompt without Ken would cost, per
// snapshot and class of viewers. The zero value is empty.
type dumps struct {
	mu       sync.Mutex
	snapshot *catalog.Snapshot      // that known is of
	known    map[*discover.View]int // a class has one view of a snapshot
	sizes    map[*Entry]int         // of the snapshot; entries that did not change are in the next one too
	running  *weighing              // nil: none runs
}

// A weighing computes the dump of one view.
type weighing struct {
	of    *discover.View
	done  chan struct{} // closed when total is set
	total int
}

const (
	mostWeighing = 5 * time.Minute  // time limit for reading all schemas
	mostAwaiting = 10 * time.Second // how long the end of a turn waits for it
)

// AllToolTokens returns the tokens of one request that describes everything a viewer has
// to a model without Ken: every tool with its original description and schema,
// every card in full, one line for everything else, and one tool to read texts
// with. Prompts that a person types and Ken's own tools are not counted.
// docs/decisions/2026-11-16-naive-baseline.md says why. It is computed in the
// background: AllToolTokens returns 0 until it is known, and if nothing is recorded.
// [Door.AwaitAllToolTokens] waits for it.
func (d *Door) AllToolTokens(v View) int {
	n, _ := d.dump(v)
	return n
}

// AwaitAllToolTokens returns what [Door.AllToolTokens] does, and waits until it is known, but not
// for longer than 10 seconds.
func (d *Door) AwaitAllToolTokens(ctx context.Context, v View) int {
	ctx, cancel := context.WithTimeout(ctx, mostAwaiting)
	defer cancel()
	for {
		n, w := d.dump(v)
		if w == nil {
			return n
		}
		select {
		case <-w.done:
			if w.of == v.seen {
				return w.total
			}
		case <-ctx.Done():
			return 0
		}
	}
}

// dump returns the known value or else the running weighing, which may be for
// another view, because one runs at a time. If none runs, it starts one.
func (d *Door) dump(v View) (int, *weighing) {
	if d.cfg.Recorder == nil || v.seen == nil {
		return 0, nil
	}
	s := &d.dumps
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.known[v.seen]; ok {
		return n, nil
	}
	if s.running == nil {
		s.running = &weighing{of: v.seen, done: make(chan struct{})}
		go d.weigh(v, s.running)
	}
	return 0, s.running
}

// weigh computes a view's dump.
func (d *Door) weigh(v View, w *weighing) {
	ctx, cancel := context.WithTimeout(context.Background(), mostWeighing)
	defer cancel()
	s := &d.dumps
	s.mu.Lock()
	sizes := s.sizes
	if s.snapshot != v.snapshot {
		sizes = map[*Entry]int{}
		for e := range v.snapshot.All() {
			if n, ok := s.sizes[e]; ok {
				sizes[e] = n
			}
		}
	}
	s.mu.Unlock()

	w.total = d.sum(ctx, v, sizes)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != v.snapshot || len(s.known) >= mostKnown {
		s.snapshot, s.known = v.snapshot, map[*discover.View]int{}
	}
	s.sizes, s.known[v.seen], s.running = sizes, w.total, nil
	close(w.done)
}

// sum adds up sizes, and works out those that are missing. A source that breaks
// takes nothing with it: the dump is not known then.
func (d *Door) sum(ctx context.Context, v View, sizes map[*Entry]int) (total int) {
	defer func() {
		if recover() != nil {
			total = 0
		}
	}()
	tools := v.tools()
	for i, e := range v.snapshot.Entries() {
		if !v.seen.Sees(i) || e.Kind == capability.KindCommand || v.isOwn(e.ID) {
			continue
		}
		n, ok := sizes[e]
		if !ok {
			n = d.plainTokens(ctx, v, e, tools[e.ID])
			sizes[e] = n
		}
		total += n
	}
	if doc, ok := v.snapshot.Document(capability.Map, capability.TrustUser); ok && doc.Trust == capability.TrustUser {
		total += d.counter()(doc.Text)
	}
	for _, t := range d.Tools() {
		if t.Name == capability.ToolDescribe {
			total += aroundTool + d.counter()(t.Name) + d.counter()(t.Description) + d.counter()(string(t.Schema))
		}
	}
	return total
}

// plainTokens returns how many tokens one entry takes in a prompt without Ken.
func (d *Door) plainTokens(ctx context.Context, v View, e *Entry, tool bool) int {
	switch {
	case tool:
		return d.toolTokens(ctx, v, e)
	case e.Kind == capability.KindCard:
		detail, err := d.of(v, e).Detail(ctx, e)
		if err != nil {
			return 0
		}
		return d.counter()(detail.Body)
	}
	return d.counter()(show.PlainLine(e))
}

// isOwn reports whether an entry is one of Ken's own tools.
func (v View) isOwn(id capability.ID) bool {
	if v.own == nil {
		return false
	}
	_, ok := v.own.Get(id)
	return ok
}

func (d *Door) counter() tokenizer.Counter {
	if count := d.cfg.Recorder.Count; count != nil {
		return count
	}
	return tokenizer.Count
}

const mostKnown = 1000 // classes of viewers of one snapshot

// tools returns what could be in a list of tools: what can be called here, or,
// where nothing can because another program runs it, everything of that kind.
func (v View) tools() map[capability.ID]bool {
	all, here := map[capability.ID]bool{}, map[capability.ID]bool{}
	for i, e := range v.snapshot.Entries() {
		if !v.seen.Sees(i) || !e.Available {
			continue
		}
		switch e.Kind {
		case capability.KindSkill, capability.KindCard, capability.KindCommand, capability.KindExtension, capability.KindChannel:
			continue
		}
		all[e.ID] = true
		if e.Run != nil {
			here[e.ID] = true
		}
	}
	if len(here) > 0 {
		return here
	}
	return all
}

const (
	aroundTool  = 12   // tokens of the braces and keys that a wire puts around one
	longestTool = 1000 // characters of a description
)

// toolTokens counts one tool. Of a schema that cannot be read nothing is
// counted: a dump errs on the small side.
func (d *Door) toolTokens(ctx context.Context, v View, e *Entry) int {
	count := d.counter()
	n := aroundTool + count(e.Name) + count(untrusted.Line(e.Description, longestTool))
	detail, err := d.of(v, e).Detail(ctx, e)
	if err != nil {
		return n
	}
	var plain bytes.Buffer
	if json.Compact(&plain, detail.Schema) != nil {
		return n
	}
	return n + count(plain.String())
}
