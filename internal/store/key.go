package store

import (
	"fmt"
	"strings"
)

// What a store takes. Larger things belong in files, with their name here.
const (
	MaxKey    = 512      // bytes of a key
	MaxValue  = 8 << 20  // bytes of a value
	MaxWrites = 1000     // puts and deletes of one batch; as many preconditions
	MaxBatch  = 16 << 20 // bytes of keys and values of one batch
)

const hex = "0123456789ABCDEF"

// plain says whether a byte stands for itself in a part of a key. They all lie
// between the space and 0x7f, which behind and past make use of.
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~:@=+,", c) >= 0
}

// Key joins parts into a key: they are set apart by slashes, and any byte but
// ASCII letters, digits and -._~:@=+, is written %XX. Different parts give
// different keys. An empty part gives a key that every method refuses: it is
// most often a name that was not filled in.
func Key(parts ...string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte('/')
		}
		for j := range len(part) {
			if c := part[j]; plain(c) {
				b.WriteByte(c)
			} else {
				b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			}
		}
	}
	return b.String()
}

func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: the key is empty; make it with store.Key", ErrInvalid)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: the key %.40q… has %d bytes, the limit is %d; put a digest in place of its long part", ErrInvalid, key, len(key), MaxKey)
	case key[0] == '/' || key[len(key)-1] == '/' || strings.Contains(key, "//"):
		return fmt.Errorf("%w: the key %q has an empty part; fill every part between slashes", ErrInvalid, key)
	}
	return checkAlphabet("key", key)
}

func checkPrefix(prefix string) error {
	if len(prefix) > MaxKey {
		return fmt.Errorf("%w: the prefix %.40q… has %d bytes, no key has more than %d", ErrInvalid, prefix, len(prefix), MaxKey)
	}
	return checkAlphabet("prefix", prefix)
}

func checkAlphabet(what, s string) error {
	for i := range len(s) {
		if c := s[i]; !plain(c) && c != '/' && c != '%' {
			return fmt.Errorf("%w: the %s %q has %q at byte %d; make it with store.Key, which escapes it", ErrInvalid, what, s, s[i:i+1], i)
		}
	}
	return nil
}

// behind is the first string after a key: a space comes before all that a key
// can have.
func behind(key string) string { return key + " " }

// past is the first string behind every key that begins with prefix.
func past(prefix string) string { return prefix + "\x7f" }
