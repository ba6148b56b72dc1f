package catalogfile

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/internal/know/source/format"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/rows"
	"ken/internal/know/source/safefs"
)

// Lists of tools as an MCP server returns them: the result of tools/list, with
// or without the JSON-RPC envelope, or only the array of tools.

const (
	MCPListName = "mcplist"
	maxTools    = 50_000
)

// MCPListFormat returns the format of a saved tools/list.
func MCPListFormat() format.Format {
	return format.Format{Name: MCPListName, Claims: isMCPList, Limit: safefs.TableLimit, Pure: true, Read: readMCPList}
}

// isMCPList looks for tools with input schemas. A client's configuration,
// which names servers to start, is something else.
func isMCPList(p string, head []byte) bool {
	if !safefs.HasExt(p, ".json") || bytes.Contains(head, []byte(`"mcpServers"`)) {
		return false
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	schema := bytes.Contains(head, []byte(`"inputSchema"`)) || bytes.Contains(head, []byte(`"input_schema"`))
	switch {
	case bytes.HasPrefix(head, []byte("[")):
		return schema && bytes.Contains(head, []byte(`"name"`))
	case bytes.HasPrefix(head, []byte("{")):
		// The first tool's description may fill all of the head.
		return bytes.Contains(head, []byte(`"tools"`)) && (schema || startsWithTools(head))
	}
	return false
}

// startsWithTools reports whether a list of objects under "tools" comes first,
// in the envelope or without it.
func startsWithTools(head []byte) bool {
	text := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, string(head[:min(len(head), 512)]))
	return strings.HasPrefix(text, `{"tools":[{`) || strings.Contains(text, `"result":{"tools":[{`)
}

// A toolList says where the list of a file is, and what stands around it.
type toolList struct {
	at      int    // byte at which the array begins; 0 for none, unless bare
	bare    bool   // the array is the whole file
	pointer string // JSON pointer of the array

	server, cursor, failed string
}

func readMCPList(u *format.Unit) {
	data := u.Data
	if !utf8.Valid(data) {
		u.Fault("not-utf8", u.Path, jsonscan.LineAt(data, jsonscan.FirstInvalid(data)), "the file is not valid UTF-8", "save the file as UTF-8")
		return
	}
	l, err := findTools(data)
	if err != nil {
		u.FaultJSON(data, err)
		return
	}
	if !l.bare && l.at == 0 {
		message, fix := `missing list under "tools"`, "save the result of tools/list here"
		if l.failed != "" {
			message, fix = "the file holds an error instead of a list: "+jsonscan.Shorten(l.failed), "ask the server again"
		}
		u.Fault("no-tools", u.Path, 0, message, fix)
		return
	}
	if l.server == "" {
		l.server = strings.TrimSuffix(path.Base(u.Path), path.Ext(u.Path))
	}
	if l.cursor != "" {
		u.Warn("more-pages", u.Path, 0, "the server had more tools than this page of its list", "save all pages into one list")
	}
	readTools(u, l)
}

// findTools goes over the whole file once and finds the parts.
func findTools(data []byte) (toolList, error) {
	var l toolList
	w := jsonscan.Scanner{Data: data}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		w.Pos = len("\ufeff")
	}
	start := w.Pos
	if err := w.Check(); err != nil {
		return l, err
	}
	w = jsonscan.Scanner{Data: data, Pos: start, Loose: true}
	switch w.Next() {
	case '[':
		l.at, l.bare = w.Pos, true
	case '{':
		l.members(data, w.Pos, "")
	}
	return l, nil
}

// members looks at the members of the object at a byte: the result itself, or
// the envelope around it.
func (l *toolList) members(data []byte, at int, pointer string) {
	w := jsonscan.Scanner{Data: data, Pos: at, Loose: true}
	_ = w.Object(func(key []byte, at, end int) error { // checked before
		switch v := data[at:end]; string(key) {
		case "tools":
			if v[0] == '[' {
				l.at, l.pointer = at, pointer+"/tools"
			}
		case "result":
			if v[0] == '{' && pointer == "" {
				l.members(data, at, "/result")
			}
		case "serverInfo":
			if v[0] == '{' {
				l.server = memberText(v, "name")
			}
		case "nextCursor":
			l.cursor, _ = rows.PlainText(v)
		case "error":
			l.failed = string(v)
		}
		return nil
	})
}

// memberText returns the text under a key of an object.
func memberText(object []byte, key string) (text string) {
	w := jsonscan.Scanner{Data: object, Loose: true}
	_ = w.Object(func(k []byte, at, end int) error {
		if string(k) == key {
			text, _ = rows.PlainText(object[at:end])
		}
		return nil
	})
	return text
}

// readTools adds the tools of the list. Each has the bytes of its object as
// its origin, so that its schema is read from there when it is asked for.
func readTools(u *format.Unit, l toolList) {
	reader := rows.NewReader()
	reader.MCP = true
	t := format.Tally{Unit: u}
	base, lines, n := u.Origin(u.Path, 0), jsonscan.LineCounter{Data: u.Data}, -1
	w := jsonscan.Scanner{Data: u.Data, Pos: l.at, Loose: true}
	_ = w.Array(func(at, end int) error { // checked before
		if n++; n == maxTools {
			u.Fault("too-many-tools", u.Path, lines.At(at), fmt.Sprintf("more than %d tools; the rest is not read", maxTools), "split the file")
		}
		if n >= maxTools || n%256 == 0 && u.Context.Err() != nil {
			return nil
		}
		line := lines.At(at)
		r, err := reader.Read(u.Data[at:end])
		if err != nil {
			var je *jsonscan.Error
			errors.As(err, &je)
			t.Fault(je.Code, line, fmt.Sprintf("tool %d of the list: %s", n+1, je.Message), je.Fix)
			return nil
		}
		for _, note := range r.Notes {
			t.Warn("bad-value", line, note.Message, note.Fix)
		}
		c := r.Capability
		c.Category = l.server
		c.Origin = base
		c.Origin.Line, c.Origin.Pointer = line, l.pointer+"/"+strconv.Itoa(n)
		c.Origin.Offset, c.Origin.Length = int64(at), int64(end-at)
		u.Add(c, r.Detail, u.Path, line)
		return nil
	})
	if m := reader.DroppedMessage(); m != "" {
		u.Warn("dropped-values", u.Path, 0, m, "")
	}
	t.Close()
}
