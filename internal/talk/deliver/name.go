package deliver

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"ken/capability"
	"ken/internal/talk/session"
)

// Named is what a tool's name is made of.
type Named struct {
	ID       capability.ID
	Action   string // empty: the capability has but one
	Name     string // the capability's own
	Category string
}

// longest is how long a name may be on every wire.
const longest = 64

// Names returns a name for each of list that every wire takes: a letter or _, then
// letters, digits, _ and -, 64 in all at most. It is the capability's own name
// where that is free, else category__name, else one of these with a hash of the
// id. What taken holds already keeps its name; no two are alike, even where
// case and dashes are not told apart, and none is like one of Ken's own. More
// at the end of list changes no name before it.
func Names(list []Named, taken map[string]session.Offer) []string {
	type key struct {
		id     capability.ID
		action string
	}
	used := map[string]bool{}
	known := make(map[key]string, len(taken))
	for name, o := range taken {
		used[folded(name)] = true
		k := key{o.ID, o.Action}
		if old, ok := known[k]; !ok || name < old {
			known[k] = name
		}
	}
	for _, name := range capability.OwnTools() {
		used[folded(name)] = true
	}
	out := make([]string, len(list))
	for i, n := range list {
		k := key{n.ID, n.Action}
		name, ok := known[k]
		if !ok {
			name = n.free(used)
			used[folded(name)], known[k] = true, name
		}
		out[i] = name
	}
	return out
}

// folded is a name as it is compared: models mix up case, dashes and underlines.
func folded(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// free returns the first of the names that n could have that is not used.
func (n Named) free(used map[string]bool) string {
	own := n.Name
	if n.Action != "" {
		own += "_" + n.Action
	}
	plain := clean(own)
	if plain != "" && !used[folded(cut(plain, longest))] && len(plain) <= longest {
		return plain
	}
	hash := n.hash()
	if category := clean(n.Category); plain != "" && category != "" {
		plain = category + "__" + plain
		if len(plain) <= longest && !used[folded(plain)] {
			return plain
		}
	}
	if plain == "" {
		plain = "tool"
	}
	for size := 6; ; size += 4 {
		if size > len(hash) { // two ids have the same hash: lengthen it
			hash += hash
		}
		name := cut(plain, longest-1-size) + "_" + hash[:size]
		if !used[folded(name)] {
			return name
		}
	}
}

// hash identifies what n names, in small letters and digits.
func (n Named) hash() string {
	sum := sha256.Sum256([]byte(string(n.ID) + "\x00" + n.Action))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// clean leaves what every wire takes of a name.
func clean(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r == '-', r >= '0' && r <= '9':
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			if b.Len() == 0 && (r == '-' || r >= '0' && r <= '9') {
				b.WriteByte('_')
			}
			b.WriteRune(r)
		default:
			gap = true
		}
	}
	if strings.Trim(b.String(), "_-") == "" {
		return ""
	}
	return b.String()
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
