package files

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A patch is what a diff does to one file.
type patch struct {
	path   string // as the diff names it; "" where it names none
	create bool
	remove bool
	edits  []edit
}

// An edit replaces some lines by others.
type edit struct {
	at       int // line of the diff, from 1
	hint     int // line of the file at which old begins, from 1; 0 if not given
	insert   bool
	old, new []string

	// What "\ No newline at end of file" says of the last line of either side.
	oldOpen, newOpen bool
}

// A diffError says what is wrong with a diff, and at which of its lines.
type diffError struct {
	line    int
	message string
}

func (e *diffError) Error() string { return fmt.Sprintf("line %d of the diff: %s", e.line, e.message) }

const (
	mostEdits   = 1000
	mostPatches = 100

	searchMark  = "<<<<<<< SEARCH"
	dividerMark = "======="
	replaceMark = ">>>>>>> REPLACE"
)

var (
	hunkHead = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)
	})
	startLine  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^:start_line:\s*(\d{1,9})\s*$`) })
	markerLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(<<<<<<< SEARCH>?|=======|>>>>>>> REPLACE)\s*$`) })
)

// parseDiff reads a unified diff of one or several files, or search/replace
// blocks for one. What it cannot read it refuses; it guesses nothing.
func parseDiff(text string) ([]patch, error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	d := &diffReader{lines: lines}
	for _, line := range lines {
		if strings.HasPrefix(line, "<<<<<<< SEARCH") {
			return d.blocks()
		}
		if strings.HasPrefix(line, "@@") {
			break
		}
	}
	return d.unified()
}

type diffReader struct {
	lines []string
	i     int
}

func (d *diffReader) fault(i int, format string, args ...any) error {
	return &diffError{line: i + 1, message: fmt.Sprintf(format, args...)}
}

func (d *diffReader) more() bool { return d.i < len(d.lines) }

// blocks reads search/replace blocks. Nothing but blank lines may stand
// between them.
func (d *diffReader) blocks() ([]patch, error) {
	var p patch
	for d.more() {
		line := d.lines[d.i]
		if strings.TrimSpace(line) == "" {
			d.i++
			continue
		}
		if !strings.HasPrefix(line, searchMark) {
			return nil, d.fault(d.i, "a block begins with %s", searchMark)
		}
		e, err := d.block()
		if err != nil {
			return nil, err
		}
		if p.edits = append(p.edits, e); len(p.edits) > mostEdits {
			return nil, d.fault(d.i-1, "there are more than %d blocks", mostEdits)
		}
	}
	return []patch{p}, nil
}

func (d *diffReader) block() (edit, error) {
	e := edit{at: d.i + 1}
	opened := d.i
	d.i++
	if d.more() {
		if m := startLine().FindStringSubmatch(d.lines[d.i]); m != nil {
			e.hint, _ = strconv.Atoi(m[1]) // digits: it cannot fail
			d.i++
			if d.more() && strings.TrimSpace(d.lines[d.i]) == "-------" {
				d.i++
			}
		}
	}
	var err error
	if e.old, err = d.until(opened, dividerMark); err != nil {
		return e, err
	}
	if e.new, err = d.until(opened, replaceMark); err != nil {
		return e, err
	}
	return e, nil
}

// until reads lines up to a mark. A mark that belongs into the text is written
// with a backslash before it.
func (d *diffReader) until(opened int, mark string) ([]string, error) {
	out := []string{}
	for ; d.more(); d.i++ {
		line := d.lines[d.i]
		if m := markerLine().FindStringSubmatch(line); m != nil {
			if m[1] != mark {
				return nil, d.fault(d.i, "found %s where %s is expected (to use it as text, write \\%s)", m[1], mark, m[1])
			}
			d.i++
			return out, nil
		}
		if rest, ok := strings.CutPrefix(line, `\`); ok && markerLine().MatchString(rest) {
			line = rest
		}
		out = append(out, line)
	}
	return nil, d.fault(opened, "the block that begins here has no %s", mark)
}

// unified reads a unified diff.
func (d *diffReader) unified() ([]patch, error) {
	var out []patch
	for d.more() {
		line := d.lines[d.i]
		switch {
		case strings.HasPrefix(line, "--- "):
			p, err := d.header()
			if err != nil {
				return nil, err
			}
			if out = append(out, p); len(out) > mostPatches {
				return nil, d.fault(d.i-1, "there are more than %d files", mostPatches)
			}
		case strings.HasPrefix(line, "@@"):
			if len(out) == 0 {
				out = append(out, patch{})
			}
			p := &out[len(out)-1]
			e, err := d.hunk()
			if err != nil {
				return nil, err
			}
			if p.edits = append(p.edits, e); len(p.edits) > mostEdits {
				return nil, d.fault(d.i-1, "there are more than %d hunks", mostEdits)
			}
		case preamble(line):
			d.i++
		case unsupported(line):
			return nil, d.fault(d.i, "renames, modes and binary files cannot be changed by a diff here")
		default:
			return nil, d.fault(d.i, "this is neither a header nor a hunk; a hunk begins with @@ -line,count +line,count @@")
		}
	}
	if len(out) == 0 {
		return nil, &diffError{line: 1, message: "the diff contains no change; write hunks that begin with @@, or " + searchMark + " blocks"}
	}
	for _, p := range out {
		if len(p.edits) == 0 && !p.create && !p.remove {
			return nil, &diffError{line: 1, message: "a file has a header but no hunk"}
		}
	}
	return out, nil
}

func preamble(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "index ") ||
		strings.HasPrefix(line, "new file mode 100644") || strings.HasPrefix(line, "deleted file mode 100644")
}

func unsupported(line string) bool {
	for _, s := range []string{"rename ", "copy ", "old mode ", "new mode ", "new file mode ", "deleted file mode ", "Binary files ", "GIT binary patch", "similarity index ", "dissimilarity index "} {
		if strings.HasPrefix(line, s) {
			return true
		}
	}
	return false
}

// header reads the two lines that name a file.
func (d *diffReader) header() (patch, error) {
	old := headerName(d.lines[d.i][4:])
	d.i++
	if !d.more() || !strings.HasPrefix(d.lines[d.i], "+++ ") {
		return patch{}, d.fault(d.i, "the line after --- must begin with +++")
	}
	name := headerName(d.lines[d.i][4:])
	d.i++
	p := patch{create: old == "/dev/null", remove: name == "/dev/null"}
	switch {
	case p.create && p.remove:
		return p, d.fault(d.i-1, "both names are /dev/null")
	case p.create:
		p.path = strings.TrimPrefix(name, "b/")
	case p.remove:
		p.path = strings.TrimPrefix(old, "a/")
	case strings.HasPrefix(old, "a/") && strings.HasPrefix(name, "b/") && old[2:] == name[2:]:
		p.path = name[2:]
	case old == name:
		p.path = name
	default:
		return p, d.fault(d.i-1, "the two names differ; a diff cannot rename files here")
	}
	if p.path == "" {
		return p, d.fault(d.i-1, "the name is empty")
	}
	return p, nil
}

// headerName takes the time off a name in a header.
func headerName(s string) string {
	name, _, _ := strings.Cut(s, "\t")
	return strings.TrimRight(name, " ")
}

// hunk reads one hunk. With counts in its head it must have just as many
// lines; a head without any ends at the next head.
func (d *diffReader) hunk() (edit, error) {
	e := edit{at: d.i + 1, old: []string{}, new: []string{}}
	head := d.lines[d.i]
	m := hunkHead().FindStringSubmatch(head)
	oldCount, newCount := -1, -1
	if m != nil {
		e.hint, oldCount, newCount = number(m[1], 0), number(m[2], 1), number(m[4], 1)
	} else if strings.ContainsAny(head, "0123456789") && strings.HasPrefix(head, "@@ -") {
		return e, d.fault(d.i, "write the hunk header as @@ -line,count +line,count @@, or as @@ alone")
	}
	d.i++
	for d.more() && (oldCount < 0 || len(e.old) < oldCount || len(e.new) < newCount || strings.HasPrefix(d.lines[d.i], `\`)) {
		if oldCount < 0 && (strings.HasPrefix(d.lines[d.i], "@@") || d.atHeader()) {
			break
		}
		if err := d.hunkLine(&e); err != nil {
			return e, err
		}
	}
	if oldCount >= 0 && (len(e.old) != oldCount || len(e.new) != newCount) {
		return e, d.fault(e.at-1, "the hunk header announces %d old and %d new lines, but the hunk has %d and %d", oldCount, newCount, len(e.old), len(e.new))
	}
	e.insert = oldCount == 0
	if len(e.old) == 0 && !e.insert {
		return e, d.fault(e.at-1, "the hunk has no old lines, so its place is unknown; add surrounding lines")
	}
	return e, nil
}

func (d *diffReader) atHeader() bool {
	line := d.lines[d.i]
	return strings.HasPrefix(line, "diff --git ") ||
		strings.HasPrefix(line, "--- ") && d.i+1 < len(d.lines) && strings.HasPrefix(d.lines[d.i+1], "+++ ")
}

func (d *diffReader) hunkLine(e *edit) error {
	line := d.lines[d.i]
	kind := byte(' ') // an empty line is context whose blank was lost
	if line != "" {
		kind, line = line[0], line[1:]
	}
	switch kind {
	case ' ':
		e.old, e.new = append(e.old, line), append(e.new, line)
	case '-':
		e.old = append(e.old, line)
	case '+':
		e.new = append(e.new, line)
	case '\\':
		if d.i == e.at {
			return d.fault(d.i, "this note does not follow a line")
		}
		switch before := d.lines[d.i-1]; {
		case strings.HasPrefix(before, "-"):
			e.oldOpen = true
		case strings.HasPrefix(before, "+"):
			e.newOpen = true
		default:
			e.oldOpen, e.newOpen = true, true
		}
	default:
		return d.fault(d.i, "a line of a hunk begins with a blank, - or +")
	}
	d.i++
	return nil
}

func number(s string, otherwise int) int {
	if s == "" {
		return otherwise
	}
	n, _ := strconv.Atoi(s) // up to nine digits: it cannot fail
	return n
}
