package output

// Cut returns a text in pieces, every second of them, from the second on, in one of
// the ranges. The ranges are in order. One that does not lie in the text, or
// overlaps another, is left out.
func Cut(text string, ranges [][2]int) []string {
	var out []string
	end := 0
	for _, r := range ranges {
		if r[0] < end || r[1] <= r[0] || r[1] > len(text) {
			continue
		}
		out = append(out, text[end:r[0]], text[r[0]:r[1]])
		end = r[1]
	}
	return append(out, text[end:])
}
