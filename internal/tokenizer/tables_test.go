package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"index/suffixarray"
	"os"
	"slices"
	"sort"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write o200k.bin and classes.bin anew")

// library returns the tokens of o200k_base by rank, and the codec they come from.
// Both are built once: they take tens of megabytes.
var library = sync.OnceValues(func() ([]string, *codec.Codec) {
	c := codec.NewO200kBase()
	var tokens []string
	for {
		s, err := c.Decode([]uint{uint(len(tokens))})
		if err != nil {
			return tokens, c
		}
		tokens = append(tokens, s)
	}
})

// TestTables shows that the embedded tables say of every token and of every
// character what the library and the unicode package say, and that the
// vocabulary allows what parts does. With -update it makes the tables.
func TestTables(t *testing.T) {
	tokens, _ := library()
	if *update {
		if err := writeTables(tokens); err != nil {
			t.Fatal(err)
		}
		t.Skip("tables written: run the tests again to check them")
	}
	if len(tokens) != 199_998 {
		t.Fatalf("the library has %d tokens, want 199998", len(tokens))
	}
	for i, token := range tokens {
		if got := rank(token); got != uint32(i) {
			t.Fatalf("rank(%q) = %d, want %d; run go generate", token, got, i)
		}
		if odd := token + "\x00\x01"; rank(odd) != none {
			t.Errorf("rank(%q) = %d, want none", odd, rank(odd))
		}
	}
	for i := range 1 << 16 {
		both := string([]byte{byte(i >> 8), byte(i)})
		if got, want := pair(both[0], both[1]), rank(both); got != want {
			t.Fatalf("pair(%q) = %d, want %d; run go generate", both, got, want)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r == 0x40000 {
			r = 0xE0000 // the planes between have no characters
		}
		if got, want := isToken(r), rank(string(r)) != none; got != want && r > unicode.MaxASCII && utf8.ValidRune(r) {
			t.Fatalf("isToken(%q) = %v, want %v; run go generate", r, got, want)
		}
		if got, want := classOf(r), unicodeClass(r); got != want {
			t.Fatalf("classOf(%U) = %d, want %d; run go generate", r, got, want)
		}
	}
	checkParts(t, tokens)
}

// checkParts checks the ground that parts stands on.
func checkParts(t *testing.T, tokens []string) {
	for i, token := range tokens {
		if utf8.RuneCountInString(token) == 1 && utf8.ValidString(token) && len(token) > 1 {
			if n, top := mergeBytes(token); n != 1 || top != uint32(i) {
				t.Errorf("the bytes of %q join into %d tokens by way of rank %d, want one of rank %d", token, n, top, i)
			}
		}
		if !utf8.ValidString(token) {
			for j := 1; j < len(token); j++ {
				if utf8.RuneStart(token[j]) && !torn(token[j-1], token[j]) {
					t.Errorf("torn(%#x, %#x) = false, but %q is a token", token[j-1], token[j], token)
				}
			}
			continue
		}
		for _, at := range ends(token) {
			if !torn(token[at-1], token[at]) {
				t.Errorf("torn(%#x, %#x) = false, but a character at the end of %q has a higher rank", token[at-1], token[at], token)
			}
		}
	}
}

// ends returns where in token its first character ends and its last one begins,
// as far as that character is a token of several bytes with a higher rank: such
// a token is joined from parts of characters.
func ends(token string) (at []int) {
	_, first := utf8.DecodeRuneInString(token)
	_, last := utf8.DecodeLastRuneInString(token)
	if last == len(token) {
		return nil
	}
	r := rank(token)
	if c := rank(token[:first]); first > 1 && c != none && c > r {
		at = append(at, first)
	}
	if c := rank(token[len(token)-last:]); last > 1 && c != none && c > r {
		at = append(at, len(token)-last)
	}
	return at
}

// unicodeClass says what classOf should.
func unicodeClass(r rune) class {
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

func writeTables(tokens []string) error {
	vocabulary, err := buildVocabulary(tokens)
	if err != nil {
		return err
	}
	if err := os.WriteFile("o200k.bin", vocabulary, 0o644); err != nil {
		return err
	}
	classes, err := buildClasses()
	if err != nil {
		return err
	}
	return os.WriteFile("classes.bin", classes, 0o644)
}

func buildClasses() ([]byte, error) {
	var blocks, index []byte
	seen := map[string]byte{}
	for first := rune(0); first <= unicode.MaxRune; first += 128 {
		var block [128]byte
		for i := range block {
			block[i] = byte(unicodeClass(first + rune(i)))
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

// mergeBytes joins the bytes of piece in the plainest way there is; top is the
// highest rank on the way.
func mergeBytes(piece string) (count int, top uint32) {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		least, at := uint32(none), 0
		for i := range len(parts) - 1 {
			if r := rank(parts[i] + parts[i+1]); r < least {
				least, at = r, i
			}
		}
		if least == none {
			return len(parts), top
		}
		top = max(top, least)
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
}

// TestTablesAreSmall keeps the price of the vocabulary in the program in sight.
func TestTablesAreSmall(t *testing.T) {
	if n := len(vocabulary) + len(classTable); n > 3<<20 {
		t.Errorf("the tables take %d bytes, want at most 3 MiB", n)
	}
	if !bytes.Equal([]byte(classTable[:3]), []byte{0, 0, 0}) {
		t.Errorf("the first block of classes is not ASCII")
	}
}
