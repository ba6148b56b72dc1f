package session

import "slices"

// Live returns the entries that count, in the order in which they are sent:
// without notes, and without what is hidden.
//
// A summary or a marker hides what was said between two entries and stands in
// its place. It hides earlier summaries and markers that stand there, but no
// prefix and no rewind. A rewind hides everything that was written between two
// entries, also summaries, markers and other rewinds; what those hid is then
// there again, as it was at that time. So a rewind to before a compaction
// brings back what was compacted.
//
// The entries are shared with the argument, which must be in order of Seq.
func Live(entries []Entry) []Entry {
	hidden := hide(entries)
	var live []Entry
	moved := false
	for i := range entries {
		if e := &entries[i]; !hidden[i] && e.Kind != Note && e.Kind != Rewound {
			moved = moved || e.standsIn()
			live = append(live, *e)
		}
	}
	if moved {
		slices.SortStableFunc(live, func(a, b Entry) int { return a.place() - b.place() })
	}
	return live
}

// Notes returns the notes that count: all but those that were rewound.
func Notes(entries []Entry) []Entry {
	hidden := hide(entries)
	var notes []Entry
	for i := range entries {
		if !hidden[i] && entries[i].Kind == Note {
			notes = append(notes, entries[i])
		}
	}
	return notes
}

// hide says of each entry whether it is hidden.
func hide(entries []Entry) []bool {
	hidden := make([]bool, len(entries))
	at := func(seq int) int { // the first entry from a sequence number on
		i, _ := slices.BinarySearchFunc(entries, seq, func(e Entry, seq int) int { return e.Seq - seq })
		return i
	}
	// What hides comes after what it hides, so from the end on it is known of
	// each entry whether it counts when its turn comes.
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if hidden[i] || e.To <= 0 {
			continue
		}
		switch {
		case e.Kind == Rewound:
			for j := at(e.From); j < i && entries[j].Seq <= e.To; j++ {
				hidden[j] = true
			}
		case e.standsIn():
			for j := at(e.From); j < i; j++ {
				if p := entries[j].place(); p >= e.From && p <= e.To && entries[j].said() {
					hidden[j] = true
				}
			}
		}
	}
	return hidden
}

// standsIn reports whether an entry stands for others.
func (e *Entry) standsIn() bool { return (e.Kind == Summary || e.Kind == Marker) && e.To > 0 }

// place is where an entry stands among the others.
func (e *Entry) place() int {
	if e.standsIn() {
		return e.From
	}
	return e.Seq
}

// said reports whether an entry is part of what was said, which alone can be
// summed up.
func (e *Entry) said() bool {
	switch e.Kind {
	case User, Added, Assistant, Results, Summary, Marker:
		return true
	}
	return false
}
