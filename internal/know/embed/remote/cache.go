package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ken/llm"
)

// A Cache is an llm.Embedder that asks another one only for what it does not
// have. It keeps every text's vector, in a file of its own for each model, by a
// hash of model and text. Use it for the vectors of capabilities, and the embedder
// beneath for those of messages: what people write must not be kept.
//
// One byte of each number is kept, as the index does. What Embed returns is
// what is kept, also for a text that had to be asked for, so that a text has
// the same vector always; its cosine with the embedder's own is above 0.999 for
// the usual models. Vectors that say nothing are returned and not kept.
//
// The same name may come to mean other weights, for example after the model was
// pulled again. So once in its life a Cache also asks for the vector of a short
// text of its own. If that vector is not the one it was, all kept vectors are set
// aside and made again. If that text gets no answer, the kept vectors are used.
//
// Trouble with the file is never an error of Embed: it costs speed, and
// [Cache.Trouble] says what it was. A Cache may be used by many goroutines, and
// its directory by many processes; it holds no file open. At the same time two
// of them may ask for the same text. The directory must be the user's alone.
type Cache struct {
	next  llm.Embedder
	model string
	probe textKey // of the text that tells models apart
	dir   string
	path  string
	limit int64 // bytes of the file: maxCacheSize, fewer in tests

	mu      sync.Mutex // guards what follows
	scan    scan
	was     os.FileInfo // the file that was scanned
	known   bool        // the model is the one whose vectors are kept
	resting time.Time   // until when it is not asked which it is
	off     bool        // the file is not used: it cannot be, nor moved away, or the Cache is closed
	trouble error
}

const (
	maxCacheSize = 512 << 20
	cacheSuffix  = ".vectors"
	asideSuffix  = ".aside"
	sameModel    = 0.98             // cosine of a text's vectors; other weights are far below
	askRest      = 30 * time.Second // before a model that did not answer is asked again which it is
)

// NewCache makes a Cache of an embedder with its file in a directory, which is
// made when something is first kept. Nothing is read before the first Embed.
func NewCache(e llm.Embedder, dir string) *Cache {
	model := e.Model()
	name := sha256.Sum256([]byte(model))
	c := &Cache{
		next: e, model: model, probe: keyOf(model, probe),
		dir: dir, path: filepath.Join(dir, hex.EncodeToString(name[:16])+cacheSuffix), limit: maxCacheSize,
	}
	c.forget()
	return c
}

// Model names the weights of the embedder beneath.
func (c *Cache) Model() string { return c.model }

// Dimensions is the length of every vector: what the embedder beneath says, or,
// as long as it does not know, that of the vectors that are kept; 0 if there
// are none or none was asked for yet.
func (c *Cache) Dimensions() int {
	if dims := c.next.Dimensions(); dims != 0 {
		return dims
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keptDims()
}

// Close ends the use of the file: when it returns, nothing is read from it or
// written to it any more. Embed still works, without what was kept. It always
// returns nil.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	c.forget()
	return nil
}

func (c *Cache) keptDims() int { return int(c.scan.places[c.probe].dims) }

// Trouble says why vectors are not kept or were set aside, or is nil. It tells
// of the last trouble.
func (c *Cache) Trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// Embed returns one vector per text, in order, and asks only for those that it
// does not have. Either all texts get a vector or there is an error: that of
// the embedder beneath, or ctx's.
func (c *Cache) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	for range 3 { // the model may be another one than before, and change in between
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors, settled, err := c.embed(ctx, texts)
		if settled || err != nil {
			return vectors, err
		}
	}
	return c.next.Embed(ctx, texts)
}

// embed is not settled when the model turned out to be another one. Then
// nothing is kept any more and all is asked for the next time.
func (c *Cache) embed(ctx context.Context, texts []string) (vectors [][]float32, settled bool, err error) {
	keys := make([]textKey, len(texts))
	for i, text := range texts {
		keys[i] = keyOf(c.model, text)
	}
	have, known, resting := c.lookUp(keys)
	ask, asked := missing(texts, keys, have)
	needed := len(ask) > 0
	probing := !known && len(texts) > 0 && (needed || !resting)
	if probing { // first, where a torn end of the file does not reach it
		ask, asked = slices.Insert(ask, 0, probe), slices.Insert(asked, 0, c.probe)
	}
	if len(ask) > 0 {
		got, err := c.next.Embed(ctx, ask)
		if err == nil && len(got) != len(ask) {
			err = fmt.Errorf("embedder %s gave %d vectors for %d texts; it is broken", c.model, len(got), len(ask))
		}
		switch {
		case err == nil:
			if !c.accept(got, asked, probing, have) {
				return nil, false, nil
			}
		case needed || ctx.Err() != nil:
			return nil, false, cmp.Or(ctx.Err(), err)
		default:
			c.rest() // what is kept has to do
		}
	}
	vectors = make([][]float32, len(texts))
	given := map[textKey]bool{}
	for i, key := range keys {
		vectors[i] = have[key]
		if given[key] { // each vector is the caller's own
			vectors[i] = slices.Clone(have[key])
		}
		given[key] = true
	}
	return vectors, true, nil
}

// Missing counts the texts whose vectors are not kept. It asks for none.
func (c *Cache) Missing(texts []string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fetch(nil) // what others added
	for _, text := range texts {
		if _, ok := c.scan.places[keyOf(c.model, text)]; !ok {
			n++
		}
	}
	return n
}

// missing returns the texts that have no vector, each once.
func missing(texts []string, keys []textKey, have map[textKey][]float32) (ask []string, asked []textKey) {
	seen := map[textKey]bool{}
	for i, key := range keys {
		if have[key] == nil && !seen[key] {
			seen[key] = true
			ask, asked = append(ask, texts[i]), append(asked, key)
		}
	}
	return ask, asked
}

// accept puts new vectors with those at hand and keeps them. It reports false
// when they show that the model is not the one that made those at hand. Then
// all that is kept was set aside. When probing, the first is the probe's.
func (c *Cache) accept(got [][]float32, asked []textKey, probing bool, have map[textKey][]float32) bool {
	mixed := len(have) > 0
	var records []byte
	for i, v := range got {
		if small := shrink(v); small != nil {
			records = appendRecord(records, asked[i], small)
			v = grow(small)
		}
		have[asked[i]] = v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if why := c.stale(got[0], probing); why != nil {
		c.setAside(why)
		c.known = false
		if mixed || !probing { // a new file begins with a probe
			return false
		}
	}
	c.known = c.known || probing
	if err := c.add(records); err != nil {
		c.trouble = fmt.Errorf("keep vectors in %s: %w", c.path, err)
	}
	return true
}

// stale says what shows that the vectors that are kept are another model's: a
// new vector, which may be the probe's.
func (c *Cache) stale(v []float32, probing bool) error {
	kept := c.keptDims()
	switch {
	case kept != 0 && kept != len(v):
		return fmt.Errorf("model %s now returns vectors of %d numbers instead of %d; all vectors are made again", c.model, len(v), kept)
	case probing && !c.known && len(c.scan.places) > 0 && !c.same(v):
		return fmt.Errorf("model %s now returns different vectors, or the vector to compare with is lost; all vectors are made again", c.model)
	}
	return nil
}

// same reports whether a vector of the probe is the one that is kept.
func (c *Cache) same(fresh []float32) bool {
	kept := c.fetch([]textKey{c.probe})[c.probe]
	if len(kept) != len(fresh) {
		return false
	}
	var dot float64
	for i, x := range kept {
		dot += float64(x) * float64(fresh[i])
	}
	return dot >= sameModel
}

// rest has the model not asked again at once which it is.
func (c *Cache) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resting = time.Now().Add(askRest)
}
