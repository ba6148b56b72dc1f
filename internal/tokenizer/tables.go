//go:build tables

package tokenizer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"index/suffixarray"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// This file makes the tables. It is built with the tag tables alone, for
// scripts/tokens.

// WriteTables writes o200k.bin and classes.bin into a folder, for the tokens of
// o200k_base by rank.
func WriteTables(folder string, tokens []string) error {
	vocabulary, err := buildVocabulary(tokens)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "o200k.bin"), vocabulary, 0o644); err != nil {
		return err
	}
	classes, err := buildClasses()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "classes.bin"), classes, 0o644)
}

func buildClasses() ([]byte, error) {
	var blocks, index []byte
	seen := map[string]byte{}
	for first := rune(0); first <= unicode.MaxRune; first += 128 {
		var block [128]byte
		for i := range block {
			block[i] = byte(classIn(first + rune(i)))
		}
		number, ok := seen[string(block[:])]
		if !ok {
			if len(seen) == 256 {
				return nil, fmt.Errorf("more than 256 different blocks of characters: make blocks larger")
			}
			number = byte(len(seen))
			seen[string(block[:])] = number
			blocks = append(blocks, block[:]...)
		}
		index = append(index, number)
	}
	return append(blocks, index...), nil
}

func buildVocabulary(tokens []string) ([]byte, error) {
	table := make([]byte, bytesAt)
	if err := buildShort(tokens, table); err != nil {
		return nil, err
	}
	text := shared(tokens)
	places := suffixarray.New(text)
	slot, err := displace(tokens, table)
	if err != nil {
		return nil, err
	}
	for i, token := range tokens {
		// The first of several places, so that the same tokens give the same file.
		place := slices.Min(places.Lookup([]byte(token), -1))
		if place >= 1<<placeBits {
			return nil, fmt.Errorf("token %q lies at %d, beyond the reach of a slot", token, place)
		}
		entry := tag(hash(token)) | uint64(place)<<tagBits |
			uint64(len(token))<<(tagBits+placeBits) | uint64(i)<<(tagBits+placeBits+lengthBits)
		binary.LittleEndian.PutUint64(table[slotsAt+8*slot[i]:], entry)
	}
	return append(table, text...), nil
}

// buildShort fills in the pairs of bytes and the characters.
func buildShort(tokens []string, table []byte) error {
	var pairs [1 << 16]uint32
	for i := range pairs {
		pairs[i] = none
	}
	for i, token := range tokens {
		if len(token) > longest {
			return fmt.Errorf("token %q has more than %d bytes", token, longest)
		}
		if len(token) == 2 {
			at := int(token[0])<<8 | int(token[1])
			pairs[at] = pairs[at]&tornPair | uint32(i)
		}
		if r, width := utf8.DecodeRuneInString(token); width > 1 && width == len(token) && r < chars {
			table[charsAt+r>>3] |= 1 << (r & 7)
		}
		for j := 1; j < len(token) && !utf8.ValidString(token); j++ {
			if utf8.RuneStart(token[j]) {
				pairs[int(token[j-1])<<8|int(token[j])] |= tornPair
			}
		}
	}
	for i, entry := range pairs {
		binary.LittleEndian.PutUint32(table[pairsAt+4*i:], entry)
	}
	return nil
}

// shared joins the bytes of those tokens that lie in no longer token.
func shared(tokens []string) []byte {
	var all []byte
	var starts []int
	for _, token := range tokens {
		starts = append(starts, len(all))
		all = append(all, token...)
	}
	places := suffixarray.New(all)
	var text []byte
	for _, token := range tokens {
		contained := slices.ContainsFunc(places.Lookup([]byte(token), -1), func(place int) bool {
			host := sort.SearchInts(starts, place+1) - 1
			return len(tokens[host]) > len(token) && place+len(token) <= starts[host]+len(tokens[host])
		})
		if !contained {
			text = append(text, token...)
		}
	}
	return text
}

// displace returns each token a slot of its own, and writes into table, for each
// bucket, the displacement that leads its tokens there. Full buckets go first,
// while there is room.
func displace(tokens []string, table []byte) (slot []uint64, err error) {
	members := make([][]int, buckets)
	for i, token := range tokens {
		bucket := hash(token) >> 32 * buckets >> 32
		members[bucket] = append(members[bucket], i)
	}
	order := make([]int, buckets)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(members[b]), len(members[a])) })
	slot = make([]uint64, len(tokens))
	taken := make([]bool, slots)
	for _, bucket := range order {
		displacement := 0
		for ; displacement < 1<<16; displacement++ {
			if place(tokens, members[bucket], uint32(displacement), slot, taken) {
				break
			}
		}
		if displacement == 1<<16 {
			return nil, fmt.Errorf("no displacement for the %d tokens of bucket %d: use more slots", len(members[bucket]), bucket)
		}
		binary.LittleEndian.PutUint16(table[displacementsAt+2*bucket:], uint16(displacement))
	}
	return slot, nil
}

// place takes the slots of members under a displacement, or none of them if one
// is taken.
func place(tokens []string, members []int, displacement uint32, slot []uint64, taken []bool) bool {
	for n, i := range members {
		s := slotOf(hash(tokens[i]), displacement)
		if taken[s] {
			for _, j := range members[:n] {
				taken[slot[j]] = false
			}
			return false
		}
		slot[i], taken[s] = s, true
	}
	return true
}

// classIn returns the class of a character by the unicode package.
func classIn(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return blank
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return both
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.Is(unicode.N, r):
		return number
	}
	return other
}
