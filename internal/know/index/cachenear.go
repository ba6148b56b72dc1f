package index

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/language"
)

// A mark is the hash of all that a segment has of one capability.
type mark [markSize]byte

const markSize = 16

// markOf hashes what a segment is made of. A capability with a hash of its own has
// that as its mark: it covers all of this and more.
func markOf(c *capability.Capability) mark {
	var w keyWriter
	return w.mark(c)
}

func marksOf(list []*capability.Capability) []mark {
	var w keyWriter
	out := make([]mark, len(list))
	for i, c := range list {
		out[i] = w.mark(c)
	}
	return out
}

// basisOf hashes what all of a segment is made with.
func basisOf(model *embed.Model) [sha256.Size]byte {
	var w keyWriter
	if model != nil {
		w.say(model.Model())
	}
	w.say(cacheFormat)
	w.say(backgroundText)
	w.say(fmt.Sprint(fieldWeight, fieldLength, fieldSlope, language.Count))
	return sha256.Sum256(w.buf)
}

// keyOf hashes all that a segment is made of.
func keyOf(list []*capability.Capability, model *embed.Model) [sha256.Size]byte {
	return keyOfMarks(marksOf(list), model)
}

func keyOfMarks(marks []mark, model *embed.Model) [sha256.Size]byte {
	basis := basisOf(model)
	all := make([]byte, 0, len(basis)+len(marks)*markSize)
	all = append(all, basis[:]...)
	for i := range marks {
		all = append(all, marks[i][:]...)
	}
	return sha256.Sum256(all)
}

// A keyWriter collects texts to be hashed together.
type keyWriter struct{ buf []byte }

func (k *keyWriter) mark(c *capability.Capability) mark {
	if m, ok := sealed(c.Hash); ok {
		return m
	}
	k.buf = k.buf[:0]
	k.say(string(c.ID))
	k.say(c.Name)
	k.say(c.DisplayName)
	k.say(c.Description)
	k.say(c.Category)
	k.sayAll(c.Tags)
	k.sayAll(c.Aliases)
	var keywords []string
	if c.Triggers != nil {
		keywords = c.Triggers.Keywords
	}
	k.sayAll(keywords)
	k.say(strconv.Itoa(len(c.Parameters)))
	for _, p := range c.Parameters {
		k.say(p.Name)
		k.say(p.Description)
	}
	sum := sha256.Sum256(k.buf)
	return mark(sum[:markSize])
}

// sealed reads the hash that sources give a capability.
func sealed(hash string) (m mark, ok bool) {
	text, ok := strings.CutPrefix(hash, "sha256:")
	if !ok || len(text) != 2*markSize {
		return mark{}, false
	}
	_, err := hex.Decode(m[:], []byte(text))
	return m, err == nil
}

func (k *keyWriter) say(text string) {
	k.buf = append(binary.LittleEndian.AppendUint64(k.buf, uint64(len(text))), text...)
}

func (k *keyWriter) sayAll(texts []string) {
	k.say(strconv.Itoa(len(texts)))
	for _, t := range texts {
		k.say(t)
	}
}

// near makes the segment of a list out of a kept one of nearly the same, and
// reports how many capabilities only one of the two has. Nil: there is none. It does not look at
// the file except, which is the list's own and no good.
func (c *Cache) near(list []*capability.Capability, marks []mark, except string) (s *Segment, different int) {
	entries, _ := os.ReadDir(c.Dir) // what cannot be listed is not used
	files := c.files(entries)
	if len(files) == 0 {
		return nil, 0
	}
	places := make(map[mark]int32, len(marks))
	for i, m := range marks {
		places[m] = int32(i)
	}
	basis := basisOf(c.Model)
	for _, path := range files[:min(len(files), mostCached)] {
		if path == except {
			continue
		}
		kept, ok := keptMarks(path, basis)
		if !ok {
			continue
		}
		at, shared := make([]int32, len(kept)), 0
		taken := NewBits(len(list))
		for i, m := range kept {
			at[i] = -1
			if place, ok := places[m]; ok && !taken.Has(int(place)) {
				taken.Set(int(place))
				at[i] = place
				shared++
			}
		}
		if different = max(len(kept), len(list)) - shared; different*leastShared > len(list) {
			continue
		}
		if f, ok := openKept(path); ok {
			if s, ok := f.decodeInto(at, list, c.Model); ok {
				return s, different
			}
			f.close()
		}
	}
	return nil, 0
}

// keptMarks reads the head of a file: the marks of what is in it.
func keptMarks(path string, basis [sha256.Size]byte) ([]mark, bool) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > largestCached {
		return nil, false
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false
	}
	head := make([]byte, len(cacheFormat)+2*sha256.Size+4)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, false
	}
	n := int64(binary.LittleEndian.Uint32(head[len(head)-4:]))
	if string(head[:len(cacheFormat)]) != cacheFormat || string(head[len(cacheFormat)+sha256.Size:len(head)-4]) != string(basis[:]) || n*markSize > info.Size() {
		return nil, false
	}
	all := make([]byte, n*markSize)
	if _, err := io.ReadFull(f, all); err != nil {
		return nil, false
	}
	marks := make([]mark, n)
	for i := range marks {
		marks[i] = mark(all[i*markSize:])
	}
	return marks, true
}
