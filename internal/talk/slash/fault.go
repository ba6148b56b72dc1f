package slash

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/spelling"
)

// A Fault is what is wrong with a line, and where. It is the cause of the
// errors of this package. Its text repeats nothing of the line, so that it may
// be shown and logged.
type Fault struct {
	Offset  int    `json:"offset"` // in bytes, from 0
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // in characters, from 1
	Message string `json:"message"`
	Fix     string `json:"fix"`

	// Suggestions are what may have been meant, best first.
	Suggestions []string `json:"suggestions,omitempty"`
}

func (f *Fault) Error() string {
	if f.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message)
	}
	return fmt.Sprintf("column %d: %s", f.Column, f.Message)
}

func faultAt(line string, at int, message, fix string) *Fault {
	at = min(at, len(line))
	before := line[:at]
	last := strings.LastIndexByte(before, '\n') + 1
	return &Fault{
		Offset: at, Line: 1 + strings.Count(before, "\n"), Column: 1 + utf8.RuneCountInString(before[last:]),
		Message: message, Fix: fix,
	}
}

// suggesting adds what may have been meant, or else what there is.
func (f *Fault) suggesting(given string, known []string, what string) *Fault {
	f.Suggestions = nearest(given, known)
	switch {
	case len(f.Suggestions) > 0:
		f.Fix = "did you mean " + strings.Join(f.Suggestions, " or ") + "?"
	case len(known) > 0:
		shown := known[:min(len(known), 20)]
		f.Fix = what + " are " + strings.Join(shown, ", ")
		if more := len(known) - len(shown); more > 0 {
			f.Fix += fmt.Sprintf(" and %d more", more)
		}
	}
	return f
}

// refusal wraps a fault for callers that act on its kind.
func refusal(kind capability.ErrorKind, command string, f *Fault) error {
	return &capability.Error{Kind: kind, Op: "read command", Target: command, Err: f, Fix: f.Fix}
}

// longestGuess limits the names that are compared: a longer one is not a typing error.
const longestGuess = 64

// How a known word is like what was given, best first.
const (
	whole  = iota // what was given is one of its words: git of /git-log
	slip          // few edits lie between them
	within        // it holds what was given: ind of /find-files
	apart
)

// shortestPart is the least that is looked for within words: less is in most.
const shortestPart = 3

// holds says how a word holds part, which is in lower case.
func holds(word, part string) int {
	word = strings.ToLower(word)
	if len(part) < shortestPart || !strings.Contains(word, part) {
		return apart
	}
	if slices.Contains(strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("/-_:.", r) }), part) {
		return whole
	}
	return within
}

// nearest returns the few words that given is most likely a slip of, or a part of.
func nearest(given string, known []string) []string {
	if len(given) > longestGuess || given == "" {
		return nil
	}
	type guess struct {
		word        string
		rank, edits int
	}
	part := strings.ToLower(strings.TrimLeft(given, "/-"))
	var guesses []guess
	far := 1 + max(1, len(given)/3)
	for _, word := range known {
		if len(word) > longestGuess {
			continue
		}
		rank := holds(word, part)
		if rank == apart && (len(word)-len(given) > far || len(given)-len(word) > far) {
			continue
		}
		edits := spelling.Distance(given, word)
		if edits < far || edits < 3 && strings.HasPrefix(word, given) {
			rank = min(rank, slip)
		}
		if rank < apart {
			guesses = append(guesses, guess{word, rank, edits})
		}
	}
	coldsort.Stable(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.edits, b.edits), strings.Compare(a.word, b.word))
	})
	var out []string
	for _, g := range guesses {
		if len(out) < maxShown && !slices.Contains(out, g.word) {
			out = append(out, g.word)
		}
	}
	return out
}
