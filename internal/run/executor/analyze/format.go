package analyze

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ken/internal/yamldoc"
)

// The names of formats.
const (
	formatEmpty  = "empty"
	formatBinary = "binary"
	formatJSON   = "JSON"
	formatLines  = "JSON lines"
	formatYAML   = "YAML"
	formatCSV    = "CSV"
	formatHTML   = "HTML"
	formatXML    = "XML"
	formatLog    = "log"
	formatPlain  = "plain text"
)

// A form is what rules can tell of how a text is built. Names are rendered.
type form struct {
	format string
	detail string
	called string // what the names are: "Keys", "Columns"
	names  []string
}

func (f form) String() string {
	if f.detail == "" {
		return f.format
	}
	return f.format + ", " + f.detail
}

// look tells the format of a text from its beginning.
func look(m material) form {
	if m.binary() {
		return form{format: formatBinary}
	}
	text := strings.TrimSpace(strings.TrimPrefix(m.head, "\ufeff"))
	if text == "" {
		return form{format: formatEmpty}
	}
	lines := sample(text)
	for _, try := range []func(string, []string, bool) (form, bool){looksJSON, looksMarkup, looksLog, looksCSV, looksYAML} {
		if f, ok := try(text, lines, m.tail == ""); ok {
			return f
		}
	}
	return form{format: formatPlain}
}

// sampled is how many lines a format is told from.
const sampled = 40

func sample(text string) []string {
	var out []string
	for len(out) < sampled && text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if line = strings.TrimSuffix(line, "\r"); strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return out
}

func looksJSON(text string, lines []string, whole bool) (form, bool) {
	if text[0] != '{' && text[0] != '[' {
		return form{}, false
	}
	if whole && json.Valid([]byte(text)) {
		return outline(text), true
	}
	objects := func(s string) bool { return s[0] == '{' && json.Valid([]byte(s)) }
	if first := lines[:min(len(lines), 3)]; len(first) > 1 && !slices.ContainsFunc(first, func(s string) bool { return !objects(s) }) {
		f := outline(first[0])
		return form{formatLines, "an object in each line", "Keys of the first", f.names}, true
	}
	// Broken, or cut: a beginning that could hardly be anything else will do.
	dec := json.NewDecoder(strings.NewReader(text))
	tokens := 0
	var err error
	for ; tokens < 64; tokens++ {
		if _, err = dec.Token(); err != nil {
			break
		}
	}
	if tokens < 3 {
		return form{}, false
	}
	f := outline(text)
	if whole {
		f.detail = "broken"
		if err := json.Unmarshal([]byte(text), new(any)); err != nil {
			f.detail += ": " + named(err.Error())
		}
	} else {
		f.detail = "of which the beginning was read"
	}
	return f, true
}

// outline returns the keys of an object, or what a list holds, as far as the
// text is JSON.
func outline(text string) form {
	f := form{format: formatJSON, called: "Keys"}
	dec := json.NewDecoder(strings.NewReader(text))
	open, err := dec.Token()
	if err != nil {
		return f
	}
	if open == json.Delim('{') {
		for dec.More() {
			key, err := dec.Token()
			var v json.RawMessage
			if err != nil || dec.Decode(&v) != nil {
				break
			}
			name, _ := key.(string) // the decoder allows nothing else here
			f.names = append(f.names, named(name)+" ("+kindOf(v)+")")
		}
		f.detail = fmt.Sprintf("an object of %d keys", len(f.names))
		return f
	}
	items := 0
	var first json.RawMessage
	for dec.More() {
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			break
		}
		if items == 0 {
			first = v
		}
		items++
	}
	f.detail = fmt.Sprintf("a list of %d items", items)
	if items > 0 {
		f.detail += ", the first " + kindOf(first)
	}
	if items > 0 && first[0] == '{' {
		f.called, f.names = "Keys of the first", outline(string(first)).names
	}
	return f
}

// kindOf names the type of a JSON value.
func kindOf(v json.RawMessage) string {
	switch v[0] {
	case '{':
		return "object"
	case '[':
		return "list"
	case '"':
		return "text"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

func looksMarkup(text string, _ []string, _ bool) (form, bool) {
	if text[0] != '<' {
		return form{}, false
	}
	start := strings.ToLower(text[:min(len(text), 2048)])
	html := strings.Contains(start, "<html") // perhaps after a comment
	for _, sign := range []string{"<!doctype html", "<head>", "<body", "<div", "<p>", "<table", "<span", "<ul>"} {
		html = html || strings.HasPrefix(start, sign)
	}
	if html {
		return form{formatHTML, "", "Title", title(text)}, true
	}
	return looksXML(text)
}

func title(text string) []string {
	start := text[:min(len(text), 64<<10)]
	// Letters are compared byte for byte, so that places stay what they are.
	low := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, start)
	i := strings.Index(low, "<title")
	if i < 0 || len(low) != len(start) {
		return nil
	}
	from := strings.IndexByte(low[i:], '>')
	if from < 0 {
		return nil
	}
	to := strings.Index(low[i+from:], "</title")
	if to < 0 {
		return nil
	}
	return []string{named(start[i+from+1 : i+from+to])}
}

// looksXML takes a text for XML when its root element can be read.
func looksXML(text string) (form, bool) {
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.Strict = false
	dec.Entity = nil
	f := form{format: formatXML, called: "Elements"}
	depth := 0
	seen := map[string]bool{}
	for range 20_000 {
		tok, err := dec.RawToken()
		if err != nil {
			break
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if depth == 0 && f.detail == "" {
				f.detail = "root " + named(t.Name.Local)
			}
			if name := named(t.Name.Local); depth == 1 && !seen[name] {
				seen[name] = true
				f.names = append(f.names, name)
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
	return f, f.detail != "" || strings.HasPrefix(text, "<?xml")
}

// looksLog takes a text for a log when most lines begin with a time or a level.
func looksLog(_ string, lines []string, _ bool) (form, bool) {
	marked := 0
	levels := map[string]int{}
	for _, line := range lines {
		start := line[:min(len(line), 64)]
		level := levelIn(start)
		if level != "" {
			levels[level]++
		}
		if level != "" || timeIn(start) {
			marked++
		}
	}
	if marked < 2 || marked*10 < len(lines)*6 {
		return form{}, false
	}
	f := form{format: formatLog, called: "Levels in the first lines"}
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		f.names = append(f.names, fmt.Sprintf("%s %d", level, levels[level]))
	}
	return f, true
}

// levelIn finds a level as logs write it, among the first words.
func levelIn(start string) string {
	words := strings.FieldsFunc(start, func(r rune) bool { return strings.ContainsRune(" \t[]():|=<>,", r) })
	for i, w := range words {
		if i == 6 {
			break
		}
		switch w {
		case "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL", "PANIC":
			return w
		}
	}
	return ""
}

// timeIn reports whether a line begins with a date or a time of day.
func timeIn(start string) bool {
	start = strings.TrimLeft(start, "[( \t")
	for _, shape := range []string{"0000-00-00", "0000/00/00", "00:00:00", "00/00/0000", "00/aaa/0000", "aaa 00 00:00:00", "aaa  0 00:00:00"} {
		if shaped(start, shape) {
			return true
		}
	}
	return false
}

// shaped compares digits with 0 and letters with a.
func shaped(s, shape string) bool {
	if len(s) < len(shape) {
		return false
	}
	for i := range len(shape) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c = '0'
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			c = 'a'
		}
		if c != shape[i] {
			return false
		}
	}
	return true
}

// looksCSV takes a text for a table when its lines have the same number of
// fields.
func looksCSV(_ string, lines []string, _ bool) (form, bool) {
	for _, comma := range ",\t;|" {
		r := csv.NewReader(strings.NewReader(strings.Join(lines, "\n")))
		r.Comma, r.FieldsPerRecord = comma, 0
		rows, err := r.ReadAll()
		if len(lines) == sampled && len(rows) > 2 {
			err = nil // the sample may end within a field
		}
		if err != nil || len(rows) < 2 || len(rows[0]) < 2 || len(rows) == 2 && len(rows[0]) < 3 {
			continue
		}
		f := form{format: formatCSV, called: "Columns"}
		if comma != ',' {
			f.detail = fmt.Sprintf("apart by %q", comma)
		}
		for _, name := range rows[0] {
			if len(name) > longName {
				f.names = nil
				break // a sentence, and no name of a column
			}
			f.names = append(f.names, named(name))
		}
		if f.names != nil {
			return f, true
		}
	}
	return form{}, false
}

// yamlBytes is how much of a text is read as YAML.
const yamlBytes = 32 << 10

func looksYAML(text string, _ []string, _ bool) (form, bool) {
	if len(text) > yamlBytes {
		text = topLines(text[:yamlBytes])
	}
	doc, err := yamldoc.ParseValue([]byte(text), yamldoc.Limits{})
	if err != nil {
		return form{}, false
	}
	f := form{format: formatYAML, called: "Keys"}
	root, ok := doc.Any.(*yamldoc.Map)
	if list, isList := doc.Any.([]yamldoc.Value); isList && len(list) > 0 {
		f.detail, f.called = fmt.Sprintf("a list of %d items", len(list)), "Keys of the first"
		root, ok = list[0].Any.(*yamldoc.Map)
	}
	if !ok || len(root.Fields) == 0 {
		return form{}, false
	}
	for _, field := range root.Fields {
		if strings.ContainsAny(field.Key, " \t") || len(field.Key) > longName {
			return form{}, false // prose with a colon in it
		}
		f.names = append(f.names, named(field.Key)+" ("+field.Value.Kind()+")")
	}
	// One key alone is a line such as "Note: …", unless there is more beneath.
	_, plain := root.Fields[0].Value.Any.(string)
	if len(root.Fields) == 1 && plain && f.detail == "" && !strings.HasPrefix(text, "---") {
		return form{}, false
	}
	return f, true
}

// topLines returns the text up to its last line that begins at the margin, so
// that what was cut off is no half of a value.
func topLines(text string) string {
	for {
		i := strings.LastIndexByte(text, '\n')
		if i < 0 {
			return ""
		}
		if i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\t' && text[i+1] != '\n' {
			return text[:i+1]
		}
		text = text[:i]
	}
}
