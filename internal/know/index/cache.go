package index

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/language"
)

// A Cache keeps segments in files, by the hash of all that went into them, so
// that a program that starts over a large catalog finds at once, and that no
// vector of the model is made twice. A nil Cache and one without Dir keep
// nothing. A file that is damaged, or was written by
// another version, counts as absent; one that cannot be written costs speed and
// nothing else. Dir must be the user's alone. Several processes may share it.
type Cache struct {
	Dir   string
	Name  string       // what its files begin with
	Model *embed.Model // makes vectors; nil: words alone
}

const (
	cacheFormat   = "ken index 7\n"
	cacheSuffix   = ".index"
	leastCached   = 256 // capabilities; fewer are read sooner than looked up
	mostCached    = 4   // files of one name
	leastShared   = 4   // one in so many may be new or gone for a file to be of use,
	mostDifferent = 32  // and one in so many new for it to stay the only one
	cacheKey      = 8   // bytes of the hash in a file's name
)

// Build returns the segment of a list: the one that is kept, or a new one. Where
// none of exactly this list is kept, but one of nearly the same, only what is
// different is read again: the last start, or another folder, mostly had all but a
// few of these capabilities.
func (c *Cache) Build(list []*capability.Capability) *Segment {
	if c == nil {
		return Build(list)
	}
	if c.Dir == "" || len(list) < leastCached {
		return BuildWith(c.Model, list)
	}
	marks := marksOf(list)
	key := keyOfMarks(marks, c.Model)
	path := filepath.Join(c.Dir, fmt.Sprintf("%s-%s%s", c.Name, hex.EncodeToString(key[:cacheKey]), cacheSuffix))
	if f, ok := openKept(path); ok {
		if s, ok := f.decode(key, list, c.Model); ok {
			return s
		}
		f.close()
	}
	s, different := c.near(list, marks, path)
	if s != nil && different*mostDifferent <= len(list) {
		return s // so little is different that the file is good for the next start too
	}
	if s == nil {
		s = BuildWith(c.Model, list)
	}
	c.keep(path, encodeMarked(s, key, marks))
	return s
}

// keep writes a file whole or not at all, and removes the oldest ones.
func (c *Cache) keep(path string, data []byte) {
	if os.MkdirAll(c.Dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(c.Dir, scratch+"*")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name()) // nothing depends on it
		return
	}
	c.prune()
}

// files returns the kept files of this name, the newest first.
func (c *Cache) files(entries []os.DirEntry) []string {
	var files []string
	for _, e := range entries {
		key, ok := strings.CutPrefix(e.Name(), c.Name+"-")
		if key, suffix := strings.CutSuffix(key, cacheSuffix); ok && suffix && len(key) == 2*cacheKey {
			files = append(files, filepath.Join(c.Dir, e.Name()))
		}
	}
	age := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(files, func(a, b string) int { return int(min(1, max(-1, age(b)-age(a)))) })
	return files
}

func (c *Cache) prune() {
	entries, _ := os.ReadDir(c.Dir) // what cannot be listed is not removed
	files := c.files(entries)
	for _, old := range files[min(len(files), mostCached):] {
		_ = os.Remove(old) // another process may have been first
	}
	for _, e := range entries { // what killed writers left
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), scratch) && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(filepath.Join(c.Dir, e.Name()))
		}
	}
}

const scratch = "scratch-"

// encode writes what is costly to make again: the words of each capability.
func encode(s *Segment, key [sha256.Size]byte) []byte {
	marks := make([]mark, len(s.Docs))
	for i := range s.Docs {
		marks[i] = markOf(s.Docs[i].Capability)
	}
	return encodeMarked(s, key, marks)
}

// encodeMarked is encode where the marks of the capabilities are known.
func encodeMarked(s *Segment, key [sha256.Size]byte, marks []mark) []byte {
	out := make([]byte, 0, s.roomy())
	out = append(append(out, cacheFormat...), key[:]...)
	basis := basisOf(s.Model)
	out = append(out, basis[:]...)
	number := func(n int) { out = binary.LittleEndian.AppendUint32(out, uint32(n)) }
	numbers := func(list []uint32) {
		number(len(list))
		for _, n := range list {
			out = binary.LittleEndian.AppendUint32(out, n)
		}
	}
	table := func(m map[string]uint32) {
		words := slices.Sorted(maps.Keys(m))
		number(len(words))
		number(len(strings.Join(words, "")))
		out = append(out, strings.Join(words, "")...)
		out = padded(out, 4)
		for _, word := range words {
			number(len(word))
			number(int(m[word]))
		}
	}
	number(len(marks))
	for i := range marks {
		out = append(out, marks[i][:]...)
	}
	number(s.Postings.Count)
	for _, says := range s.Postings.Says {
		number(int(says * 2))
	}
	table(s.Words.base)
	table(s.Stems.base)
	out = s.appendVectors(out)
	for i := range s.Docs {
		d := &s.Docs[i]
		number(int(d.Lang))
		for _, n := range d.Norm {
			number(int(math.Float32bits(n)))
		}
		numbers(d.Terms)
		numbers(d.Counts)
		numbers(d.InName)
		numbers(d.Pairs)
	}
	return appendSum(out)
}

// sumSize is how many bytes of a file are its checksum. It finds damage: a change
// on purpose is kept away by the folder, which is the user's alone.
const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // processors have an instruction for it

func appendSum(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// withoutSum returns a file without its checksum, if that is right.
func withoutSum(file []byte) ([]byte, bool) {
	if len(file) < sumSize {
		return nil, false
	}
	body, sum := file[:len(file)-sumSize], file[len(file)-sumSize:]
	return body, crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(sum)
}

// roomy returns about how many bytes encode writes, and hardly ever less.
func (s *Segment) roomy() int {
	n := 1024 + s.Postings.Count*4 + (len(s.Words.base)+len(s.Stems.base))*(8+16)
	for i := range s.Docs {
		d := &s.Docs[i]
		n += markSize + 4*(1+fields+4+2*len(d.Terms)+len(d.InName)+len(d.Pairs)) + 8*len(d.nameCodes)
	}
	if s.Model != nil {
		n += len(s.Docs) * s.Model.Dimensions()
	}
	return n
}

// decode reads the segment of exactly this list back, or reports that it cannot.
func decode(data []byte, key [sha256.Size]byte, list []*capability.Capability, model *embed.Model) (*Segment, bool) {
	return keptFile{data: data}.decode(key, list, model)
}

func (f keptFile) decode(key [sha256.Size]byte, list []*capability.Capability, model *embed.Model) (*Segment, bool) {
	if !strings.HasPrefix(string(f.data[:min(len(f.data), len(cacheFormat)+sha256.Size)]), cacheFormat+string(key[:])) {
		return nil, false
	}
	at := make([]int32, len(list))
	for i := range at {
		at[i] = int32(i)
	}
	return f.decodeInto(at, list, model)
}

// decodeInto reads a segment that was kept, and makes of it the one of a list: at
// has the place in the list of each capability that is kept, or -1 for one that is
// gone. What the list has besides is read like something new.
func (f keptFile) decodeInto(at []int32, list []*capability.Capability, model *embed.Model) (*Segment, bool) {
	defer f.rest()
	head := len(cacheFormat) + sha256.Size
	body, ok := withoutSum(f.data)
	if !ok || len(body) < head {
		return nil, false
	}
	r := reader{file: body, rest: body[head:], mapped: f.mapped}
	if basis := basisOf(model); string(r.bytes(sha256.Size)) != string(basis[:]) {
		return nil, false
	}
	kept := r.length(markSize)
	if r.bytes(kept * markSize); kept != len(at) || r.bad {
		return nil, false
	}
	s := &Segment{Model: model}
	w := &writer{next: s, words: s.Words.changed(), stems: s.Stems.changed(), names: s.Names.changed(), postings: s.Postings.changed()}
	w.names.room(namesEach * len(list))
	for range r.length(4) {
		w.postings.grow(float32(r.number()) / 2)
	}
	r.table(w.words, w.postings.Count)
	r.table(w.stems, w.postings.Count)
	codes, ok := r.vectors(s, at, len(list))
	if !ok {
		return nil, false
	}
	r.rest4() // all that follows are numbers
	s.Docs, s.Live = make([]Doc, len(list)), NewBits(len(list))
	for _, slot := range at {
		var d Doc
		if d.Lang = uint8(r.next()); int(d.Lang) >= language.Count {
			return nil, false
		}
		for f := range d.Norm {
			d.Norm[f] = math.Float32frombits(r.next())
		}
		d.Terms, d.Counts, d.InName, d.Pairs = r.numbers(), r.numbers(), r.numbers(), r.numbers()
		if r.bad || len(d.Terms) != len(d.Counts) || !below(d.Terms, w.postings.Count) || !below(d.InName, w.postings.Count) {
			return nil, false
		}
		if n := len(d.InName) * codeWords(model); n > 0 {
			if n > len(codes) {
				return nil, false
			}
			d.nameCodes, codes = codes[:n:n], codes[n:]
		}
		if slot >= 0 {
			d.Capability = list[slot]
			s.Docs[slot] = d
		}
	}
	if len(r.all) > 0 || len(codes) > 0 {
		return nil, false
	}
	for i, c := range list {
		if s.Docs[i].Capability == nil {
			s.Docs[i] = w.doc(c)
			w.embed(c, i)
		}
		s.Live.Set(i)
		s.Spoken[s.Docs[i].Lang]++
		s.Terms += len(s.Docs[i].Terms)
		w.name(c, i)
	}
	w.fill()
	return w.done(), true
}

func below(list []uint32, n int) bool {
	for _, x := range list {
		if int(x) >= n {
			return false
		}
	}
	return true
}

// A reader takes numbers off the front of a file.
type reader struct {
	file   []byte // all of it but the sum
	rest   []byte
	mapped bool     // the file stays in memory
	all    []uint32 // what rest4 read
	bad    bool
}

func (r *reader) number() uint32 {
	if len(r.rest) < 4 {
		r.bad = true
		return 0
	}
	n := binary.LittleEndian.Uint32(r.rest)
	r.rest = r.rest[4:]
	return n
}

// bytes takes so many bytes.
func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.bad = true
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

// pad takes what padded put there.
func (r *reader) pad(to int) { r.bytes(-(len(r.file) - len(r.rest)) & (to - 1)) }

// padded adds zeros up to the next multiple of a power of two, so that numbers lie
// where processors read them.
func padded(out []byte, to int) []byte { return append(out, make([]byte, -len(out)&(to-1))...) }

// length reads how many things of at least so many bytes follow.
func (r *reader) length(size int) int {
	n := int(r.number())
	if n*size > len(r.rest) {
		r.bad = true
		return 0
	}
	return n
}

// rest4 reads the rest as numbers. The lists that are taken of them later are
// parts of one.
func (r *reader) rest4() {
	r.bad = r.bad || len(r.rest)%4 != 0
	if list, ok := inPlace[uint32](r.rest[:len(r.rest)&^3]); ok && r.mapped {
		r.all, r.rest = list, nil
		return
	}
	r.all = make([]uint32, len(r.rest)/4)
	for i := range r.all {
		r.all[i] = binary.LittleEndian.Uint32(r.rest[4*i:])
	}
	r.rest = nil
}

// next takes one of the numbers that rest4 read.
func (r *reader) next() uint32 {
	if len(r.all) == 0 {
		r.bad = true
		return 0
	}
	n := r.all[0]
	r.all = r.all[1:]
	return n
}

func (r *reader) numbers() []uint32 {
	n := int(r.next())
	if n > len(r.all) {
		r.bad = true
		return nil
	}
	list := r.all[:n:n]
	r.all = r.all[n:]
	return list
}

// table reads words and their terms. The words are parts of one string.
func (r *reader) table(into *layer[string, uint32], terms int) {
	n := r.length(8)
	into.top, into.owned = make(map[string]uint32, n), true
	size := r.length(1)
	if r.bad {
		return
	}
	text := string(r.rest[:size])
	r.rest = r.rest[size:]
	r.pad(4)
	for range n {
		length, id := int(r.number()), r.number()
		if length > len(text) || int(id) >= terms {
			r.bad = true
			return
		}
		into.top[text[:length]] = id
		text = text[length:]
	}
}
