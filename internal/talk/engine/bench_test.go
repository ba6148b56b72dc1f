package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"ken/llm"
)

// quick is a model that takes no time.
type quick struct {
	calls []llm.ToolCall // of the first request of a turn
}

func (q *quick) Generate(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		last := req.Messages[len(req.Messages)-1].Blocks
		results := slices.ContainsFunc(last, func(b llm.Block) bool { return b.Result != nil })
		if len(q.calls) > 0 && !results {
			for _, c := range q.calls {
				if !yield(llm.Chunk{Block: &llm.Block{Call: &c}}, nil) {
					return
				}
			}
			yield(llm.Chunk{Stop: llm.StopCalls, Usage: &llm.Usage{Input: 1, Output: 1}}, nil)
			return
		}
		if yield(llm.Chunk{Text: "Hello."}, nil) && yield(llm.Chunk{Block: &llm.Block{Text: "Hello."}}, nil) {
			yield(llm.Chunk{Stop: llm.StopEnd, Usage: &llm.Usage{Input: 1, Output: 1}}, nil)
		}
	}
}

// BenchmarkTurn is what the engine adds to a model: finding among 2,000
// capabilities, the prompt, the session on disk. The bar is a median of 1 ms for
// a turn without calls.
func BenchmarkTurn(b *testing.B) {
	for _, c := range []struct {
		name  string
		calls []llm.ToolCall
	}{
		{"answer", nil},
		{"call", []llm.ToolCall{{ID: "c1", Name: toolInvoke, Arguments: []byte(`{"capability":"tool:greet","arguments":{"name":"A"}}`)}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := open(b, setting{tools: many(2000)})
			r.model = &quick{calls: c.calls}
			id := r.session()
			r.say(id, "warm up")
			var took []time.Duration
			n := 0
			for b.Loop() {
				if n++; n%10 == 0 {
					b.StopTimer()
					id = r.session()
					r.say(id, "begin")
					b.StartTimer()
				}
				began := time.Now()
				r.say(id, fmt.Sprintf("please do thing number %d with colours", n%2000))
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		})
	}
}
