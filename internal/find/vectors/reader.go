package vectors

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/know/embed/remote"
	"ken/internal/know/index"
	"ken/internal/know/reader"
)

// secondReader is the second reader as an llm.Embedder. It reads English, so a
// text in another script has the zero vector, which is like nothing else. The
// weights are not touched before the first text.
type secondReader struct{}

// Model names the weights.
func (secondReader) Model() string { return reader.Builtin().Model() }

// Dimensions is the length of every vector.
func (secondReader) Dimensions() int { return reader.Builtin().Dimensions() }

// Embed returns one vector per text.
func (r secondReader) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return r.embed(ctx, texts, embed.MaxTokens)
}

// embed returns one vector per text, of which it reads no more than some tokens.
func (r secondReader) embed(ctx context.Context, texts []string, tokens int) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = make([]float32, 0, r.Dimensions())
		if text == "" || !index.MostlyASCII(text) {
			vectors[i] = vectors[i][:r.Dimensions()]
			continue
		}
		vectors[i] = reader.Builtin().AppendEnds(vectors[i], text, tokens)
	}
	return vectors, nil
}

// messageReader is the second reader for messages.
type messageReader struct {
	secondReader
	rest *rest
}

// How much of a message is read: its beginning and its end. What is between them
// was pasted. So reading one takes some 10 ms at most, and 40 ms with AVX2.
const (
	longestRead = 480 // bytes
	mostRead    = 128 // tokens: most messages of this length have fewer
)

// Embed returns one vector per message.
func (r messageReader) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	short := make([]string, len(texts))
	for i, text := range texts {
		if short[i] = text; len(text) > longestRead {
			short[i] = strings.ToValidUTF8(text[:longestRead/2], "") + " . " + strings.ToValidUTF8(text[len(text)-longestRead/2:], "")
		}
	}
	defer r.rest.later()
	return r.embed(ctx, short, mostRead)
}

// restAfter is how long no message is read before the models rest.
const restAfter = 5 * time.Second

// A rest gives the memory of the models back to the kernel while no message is
// read: some 15 MB, which come back with the next message within half a
// millisecond.
type rest struct {
	mu    sync.Mutex
	timer *time.Timer
}

// later lets the models rest after a while, unless it is called again by then.
func (r *rest) later() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		r.timer = time.AfterFunc(restAfter, giveBack)
		return
	}
	r.timer.Reset(restAfter)
}

// stop ends the wait for it.
func (r *rest) stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	return nil
}

func giveBack() {
	embed.GiveBackBuiltin()
	reader.GiveBackBuiltin()
}

// readAfter is how long a process that stays leaves capabilities unread that it has
// not read before. Its first calls need the processors more; until then the small model
// finds them.
const readAfter = time.Second

// giveWay is how long after a search no capability is begun, so that the processors
// are free for what the search is for: a list that follows each letter, say. Each
// capability waits only once, so reading goes on where searches never stop.
const giveWay = 100 * time.Millisecond

// lowReader is the second reader at a low priority.
type lowReader struct {
	secondReader
	from  time.Time     // before which nothing is read
	asked *atomic.Int64 // when the last search began, in nanoseconds since 1970
}

// Embed returns one vector per text. Their thread ends with them: it cannot have
// its priority back.
func (r lowReader) Embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	if err := wait(ctx, r.from); err != nil {
		return nil, err
	}
	var done sync.WaitGroup
	done.Go(func() {
		lowPriority()
		for i := range texts {
			if err = wait(ctx, time.Unix(0, r.asked.Load()).Add(giveWay)); err != nil {
				return
			}
			var one [][]float32
			if one, err = r.secondReader.Embed(ctx, texts[i:i+1]); err != nil {
				return
			}
			vectors = append(vectors, one...)
		}
	})
	done.Wait()
	if err != nil {
		return nil, err
	}
	return vectors, nil
}

// wait returns at a time, or with an error where ctx ends before.
func wait(ctx context.Context, until time.Time) error {
	left := time.Until(until)
	if left <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// capabilityReader is the second reader for capabilities. The vectors of those
// that come with Ken are part of the program, others are kept in a file.
type capabilityReader struct {
	secondReader
	kept func() *remote.Cache
}

func newCapabilityReader(dir string, from time.Time, asked *atomic.Int64) capabilityReader {
	return capabilityReader{kept: sync.OnceValue(func() *remote.Cache { return remote.NewCache(lowReader{from: from, asked: asked}, dir) })}
}

// Embed returns one vector per text.
func (r capabilityReader) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var ask []string
	var at []int
	for i, text := range texts {
		switch v := starterVector(text); {
		case v != nil:
			vectors[i] = v
		case text == "":
			vectors[i] = make([]float32, r.Dimensions())
		default:
			ask, at = append(ask, text), append(at, i)
		}
	}
	if len(ask) == 0 {
		return vectors, ctx.Err()
	}
	got, err := r.kept().Embed(ctx, ask)
	if err != nil {
		return nil, err
	}
	for i, v := range got {
		vectors[at[i]] = v
	}
	return vectors, nil
}

// unread counts the texts whose vectors are neither in the program nor in the
// file, and stops once there are more than enough.
func (r capabilityReader) unread(texts iter.Seq[string], enough int) (n int) {
	var ask []string
	for text := range texts {
		if text == "" || starterVector(text) != nil {
			continue
		}
		if ask = append(ask, text); len(ask) > enough {
			n += r.kept().Missing(ask)
			ask = ask[:0]
		}
		if n > enough {
			return n
		}
	}
	if len(ask) > 0 {
		n += r.kept().Missing(ask)
	}
	return n
}

// DocumentText is what the reader reads of a capability: a text of the shape
// that it was trained on, empty where it cannot read any.
func (capabilityReader) DocumentText(c *capability.Capability) string {
	d, ok := index.DocumentOf(c)
	if !ok {
		return ""
	}
	return d.Text()
}
