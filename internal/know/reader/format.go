package reader

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"ken/internal/know/embed"
)

// A model file has, all numbers little-endian:
//
//	header     64 bytes: the magic; then, 4 bytes each, the version, dimensions,
//	           inner dimensions, layers, positions, bytes of the vocabulary; zeros
//	vocabulary a file of package embed without rows
//	words      the embeddings of its pieces: the largest absolute weight of each,
//	           float32; for each group of 32 numbers its largest weight in 255ths
//	           of that, a byte; the numbers, from -31 to 31 plus 32, in 6 bits,
//	           the lowest bits first
//	specials   float32: the embeddings of [CLS], [SEP] and [UNK]
//	positions  the embeddings of the places in a text: a scale for each, float32,
//	           then dimensions bytes for each, from -127 to 127
//	norm       float32: weight and bias of the first normalisation
//	layers     each: queries, keys and values; the output of attention; weight
//	           and bias of its normalisation; the inner layer; the output layer;
//	           weight and bias of its normalisation
//	checksum   SHA-256 of everything before it
//
// A linear layer is its weights as tiles read them (see tile); then for each
// output a scale and a bias, float32, and 128 times the sum of its weights, a
// whole number.
const (
	magic      = "KENREADR"
	version    = 2
	headerSize = 64
)

// The special rows.
const (
	clsRow = iota
	sepRow
	unknownRow
	specialRows
)

var errShort = errors.New("the file is cut short or has something after its end; copy or make it again")

// Load reads a model file and checks it. A model may be used only where it is
// [Supported].
func Load(data string) (*Model, error) {
	m, err := read(data, embed.Load)
	if err == nil {
		err = m.check(data)
	}
	if err != nil {
		return nil, fmt.Errorf("load reader model: %w", err)
	}
	return m, nil
}

// check compares the checksum, and the sums of weights that tiles rely on.
func (m *Model) check(data string) error {
	for i := range m.layers {
		l := &m.layers[i]
		for _, l := range []*linear{&l.qkv, &l.attended, &l.up, &l.down} {
			if !slices.Equal(l.excess, excessOf(l.weights, l.in, l.out)) {
				return fmt.Errorf("layer %d has wrong sums of weights; make the file again", i)
			}
		}
	}
	sum := sha256.New()
	var chunk [1 << 12]byte // no copy of the file on the heap
	for rest := data[:len(data)-sha256.Size]; rest != ""; {
		n := copy(chunk[:], rest)
		sum.Write(chunk[:n])
		rest = rest[n:]
	}
	if !bytes.Equal(sum.Sum(nil), []byte(data[len(data)-sha256.Size:])) {
		return errors.New("wrong checksum: the file is damaged; copy or make it again")
	}
	return nil
}

// A parts takes a file apart.
type parts struct {
	rest string
	err  error
}

func (p *parts) take(n int) string {
	if p.err != nil || n < 0 || n > len(p.rest) {
		p.err = errShort
		return ""
	}
	part := p.rest[:n]
	p.rest = p.rest[n:]
	return part
}

func (p *parts) number() uint32 {
	b := p.take(4)
	if p.err != nil {
		return 0
	}
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func (p *parts) floats(n int) []float32 {
	b := p.take(4 * n)
	if p.err != nil {
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		at := b[4*i : 4*i+4]
		x := math.Float32frombits(uint32(at[0]) | uint32(at[1])<<8 | uint32(at[2])<<16 | uint32(at[3])<<24)
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			p.err = fmt.Errorf("a weight is %v; make the file again", x)
			return nil
		}
		out[i] = x
	}
	return out
}

func (p *parts) norm(dims int) norm { return norm{p.floats(dims), p.floats(dims)} }

func (p *parts) linear(in, out int) linear {
	l := linear{in: in, out: out, weights: p.take(in * out), scale: p.floats(out), bias: p.floats(out), excess: make([]int32, out)}
	for i := range l.excess {
		l.excess[i] = int32(p.number())
	}
	return l
}

// words reads the rows of word embeddings.
func (p *parts) words(n, dims int) wordRows {
	groups := dims / wordGroup
	return wordRows{largest: p.floats(n), shares: p.take(n * groups), numbers: p.take(n * groups * wordBytes), groups: groups}
}

// rows reads rows of bytes, each with a scale.
func (p *parts) rows(n, dims int) []float32 {
	scales, bytes := p.floats(n), p.take(n*dims)
	if p.err != nil {
		return nil
	}
	out := make([]float32, n*dims)
	for i := range out {
		out[i] = float32(int8(bytes[i])) * scales[i/dims]
	}
	return out
}

// excessOf returns 128 times the sum of the weights of each output.
func excessOf(weights string, in, out int) []int32 {
	sums := make([]int32, out)
	for at := range len(weights) {
		sums[at/(16*in)*16+at%64/4] += 128 * int32(int8(weights[at]))
	}
	return sums
}

// read finds the parts of a model file, its vocabulary with a function.
func read(data string, readVocabulary func(string) (*embed.Model, error)) (*Model, error) {
	if len(data) < headerSize+sha256.Size || data[:len(magic)] != magic {
		return nil, errors.New("not a model file: wrong first bytes; make one with internal/know/reader/pack")
	}
	header := parts{rest: data[len(magic):headerSize]}
	var n [6]int
	for i := range n {
		x := header.number()
		if x > 1<<28 {
			return nil, fmt.Errorf("number %d of the header is %d, which no model has; make the file again", i, x)
		}
		n[i] = int(x)
	}
	if err := checkSizes(n); err != nil {
		return nil, err
	}
	p := parts{rest: data[headerSize : len(data)-sha256.Size]}
	table := p.take(n[5])
	if p.err != nil {
		return nil, p.err
	}
	vocabulary, err := readVocabulary(table)
	if err != nil {
		return nil, err
	}
	m := &Model{dims: n[1], inner: n[2], vocabulary: vocabulary, geluTable: newGeluTable(), kernels: class()}
	m.words = p.words(vocabulary.Pieces(), m.dims)
	for i := range m.specials {
		m.specials[i] = p.floats(m.dims)
	}
	m.positions = p.rows(n[4], m.dims)
	m.firstNorm = p.norm(m.dims)
	for range n[3] {
		l := layer{qkv: p.linear(m.dims, 3*m.dims), attended: p.linear(m.dims, m.dims)}
		l.attentionNorm = p.norm(m.dims)
		l.up, l.down = p.linear(m.dims, m.inner), p.linear(m.inner, m.dims)
		l.norm = p.norm(m.dims)
		m.layers = append(m.layers, l)
	}
	if p.err == nil && p.rest != "" {
		p.err = errShort
	}
	if p.err != nil {
		return nil, p.err
	}
	m.name = vocabulary.Model() + "-" + hex.EncodeToString([]byte(data[len(data)-sha256.Size:])[:4])
	m.states.New = func() any { return new(state) }
	return m, nil
}

func checkSizes(n [6]int) error {
	switch dims, inner := n[1], n[2]; {
	case n[0] != version:
		return fmt.Errorf("unsupported format version %d, want %d; make the file again", n[0], version)
	case dims == 0 || dims%64 != 0 || dims > 512 || inner == 0 || inner%64 != 0 || inner > 4096 || n[3] == 0 || n[3] > 24:
		return fmt.Errorf("%d layers of %d and %d numbers: up to 24 layers of multiples of 64, up to 512 and 4096, are possible", n[3], dims, inner)
	case n[4] < mostTokens || n[4] > 4096:
		return fmt.Errorf("%d places in a text: %d to 4096 are possible", n[4], mostTokens)
	}
	return nil
}
