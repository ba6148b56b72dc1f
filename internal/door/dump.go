package door

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

// dumps know what showing every tool would cost: once for a snapshot and a
// class of viewers. The zero value knows nothing yet.
type dumps struct {
	mu       sync.Mutex
	snapshot *catalog.Snapshot      // that known is of
	known    map[*discover.View]int // a class has one view of a snapshot
	sizes    map[*Entry]int         // of the snapshot; entries that did not change are in the next one too
	busy     bool
}

// weighing is how long it may take to read all schemas.
const weighing = 5 * time.Minute

// Dump gives the tokens of the schemas of all tools that a viewer has, as a
// provider's list of tools would hold them. It is worked out beside whoever
// asks: 0 until it is known, and where nothing is recorded.
func (d *Door) Dump(v View) int {
	if d.cfg.Recorder == nil || v.seen == nil {
		return 0
	}
	s := &d.dumps
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.known[v.seen]; ok {
		return n
	}
	if !s.busy {
		s.busy = true
		go d.weigh(v)
	}
	return 0
}

// weigh works out a view's dump. One runs at a time.
func (d *Door) weigh(v View) {
	ctx, cancel := context.WithTimeout(context.Background(), weighing)
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

	total := d.sum(ctx, v, sizes)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != v.snapshot || len(s.known) >= mostKnown {
		s.snapshot, s.known = v.snapshot, map[*discover.View]int{}
	}
	s.sizes, s.known[v.seen], s.busy = sizes, total, false
}

// sum adds up sizes, and works out those that are missing. A source that breaks
// takes nothing with it: the dump is not known then.
func (d *Door) sum(ctx context.Context, v View, sizes map[*Entry]int) (total int) {
	defer func() {
		if recover() != nil {
			total = 0
		}
	}()
	for _, e := range v.tools() {
		n, ok := sizes[e]
		if !ok {
			n = d.toolTokens(ctx, v, e)
			sizes[e] = n
		}
		total += n
	}
	return total
}

const mostKnown = 1000 // classes of viewers of one snapshot

// tools gives what could be in a list of tools: what can be called here, or
// where nothing can, because somebody else runs it, everything of that kind.
func (v View) tools() []*Entry {
	var all, here []*Entry
	for i, e := range v.snapshot.Entries() {
		if !v.seen.Sees(i) || !e.Available {
			continue
		}
		switch e.Kind {
		case capability.KindSkill, capability.KindCard, capability.KindCommand, capability.KindExtension, capability.KindChannel:
			continue
		}
		all = append(all, e)
		if e.Run != nil {
			here = append(here, e)
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
	count := d.cfg.Recorder.Count
	if count == nil {
		count = tokenizer.Count
	}
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
