package rows

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// KeyOutput is where a tool says what its results are like, and the key of
// [capability.Capability.Meta] that holds it, or what tells it from another. So
// the hash of a tool covers it.
const KeyOutput = "outputSchema"

// ExtraKeys returns the keys of a tool whose values are passed on to clients as
// they are; see [capability.Detail.Extra]. Like the output schema they are in
// [capability.Capability.Meta], or what tells them from others.
func ExtraKeys() []string { return []string{"icons", "_meta"} }

// maxExtra is the size in bytes of the largest value that is passed on.
const maxExtra = 64 << 10

// AppendMember adds a member to a JSON object; nil is the empty one.
func AppendMember(object json.RawMessage, key string, value []byte) json.RawMessage {
	if object == nil {
		object = json.RawMessage("{}")
	}
	out := slices.Clone(object[:len(object)-1])
	if len(out) > 1 {
		out = append(out, ',')
	}
	name, _ := json.Marshal(key) // a text cannot fail
	out = append(append(out, name...), ':')
	return append(append(out, value...), '}')
}

// OutputMark returns an output schema, or a value of [ExtraKeys], as Meta has it.
func OutputMark(schema []byte) string {
	if len(schema) <= MaxKept {
		return string(schema)
	}
	sum := sha256.Sum256(schema)
	return "sha256:" + hex.EncodeToString(sum[:16])
}
