package reader

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"ken/internal/know/embed"
)

// Weights are the numbers of a trained encoder, in the order in which PyTorch
// keeps those of a BERT: word, place and type embeddings, their normalisation;
// then each layer's query, key, value and output of attention, normalisation,
// inner and output layer, normalisation; of each a weight and a bias.
type Weights struct {
	Vocabulary []string
	Dims       int
	Inner      int
	Positions  int
	Layers     int
	Numbers    []float32
}

// Rows of BERT's vocabulary that no text reaches.
const unknownPiece, clsPiece, sepPiece = 100, 101, 102

// Pack writes a model file. The same input gives the same bytes.
func Pack(w io.Writer, name string, from Weights) error {
	p := packer{rest: from.Numbers}
	dims := from.Dims
	words := p.take(len(from.Vocabulary) * dims)
	places := p.take(from.Positions * dims)
	types := p.take(2 * dims)
	if p.short {
		return errTooFew(from)
	}
	var table bytes.Buffer
	pieces, kept := readable(from.Vocabulary, words, dims)
	if _, err := embed.Pack(&table, name, pieces, make([]float32, len(kept)), nil); err != nil {
		return err
	}
	if err := p.words(table.String(), pieces, kept, dims); err != nil {
		return err
	}
	for _, piece := range []int{clsPiece, sepPiece, unknownPiece} {
		p.floats(words[piece*dims:][:dims])
	}
	var scales []float32
	var rows []byte
	for i := range min(from.Positions, mostTokens) {
		sum := make([]float32, dims)
		for j := range sum {
			sum[j] = places[i*dims+j] + types[j]
		}
		row, scale := quantiseRow(sum)
		rows, scales = append(rows, row...), append(scales, scale)
	}
	p.floats(scales)
	p.out = append(p.out, rows...)
	p.copy(2 * dims)
	for range from.Layers {
		p.linear(dims, []int{dims, dims, dims}, float32(1/math.Sqrt(headSize)))
		p.linear(dims, []int{dims}, 1)
		p.copy(2 * dims)
		p.linear(dims, []int{from.Inner}, 1)
		p.linear(from.Inner, []int{dims}, 1)
		p.copy(2 * dims)
	}
	if p.short || len(p.rest) > 0 {
		return errTooFew(from)
	}
	header := []byte(magic)
	for _, x := range []int{version, dims, from.Inner, from.Layers, min(from.Positions, mostTokens), table.Len()} {
		header = binary.LittleEndian.AppendUint32(header, uint32(x))
	}
	header = append(header, make([]byte, headerSize-len(header))...)
	file := append(append(header, table.Bytes()...), p.out...)
	sum := sha256.Sum256(file)
	file = append(file, sum[:]...)
	if _, err := Load(string(file)); err != nil {
		return fmt.Errorf("pack reader model: what was made does not load: %w", err)
	}
	_, err := w.Write(file)
	return err
}

func errTooFew(from Weights) error {
	return fmt.Errorf("pack reader model: %d numbers are not those of %d layers of %d and %d", len(from.Numbers), from.Layers, from.Dims, from.Inner)
}

// A packer turns the numbers of training into those of a file.
type packer struct {
	rest  []float32
	short bool
	out   []byte
}

func (p *packer) take(n int) []float32 {
	if p.short = p.short || n > len(p.rest); p.short {
		return make([]float32, n)
	}
	part := p.rest[:n]
	p.rest = p.rest[n:]
	return part
}

func (p *packer) floats(x []float32) {
	for _, v := range x {
		p.out = binary.LittleEndian.AppendUint32(p.out, math.Float32bits(v))
	}
}

// words packs the embeddings of the pieces that the vocabulary has, in its order.
func (p *packer) words(vocabulary string, pieces []string, weights []float32, dims int) error {
	v, err := embed.Load(vocabulary)
	if err != nil {
		return err
	}
	at := make(map[string]int, len(pieces))
	for i, piece := range pieces {
		at[piece] = i
	}
	var largest []float32
	var shares, numbers []byte
	for id := range v.Pieces() {
		l, s, n := packRow(weights[at[v.Piece(uint32(id))]*dims:][:dims])
		largest, shares, numbers = append(largest, l), append(shares, s...), append(numbers, n...)
	}
	p.floats(largest)
	p.out = append(append(p.out, shares...), numbers...)
	return nil
}

func (p *packer) copy(n int) { p.floats(p.take(n)) }

// linear packs linear layers of the same input as one. The results of the first
// are multiplied with a factor.
func (p *packer) linear(in int, outs []int, factor float32) {
	var rows [][]byte
	var scales, biases []float32
	for i, out := range outs {
		weights, bias := p.take(in*out), p.take(out)
		for o := range out {
			row, scale := quantiseRow(weights[o*in : (o+1)*in])
			b := bias[o]
			if i == 0 {
				scale, b = scale*factor, b*factor
			}
			rows, scales, biases = append(rows, row), append(scales, scale), append(biases, b)
		}
	}
	var tiles []byte
	for group := 0; group < len(rows); group += 16 {
		for at := 0; at < in; at += 4 {
			for _, row := range rows[group : group+16] {
				tiles = append(tiles, row[at:at+4]...)
			}
		}
	}
	p.out = append(p.out, tiles...)
	p.floats(scales)
	p.floats(biases)
	for _, x := range excessOf(string(tiles), in, len(rows)) {
		p.out = binary.LittleEndian.AppendUint32(p.out, uint32(x))
	}
}

// readable leaves out the pieces of other scripts than the Latin one, whose texts
// the model was not trained to read: a seventeenth of the vocabulary.
func readable(vocabulary []string, words []float32, dims int) (pieces []string, kept []float32) {
	const lastLatin = 0x24F
	for i, piece := range vocabulary {
		if strings.IndexFunc(piece, func(r rune) bool { return r > lastLatin }) < 0 {
			pieces, kept = append(pieces, piece), append(kept, words[i*dims:(i+1)*dims]...)
		}
	}
	return pieces, kept
}

// quantiseRow returns the weights of one output as numbers from -127 to 127, and
// what they are to be multiplied with.
func quantiseRow(row []float32) ([]byte, float32) {
	most := largestOf(row)
	out := make([]byte, len(row))
	if most == 0 {
		return out, 0
	}
	for i, v := range row {
		out[i] = byte(int8(math.Round(float64(v) / float64(most) * 127)))
	}
	return out, most / 127
}
