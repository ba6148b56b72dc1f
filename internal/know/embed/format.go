package embed

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// A model file has, all numbers little-endian:
//
//	header    64 bytes: the magic; then, 4 bytes each, the version, dimensions,
//	          rows, pieces, slots, bytes of strings, bytes of the name, bytes of
//	          the longest piece without ##; then, 2 bytes each, how much the
//	          tokens of the fields of a document count, in 65,536ths, 0 for
//	          fully: see [Field]; zeros
//	rows      rows * dimensions bytes: a number from -127 to 127 plus 128
//	scales    2 bytes per row
//	offsets   4 bytes per piece, and one more: where in strings it begins
//	slots     4 bytes each: the hash table, see find
//	strings   the pieces
//	name      of the model
//	checksum  SHA-256 of everything before it
//
// The pieces with a row come first and have its number. Those without are known
// to the tokenizer, so that it cuts words as in training, and add nothing.
const (
	magic      = "KENEMBED"
	version    = 1
	headerSize = 64
	fieldsAt   = len(magic) + 4*8
	maxName    = 100
	maxPieces  = 1<<idBits - 2
)

// sizes are the numbers of a header.
type sizes struct {
	version, dims, rows, pieces, slots, strings, name, longest int
}

// Load reads a model file. It checks everything that using the model relies
// on, the checksum too; so whatever the bytes are, the model that it returns
// does not panic.
func Load(data string) (*Model, error) {
	m, err := read(data)
	if err == nil {
		err = m.check(data)
	}
	if err != nil {
		return nil, fmt.Errorf("load embedding model: %w", err)
	}
	return m, nil
}

// Trusted reads a model file that is part of the program, without a look at
// what is in its parts. The tests of whoever ships it [Load] it.
func Trusted(data string) (*Model, error) { return read(data) }

var (
	errMagic = errors.New("not a model file: wrong first bytes; make one with internal/know/embed/pack")
	errCut   = errors.New("the file is cut short or has something after its end; copy or make it again")
)

// read finds the parts of a model file, without a look at what is in them.
func read(data string) (*Model, error) {
	if len(data) < headerSize+sha256.Size || data[:len(magic)] != magic {
		return nil, errMagic
	}
	var s sizes
	for i, field := range []*int{&s.version, &s.dims, &s.rows, &s.pieces, &s.slots, &s.strings, &s.name, &s.longest} {
		x := load32(data, len(magic)+4*i)
		if x > 1<<30 {
			return nil, fmt.Errorf("number %d of the header is %d, which no model has; make the file again", i, x)
		}
		*field = int(x)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	rest := data[headerSize : len(data)-sha256.Size]
	short := false
	take := func(size int64) string {
		if short = short || size > int64(len(rest)); short {
			return ""
		}
		part := rest[:size]
		rest = rest[size:]
		return part
	}
	m := &Model{
		dims:    s.dims,
		rows:    take(int64(s.rows) * int64(s.dims)),
		scales:  take(2 * int64(s.rows)),
		offsets: take(4 * (int64(s.pieces) + 1)),
		slots:   take(4 * int64(s.slots)),
		strings: take(int64(s.strings)),
		shift:   uint(64 - bits.TrailingZeros(uint(s.slots))),
		longest: s.longest,
		count:   uint32(s.rows),
	}
	for i := range m.fields {
		m.fields[i] = whole
		if w := load16(data, fieldsAt+2*i); w != 0 {
			m.fields[i] = uint64(w)
		}
	}
	name := take(int64(s.name))
	if short || rest != "" {
		return nil, errCut
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	m.name = name + "@" + hex.EncodeToString([]byte(data[len(data)-sha256.Size:])[:4])
	return m, nil
}

// check says what is wrong with the numbers of a header.
func (s sizes) check() error {
	switch {
	case s.version != version:
		return fmt.Errorf("unsupported format version %d, want %d; make the file again", s.version, version)
	case s.dims == 0 || s.dims > maxDims || s.dims%group != 0:
		return fmt.Errorf("vectors of %d numbers: a multiple of %d up to %d is possible", s.dims, group, maxDims)
	case s.pieces > maxPieces || s.rows > s.pieces:
		return fmt.Errorf("%d pieces with %d rows: at most %d are possible, and not more rows than pieces", s.pieces, s.rows, maxPieces)
	case bits.OnesCount(uint(s.slots)) != 1 || s.slots < 2 || s.slots <= s.pieces:
		return fmt.Errorf("%d slots for %d pieces: a power of two above them is needed", s.slots, s.pieces)
	}
	return nil
}

// checkName says what is wrong with the name of a model. Names are shown and
// compared, so they are plain.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name of %d bytes: 1 to %d are possible", len(name), maxName)
	}
	for _, r := range name {
		if r >= utf8.RuneSelf || ascii[r] <= alone && !strings.ContainsRune("-._", r) {
			return fmt.Errorf("the name %q: letters, digits and - . _ are possible", name)
		}
	}
	return nil
}

// check says what is wrong with the parts of a file.
func (m *Model) check(data string) error {
	body, want := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	// Hashed in slices, so that no copy of the file lies on the heap.
	sum := sha256.New()
	var chunk [1 << 12]byte
	for rest := body; rest != ""; {
		n := copy(chunk[:], rest)
		sum.Write(chunk[:n])
		rest = rest[n:]
	}
	if string(sum.Sum(nil)) != want {
		return errors.New("wrong checksum: the file is damaged; copy or make it again")
	}
	pieces := len(m.offsets)/4 - 1
	for id, before := 0, uint32(0); id <= pieces; id++ {
		at := load32(m.offsets, 4*id)
		if at < before || int64(at) > int64(len(m.strings)) {
			return fmt.Errorf("piece %d lies outside the strings; make the file again", id)
		}
		before = at
	}
	used := 0
	for at := 0; at < len(m.slots); at += 4 {
		slot := load32(m.slots, at)
		if slot == 0 {
			continue
		}
		used++
		if id := slot & (1<<idBits - 1); id == 0 || int(id) > pieces {
			return fmt.Errorf("slot %d names a piece that is not there; make the file again", at/4)
		}
	}
	// A search ends at an empty slot.
	if used > pieces {
		return fmt.Errorf("%d slots are in use for %d pieces; make the file again", used, pieces)
	}
	return nil
}
