package pin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"ken/capability"
)

// A Tool is what a server says about one of its tools. Input, Output,
// Annotations and Extra are JSON, or empty where the server gave none. Extra
// holds what only clients read: icons and metadata. All of it came from outside.
type Tool struct {
	Name, Title, Description string

	Input, Output, Annotations, Extra json.RawMessage
}

// A sum names bytes: as a tool was written, before its JSON is put in order.
type sum [sha256.Size]byte

// MarshalText writes it as base64.
func (s sum) MarshalText() ([]byte, error) {
	return base64.RawStdEncoding.AppendEncode(nil, s[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (s *sum) UnmarshalText(text []byte) error {
	if base64.RawStdEncoding.DecodedLen(len(text)) != len(s) {
		return errors.New("a checksum has the wrong length")
	}
	_, err := base64.RawStdEncoding.Decode(s[:], text)
	return err
}

// field keeps neighbours apart by the length before each.
func field[T ~string | ~[]byte](buf []byte, s T) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// rawSum names the tools of one name exactly as they are written. buf is room
// to work in, and is given back.
func rawSum(buf []byte, tools []Tool) (sum, []byte) {
	buf = buf[:0]
	for i := range tools {
		t := &tools[i]
		buf = field(field(field(buf, t.Name), t.Title), t.Description)
		buf = field(field(field(field(buf, t.Input), t.Output), t.Annotations), t.Extra)
	}
	return sha256.Sum256(buf), buf
}

// hashOf names what the tools of one name say, whatever the spelling of their
// JSON. A server may list a name more than once, which is for the gateway to
// refuse; here all of them count, in their order.
func hashOf(tools []Tool) string {
	buf := field(nil, "ken.mcp.tool.v1")
	for i := range tools {
		t := &tools[i]
		buf = field(field(field(buf, t.Name), t.Title), t.Description)
		for _, raw := range [][]byte{t.Input, t.Output, t.Annotations} {
			buf = field(buf, canonical(raw))
		}
		if len(t.Extra) > 0 && string(t.Extra) != "null" { // without it the hash is what it was before there was Extra
			buf = field(buf, canonical(t.Extra))
		}
	}
	s := sha256.Sum256(buf)
	return "sha256:" + hex.EncodeToString(s[:])
}

// canonical returns JSON without its spelling. What two readers could understand
// in two ways (no JSON, a key that comes twice, text that is no Unicode) stands
// for itself, byte by byte; the mark before it keeps the two apart.
func canonical(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	if utf8.Valid(raw) {
		// U+FFFD stands for any half of a pair that was escaped alone.
		if out, err := capability.CanonicalJSON(raw); err == nil && !bytes.ContainsRune(out, utf8.RuneError) {
			return append([]byte("j"), out...)
		}
	}
	return append([]byte("x"), raw...)
}
