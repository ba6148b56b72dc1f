package audit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

// chainLines reads the lines of a chain across its segments.
type chainLines struct {
	dir, name string
	segments  []int
	index     int
	f         *os.File
	lines     *lineReader
	path      string
}

// A place is where a line begins.
type place struct {
	file   string
	offset int64
}

func (c *chainLines) close() {
	if c.f != nil {
		_ = c.f.Close()
		c.f = nil
	}
}

// errGap means that the file at the place given is not there.
type errGap struct{ path string }

func (e errGap) Error() string { return e.path + " is missing" }

// next returns the next line; io.EOF after the last one, io.ErrUnexpectedEOF
// with what there is of a last line without its end.
func (c *chainLines) next() ([]byte, place, error) {
	for {
		if c.f == nil {
			if c.index == len(c.segments) {
				return nil, place{c.path, c.end()}, io.EOF
			}
			c.path = filepath.Join(c.dir, segmentName(c.name, c.index+1))
			if c.segments[c.index] != c.index+1 {
				return nil, place{c.path, 0}, errGap{c.path}
			}
			f, err := os.Open(c.path)
			if err != nil {
				return nil, place{c.path, 0}, err
			}
			c.f, c.lines = f, newLineReader(f, 0)
		}
		line, start, err := c.lines.next()
		if err != io.EOF {
			return line, place{c.path, start}, err
		}
		c.close()
		c.index++
	}
}

// end is how far the segment was read.
func (c *chainLines) end() int64 {
	if c.lines == nil {
		return 0
	}
	return c.lines.off
}

// last says that no segment comes after the one being read.
func (c *chainLines) last() bool { return c.index >= len(c.segments)-1 }

// walk follows one chain from its first line, comparing every link and every
// root that anybody signed or remembers.
type walk struct {
	*verifier
	rep     *ChainReport
	claims  []claim // by size; the first ones are taken off as they are met
	lines   chainLines
	tree    frontier
	good    int64 // records up to the last claim that held
	retired map[string]claim
}

func (w *walk) run() {
	prev := genesis(w.rep.Chain)
	var lastAt place
	var before frontier // the tree without the last line
	for w.rep.State == "" {
		line, at, err := w.lines.next()
		if err != nil {
			w.stop(line, at, err)
			return
		}
		seq, link, ok := links(line)
		leaf := tlog.RecordHash(line)
		switch {
		case !ok:
			w.fail(Broken, w.tree.size, at, "the line is not an audit record")
		case seq != w.tree.size:
			w.fail(Broken, w.tree.size, at, "found record %d, expected record %d", seq, w.tree.size)
		case link != prev:
			w.blame(before, lastAt, link, leaf, at)
		default:
			w.note(line)
			before.set(&w.tree)
			w.tree.add(leaf)
			w.rep.Records = w.tree.size
			w.check(at)
			prev, lastAt = leaf, at
		}
	}
}

// blame finds out which of two lines that do not fit was changed: the later
// one, unless what follows it, or a signature, vouches for it.
func (w *walk) blame(before frontier, lastAt place, link, leaf tlog.Hash, at place) {
	seq := w.tree.size
	if seq == 0 {
		w.fail(Broken, 0, at, "the record is not the start of this chain: it was changed, or the file belongs to another chain")
		return
	}
	vouched := false
	if next, _, err := w.lines.next(); err == nil {
		_, after, ok := links(next)
		vouched = ok && after == leaf
	} else {
		before.add(link)
		before.add(leaf)
		for _, c := range w.claims {
			vouched = vouched || c.size == before.size && c.root == before.root()
		}
	}
	if vouched {
		w.rep.Records--
		w.fail(Broken, seq-1, lastAt, "the record was changed: the next record refers to a different text")
		return
	}
	w.fail(Broken, seq, at, "the record was changed: it does not refer to the record before it")
}

// check compares the root with all that is claimed about this size.
func (w *walk) check(at place) {
	for len(w.claims) > 0 && w.claims[0].size <= w.tree.size {
		c := w.claims[0]
		w.claims = w.claims[1:]
		if c.size < w.tree.size {
			continue // of size 0: nothing to compare
		}
		if c.root != w.tree.root() {
			w.rep.Records--
			w.fail(Broken, c.size-1, at, "the record was changed, or records %d to %d were rewritten: %s has a different root", w.good, c.size-1, c.by)
			return
		}
		w.good = c.size
	}
}

// note takes up tombstones.
func (w *walk) note(line []byte) {
	if !bytes.Contains(line, []byte(`"event":"`+string(Retired)+`"`)) {
		return
	}
	r, err := decode(line)
	if err != nil || r.Event != Retired || r.Chain == nil {
		return
	}
	for _, t := range r.Chain.Seen {
		if w.retired == nil {
			w.retired = map[string]claim{}
		}
		w.retired[t.Chain] = claim{size: t.Size, by: string(makeID(w.rep.Chain, r.Seq))}
	}
}

// stop deals with the end of the lines.
func (w *walk) stop(rest []byte, at place, err error) {
	w.rep.Seq, w.rep.File, w.rep.Offset = w.tree.size, at.file, at.offset
	if w.rep.File == "" {
		w.rep.File = filepath.Join(w.dir, segmentName(w.rep.Chain, 1))
	}
	gap, missing := err.(errGap)
	switch {
	case err == io.EOF:
	case err == io.ErrUnexpectedEOF && w.lines.last():
		w.rep.Unfinished = int64(len(rest))
	case err == io.ErrUnexpectedEOF:
		w.fail(Broken, w.tree.size, at, "the last record is incomplete, but another file follows")
	case err == errTooLong:
		w.fail(Broken, w.tree.size, at, "%v", err)
	case missing:
		w.fail(MissingFile, w.tree.size, at, "%s", gap.Error())
	default:
		w.fail(Unreadable, w.tree.size, at, "%v", err)
	}
}

func (w *walk) fail(s State, seq int64, at place, format string, args ...any) {
	w.rep.State, w.rep.Seq, w.rep.File, w.rep.Offset = s, seq, at.file, at.offset
	w.rep.Problem = fmt.Sprintf(format, args...)
}

// conclude judges a chain whose lines all follow one another.
func (w *walk) conclude(hs heads) {
	here := place{w.rep.File, w.rep.Offset}
	n := w.tree.size
	if len(w.claims) > 0 {
		w.short(hs, here, n)
		return
	}
	switch {
	case !hs.found:
		w.fail(Unsigned, 0, place{filepath.Join(w.checkpoints, w.rep.Chain+headSuffix), 0}, "the checkpoint file is missing")
	case hs.newest == nil && n > 1:
		w.fail(Unsigned, 0, place{filepath.Join(w.checkpoints, w.rep.Chain+headSuffix), 0}, "the checkpoint file is empty")
	case hs.newest != nil && hs.newest.closed && (n > hs.newest.size || w.rep.Unfinished > 0):
		w.fail(Broken, hs.newest.size, here, "the file has data after its closing checkpoint")
	case hs.newest != nil && hs.newest.closed:
		w.rep.State = Whole
	case hs.alive:
		w.rep.State = OpenAlive
	default:
		w.rep.State = OpenDied
		w.remark(hs, n)
	}
}

// short reports that there is less than was seen before.
func (w *walk) short(hs heads, here place, n int64) {
	most := w.claims[len(w.claims)-1]
	state := Cut
	what := fmt.Sprintf("found %d records, but %s covers %d", n, most.by, most.size)
	if hs.newest != nil && hs.newest.segment > len(w.lines.segments) {
		state = MissingFile
		here = place{filepath.Join(w.dir, segmentName(w.rep.Chain, len(w.lines.segments)+1)), 0}
	} else if len(w.lines.segments) == 0 {
		state = MissingFile
	}
	if w.rep.Unfinished > 0 {
		what += fmt.Sprintf(", and the last line ends after %d bytes", w.rep.Unfinished)
	}
	w.fail(state, n, here, "%s", what)
}

// remark says what a process left behind that did not close its chain.
func (w *walk) remark(hs heads, n int64) {
	signed := int64(0)
	if hs.newest == nil {
		w.rep.Notes = append(w.rep.Notes, "the process ended while it opened the chain")
	} else if signed = hs.newest.size; n > signed {
		w.rep.Notes = append(w.rep.Notes, fmt.Sprintf("%d records after the newest signed checkpoint, never acknowledged", n-signed))
	}
	if w.rep.Unfinished > 0 {
		w.rep.Notes = append(w.rep.Notes, fmt.Sprintf("unfinished last record of %d bytes, never acknowledged", w.rep.Unfinished))
	}
}
