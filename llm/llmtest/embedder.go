// Package llmtest tests whether an implementation keeps the contracts of
// package llm.
package llmtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ken/llm"
)

// Embedder checks that e keeps the contract of [llm.Embedder], with subtests
// named after its clauses. It asks for some 700 texts, and e must know English
// words. Numbers may differ a little from one time to the next, as they do on
// machines that add up in parallel.
func Embedder(t *testing.T, e llm.Embedder) {
	t.Helper()
	for _, c := range clauses {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
}

const (
	tolerance = 1e-3  // of a length
	alike     = 0.999 // least cosine of two vectors of one text
)

// A clause is one promise of an embedder.
type clause struct {
	name  string
	check func(context.Context, llm.Embedder) error
}

// clauses are the promises, in the order in which they are best read when
// several are broken.
var clauses = []clause{
	{"name", name},
	{"dimensions", dimensions},
	{"unit length", unitLength},
	{"order", order},
	{"same text same vector", deterministic},
	{"other text other vector", distinct},
	{"texts untouched", untouched},
	{"no texts", none},
	{"text without words", blank},
	{"hostile text", hostile},
	{"long text", long},
	{"many texts", many},
	{"concurrency", concurrent},
	{"cancelled", cancelled},
}

// samples are texts that mean different things.
func samples() []string {
	return []string{
		"send an email to a colleague",
		"read the weather forecast of a city",
		"convert euros to dollars",
		"list the files of a folder",
		"play music in the kitchen",
	}
}

func name(_ context.Context, e llm.Embedder) error {
	if first, second := e.Model(), e.Model(); first == "" || first != second {
		return fmt.Errorf("Model() = %q and then %q, want one name", first, second)
	}
	return nil
}

// embed asks for vectors, and checks what holds for all.
func embed(ctx context.Context, e llm.Embedder, texts []string) ([][]float32, error) {
	vectors, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("Embed(%d texts): %w", len(texts), err)
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("Embed(%d texts) gives %d vectors", len(texts), len(vectors))
	}
	for i, v := range vectors {
		if dims := e.Dimensions(); len(v) != dims || dims == 0 {
			return nil, fmt.Errorf("vector %d has %d numbers, Dimensions() = %d", i, len(v), dims)
		}
		for _, x := range v {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return nil, fmt.Errorf("vector %d holds %v", i, x)
			}
		}
	}
	return vectors, nil
}

func dimensions(ctx context.Context, e llm.Embedder) error {
	if _, err := embed(ctx, e, samples()); err != nil {
		return err
	}
	dims := e.Dimensions()
	if _, err := embed(ctx, e, []string{"another text"}); err != nil {
		return err
	}
	if later := e.Dimensions(); later != dims {
		return fmt.Errorf("Dimensions() = %d and later %d, want always the same", dims, later)
	}
	return nil
}

func unitLength(ctx context.Context, e llm.Embedder) error {
	vectors, err := embed(ctx, e, samples())
	for i, v := range vectors {
		if n := math.Sqrt(dot(v, v)); math.Abs(n-1) > tolerance {
			return fmt.Errorf("the vector of %q has the length %v, want 1", samples()[i], n)
		}
	}
	return err
}

// order asks for texts together, in reverse, and one by one.
func order(ctx context.Context, e llm.Embedder) error {
	texts := samples()
	together, err := embed(ctx, e, texts)
	if err != nil {
		return err
	}
	slices.Reverse(texts)
	reversed, err := embed(ctx, e, texts)
	if err != nil {
		return err
	}
	slices.Reverse(reversed)
	for i, text := range samples() {
		alone, err := embed(ctx, e, []string{text})
		if err != nil {
			return err
		}
		if err := same(text, together[i], reversed[i]); err != nil {
			return fmt.Errorf("in another order: %w", err)
		}
		if err := same(text, together[i], alone[0]); err != nil {
			return fmt.Errorf("alone: %w", err)
		}
	}
	return nil
}

func deterministic(ctx context.Context, e llm.Embedder) error {
	texts := append(samples(), samples()...)
	vectors, err := embed(ctx, e, texts)
	if err != nil {
		return err
	}
	again, err := embed(ctx, e, texts)
	if err != nil {
		return err
	}
	for i, text := range texts {
		if err := same(text, vectors[i], again[i]); err != nil {
			return fmt.Errorf("the second time: %w", err)
		}
		if err := same(text, vectors[i], vectors[i%len(samples())]); err != nil {
			return fmt.Errorf("twice in one list: %w", err)
		}
	}
	return nil
}

func distinct(ctx context.Context, e llm.Embedder) error {
	vectors, err := embed(ctx, e, samples())
	for i := range vectors {
		for j := range i {
			if cos := dot(vectors[i], vectors[j]); cos >= alike {
				return fmt.Errorf("%q and %q have the same vector: cosine %v", samples()[i], samples()[j], cos)
			}
		}
	}
	return err
}

func untouched(ctx context.Context, e llm.Embedder) error {
	texts := samples()
	if _, err := embed(ctx, e, texts); err != nil {
		return err
	}
	if !slices.Equal(texts, samples()) {
		return fmt.Errorf("Embed() made %q of the texts", texts)
	}
	return nil
}

func none(ctx context.Context, e llm.Embedder) error {
	_, err := embed(ctx, e, nil)
	return err
}

// blank texts have a vector of unit length or zero; one must not cost the
// others theirs.
func blank(ctx context.Context, e llm.Embedder) error {
	for _, texts := range [][]string{{""}, {" \n\t"}, {"", samples()[0], " "}} {
		vectors, err := embed(ctx, e, texts)
		if err != nil {
			return fmt.Errorf("%q: %w", texts, err)
		}
		for i, v := range vectors {
			if n := math.Sqrt(dot(v, v)); n > tolerance && math.Abs(n-1) > tolerance {
				return fmt.Errorf("the vector of %q has the length %v, want 1 or 0", texts[i], n)
			}
		}
		if len(texts) == 3 {
			alone, err := embed(ctx, e, texts[1:2])
			if err != nil {
				return err
			}
			if err := same(texts[1], vectors[1], alone[0]); err != nil {
				return fmt.Errorf("beside blank texts: %w", err)
			}
		}
	}
	return nil
}

func hostile(ctx context.Context, e llm.Embedder) error {
	for _, text := range []string{
		"\x00\x01\x02", "a\xff\xfeb", "\"}],\"model\":\"other\"", "<|endoftext|> [CLS] [SEP] </s>",
		"\u202email\u202c \u200b\u200d", "天気 погода 😀", "\ud7ff\ufffd\uffff",
	} {
		if _, err := embed(ctx, e, []string{text}); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	return nil
}

func long(ctx context.Context, e llm.Embedder) error {
	text := strings.Repeat("send an email to a colleague and list the files of a folder. ", 2000)
	vectors, err := embed(ctx, e, []string{text, strings.Repeat("x", 100_000)})
	if err != nil {
		return err
	}
	if n := math.Sqrt(dot(vectors[0], vectors[0])); math.Abs(n-1) > tolerance {
		return fmt.Errorf("the vector of %d bytes has the length %v, want 1", len(text), n)
	}
	return nil
}

func many(ctx context.Context, e llm.Embedder) error {
	texts := make([]string, 500)
	for i := range texts {
		texts[i] = fmt.Sprintf("%s number %d", samples()[i%len(samples())], i)
	}
	vectors, err := embed(ctx, e, texts)
	if err != nil {
		return err
	}
	for i := 0; i < len(texts); i += 83 {
		alone, err := embed(ctx, e, texts[i:i+1])
		if err != nil {
			return err
		}
		if err := same(texts[i], vectors[i], alone[0]); err != nil {
			return fmt.Errorf("text %d of %d: %w", i, len(texts), err)
		}
	}
	return nil
}

func concurrent(ctx context.Context, e llm.Embedder) error {
	want, err := embed(ctx, e, samples())
	if err != nil {
		return err
	}
	failed := make([]error, 8)
	var group sync.WaitGroup
	for g := range failed {
		group.Go(func() {
			text := samples()[g%len(samples())]
			texts := []string{fmt.Sprintf("%s by %d", text, g), text}
			got, err := embed(ctx, e, texts)
			if err == nil {
				err = same(text, want[g%len(want)], got[1])
			}
			failed[g] = err
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

func cancelled(ctx context.Context, e llm.Embedder) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.Embed(ctx, samples()); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("Embed() with a cancelled context: error %v, want %v", err, context.Canceled)
	}
	return nil
}

func same(text string, a, b []float32) error {
	if cos := dot(a, b); cos < alike {
		return fmt.Errorf("the vectors of %q differ: cosine %v", text, cos)
	}
	return nil
}

func dot(a, b []float32) float64 {
	var sum float64
	for i, x := range a[:min(len(a), len(b))] {
		sum += float64(x) * float64(b[i])
	}
	return sum
}
