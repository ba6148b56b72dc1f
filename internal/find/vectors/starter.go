package vectors

import (
	"crypto/sha256"
	_ "embed"
	"math"
	"strings"
	"sync"

	"ken/internal/know/reader"
)

// starterFile has the second reader's vectors of the capabilities that come with
// Ken: the name of the model and a line end; then records of half the SHA-256 of
// a text and a byte for each number of its vector. go test ./internal/app -run
// TestStarterVectors -update makes it.
//
//go:embed starter.vectors
var starterFile string

type textHash [sha256.Size / 2]byte

func hashOf(text string) textHash {
	sum := sha256.Sum256([]byte(text))
	return textHash(sum[:])
}

// readStarter finds the records of starterFile. Those of other weights count for
// nothing.
var readStarter = sync.OnceValue(func() map[textHash]string {
	m := reader.Builtin()
	name, rest, _ := strings.Cut(starterFile, "\n")
	if name != m.Model() {
		return nil
	}
	size := len(textHash{}) + m.Dimensions()
	known := make(map[textHash]string, len(rest)/size)
	for ; len(rest) >= size; rest = rest[size:] {
		known[textHash([]byte(rest[:len(textHash{})]))] = rest[len(textHash{}):size]
	}
	return known
})

// starterVector returns the vector of a text, of unit length; nil if it is none
// of the texts that come with Ken.
func starterVector(text string) []float32 {
	small := readStarter()[hashOf(text)]
	if small == "" {
		return nil
	}
	sum := 0
	for i := range len(small) {
		sum += int(int8(small[i])) * int(int8(small[i]))
	}
	scale := float32(1 / math.Sqrt(float64(sum)))
	v := make([]float32, len(small))
	for i := range v {
		v[i] = float32(int8(small[i])) * scale
	}
	return v
}
