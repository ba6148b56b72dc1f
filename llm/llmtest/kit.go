package llmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/llm"
)

// Test checks that a provider keeps the contract of [llm.Model] on a wire, with
// subtests named after its clauses. open makes a model that speaks to baseURL,
// with any key, several tries and short waits (some milliseconds) between them.
// If the server asks for a wait of up to a minute, the model waits that long.
// open is called for each clause, and the model must send w as
// [llm.Reasoning.Wire] with reasoning that is to come back.
//
// Test looks for goroutines that are left behind, so it must not run in
// parallel with other tests.
func Test(t *testing.T, w Wire, open func(t *testing.T, baseURL string) llm.Model) {
	t.Helper()
	for _, c := range conduct() {
		t.Run(c.name, func(t *testing.T) {
			k := &kit{t: t, wire: w, open: open, patience: 2 * time.Minute}
			if err := c.check(k); err != nil {
				t.Error(err)
			}
		})
	}
}

// A promise is one clause of the contract.
type promise struct {
	name  string
	check func(*kit) error
}

// conduct are the clauses, in the order in which they are best read when
// several are broken.
func conduct() []promise {
	return []promise{
		{"text", saysText},
		{"streams", streams},
		{"calls", makesCalls},
		{"calls without ids", makesIDs},
		{"empty answer", saysNothing},
		{"thoughts come back", thoughtsComeBack},
		{"thoughts of others stay", thoughtsStay},
		{"usage", counts},
		{"stop reasons", stops},
		{"malformed arguments", malformed},
		{"any text", anyText},
		{"large text", largeText},
		{"request", sendsRequest},
		{"history", sendsHistory},
		{"images", sendsImages},
		{"many tools", manyTools},
		{"same bytes", sameBytes},
		{"append only", appendOnly},
		{"allowed", allows},
		{"cache", caches},
		{"tools in a message", inline},
		{"tools in a result", search},
		{"faults", faults},
		{"tries again", triesAgain},
		{"waits as told", waitsAsTold},
		{"nothing is taken back", takesNothingBack},
		{"wrong request", wrongRequest},
		{"hostile error", hostileError},
		{"redirect", staysAtHost},
		{"no server", noServer},
		{"break", breaks},
		{"cancel", cancels},
		{"cancel before the answer", cancelsEarly},
		{"cancel while waiting", cancelsWaiting},
		{"concurrency", together},
	}
}

// A kit is one clause under way.
type kit struct {
	t    *testing.T
	wire Wire
	open func(*testing.T, string) llm.Model

	patience time.Duration // how long anything may take before it has failed
}

// with plays a script to a model. What the servers found wrong is an error too.
func (k *kit) with(s Script, do func(ctx context.Context, m llm.Model, server *Server) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), k.patience)
	defer cancel()
	server := Start(k.wire, s)
	defer server.Close()
	err := do(ctx, k.open(k.t, server.URL()), server)
	server.Close()
	for _, problem := range server.Problems() {
		err = errors.Join(err, errors.New(problem))
	}
	return err
}

// ask plays one reply to one request, and gives what was answered and seen.
func (k *kit) ask(req llm.Request, r Reply) (a answer, seen Seen, err error) {
	err = k.with(Always(r), func(ctx context.Context, m llm.Model, server *Server) error {
		a = gather(ctx, m, req)
		requests := server.Requests()
		if len(requests) > 0 {
			seen = requests[len(requests)-1]
		}
		return a.fine(requests)
	})
	return a, seen, err
}

// An answer is what a model gave.
type answer struct {
	chunks  []llm.Chunk
	blocks  []llm.Block
	text    string
	thought string
	stop    llm.StopReason
	usage   llm.Usage
	err     error // that the model ended with
	broken  error // what was wrong with the stream itself
}

// gather reads an answer to its end, and checks that it keeps to the form of
// chunks.
func gather(ctx context.Context, m llm.Model, req llm.Request) (a answer) {
	var text, thought, since strings.Builder // since the last block
	defer func() { a.text, a.thought = text.String(), thought.String() }()
	for c, err := range m.Generate(ctx, req) {
		switch {
		case a.err != nil:
			a.wrong("a chunk came after the error %q", a.err)
		case a.stop != "":
			a.wrong("something came after the last chunk: %s, %v", describe(c), err)
		}
		if err != nil {
			a.err = err
			continue
		}
		a.chunks = append(a.chunks, c)
		set := 0
		for _, is := range []bool{c.Text != "", c.Thought != "", c.Block != nil, c.Stop != ""} {
			if is {
				set++
			}
		}
		if set != 1 {
			a.wrong("chunk %d is %s, want exactly one of text, thought, block and stop", len(a.chunks), describe(c))
		}
		if (c.Stop != "") != (c.Usage != nil) {
			a.wrong("chunk %d is %s, want stop and usage together", len(a.chunks), describe(c))
		}
		text.WriteString(c.Text)
		thought.WriteString(c.Thought)
		since.WriteString(c.Text)
		if c.Block != nil {
			if c.Block.Text != "" {
				if c.Block.Text != since.String() {
					a.wrong("the block of text is %.80q, but its fragments make up %.80q", c.Block.Text, since.String())
				}
				since.Reset()
			}
			a.blocks = append(a.blocks, *c.Block)
		}
		if c.Stop != "" {
			a.stop, a.usage = c.Stop, *c.Usage
		}
	}
	switch {
	case a.err == nil && a.stop == "":
		a.wrong("the stream ended without a stop and without an error")
	case a.err == nil && since.Len() > 0:
		a.wrong("the fragments %.80q came without a block of their text", since.String())
	}
	return a
}

func (a *answer) wrong(format string, args ...any) {
	if a.broken == nil {
		a.broken = fmt.Errorf(format, args...)
	}
}

// fine is nil for an answer that came to its end.
func (a answer) fine(seen []Seen) error {
	if a.err != nil {
		for _, s := range seen {
			if s.Refused != "" {
				return fmt.Errorf("Generate() = error %w\nthe server refused request %d, as the vendor would: %s\nits body: %.2000s", a.err, s.Number, s.Refused, s.Body)
			}
		}
		return fmt.Errorf("Generate() = error %w, want an answer", a.err)
	}
	return a.broken
}

// calls of the answer, in order.
func (a answer) calls() []llm.ToolCall {
	var list []llm.ToolCall
	for _, b := range a.blocks {
		if b.Call != nil {
			list = append(list, *b.Call)
		}
	}
	return list
}

func describe(c llm.Chunk) string {
	return fmt.Sprintf("{Text: %.40q, Thought: %.40q, Block: %s, Stop: %q, Usage: %v}", c.Text, c.Thought, show(c.Block), c.Stop, c.Usage)
}

// show is a value in JSON, cut.
func show(v any) string { return fmt.Sprintf("%.300s", compact(v)) }

// said is a message of the user's.
func said(text string) llm.Message {
	return llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: text}}}
}

// hello is the plainest request.
func hello() llm.Request { return llm.Request{Messages: []llm.Message{said("hello")}} }

// want compares.
func want[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s = %v, want %v", what, got, want)
	}
	return nil
}
