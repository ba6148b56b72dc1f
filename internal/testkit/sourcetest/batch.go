package sourcetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
)

// IDs returns the ids of a batch, in their order.
func IDs(b capability.Batch) string {
	var ids []string
	for _, c := range b.Capabilities {
		ids = append(ids, string(c.ID))
	}
	return strings.Join(ids, " ")
}

// Write writes a file below a folder and returns its path.
func Write(t *testing.T, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// Card is a small capability card.
const Card = "---\ncapability_id: token-economy\ntriggers:\n  keywords: [cost, tokens]\npriority: 10\n---\nSaves tokens.\n"
