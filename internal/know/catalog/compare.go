package catalog

// A Difference says what to do about each id of two lists of entries, by its
// places in them.
type Difference struct {
	Gone, Added     func(i int)
	Changed, Stayed func(i, j int) // the id is the same; the capability another, or the same
}

// Compare compares two lists of entries, both sorted by id, and calls do for each
// id, in their order.
func Compare(old, now []*Entry, do Difference) {
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case j == len(now) || i < len(old) && old[i].ID < now[j].ID:
			do.Gone(i)
			i++
		case i == len(old) || now[j].ID < old[i].ID:
			do.Added(j)
			j++
		default:
			if old[i].Capability == now[j].Capability {
				do.Stayed(i, j)
			} else {
				do.Changed(i, j)
			}
			i++
			j++
		}
	}
}
