package tokenizer

import (
	"os/exec"
	"slices"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"

	"ken/internal/testkit"
)

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
// vocabulary allows what parts does.
func TestTables(t *testing.T) {
	tokens, _ := library()
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

// TestTablesCanBeMade: the command that makes the tables can still be built. Its
// part in this package is left out of every other build.
func TestTablesCanBeMade(t *testing.T) {
	testkit.CI(t, "builds a command of its own")
	if out, err := exec.Command("go", "vet", "-tags", "tables", ".", "../../scripts/tokens").CombinedOutput(); err != nil {
		t.Errorf("go vet -tags tables: %v\n%s", err, out)
	}
}
