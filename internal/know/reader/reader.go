// Package reader is the second embedding model: a small transformer encoder in
// 8 bits. It reads a whole text, where package embed adds up words, and takes
// milliseconds, where embed takes microseconds.
//
// The weights are whole numbers from -127 to 127 with one scale per row; those of
// the word embeddings, which no layer multiplies, are from -31 to 31. The
// activations of a linear layer are quantised for each token. Its products are
// added up by assembly for the processor at hand: AVX-512 VNNI, AVX-VNNI, AVX2 or
// NEON. There is no version for other processors; [Supported] reports that, and
// the caller goes on with the model of package embed.
package reader

import (
	"context"
	_ "embed"
	"sync"

	"ken/internal/know/embed"
)

// builtin is the model file. As a string it stays in read-only pages of the
// binary, off the heap.
//
//go:embed model.bin
var builtin string

// Builtin returns the model inside the binary, always the same one. The file is
// part of the program, so its checksum is left to the package's tests.
func Builtin() *Model { return readBuiltin() }

// GiveBackBuiltin returns the memory of the built-in model to the system. The next
// use reads it again.
func GiveBackBuiltin() { embed.GiveBack(builtin) }

var readBuiltin = sync.OnceValue(func() *Model {
	m, err := read(builtin, embed.Trusted)
	if err != nil {
		panic("the reader model inside this binary is broken: " + err.Error())
	}
	return m
})

// A Model turns texts into vectors. It never changes and may be used by many
// goroutines at once. It is an llm.Embedder.
type Model struct {
	name       string
	dims       int
	inner      int
	vocabulary *embed.Model
	words      wordRows // the embeddings of the vocabulary's pieces
	specials   [specialRows][]float32
	positions  []float32
	firstNorm  norm
	layers     []layer
	geluTable  *[2*geluReach*geluFine + 2]float32
	kernels    *kernels
	limited    sync.Once // findLimits
	states     sync.Pool
}

// Supported reports whether this processor can run a model.
func Supported() bool { return class() != nil }

// Kernels names the class of processor that the model runs on.
func (m *Model) Kernels() string {
	if m.kernels == nil {
		return "none"
	}
	return m.kernels.name
}

// Model names the weights.
func (m *Model) Model() string { return m.name }

// Dimensions is the length of every vector.
func (m *Model) Dimensions() int { return m.dims }

// Embed returns one vector per text, in order, of unit length. It fails only
// when ctx ends.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	all := make([]float32, 0, len(texts)*m.dims)
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = m.Append(all, text)
		vectors[i] = all[i*m.dims : (i+1)*m.dims : (i+1)*m.dims]
	}
	return vectors, nil
}
