package yamldoc

import "strings"

// NearestID is [Nearest] for ids, whose first part many share: tool:, mcp:attic/.
// That says nothing of which was meant, so the rest alone is judged, and by a
// stricter measure: whoever reads the answer, perhaps a model, calls it next.
func NearestID(id string, known []string) string {
	near := Nearest(id, known)
	a, b := id, near
	if i := strings.LastIndexAny(id, ":/") + 1; strings.HasPrefix(near, id[:i]) {
		a, b = id[i:], near[i:]
	}
	if shorter := min(len(a), len(b)); Distance(a, b) > max(1, shorter/3) || shorter < 2 {
		return ""
	}
	return near
}
