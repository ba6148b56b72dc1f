package config

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/yamldoc"
)

// pins maps ids to hashes. A project cannot set any, because they would release
// or replace exactly what the user is to be warned about.
func pins() kind[map[capability.ID]string] {
	return kind[map[capability.ID]string]{
		empty:   true,
		noWider: func(a, b map[capability.ID]string) bool { return len(a) == 0 },
		join:    func(old, _ map[capability.ID]string) map[capability.ID]string { return old },
		parse:   parsePins,
		show: func(m map[capability.ID]string) any {
			out := &yamldoc.Map{}
			for _, id := range slices.Sorted(maps.Keys(m)) {
				out.Fields = append(out.Fields, yamldoc.Field{Key: string(id), Value: yamldoc.Value{Any: m[id]}})
			}
			return out
		},
	}
}

func parsePins(r *reading, at spot, v yamldoc.Value) (map[capability.ID]string, bool) {
	if v.Any == nil {
		return nil, true
	}
	m, ok := v.Any.(*yamldoc.Map)
	if !ok {
		r.mistyped(at, v, "a map of ids to hashes")
		return nil, false
	}
	out := make(map[capability.ID]string, len(m.Fields))
	for _, f := range m.Fields {
		where := spot{at.key + "." + plain(f.Key), f.Line}
		hash, isText := f.Value.Any.(string)
		_, twice := out[capability.ID(norm.NFC.String(f.Key))]
		switch {
		case twice:
			r.fault(where, "bad-pin", "keep one of them", "%s is there twice, in two Unicode forms", where.key)
		case f.Key == "" || len(f.Key) > longestText || strings.ContainsFunc(f.Key, unseen):
			r.fault(where, "bad-pin", "pins are for ids of printable characters", "%s is not an id that can be pinned", where.key)
		case !isText:
			r.mistyped(where, f.Value, "a hash as in \"sha256:…\"")
		case !isHash(hash):
			r.fault(where, "bad-pin", "copy the hash from `ken catalog show`: sha256: and 32 or 64 digits 0-9 a-f", "%s %s is not a content hash", where.key, plain(hash))
		default:
			out[capability.ID(norm.NFC.String(f.Key))] = hash
			continue
		}
		ok = false
	}
	if len(out) == 0 {
		out = nil
	}
	return out, ok
}

// isHash reports whether a capability's content hash is written so.
func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && (isHex(digits, 32) || isHex(digits, 64))
}

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }
