package source

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/rows"
	"ken/internal/know/source/safefs"
)

// Catalogs with one record per line. A record keeps its own id; its schema and
// body stay in the file until they are asked for.

const (
	maxRowBytes = 1 << 20
	maxRows     = 250_000
)

func jsonlFormat() format {
	return format{
		name: "jsonl", limit: safefs.CatalogLimit, pure: true, read: readJSONL,
		claims: func(p string, _ []byte) bool { return safefs.HasExt(p, ".jsonl") },
	}
}

func readJSONL(u *unit) {
	f := &jsonlFile{
		u: u, rows: rows.NewReader(), tally: tally{u: u}, origin: u.origin(u.path, 0),
		clean: utf8.Valid(u.data) && bytes.IndexByte(u.data, 0) < 0,
	}
	before := len(u.problems)
	expected := min(maxRows, 1+bytes.Count(u.data, []byte{'\n'}))
	u.capabilities, u.details = slices.Grow(u.capabilities, expected), slices.Grow(u.details, expected)
	at := 0
	if bytes.HasPrefix(u.data, []byte("\ufeff")) {
		at = len("\ufeff")
	}
	for line := 1; at < len(u.data); line++ {
		if line%256 == 0 && u.ctx.Err() != nil {
			return
		}
		if f.count >= maxRows {
			u.fault("too-many-rows", u.path, line, fmt.Sprintf("more than %d rows; the rest is not read", maxRows), "split the file")
			break
		}
		text, _, _ := cutLine(u.data[at:])
		f.line(line, at, text)
		at += len(text) + 1
	}
	if f.count > 0 && f.nameless == f.count {
		// A log or a list of questions that happens to lie in the folder.
		u.problems = slices.Delete(u.problems, before, len(u.problems))
		u.warn("not-a-catalog", u.path, 0, fmt.Sprintf("none of its %d rows has a name, so it is not read as a catalog", f.count), `give every row a "name", or move the file away`)
		return
	}
	if m := f.rows.DroppedMessage(); m != "" {
		u.warn("dropped-values", u.path, 0, m, "move what matters under a key that Ken reads")
	}
	f.tally.close()
}

// A jsonlFile is a catalog being read.
type jsonlFile struct {
	u      *unit
	rows   *rows.Reader
	tally  tally
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
		f.tally.fault(code, line, message, fix)
		return
	}
	r, err := f.rows.Read(text)
	if err != nil {
		f.lost(line, err)
		return
	}
	for _, n := range r.Notes {
		f.tally.warn("bad-value", line, n.Message, n.Fix)
	}
	r.Origin = f.origin
	r.Origin.Line, r.Origin.Offset, r.Origin.Length = line, int64(at), int64(len(text))
	f.u.add(r.Capability, r.Detail, f.u.path, line)
}

// refuse says why a line is not even looked at, or gives "".
func (f *jsonlFile) refuse(text []byte) (code, message, fix string) {
	switch {
	case len(text) > maxRowBytes:
		return "row-too-long", fmt.Sprintf("the row has %d bytes, more than the %d that are read", len(text), maxRowBytes), "shorten its description or schema"
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
		f.tally.fault("bad-row", line, err.Error(), "")
		return
	}
	message := je.Message
	if je.Code == "no-name" {
		f.nameless++
	} else {
		message += fmt.Sprintf(" (byte %d of the row)", je.Offset+1)
	}
	f.tally.fault(je.Code, line, message, je.Fix)
}
