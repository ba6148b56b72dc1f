package rows

import (
	"crypto/sha256"
	"encoding/hex"
)

// KeyOutput is where a tool says what its results are like, and the key of
// [capability.Capability.Meta] that holds it, or what tells it from another. So
// the hash of a tool covers it.
const KeyOutput = "outputSchema"

// OutputMark returns an output schema as Meta has it.
func OutputMark(schema []byte) string {
	if len(schema) <= MaxKept {
		return string(schema)
	}
	sum := sha256.Sum256(schema)
	return "sha256:" + hex.EncodeToString(sum[:16])
}
