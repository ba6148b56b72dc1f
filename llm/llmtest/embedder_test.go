package llmtest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ken/llm"
)

// letters is an honest embedder: it counts pairs of letters.
type letters struct{}

func (letters) Model() string   { return "letters" }
func (letters) Dimensions() int { return 64 }

func (letters) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, 64)
		v[0] = 0.01
		for j := 1; j < len(text); j++ {
			v[(int(text[j-1])*31+int(text[j]))%64]++
		}
		n := float32(math.Sqrt(dot(v, v)))
		for j := range v {
			v[j] /= n
		}
		vectors[i] = v
	}
	return vectors, ctx.Err()
}

func TestEmbedder(t *testing.T) { Embedder(t, letters{}) }

// A broken embedder is a good one of which one thing is changed.
type broken struct {
	letters
	name  func() string
	dims  func() int
	embed func(ctx context.Context, texts []string) ([][]float32, error)
}

func (b broken) Model() string {
	if b.name != nil {
		return b.name()
	}
	return b.letters.Model()
}

func (b broken) Dimensions() int {
	if b.dims != nil {
		return b.dims()
	}
	return b.letters.Dimensions()
}

func (b broken) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if b.embed != nil {
		return b.embed(ctx, texts)
	}
	return b.letters.Embed(ctx, texts)
}

// Every clause is broken by an embedder that breaks it.
func TestEmbedderNoticesWhatIsBroken(t *testing.T) {
	var calls atomic.Int64
	// after returns an embedder that changes what the good one gives.
	after := func(change func(texts []string, vectors [][]float32) [][]float32) llm.Embedder {
		return broken{embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			vectors, err := letters{}.Embed(ctx, texts)
			if err != nil {
				return nil, err
			}
			return change(texts, vectors), nil
		}}
	}
	refuse := func(bad func([]string) bool) llm.Embedder {
		return broken{embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			if bad(texts) {
				return nil, errors.New("refused")
			}
			return letters{}.Embed(ctx, texts)
		}}
	}
	tests := []struct {
		clause string
		e      llm.Embedder
	}{
		{"name", broken{name: func() string { return "" }}},
		{"name", broken{name: func() string { return strings.Repeat("x", int(calls.Add(1))) }}},
		{"dimensions", broken{dims: func() int { return 0 }}},
		{"dimensions", broken{dims: func() int { return 65 }}},
		{"dimensions", after(func(_ []string, v [][]float32) [][]float32 { return append(v, v...) })},
		{"dimensions", after(func(_ []string, v [][]float32) [][]float32 { v[0][3] = float32(math.NaN()); return v })},
		{"unit length", after(func(_ []string, v [][]float32) [][]float32 {
			for i := range v[0] {
				v[0][i] *= 2
			}
			return v
		})},
		{"order", after(func(_ []string, v [][]float32) [][]float32 {
			if len(v) > 1 {
				v[0], v[1] = v[1], v[0]
			}
			return v
		})},
		{"same text same vector", after(func(_ []string, v [][]float32) [][]float32 {
			if calls.Add(1)%2 == 0 {
				slices.Reverse(v[0])
			}
			return v
		})},
		{"other text other vector", after(func(_ []string, v [][]float32) [][]float32 {
			for i := range v {
				v[i] = v[0]
			}
			return v
		})},
		{"texts untouched", after(func(texts []string, v [][]float32) [][]float32 { slices.Reverse(texts); return v })},
		{"no texts", refuse(func(texts []string) bool { return len(texts) == 0 })},
		{"text without words", refuse(func(texts []string) bool { return slices.Contains(texts, "") })},
		{"text without words", after(func(texts []string, v [][]float32) [][]float32 {
			if i := slices.Index(texts, ""); i >= 0 {
				v[i][0] = 0.5
			}
			return v
		})},
		{"hostile text", refuse(func(texts []string) bool { return strings.Contains(texts[0], "\xff") })},
		{"long text", refuse(func(texts []string) bool { return len(texts[0]) > 50_000 })},
		{"many texts", refuse(func(texts []string) bool { return len(texts) > 100 })},
		{"concurrency", after(func(texts []string, v [][]float32) [][]float32 {
			if strings.Contains(texts[0], " by 5") {
				slices.Reverse(v[1])
			}
			return v
		})},
		{"cancelled", broken{embed: func(_ context.Context, texts []string) ([][]float32, error) {
			return letters{}.Embed(context.Background(), texts)
		}}},
	}
	covered := map[string]bool{}
	for _, test := range tests {
		i := slices.IndexFunc(clauses, func(c clause) bool { return c.name == test.clause })
		if i < 0 {
			t.Fatalf("there is no clause %q", test.clause)
		}
		covered[test.clause] = true
		if err := clauses[i].check(t.Context(), test.e); err == nil {
			t.Errorf("clause %q does not notice what is broken", test.clause)
		}
	}
	for _, c := range clauses {
		if !covered[c.name] {
			t.Errorf("nothing shows that the clause %q can fail", c.name)
		}
	}
}
