package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// What an entry of the table says; the same as in package embed.
const (
	self = iota
	drop
	space
	alone
	mapped

	blockSize = 64
	chars     = 0x110000
)

// packChars makes chars.bin of what the reference did to each character; see
// testdata/README.md of package embed. A line of the answers is the number of a
// character c and the words that the text "a", c, "b" became. A character
// without a line stayed in the word as it was.
func packChars(answers, out string) error {
	f, err := os.Open(answers)
	if err != nil {
		return err
	}
	defer f.Close()
	entries := make([]uint16, chars)
	var targets []byte
	places := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c rune
		var words []string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&c, &words}); err != nil {
			return fmt.Errorf("read %s: %w", answers, err)
		}
		if 0xAC00 <= c && c < 0xAC00+11172 {
			continue // by arithmetic
		}
		entry, to := meaning(c, words)
		if entry == mapped {
			place, there := places[string(to)]
			if !there {
				place = len(targets) / 4
				places[string(to)] = place
				for i, r := range to {
					x := uint32(r)
					if i == 0 {
						x |= uint32(len(to)) << 24
					}
					targets = binary.LittleEndian.AppendUint32(targets, x)
				}
			}
			entry += place
		}
		entries[c] = uint16(entry)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", answers, err)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(table(entries), targets...)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, packed.Bytes(), 0o644)
}

// meaning returns the entry of a character, and what it is mapped to if it is.
func meaning(c rune, words []string) (entry int, to []rune) {
	joined := strings.Join(words, "")
	inner := joined[1 : len(joined)-1]
	switch {
	case inner == "" && len(words) == 1:
		return drop, nil
	case inner == "":
		return space, nil
	case inner == string(c) && len(words) == 3:
		return alone, nil
	case inner == string(c):
		return self, nil
	}
	return mapped, []rune(inner)
}

// table returns the numbers of the blocks, their count, and the blocks.
func table(entries []uint16) []byte {
	var index, blocks []byte
	seen := map[string]uint16{}
	for at := 0; at < len(entries); at += blockSize {
		var block []byte
		for _, e := range entries[at : at+blockSize] {
			block = binary.LittleEndian.AppendUint16(block, e)
		}
		number, there := seen[string(block)]
		if !there {
			number = uint16(len(seen))
			seen[string(block)] = number
			blocks = append(blocks, block...)
		}
		index = binary.LittleEndian.AppendUint16(index, number)
	}
	index = binary.LittleEndian.AppendUint16(index, uint16(len(seen)))
	return append(index, blocks...)
}
