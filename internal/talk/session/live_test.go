package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/talk/session"
)

// history writes entries down: one letter for the kind, and what it hides.
//
//	P prefix  U user  X added  A assistant  R results  N note
//	S3-5 summary  M3-5 marker  B3-5 rewind
func history(text string) []session.Entry {
	kinds := map[byte]session.Kind{
		'P': session.Prefix, 'U': session.User, 'X': session.Added, 'A': session.Assistant, 'R': session.Results,
		'N': session.Note, 'S': session.Summary, 'M': session.Marker, 'B': session.Rewound,
	}
	var list []session.Entry
	for _, word := range strings.Fields(text) {
		e := session.Entry{Seq: len(list) + 1, Kind: kinds[word[0]]}
		if len(word) > 1 {
			if _, err := fmt.Sscanf(word[1:], "%d-%d", &e.From, &e.To); err != nil {
				panic(err)
			}
		}
		list = append(list, e)
	}
	return list
}

func seqs(list []session.Entry) string {
	var words []string
	for _, e := range list {
		words = append(words, fmt.Sprint(e.Seq))
	}
	return strings.Join(words, " ")
}

func TestLive(t *testing.T) {
	for _, tt := range []struct{ name, entries, want string }{
		{"nothing", "", ""},
		{"all", "P U X A R A", "1 2 3 4 5 6"},
		{"notes are not sent", "P N U N A", "1 3 5"},
		{"a summary stands where it hides", "P U A U A S3-4 U", "1 2 6 5 7"},
		{"a marker that hides nothing", "P U A M", "1 2 3 4"},
		{"a rewind stands for nothing", "P U A U A B4-5", "1 2 3"},
		{"after a rewind it goes on", "P U A U A B4-5 U A", "1 2 3 7 8"},
		{"a rewind of a rewind brings back", "P U A U A B4-5 B6-6", "1 2 3 4 5"},
		{"a rewind to before a rewind, as it was then", "P U A U A B4-5 U B5-7", "1 2 3 4"},
		{"a rewind over a summary brings back", "P U A U A S3-4 U B6-7", "1 2 3 4 5"},
		{"a rewind to the middle of what was summed up", "P U A U A S3-5 B4-6", "1 2 3"},
		{"a rewind after a summary keeps it", "P U A U A S3-4 U A B7-8", "1 2 6 5"},
		{"a summary of a summary", "P U A U A S3-4 U A S3-5 U", "1 2 9 7 8 10"},
		{"two summaries side by side", "P U A U A S3-3 S4-4 U", "1 2 6 7 5 8"},
		{"a rewind over the second summary brings the first back", "P U A U A S3-4 U A S3-5 B9-9", "1 2 6 5 7 8"},
		{"a summary around a rewound part", "P U A U A B4-5 U A S3-7", "1 2 9 8"},
		{"a summary takes no prefix away", "P U A P U A S2-5", "1 7 4 6"},
		{"a rewind takes a later prefix away", "P U A P U A B4-6", "1 2 3"},
		{"a marker over a summary", "P U A U A S3-4 M3-5 U", "1 2 7 8"},
		{"a summary too short brings back rather than loses", "P U A U A U S3-5 S3-4", "1 2 8 5 6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := history(tt.entries)
			if got := seqs(session.Live(list)); got != tt.want {
				t.Errorf("Live(%s) = %s, want %s", tt.entries, got, tt.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	list := history("P N U N A N B4-6 N S2-5")
	if got, want := seqs(session.Notes(list)), "2 8"; got != want {
		t.Errorf("Notes = %s, want %s", got, want)
	}
}

// TestLiveProperty: whatever was said, compacted and taken back, a rewind gives
// what was live at its point, a compaction exchanges a part of what is live for
// one entry, and everything else adds one at the end.
func TestLiveProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list := history("P U")
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			before := session.Live(list)
			next := session.Entry{Seq: len(list) + 1}
			var want []session.Entry
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0: // compact a part of what is live
				if len(before) < 4 {
					continue
				}
				i := rapid.IntRange(2, len(before)-2).Draw(rt, "from")
				j := rapid.IntRange(i, len(before)-1).Draw(rt, "to")
				next.Kind = rapid.SampledFrom([]session.Kind{session.Summary, session.Marker}).Draw(rt, "kind")
				next.From, next.To = first(before[i]), last(before[j])
				if next.To >= next.Seq {
					continue
				}
				want = slices.Concat(before[:i], []session.Entry{next}, before[j+1:])
			case 1: // rewind
				point := rapid.IntRange(1, len(list)).Draw(rt, "point")
				if point == len(list) {
					continue
				}
				next.Kind, next.From, next.To = session.Rewound, point+1, len(list)
				want = session.Live(list[:point])
			case 2:
				next.Kind = session.Note
				want = before
			default:
				next.Kind = rapid.SampledFrom([]session.Kind{session.User, session.Added, session.Assistant, session.Results}).Draw(rt, "said")
				want = append(slices.Clip(before), next)
			}
			list = append(list, next)
			if got := session.Live(list); seqs(got) != seqs(want) {
				rt.Fatalf("after %s %d-%d at %d: live %s, want %s", next.Kind, next.From, next.To, next.Seq, seqs(got), seqs(want))
			}
		}
	})
}

func first(e session.Entry) int {
	if e.To > 0 {
		return e.From
	}
	return e.Seq
}

func last(e session.Entry) int {
	if e.To > 0 {
		return e.To
	}
	return e.Seq
}
