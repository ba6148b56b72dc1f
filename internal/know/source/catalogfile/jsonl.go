package catalogfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/rows"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
)

// Catalogs with one record per line. A record keeps its own id; its schema and
// body stay in the file until they are asked for.

const (
	MaxRowBytes = 1 << 20
	MaxRows     = 250_000
)

// JSONLFormat returns the format of catalogs with one record per line.
func JSONLFormat() format.Format {
	return format.Format{
		Name: "jsonl", Limit: safefs.CatalogLimit, Pure: true, Read: readJSONL,
		Claims: func(p string, _ []byte) bool { return safefs.HasExt(p, ".jsonl") },
	}
}

func readJSONL(u *format.Unit) {
	f := &jsonlFile{
		u: u, rows: rows.NewReader(), tally: format.Tally{Unit: u}, origin: u.Origin(u.Path, 0),
		clean: utf8.Valid(u.Data) && bytes.IndexByte(u.Data, 0) < 0,
	}
	u.Sealer = seal.NewSealer()
	before := len(u.Problems)
	expected := min(MaxRows, 1+bytes.Count(u.Data, []byte{'\n'}))
	u.Capabilities, u.Details = slices.Grow(u.Capabilities, expected), slices.Grow(u.Details, expected)
	at := 0
	if bytes.HasPrefix(u.Data, []byte("\ufeff")) {
		at = len("\ufeff")
	}
	for line := 1; at < len(u.Data); line++ {
		if line%256 == 0 && u.Context.Err() != nil {
			return
		}
		if f.count >= MaxRows {
			u.Fault("too-many-rows", u.Path, line, fmt.Sprintf("more than %d rows; the rest is not read", MaxRows), "split the file")
			break
		}
		text, _, _ := format.CutLine(u.Data[at:])
		f.line(line, at, text)
		at += len(text) + 1
	}
	if f.count > 0 && f.nameless == f.count {
		// A log or a list of questions that happens to lie in the folder.
		u.Problems = slices.Delete(u.Problems, before, len(u.Problems))
		u.Warn("not-a-catalog", u.Path, 0, fmt.Sprintf("none of its %d rows has a name, so it is not read as a catalog", f.count), `give every row a "name", or move the file away`)
		return
	}
	if m := f.rows.DroppedMessage(); m != "" {
		u.Warn("dropped-values", u.Path, 0, m, "move what matters under a key that Ken reads")
	}
	f.tally.Close()
}

// A jsonlFile is a catalog being read.
type jsonlFile struct {
	u      *format.Unit
	rows   *rows.Reader
	tally  format.Tally
	origin capability.Origin
	clean  bool // the whole file is UTF-8 without NUL

	count, nameless int
}

// line reads the line that begins at a byte of the file.
func (f *jsonlFile) line(line, at int, text []byte) {
	text = bytes.TrimRight(text, " \t\r")
	indent := len(text) - len(bytes.TrimLeft(text, " \t\r"))
	at, text = at+indent, text[indent:]
	if len(text) == 0 {
		return
	}
	f.count++
	if code, message, fix := f.refuse(text); code != "" {
		f.tally.Fault(code, line, message, fix)
		return
	}
	r, err := f.rows.Read(text)
	if err != nil {
		f.lost(line, err)
		return
	}
	for _, n := range r.Notes {
		f.tally.Warn("bad-value", line, n.Message, n.Fix)
	}
	r.Origin = f.origin
	r.Origin.Line, r.Origin.Offset, r.Origin.Length = line, int64(at), int64(len(text))
	f.u.Add(r.Capability, r.Detail, f.u.Path, line)
}

// refuse says why a line is not even looked at, or returns "".
func (f *jsonlFile) refuse(text []byte) (code, message, fix string) {
	switch {
	case len(text) > MaxRowBytes:
		return "row-too-long", fmt.Sprintf("the row has %d bytes, more than the %d that are read", len(text), MaxRowBytes), "shorten its description or schema"
	case f.clean:
	case bytes.IndexByte(text, 0) >= 0:
		return "nul-byte", "the row holds a NUL byte", "save the file as UTF-8 text"
	case !utf8.Valid(text):
		return "not-utf8", "the row is not valid UTF-8", "save the file as UTF-8"
	}
	return "", "", ""
}

// lost records why a row could not be read.
func (f *jsonlFile) lost(line int, err error) {
	var je *jsonscan.Error
	if !errors.As(err, &je) {
		f.tally.Fault("bad-row", line, err.Error(), "")
		return
	}
	message := je.Message
	if je.Code == "no-name" {
		f.nameless++
	} else {
		message += fmt.Sprintf(" (byte %d of the row)", je.Offset+1)
	}
	f.tally.Fault(je.Code, line, message, je.Fix)
}
