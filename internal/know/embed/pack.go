package embed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// A Report says what became of a vocabulary in [Pack].
type Report struct {
	Rows   int // pieces with a row
	Silent int // pieces whose vector is zero: known, without a row
	Dead   int // pieces that no text can reach, such as [CLS]: left out
}

// String returns the report as part of a sentence.
func (r Report) String() string {
	return fmt.Sprintf("%d pieces with a row, %d without, %d that no text reaches left out", r.Rows, r.Silent, r.Dead)
}

// Pack writes a model file. The weights are the vectors of the pieces one after
// the other, so their number fixes the dimensions. The vocabulary is in the
// order of training, and the tokens of the file have other numbers: pieces with
// a row first, then those whose vector is zero, each in the order given. A
// piece left out of the vocabulary altogether is one that the tokenizer spells
// with shorter ones.
//
// The rule of quantisation: with M the largest absolute weight of all, a unit u
// is M / (127 * 65,535); the scale of a row with the largest absolute weight r
// is r / (127 u), rounded up to a whole number; its numbers are weight / (scale
// * u), rounded to the nearest, halves away from zero. The unit is not kept: a
// vector of unit length does not show it.
//
// The fields say how much the tokens of each [Field] count, only their ratios
// matter; none: all alike.
//
// The same input gives the same bytes, on every machine.
func Pack(w io.Writer, name string, vocabulary []string, weights []float32, fields map[Field]float64) (Report, error) {
	p, err := newPacking(vocabulary, weights)
	if err == nil {
		err = p.setFields(fields)
	}
	if err == nil {
		err = checkName(name)
	}
	if err == nil {
		err = p.size(name).check()
	}
	if err != nil {
		return Report{}, fmt.Errorf("pack embedding model: %w", err)
	}
	var file bytes.Buffer
	file.Write(p.header(name))
	file.Write(p.rows)
	file.Write(p.scales)
	file.Write(p.offsets)
	file.Write(p.table())
	file.Write(p.strings)
	file.WriteString(name)
	sum := sha256.Sum256(file.Bytes())
	file.Write(sum[:])
	if _, err := Load(file.String()); err != nil {
		return Report{}, fmt.Errorf("pack embedding model: what was made does not load: %w", err)
	}
	_, err = file.WriteTo(w)
	return p.report, err
}

// A packing is the parts of a model file in the making.
type packing struct {
	dims                           int
	pieces                         []string // in the order of the file
	rows, scales, offsets, strings []byte
	fields                         [fieldCount]uint16
	report                         Report
}

func (p *packing) setFields(weights map[Field]float64) error {
	largest := 0.0
	for f, w := range weights {
		if f < 0 || f >= fieldCount || !(w > 0) || math.IsInf(w, 0) {
			return fmt.Errorf("field %d counts %v: a number above zero for each of %d fields is possible", f, w, fieldCount)
		}
		largest = max(largest, w)
	}
	for f, w := range weights {
		if w < largest {
			p.fields[f] = uint16(max(1, math.Round(w/largest*whole)))
		}
	}
	return nil
}

// newPacking sorts the pieces, and makes all parts but the hash table.
func newPacking(vocabulary []string, weights []float32) (*packing, error) {
	if len(vocabulary) == 0 || len(weights)%len(vocabulary) != 0 {
		return nil, fmt.Errorf("%d weights cannot be shared out among %d pieces: each needs the same number", len(weights), len(vocabulary))
	}
	p := &packing{dims: len(weights) / len(vocabulary)}
	largest, err := largestOf(weights)
	if err != nil {
		return nil, err
	}
	unit := largest / (127 * math.MaxUint16)
	seen := make(map[string]bool, len(vocabulary))
	var silent []string
	for i, piece := range vocabulary {
		if seen[piece] {
			return nil, fmt.Errorf("piece %d, %q, is there twice; each piece belongs on one line", i, piece)
		}
		seen[piece] = true
		row := weights[i*p.dims : (i+1)*p.dims]
		switch r, _ := largestOf(row); {
		case !reachable(piece):
			p.report.Dead++
		case r == 0:
			silent = append(silent, piece)
		default:
			p.pieces = append(p.pieces, piece)
			p.addRow(row, r, unit)
		}
	}
	p.report.Rows, p.report.Silent = len(p.pieces), len(silent)
	p.pieces = append(p.pieces, silent...)
	for _, piece := range p.pieces {
		p.offsets = binary.LittleEndian.AppendUint32(p.offsets, uint32(len(p.strings)))
		p.strings = append(p.strings, piece...)
	}
	p.offsets = binary.LittleEndian.AppendUint32(p.offsets, uint32(len(p.strings)))
	return p, nil
}

// largestOf returns the largest absolute value.
func largestOf(weights []float32) (float64, error) {
	largest := 0.0
	for i, x := range weights {
		a := math.Abs(float64(x))
		if math.IsNaN(a) || math.IsInf(a, 0) {
			return 0, fmt.Errorf("weight %d is %v; train again", i, x)
		}
		largest = max(largest, a)
	}
	return largest, nil
}

// addRow adds a row whose largest absolute value is r, not zero.
func (p *packing) addRow(row []float32, r, unit float64) {
	scale := min(max(math.Ceil(r/(127*unit)), 1), math.MaxUint16)
	p.scales = binary.LittleEndian.AppendUint16(p.scales, uint16(scale))
	step := scale * unit
	for _, x := range row {
		q := min(max(math.Round(float64(x)/step), -127), 127)
		p.rows = append(p.rows, byte(int(q)+128))
	}
}

// reachable says whether a text can have a piece: its characters are such as
// are in words, or it is one that is a word of its own.
func reachable(piece string) bool {
	text := bare(piece)
	if text == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > longestWord {
		return false
	}
	for _, r := range text {
		switch entry := entryOf(r); {
		case isHangul(r):
			return false
		case entry == self:
		case entry == alone && text == piece && utf8.RuneCountInString(text) == 1:
		default:
			return false
		}
	}
	return true
}

// bare returns a piece without the mark of one that continues a word.
func bare(piece string) string {
	if len(piece) > len(continued) {
		return strings.TrimPrefix(piece, continued)
	}
	return piece
}

func (p *packing) size(name string) sizes {
	longest := 0
	for _, piece := range p.pieces {
		longest = max(longest, len(bare(piece)))
	}
	slots := 2
	for slots < 2*len(p.pieces) {
		slots *= 2
	}
	return sizes{version, p.dims, p.report.Rows, len(p.pieces), slots, len(p.strings), len(name), longest}
}

func (p *packing) header(name string) []byte {
	s := p.size(name)
	b := []byte(magic)
	for _, x := range []int{s.version, s.dims, s.rows, s.pieces, s.slots, s.strings, s.name, s.longest} {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	for _, w := range p.fields {
		b = binary.LittleEndian.AppendUint16(b, w)
	}
	return append(b, make([]byte, headerSize-len(b))...)
}

// table makes the hash table, see find.
func (p *packing) table() []byte {
	slots := make([]uint32, p.size("").slots)
	shift := 64 - bits.TrailingZeros(uint(len(slots)))
	for id, piece := range p.pieces {
		text, seed := bare(piece), uint64(beginSeed)
		if text != piece {
			seed = continueSeed
		}
		h := hash([]byte(text), seed)
		at := int(h >> shift)
		for slots[at] != 0 {
			at = (at + 1) % len(slots)
		}
		slots[at] = tag(h)<<idBits | uint32(id+1)
	}
	var b []byte
	for _, s := range slots {
		b = binary.LittleEndian.AppendUint32(b, s)
	}
	return b
}
