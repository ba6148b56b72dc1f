package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"

	"ken/internal/store"
	"ken/internal/untrusted"
)

// ServerKey makes the key of a server from its name and where it is defined:
// the absolute path of the file, and whatever else tells it from another of
// that name. Different pairs give different keys.
func ServerKey(name, place string) string { return store.Key(name) + " " + place }

// offersMark ends the key of a server's prompts, resources and templates. It
// does not occur in paths.
const offersMark = "\x00offers"

// OffersKey makes the key under which the prompts, resources and templates of a
// server are pinned. They have a separate record, because their names may equal
// those of tools, and clients see no exposed name for them.
func OffersKey(server string) string { return server + offersMark }

func isOffers(key string) bool { return strings.HasSuffix(key, offersMark) }

// ServerName returns the name of a server from its key.
func ServerName(key string) string {
	escaped, _, _ := strings.Cut(key, " ")
	if name, err := url.PathUnescape(escaped); err == nil {
		return name
	}
	return escaped
}

func serverPlace(key string) string {
	_, place, _ := strings.Cut(key, " ")
	return strings.TrimSuffix(place, offersMark)
}

// mostName is the longest name that every client takes.
const mostName = 64

// bound rewrites a name to [A-Za-z0-9_-]{1,64}. Where anything was lost a part
// of the hash of the whole name stands at its end, so that different names
// stay different.
func bound(name string) string {
	out := rewrite(name)
	if out == name && out != "" && len(out) <= mostName {
		return out
	}
	return suffix(out, name, 8)
}

func rewrite(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// suffix puts n digits of the hash of whole at the end of name.
func suffix(name, whole string, n int) string {
	h := sha256.Sum256([]byte(whole))
	end := "_" + hex.EncodeToString(h[:])[:n]
	if name == "" {
		name = "tool"
	}
	return name[:min(len(name), mostName-len(end))] + end
}

// names are the exposed names that are taken.
type names struct {
	holder map[string]string // exposed name → fingerprint of its server
	looks  map[string]string // what it reads like → the same; made when needed
}

// take returns a tool of a server its exposed name: where plain is set its own,
// if that is free. reserved are names that no tool may have.
func (n *names) take(server, tool string, plain bool, reserved []string) string {
	if n.looks == nil {
		n.looks = make(map[string]string, len(n.holder)+len(reserved))
		for name, holder := range n.holder {
			n.looks[untrusted.Skeleton(name)] = holder
		}
		for _, name := range reserved {
			n.looks[untrusted.Skeleton(name)] = "" // no server has this fingerprint
		}
	}
	me := fingerprint(server)
	free := func(name string) bool {
		if _, taken := n.holder[name]; taken {
			return false
		}
		// A server may have two names of its own that read alike: its first
		// listing was trusted as a whole.
		other, taken := n.looks[untrusted.Skeleton(name)]
		return !taken || other == me
	}
	name, long := bound(tool), ServerName(server)+"__"+tool
	if !plain || !free(name) {
		name = bound(long)
	}
	for i := 1; !free(name); i++ { // ends, since what is taken is finite
		name = suffix(rewrite(long), server+"\x00"+tool+"\x00"+strconv.Itoa(i), 8)
	}
	n.holder[name] = me
	n.looks[untrusted.Skeleton(name)] = me
	return name
}
