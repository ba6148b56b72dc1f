package index

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// background.txt says how common words are in what people ask of their agents,
// whatever the catalog: a stem and twice the negative logarithm of the share
// of messages that have it. A catalog of films finds "film" in every entry and
// learns nothing from it; that a message speaks of films at all says much.
//
//go:embed background.txt
var backgroundText string

// rarest is the level of a word that the list lacks.
const (
	rarestLevel = 16
	commonLevel = 3 // a word as common as this says nothing
)

var background = sync.OnceValue(readBackground)

func readBackground() map[string]uint8 {
	levels := map[string]uint8{}
	for line := range strings.Lines(backgroundText) {
		word, level, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseUint(level, 10, 8) // TestBackground reads every line
		levels[word] = uint8(n)
	}
	return levels
}

// Says returns how much a stem says about what the user wants, from 0 to 6.5.
func Says(stem string) float32 {
	level, ok := background()[stem]
	if !ok {
		level = rarestLevel
	}
	return float32(max(level, commonLevel)-commonLevel) / 2
}
