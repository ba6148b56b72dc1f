// Package embed is the built-in embedding model: a table of token vectors that
// are summed. It needs no network and no start-up, returns a query's vector in
// microseconds, and produces the same bits on every machine.
//
// A text is cut into the pieces of a BERT vocabulary ([Model.Tokens]). Every
// piece has a row: Dimensions whole numbers from -127 to 127, and a scale from
// 1 to 65,535. The vector of a text is the sum of row times scale over its
// first [MaxTokens] pieces, brought to unit length. A text without a known
// piece has the zero vector, which is like nothing else.
//
//	m := embed.Builtin()
//	query := m.Append(nil, "find recent articles")
//
// # The same bits everywhere
//
// Floating point may differ between processors, because a compiler may fuse a
// product and a sum into one rounding. So the sum over the pieces, and the sum
// of its squares, are made of whole numbers, where order and fusing mean
// nothing. Only then come floating-point steps: conversions, a product, a
// square root, a division. None of them is a product followed by a sum that
// could round differently, and IEEE 754 fixes the result of each.
//
// [Builtin] is the model that Ken ships; [Load] reads another file of the same
// format; [Pack] writes one of what training gives.
package embed

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// MaxTokens is how many pieces of a text count; the rest is not read.
const MaxTokens = 256

// Unknown is the token of a word that the vocabulary cannot spell. It takes
// one of the [MaxTokens] places and adds nothing to a vector.
const Unknown = 1<<32 - 1

// builtin is the model file. As a string it stays in read-only pages of the
// binary, off the heap, and only the rows in use are ever read from disk.
//
//go:embed model.bin
var builtin string

// placeholder begins the name of a model that is there so that the package
// builds, and is not fit for use.
const placeholder = "placeholder"

// Builtin returns the model inside the binary, always the same one. It is nil
// as long as model.bin is only a placeholder for the trained weights. The file
// is part of the program, so its checksum is left to the package's tests.
func Builtin() *Model { return readBuiltin() }

// GiveBackBuiltin returns the memory of the built-in model to the system. The next
// use reads it again. Indexing many texts reads most of the model, a message little.
func GiveBackBuiltin() { GiveBack(builtin) }

var readBuiltin = sync.OnceValue(func() *Model {
	m, err := read(builtin)
	if err != nil {
		panic("the embedding model inside this binary is broken: " + err.Error())
	}
	if strings.HasPrefix(m.name, placeholder) {
		return nil
	}
	return m
})

// A Model turns texts into vectors. It never changes and may be used by many
// goroutines at once. It holds on to the data it was loaded from and to nothing
// else. It is an llm.Embedder.
type Model struct {
	name string
	dims int

	rows    string             // for each row, dims bytes: a number from -127 to 127 plus 128
	scales  string             // for each row, 2 bytes
	offsets string             // for each piece, 4 bytes: where it begins in strings; and the end of the last
	slots   string             // a hash table of the pieces, see find
	strings string             // the pieces, one after the other, with ## where they continue a word
	shift   uint               // of a hash, so that the number of a slot remains
	longest int                // bytes of the longest piece, without ##
	fields  [fieldCount]uint64 // how much a token counts, by its field, in 65,536ths
	count   uint32             // of rows: the pieces from this one on have none
}

// Model names the weights: the name given when they were packed, @, and the
// beginning of the file's checksum. Other weights have another name.
func (m *Model) Model() string { return m.name }

// Dimensions is the length of every vector.
func (m *Model) Dimensions() int { return m.dims }

// Embed returns one vector per text, in order, of unit length, or zero for a text
// without a known word. The vectors belong to the caller and lie in one piece of
// memory together. It fails only when ctx ends.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	all := make([]float32, 0, len(texts)*m.dims)
	for i, text := range texts {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = m.Append(all, text)
		vectors[i] = all[i*m.dims : (i+1)*m.dims : (i+1)*m.dims]
	}
	return vectors, nil
}

// Append adds the vector of a text to dst. It allocates nothing if dst has
// room for Dimensions more.
func (m *Model) Append(dst []float32, text string) []float32 {
	var room [MaxTokens + longestWord]uint32
	return m.AppendTokens(dst, m.Tokens(room[:0], text))
}

// AppendMessage adds the vector of what a person wrote to dst. It is that of the
// text, but for marks: the usual ones count once each, others (rulers, brackets,
// markup) not at all. A bag of words would hear nothing else.
func (m *Model) AppendMessage(dst []float32, text string) []float32 {
	var room [MaxTokens + longestWord]uint32
	return m.AppendTokens(dst, m.withoutMarks(m.Tokens(room[:0], text)))
}

// usualMarks are those that sentences have.
const usualMarks = ".,?!-'\""

// withoutMarks drops tokens in place.
func (m *Model) withoutMarks(tokens []uint32) []uint32 {
	kept, seen := tokens[:0], uint(0)
	for _, id := range tokens {
		if id < m.count {
			if p := m.piece(id); len(p) == 1 && ascii[p[0]] == alone {
				at := strings.IndexByte(usualMarks, p[0])
				if at < 0 || seen&(1<<at) != 0 {
					continue
				}
				seen |= 1 << at
			}
		}
		kept = append(kept, id)
	}
	return kept
}

// AppendTokens adds the vector of a list of tokens to dst, as Append does for
// those of a text. Tokens past the first [MaxTokens] are not read; tokens of
// another model are not noticed.
func (m *Model) AppendTokens(dst []float32, tokens []uint32) []float32 {
	var room [MaxTokens]term
	terms := m.appendTerms(room[:0], tokens[:min(len(tokens), MaxTokens)], whole)
	return m.appendSum(dst, terms)
}

// AppendSigns adds the signs of the vector of a short text to dst, a bit for each
// number, in words of 64: 1 where it is above zero. The dimensions must be a
// multiple of 64. Two texts are the more alike the fewer bits differ; of texts
// that have nothing in common half do.
func (m *Model) AppendSigns(dst []uint64, text string) []uint64 {
	var room [MaxTokens + longestWord]uint32
	tokens := m.withoutMarks(m.Tokens(room[:0], text))
	if len(tokens) == 1 && tokens[0] < m.count { // most words are a row
		row := m.rows[int(tokens[0])*m.dims:][:m.dims]
		for ; len(row) >= 64; row = row[64:] {
			var bits uint64
			for i := 0; i < 64; i += 8 {
				bits |= above(load64(row, i)) << i
			}
			dst = append(dst, bits)
		}
		return dst
	}
	var vector [maxDims]float32
	for rest := m.AppendTokens(vector[:0], tokens); len(rest) >= 64; rest = rest[64:] {
		var bits uint64
		for i, x := range rest[:64] {
			if x > 0 {
				bits |= 1 << i
			}
		}
		dst = append(dst, bits)
	}
	return dst
}

// Pieces returns how many pieces the vocabulary has. Tokens are numbers below it.
func (m *Model) Pieces() int { return len(m.offsets)/4 - 1 }

// Piece returns the text of a token, ## before it if it continues a word. It is
// empty for [Unknown] and whatever else is no token.
func (m *Model) Piece(id uint32) string {
	if uint64(id) >= uint64(m.Pieces()) {
		return ""
	}
	return m.piece(id)
}

// above says of eight bytes of a row which are above 128, which stands for
// zero: those whose highest bit is set and another one too. The product gathers
// the lowest bits of all bytes in the highest byte.
func above(x uint64) uint64 {
	const high, rest, gather = 0x8080808080808080, 0x7F7F7F7F7F7F7F7F, 0x0102040810204080
	return (x & (x&rest + rest) & high >> 7) * gather >> 56
}

// whole is a weight that takes nothing away.
const whole = 1 << 16

// appendTerms adds the rows of tokens, each counting weight 65,536ths.
func (m *Model) appendTerms(terms []term, tokens []uint32, weight uint64) []term {
	for _, id := range tokens {
		if id < m.count {
			terms = append(terms, term{int(id) * m.dims, uint64(load16(m.scales, 2*int(id))) * weight >> 16})
		}
	}
	return terms
}

func (m *Model) appendSum(dst []float32, terms []term) []float32 {
	dst = slices.Grow(dst, m.dims)
	vector := dst[len(dst) : len(dst)+m.dims]
	m.sum(vector, terms)
	return dst[:len(dst)+m.dims]
}
