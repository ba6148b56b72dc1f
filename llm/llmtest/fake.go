package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"ken/llm"
)

// A Fake is a [llm.Model] that plays a script in memory. It keeps the contract
// that a provider keeps, faults included, but checks nothing of the request and
// never retries. The zero Fake answers every request with nothing; set Script
// before the first. It is safe for concurrent use.
type Fake struct {
	Script Script

	mu   sync.Mutex
	seen []Seen
}

// FakeWire names the reasoning of a [Fake].
const FakeWire = "fake"

// Requests are those that came so far. A Seen of a Fake has no header and no
// body; wants are looked for in the JSON of the request.
func (f *Fake) Requests() []Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// Generate plays the next reply.
func (f *Fake) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		reply := f.next(req).filled()
		if err := reply.fakeFault(ctx); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		f.play(ctx, reply, yield)
	}
}

// next asks the script.
func (f *Fake) next(req llm.Request) Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := Seen{Number: len(f.seen) + 1, At: time.Now(), Request: copyOf(req), Stream: true, CacheKey: req.Cache}
	f.seen = append(f.seen, seen)
	if f.Script == nil {
		return Reply{}
	}
	reply := f.Script(seen)
	if len(reply.Want) == 0 {
		return reply
	}
	body, err := json.Marshal(req)
	if err != nil {
		return Reply{Fault: ServerError, Text: "llmtest: the request is no JSON: " + err.Error()}
	}
	if missing := reply.missing(body); len(missing) > 0 {
		return Reply{Fault: ServerError, Text: fmt.Sprintf("llmtest: request %d lacks %q", seen.Number, missing)}
	}
	return reply
}

// copyOf is a request that the caller may append to. Messages once sent are
// never changed, so their blocks are shared.
func copyOf(req llm.Request) llm.Request {
	req.Tools = slices.Clone(req.Tools)
	req.Messages = slices.Clone(req.Messages)
	req.Allowed = slices.Clone(req.Allowed)
	return req
}

// fakeFault is the error that a fault before the first chunk comes to.
func (r Reply) fakeFault(ctx context.Context) error {
	if r.Fault == Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	kind, ok := kindOf(r.Fault)
	if !ok || r.Fault == Cut || r.Fault == CutClean || r.Fault == StreamError {
		return nil
	}
	e := &llm.Error{Kind: kind, Provider: FakeWire, Message: r.Text, RetryAfter: r.RetryAfter, Tries: 1}
	switch r.Fault {
	case UnsupportedInline:
		e.Feature = llm.Inline
	case UnsupportedSearch:
		e.Feature = llm.Search
	}
	if e.Message == "" {
		e.Message = "scripted: " + string(r.Fault)
	}
	return e
}

// play yields the chunks of a reply.
func (f *Fake) play(ctx context.Context, r Reply, yield func(llm.Chunk, error) bool) {
	left, held := -1, false
	if r.Fault != None {
		left = max(1, r.Fragments/2)
		if r.Text == "" && r.Thought == "" {
			r.Text = "an answer that does not come to its end"
		}
	}
	send := func(c llm.Chunk) bool {
		if left == 0 {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.Cut, Provider: FakeWire, Message: "scripted: " + string(r.Fault), Tries: 1})
			return false
		}
		left--
		if held && r.Hold != nil || c.Stop != "" && r.Hold != nil {
			select {
			case <-r.Hold:
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			yield(llm.Chunk{}, err)
			return false
		}
		held = true
		return yield(c, nil)
	}
	for _, t := range fragments(r.Thought, r.Fragments) {
		if !send(llm.Chunk{Thought: t}) {
			return
		}
	}
	blocks := r.blocks()
	for _, t := range fragments(r.Text, r.Fragments) {
		if len(blocks) > 0 && blocks[0].Reasoning != nil {
			if !send(llm.Chunk{Block: &blocks[0]}) {
				return
			}
			blocks = blocks[1:]
		}
		if !send(llm.Chunk{Text: t}) {
			return
		}
	}
	for i := range blocks {
		if !send(llm.Chunk{Block: &blocks[i]}) {
			return
		}
	}
	send(llm.Chunk{Stop: r.Stop, Usage: &r.Usage})
}

// blocks is the reply as the history keeps it.
func (r Reply) blocks() []llm.Block {
	var list []llm.Block
	if r.Thought != "" {
		opaque, _ := json.Marshal(sign(FakeWire, r.Thought))
		list = append(list, llm.Block{Reasoning: &llm.Reasoning{Text: r.Thought, Wire: FakeWire, Opaque: opaque}})
	}
	if r.Text != "" {
		list = append(list, llm.Block{Text: r.Text})
	}
	for i, call := range r.Calls {
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d", i+1)
		}
		list = append(list, llm.Block{Call: &call})
	}
	return list
}

// kindOf says what a fault is to the caller of a provider; false: no error.
func kindOf(f Fault) (llm.Kind, bool) {
	switch f {
	case Rate:
		return llm.Rate, true
	case Overloaded, ServerError, StreamOverloaded:
		return llm.Overloaded, true
	case TooLong:
		return llm.TooLong, true
	case Auth:
		return llm.Auth, true
	case Quota:
		return llm.Quota, true
	case UnsupportedInline, UnsupportedSearch:
		return llm.Unsupported, true
	case CutBefore, Silence:
		return llm.Unreachable, true
	case Cut, CutClean, StreamError:
		return llm.Cut, true
	case Garbage, NotJSON, Redirect:
		return llm.Malformed, true
	}
	return llm.Unknown, false
}

// givenIn are the tools that a message gives in the middle of a conversation.
func givenIn(m llm.Message) []llm.Tool {
	var list []llm.Tool
	for _, b := range m.Blocks {
		list = append(list, b.Tools...)
		if b.Result != nil {
			for _, inner := range b.Result.Blocks {
				list = append(list, inner.Tools...)
			}
		}
	}
	return list
}
