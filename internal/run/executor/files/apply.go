package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/run/executor"
)

const diffSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"File, relative to the workspace; may be left out when the diff names its files"},` +
	`"diff":{"type":"string","description":"A unified diff, or blocks of <<<<<<< SEARCH, =======, >>>>>>> REPLACE"},` +
	`"expect":{"type":"string","description":"Hash that read_file gave; when given, the file must still have it"}},` +
	`"required":["diff"],"additionalProperties":false}`

type diffInput struct {
	Path   string `json:"path"`
	Diff   string `json:"diff"`
	Expect string `json:"expect"`
}

// A change is a patch and the file it is for.
type change struct {
	patch
	place place
}

func (e *Executor) diffFacts(call capability.Call) ([]executor.Path, bool, error) {
	_, changes, err := e.diffInput(call)
	var paths []executor.Path
	destructive := false
	for _, c := range changes {
		paths = append(paths, executor.Path{Name: c.place.shown, Write: true})
		destructive = destructive || c.remove
	}
	return paths, destructive, err
}

func (e *Executor) diffInput(call capability.Call) (diffInput, []change, error) {
	in, err := executor.Decode[diffInput](call)
	if err != nil {
		return in, nil, err
	}
	if int64(len(in.Diff)) > e.cfg.MaxFile {
		return in, nil, executor.BadArguments(call, fmt.Errorf("diff has %d bytes, more than %d", len(in.Diff), e.cfg.MaxFile), "make several calls")
	}
	patches, err := parseDiff(in.Diff)
	if err != nil {
		return in, nil, executor.BadArguments(call, err, "")
	}
	if in.Path != "" && len(patches) > 1 || in.Expect != "" && len(patches) > 1 {
		return in, nil, executor.BadArguments(call, errors.New("path and expect name one file, but the diff changes several"), "leave them out, or make several calls")
	}
	var changes []change
	for _, p := range patches {
		name := p.path
		if name == "" {
			name = in.Path
		}
		if name == "" {
			return in, nil, executor.BadArguments(call, errors.New("missing path"), "give path, or --- and +++ lines")
		}
		at, err := e.target("change", name)
		if err != nil {
			return in, nil, err
		}
		if in.Path != "" && p.path != "" {
			if other, err := e.locate("change", in.Path, true); err != nil || other.shown != at.shown {
				return in, nil, executor.BadArguments(call, errors.New("path is not the file that the diff names"), "use the same path in both")
			}
		}
		if slices.ContainsFunc(changes, func(c change) bool { return c.place.shown == at.shown }) {
			return in, nil, executor.BadArguments(call, errors.New("the diff names a file twice"), "put all hunks of the file under one header")
		}
		changes = append(changes, change{patch: p, place: at})
	}
	return in, changes, nil
}

// A ready change is one whose outcome is known and not yet written.
type ready struct {
	change
	was   *loaded
	data  []byte
	moved []int
}

func (e *Executor) applyDiff(ctx context.Context, call capability.Call) (capability.Result, error) {
	in, changes, err := e.diffInput(call)
	if err != nil {
		return capability.Result{}, err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	all, why, err := e.prepareAll(ctx, changes, in.Expect)
	if err != nil || why.Failed {
		return why, err
	}
	var done []writing
	for _, r := range all {
		w, err := e.commit(r)
		if err != nil && len(done) > 0 {
			return failed("%s could not be changed: %v. These files were changed before it: %s", r.place.shown, plain(err), shownNames(done)), nil
		}
		if err != nil {
			return trouble("change", r.place, err)
		}
		done = append(done, w)
	}
	return answer(map[string]any{"files": done}, "", false), nil
}

// prepareAll works out what every file becomes, or gives the result of the first
// that a change does not fit.
func (e *Executor) prepareAll(ctx context.Context, changes []change, expect string) (all []ready, why capability.Result, err error) {
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, why, err
		}
		r, err := e.prepare(c, expect)
		if m, ok := errors.AsType[*mismatched](err); ok {
			return nil, failed("%s: %s. Nothing was changed.", c.place.shown, m.message), nil
		}
		if err != nil {
			why, err = trouble("change", c.place, err)
			return nil, why, err
		}
		all = append(all, r)
	}
	return all, why, nil
}

// plain is an error without the folders above.
func plain(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func shownNames(done []writing) string {
	var names []string
	for _, w := range done {
		names = append(names, w.Path)
	}
	return strings.Join(names, ", ")
}

func (e *Executor) commit(r ready) (writing, error) {
	if !r.remove {
		w, err := e.store(r.place, r.was, r.data)
		w.Moved = r.moved
		return w, err
	}
	dir, base, in, err := e.parent(r.place, false)
	if err != nil {
		return writing{}, err
	}
	defer dir.Close()
	if e.stands(r.place, in, nil) != common {
		return writing{}, isOwn("change", r.place)
	}
	if now, err := dir.Lstat(base); err != nil || !unchanged(r.was.info, now) {
		return writing{}, stale(r.place, "the file changed in the meantime", "read it again")
	}
	return writing{Path: r.place.shown, Deleted: true}, dir.Remove(base)
}

// prepare works out what a file becomes.
func (e *Executor) prepare(c change, expect string) (ready, error) {
	r := ready{change: c}
	was, err := e.load(c.place)
	switch {
	case c.create && err == nil:
		return r, stale(c.place, "the file already exists", "write the diff against the file as it is")
	case c.create && !errors.Is(err, fs.ErrNotExist):
		return r, err
	case c.create:
		was, err = nil, nil
	case err != nil:
		return r, err
	}
	r.was = was
	var text []byte
	if was != nil {
		text = was.data
		if expect != "" && !strings.EqualFold(expect, hashOf(text)) {
			return r, stale(c.place, "the file changed since it was read", "read it again, then write a new diff")
		}
		if binary(text[:min(len(text), 8<<10)]) != "" || !utf8.Valid(text) {
			return r, &mismatched{"the file is not UTF-8 text, so a diff cannot change it"}
		}
	}
	out, moved, err := apply(text, c.edits)
	if err != nil {
		return r, err
	}
	if c.remove && len(out) > 0 {
		return r, &mismatched{"the diff deletes the file but does not remove all of its lines"}
	}
	if int64(len(out)) > e.cfg.MaxFile {
		return r, &mismatched{fmt.Sprintf("the changed file would have %d bytes, more than %d", len(out), e.cfg.MaxFile)}
	}
	r.data, r.moved = out, moved
	return r, nil
}

// mismatched says why a diff does not fit a file.
type mismatched struct{ message string }

func (m *mismatched) Error() string { return m.message }

func mismatch(format string, args ...any) error { return &mismatched{fmt.Sprintf(format, args...)} }

// A document is a text as lines, with how they end.
type document struct {
	bom   bool
	crlf  bool
	open  bool // the last line has no end
	lines []string
}

func readDocument(text []byte) document {
	var d document
	text, d.bom = bytes.CutPrefix(text, []byte("\uFEFF"))
	if len(text) == 0 {
		return d
	}
	crlf := bytes.Count(text, []byte("\r\n"))
	d.crlf = crlf > 0 && crlf == bytes.Count(text, []byte("\n"))
	s := string(text)
	if d.crlf {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	s, ended := strings.CutSuffix(s, "\n")
	d.open = !ended
	d.lines = strings.Split(s, "\n")
	return d
}

func (d document) bytes() []byte {
	var b strings.Builder
	if d.bom {
		b.WriteString("\uFEFF")
	}
	end := "\n"
	if d.crlf {
		end = "\r\n"
	}
	for i, line := range d.lines {
		b.WriteString(line)
		if i < len(d.lines)-1 || !d.open {
			b.WriteString(end)
		}
	}
	return []byte(b.String())
}

// A spot is where an edit goes: lines [from, to) of the file.
type spot struct {
	from, to int
	edit     int
}

// apply makes the edits of one file, all of them or none. Their lines are those
// of the text as it is given, so that edits cannot disturb each other.
func apply(text []byte, edits []edit) (out []byte, moved []int, err error) {
	d := readDocument(text)
	var spots []spot
	effort := 0
	for i, e := range edits {
		from, err := locateEdit(d.lines, e, &effort)
		if err != nil {
			return nil, nil, mismatch("edit %d (line %d of the diff) does not apply: %v", i+1, e.at, err)
		}
		if e.oldOpen && (from+len(e.old) != len(d.lines) || !d.open) {
			return nil, nil, mismatch("edit %d (line %d of the diff) expects no newline at the end of the file, but there is one", i+1, e.at)
		}
		if e.hint > 0 && !e.insert && from != e.hint-1 {
			moved = append(moved, i+1)
		}
		spots = append(spots, spot{from: from, to: from + len(e.old), edit: i})
	}
	coldsort.Stable(spots, func(a, b spot) int { return a.from - b.from })
	for i := 1; i < len(spots); i++ {
		if spots[i].from < spots[i-1].to {
			return nil, nil, mismatch("edits %d and %d change the same lines", spots[i-1].edit+1, spots[i].edit+1)
		}
	}
	var lines []string
	last := 0
	for _, s := range spots {
		e := edits[s.edit]
		lines = append(append(lines, d.lines[last:s.from]...), e.new...)
		if last = s.to; s.to == len(d.lines) {
			d.open = d.open && !e.oldOpen || e.newOpen
		}
	}
	d.lines = append(lines, d.lines[last:]...)
	return d.bytes(), moved, nil
}

const mostEffort = 20_000_000 // comparisons of lines

// locateEdit finds the one place where an edit fits, exactly: at the line it
// says, or else at the only place that there is.
func locateEdit(lines []string, e edit, effort *int) (int, error) {
	if e.insert {
		if e.hint > len(lines) {
			return 0, fmt.Errorf("inserts after line %d, but the file has %d lines", e.hint, len(lines))
		}
		return e.hint, nil
	}
	if len(e.old) == 0 {
		if len(lines) > 0 {
			return 0, errors.New("has no place to insert; add surrounding lines to SEARCH")
		}
		return 0, nil
	}
	if e.hint > 0 && fits(lines, e.old, e.hint-1, effort) == len(e.old) {
		return e.hint - 1, nil
	}
	var found []int
	best, most := 0, -1
	for at := 0; at+len(e.old) <= len(lines) && *effort < mostEffort; at++ {
		n := fits(lines, e.old, at, effort)
		if n == len(e.old) {
			found = append(found, at)
		}
		if n > most {
			best, most = at, n
		}
	}
	switch {
	case *effort >= mostEffort:
		return 0, errors.New("the old lines occur too often in the file; add the line number where the edit begins")
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return 0, fmt.Errorf("the old lines occur in %d places, at lines %s; add surrounding lines, or the line number where the edit begins", len(found), places(found))
	}
	if e.hint > 0 {
		best = e.hint - 1
		most = fits(lines, e.old, best, effort)
	}
	return 0, differs(lines, e.old, best, max(most, 0))
}

// fits counts how many of the old lines are there, from a line on.
func fits(lines, old []string, at int, effort *int) int {
	n := 0
	for n < len(old) && at+n < len(lines) && at >= 0 {
		*effort++
		if lines[at+n] != old[n] {
			break
		}
		n++
	}
	return n
}

func differs(lines, old []string, at, n int) error {
	if at+n >= len(lines) {
		return fmt.Errorf("expects %s at line %d, but the file has %d lines", quoteLine(old[n]), at+n+1, len(lines))
	}
	return fmt.Errorf("line %d of the file is %s, but the diff expects %s", at+n+1, quoteLine(lines[at+n]), quoteLine(old[n]))
}

func quoteLine(s string) string { return fmt.Sprintf("%q", executor.Clip(s, 120)) }

func places(found []int) string {
	var out []string
	for _, at := range found[:min(len(found), 5)] {
		out = append(out, fmt.Sprint(at+1))
	}
	if len(found) > 5 {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}
