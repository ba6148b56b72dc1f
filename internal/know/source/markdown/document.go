package markdown

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/untrusted"
)

// Documents about the whole instance: AGENTS.md at the top of the tree is the
// map, which every prompt carries, and SYSTEM_ARCHITECTURE.md, there or in
// docs/, is the reference, which only a tool reads.

const (
	maxMapChars   = 500
	mapFile       = "agents.md"
	referenceFile = "system_architecture.md"
)

// DocumentFormat returns the format of AGENTS.md and SYSTEM_ARCHITECTURE.md.
func DocumentFormat() format.Format {
	return format.Format{Name: "document", Claims: isInstanceDocument, Limit: safefs.BodyLimit, Read: readDocument}
}

func isInstanceDocument(p string, _ []byte) bool {
	dir := path.Dir(p)
	switch safefs.BaseName(p) {
	case mapFile:
		return dir == "."
	case referenceFile:
		return dir == "." || strings.EqualFold(dir, "docs")
	}
	return false
}

func readDocument(u *format.Unit) {
	data, ok := u.Text(u.Path, u.Data, false)
	if !ok {
		return
	}
	text := DocumentText(data)
	d := capability.Document{
		Role: capability.Reference, Origin: u.Origin(u.Path, 1), Trust: u.Trust, Hash: DocumentHash(text),
	}
	if text == "" {
		u.Warn("empty-file", u.Path, 0, "the document is empty", "write it, or remove the file")
		return
	}
	if safefs.BaseName(u.Path) == mapFile {
		if over := utf8.RuneCountInString(text) - maxMapChars; over > 0 {
			u.Fault("map-too-long", u.Path, 0,
				fmt.Sprintf("the map has %d characters, %d more than the %d that every prompt can carry; it is not used", maxMapChars+over, over, maxMapChars),
				"keep what exists and where to look; move the rest to SYSTEM_ARCHITECTURE.md or to cards")
			return
		}
		d.Role, d.Text = capability.Map, text
	}
	if isSuspicious(u, text) {
		return
	}
	u.Documents = append(u.Documents, d)
}

// isSuspicious reports whether a document must not be shown, and says what the
// text scan found in it. A document has no quarantine: it is shown or it is
// not.
func isSuspicious(u *format.Unit, text string) bool {
	hidden := false
	for _, f := range seal.Findings("body", untrusted.Scan(text)) {
		if f.Severity != capability.Grave {
			u.Warn("suspicious-text", u.Path, f.Line, fmt.Sprintf("%s: %s", f.Rule, f.Excerpt), "see whether it is meant so")
			continue
		}
		if !hidden {
			u.Fault("suspicious-text", u.Path, f.Line, fmt.Sprintf("%s: %s; the document is not used", f.Rule, f.Excerpt), "remove that text")
		}
		hidden = true
	}
	return hidden
}

// DocumentText returns a document as it is shown and hashed.
func DocumentText(data []byte) string {
	return strings.TrimSpace(strings.TrimPrefix(safefs.NormalizeNewlines(data), "\ufeff"))
}

// DocumentHash returns the hash by which a later reading is compared.
func DocumentHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:16])
}
