package session

import (
	"fmt"
	"testing"
)

// TestReadable: what was summed up is there, what was taken back is not, and taking
// back a rewind brings nothing back that was taken back otherwise.
func TestReadable(t *testing.T) {
	e := func(seq int, k Kind, from, to int) Entry { return Entry{Seq: seq, Kind: k, From: from, To: to} }
	for _, test := range []struct {
		name string
		in   []Entry
		want string
	}{
		{"nothing", nil, "[]"},
		{"summed up", []Entry{e(1, User, 0, 0), e(2, Assistant, 0, 0), e(3, Summary, 1, 2), e(4, Note, 0, 0)}, "[1 2 3 4]"},
		{"rewound", []Entry{e(1, User, 0, 0), e(2, User, 0, 0), e(3, Summary, 1, 1), e(4, Rewound, 2, 3), e(5, User, 0, 0)}, "[1 5]"},
		{"a rewind of a rewind", []Entry{e(1, User, 0, 0), e(2, User, 0, 0), e(3, Rewound, 2, 2), e(4, Rewound, 3, 3)}, "[1 2]"},
	} {
		if got := seqs(Readable(test.in)); got != test.want {
			t.Errorf("%s: Readable = %s, want %s", test.name, got, test.want)
		}
	}
}

func seqs(entries []Entry) string {
	out := []int{}
	for _, e := range entries {
		out = append(out, e.Seq)
	}
	return fmt.Sprint(out)
}
