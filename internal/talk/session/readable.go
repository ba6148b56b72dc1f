package session

// Readable returns what a person may read of a session, in the order in which it was
// written: everything but what was taken back. What a summary or a marker stands
// for is there, and so are they, and the notes.
//
// The entries are shared with the argument, which must be in order of Seq.
func Readable(entries []Entry) []Entry {
	hidden := make([]bool, len(entries))
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if hidden[i] || e.Kind != Rewound || e.To <= 0 {
			continue
		}
		for j := i - 1; j >= 0 && entries[j].Seq >= e.From; j-- {
			hidden[j] = hidden[j] || entries[j].Seq <= e.To
		}
	}
	var told []Entry
	for i := range entries {
		if !hidden[i] && entries[i].Kind != Rewound {
			told = append(told, entries[i])
		}
	}
	return told
}
