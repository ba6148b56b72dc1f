package catalogapi

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/wholefile"
)

// A Case is a saved eval row.
type Case struct {
	ID     string    `json:"id"`
	Query  string    `json:"query"`
	Gold   []string  `json:"gold"`             // ids of what should be found; none: nothing should
	Before []Said    `json:"before,omitempty"` // the oldest first
	Saved  time.Time `json:"saved,omitzero"`   // zero: the row was written by hand
}

// Cases keeps eval rows.
type Cases interface {
	// List returns the rows, the oldest first, and says what of the file could
	// not be read.
	List() (cases []Case, problems []string, err error)

	// Save keeps a row. One with the same messages is replaced, and keeps its
	// id; otherwise the row gets one where it has none.
	Save(c Case) (Case, error)

	// Delete forgets a row. One that is not there is an error of kind
	// [capability.NotFound].
	Delete(id string) error
}

// What a CaseFile holds.
const (
	mostCases    = 10_000
	longestCase  = 64 << 10
	longestCases = 32 << 20 // bytes of the file
)

// A CaseFile keeps rows in a file of JSON lines, as ken eval --queries reads
// them. Any number of goroutines and processes may use one file: it is changed
// under a lock, and as a whole, so that a reader sees it before or after a
// change. Lines that were written by hand and cannot be read stay where they
// are.
type CaseFile struct {
	Path string
	Now  func() time.Time // nil: time.Now
}

// A caseLine is a line of the file; what cannot be read has no case.
type caseLine struct {
	text   []byte
	number int
	of     *Case
	why    string
}

// List reads the file. One that is not there holds nothing.
func (f *CaseFile) List() (cases []Case, problems []string, err error) {
	lines, err := f.read()
	if err != nil {
		return nil, nil, err
	}
	for _, l := range lines {
		if l.of == nil {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", f.Path, l.number, l.why))
			continue
		}
		cases = append(cases, *l.of)
	}
	return cases, problems, nil
}

// Save keeps a row.
func (f *CaseFile) Save(c Case) (Case, error) {
	c.Saved = f.now().UTC().Truncate(time.Second)
	err := f.change(func(lines []caseLine) ([]caseLine, error) {
		at := slices.IndexFunc(lines, func(l caseLine) bool { return l.of != nil && sameMessages(*l.of, c) })
		switch {
		case at >= 0:
			c.ID = lines[at].of.ID
		case len(lines) >= mostCases:
			return nil, &capability.Error{
				Kind: capability.Conflict, Op: "save case in", Target: f.Path,
				Err: fmt.Errorf("limit of %d rows reached", len(lines)), Fix: "delete some",
			}
		case c.ID == "" || slices.ContainsFunc(lines, func(l caseLine) bool { return l.of != nil && l.of.ID == c.ID }):
			c.ID = c.name()
		}
		text, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("write case: %w", err)
		}
		if len(text) > longestCase {
			return nil, &capability.Error{
				Kind: capability.Invalid, Op: "save case in", Target: f.Path,
				Err: fmt.Errorf("the row has %d bytes; %d are kept", len(text), longestCase), Fix: "shorten the message",
			}
		}
		if at >= 0 {
			lines = slices.Delete(lines, at, at+1)
		}
		return append(lines, caseLine{text: text, of: &c}), nil
	})
	return c, err
}

// Delete forgets a row.
func (f *CaseFile) Delete(id string) error {
	return f.change(func(lines []caseLine) ([]caseLine, error) {
		kept := slices.DeleteFunc(slices.Clone(lines), func(l caseLine) bool { return l.of != nil && l.of.ID == id })
		if len(kept) == len(lines) {
			return nil, &capability.Error{Kind: capability.NotFound, Op: "delete case", Target: id, Err: errors.New("case not found"), Fix: "GET /api/v1/eval/cases lists those there are"}
		}
		return kept, nil
	})
}

func (f *CaseFile) now() time.Time {
	if f.Now != nil {
		return f.Now()
	}
	return time.Now()
}

func sameMessages(a, b Case) bool { return a.Query == b.Query && slices.Equal(a.Before, b.Before) }

// name returns a case an id of what it says.
func (c Case) name() string {
	b, _ := json.Marshal(struct {
		Query  string
		Before []Said
	}{c.Query, c.Before}) // texts cannot fail
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

func (f *CaseFile) read() ([]caseLine, error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cases: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && (!info.Mode().IsRegular() || info.Size() > longestCases) {
		return nil, &capability.Error{
			Kind: capability.Unavailable, Op: "read cases", Target: f.Path,
			Err: fmt.Errorf("not a file of at most %d bytes", longestCases), Fix: "move it away",
		}
	}
	var lines []caseLine
	in := bufio.NewReader(io.LimitReader(file, longestCases+1))
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if line := bytes.TrimSpace(text); len(line) > 0 {
			lines = append(lines, readCase(line, number))
		}
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read cases: %w", err)
		}
	}
}

// readCase reads one line.
func readCase(text []byte, number int) caseLine {
	l := caseLine{text: text, number: number}
	var c Case
	switch err := json.Unmarshal(text, &c); {
	case err != nil:
		l.why = "the row is not a case: " + err.Error()
	case c.Query == "":
		l.why = `the row has no "query"`
	case c.Gold == nil:
		l.why = `the row has no "gold"; an empty list says that nothing fits`
	default:
		if c.ID == "" {
			// Not the number of the line: what is deleted twice would be two rows.
			sum := sha256.Sum256(text)
			c.ID = "row " + hex.EncodeToString(sum[:6])
		}
		l.of = &c
	}
	return l
}

const lockWait = 5 * time.Second

// change replaces the file under its lock.
func (f *CaseFile) change(to func([]caseLine) ([]caseLine, error)) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fmt.Errorf("save cases: %w", err)
	}
	unlock, err := wholefile.Lock(f.Path+".lock", lockWait)
	switch {
	case err == nil:
		defer unlock()
	case errors.Is(err, wholefile.ErrHeld):
		return &capability.Error{
			Kind: capability.Conflict, Op: "lock", Target: f.Path + ".lock",
			Err: fmt.Errorf("another change is under way: %w", err), Fix: "try again when it has ended",
		}
	case !errors.Is(err, errors.ErrUnsupported): // without locks, of two changes at the same moment one may be lost
		return fmt.Errorf("lock the cases: %w", err)
	}
	lines, err := f.read()
	if err != nil {
		return err
	}
	if lines, err = to(lines); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, l := range lines {
		b.Write(l.text)
		b.WriteByte('\n')
	}
	if b.Len() > longestCases {
		return &capability.Error{
			Kind: capability.Conflict, Op: "save case in", Target: f.Path,
			Err: fmt.Errorf("size would be %d bytes; the limit is %d", b.Len(), longestCases), Fix: "delete some",
		}
	}
	if err := wholefile.Write(f.Path, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("save cases: %w", err)
	}
	return nil
}
