package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"ken/capability"
)

// About says what a result is the result of.
type About struct {
	Target    capability.ID `json:"target"`
	Extension string        `json:"extension,omitempty"`
	Command   string        `json:"command,omitempty"`
	Action    string        `json:"action,omitempty"`
	MIME      string        `json:"mime,omitempty"`
}

// An Entry describes a result that is kept. Failures are kept too.
type Entry struct {
	Handle string    `json:"handle"`
	Made   time.Time `json:"made"`
	About
	Failed bool `json:"failed,omitempty"`

	// Bytes, Chars and Lines are of all that was written, kept or not. A byte
	// that is not UTF-8 counts as one character.
	Bytes int64 `json:"bytes"`
	Chars int64 `json:"chars"`
	Lines int64 `json:"lines"`

	// Kept is what can be read. It differs from the above only when Lost is
	// not zero: then the text has one line more, which says what is missing,
	// where it is missing.
	Kept Extent `json:"kept"`
	Lost int64  `json:"lost,omitempty"` // bytes
	Note string `json:"note,omitempty"` // why they were lost

	Spilled bool `json:"spilled,omitempty"` // longer than [Whole]
	Binary  bool `json:"binary,omitempty"`  // holds NUL, or bytes that are not UTF-8

	Meta map[string]string `json:"meta,omitempty"`
}

// An Extent is how much text there is.
type Extent struct {
	Bytes int64 `json:"bytes"`
	Chars int64 `json:"chars"`
	Lines int64 `json:"lines"`
}

// header is what the file of a result begins with.
type header struct {
	Version int `json:"version"`
	Entry
	Apart bool `json:"apart,omitempty"` // the text is in a file of its own
}

const (
	headerVersion = 1
	headerLimit   = 64 << 10
)

// stored is a result that was opened.
type stored struct {
	Entry
	text io.ReaderAt
	file *os.File // nil when the text is in memory
}

func (o *stored) close() {
	if o.file != nil {
		o.file.Close()
	}
}

// errHalf means that the writer has not finished, or never did.
var errHalf = errors.New("result is incomplete")

// readEntry reads the description of a result, and its text where that is
// beside it.
func readEntry(dir *os.Root, handle string) (header, []byte, error) {
	f, err := dir.Open(handle)
	if err != nil {
		return header{}, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, headerLimit+inline+1))
	if err != nil {
		return header{}, nil, err
	}
	line, text, ok := bytes.Cut(data, []byte{'\n'})
	if !ok {
		return header{}, nil, errHalf
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil || h.Version != headerVersion || h.Handle != handle {
		return header{}, nil, errHalf
	}
	if !h.Apart && int64(len(text)) != h.Kept.Bytes {
		return header{}, nil, errHalf
	}
	return h, text, nil
}

// open finds a result and its text. Whatever is wrong with it, or with who
// asks, is answered as if it did not exist; only a broken disk is told apart.
func (s *Store) open(scope Scope, handle string) (*stored, error) {
	if s.expired(handle, time.Now()) {
		return nil, missing(s.cfg.Keep)
	}
	if s.cfg.Shared != nil && scope.Principal != "" {
		if err := s.fetch(scope, handle); err != nil {
			return nil, err
		}
	}
	return s.openHere(scope, handle)
}

// openHere is open for what the folder has.
func (s *Store) openHere(scope Scope, handle string) (*stored, error) {
	dir, err := s.folder(scope, false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	h, text, err := readEntry(dir, handle)
	if err != nil {
		return nil, s.unreadable(err)
	}
	o := &stored{Entry: h.Entry, text: bytes.NewReader(text)}
	if !h.Apart {
		return o, nil
	}
	if o.file, err = dir.Open(handle + ".text"); err != nil {
		return nil, s.unreadable(err)
	}
	info, err := o.file.Stat()
	if err != nil || info.Size() != h.Kept.Bytes || !info.Mode().IsRegular() {
		o.close()
		return nil, missing(s.cfg.Keep)
	}
	o.text = o.file
	return o, nil
}

func (s *Store) unreadable(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errHalf) {
		return missing(s.cfg.Keep)
	}
	return refuse(capability.Unavailable, "read result", err, "see that "+s.cfg.Dir+" can be read, or run the command again")
}

// A Filter narrows [Store.List]. The zero Filter does not.
type Filter struct {
	Extension string
	Succeeded bool // leave failures out
	Limit     int  // at most so many; zero: all
}

// List returns the results of a scope, newest first, at most PerSession of them.
func (s *Store) List(scope Scope, filter Filter) ([]Entry, error) {
	if s.cfg.Shared == nil {
		return s.listHere(scope, filter)
	}
	all, err := s.others(scope)
	var out []Entry
	for _, e := range all[:min(len(all), s.cfg.PerSession)] {
		if filter.Extension != "" && e.Extension != filter.Extension || filter.Succeeded && e.Failed {
			continue
		}
		if out = append(out, e); len(out) == filter.Limit {
			break
		}
	}
	return out, err
}

func (s *Store) listHere(scope Scope, filter Filter) ([]Entry, error) {
	dir, err := s.folder(scope, false)
	if capability.KindOf(err) == capability.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	handles, err := handlesIn(dir)
	if err != nil {
		return nil, s.unreadable(err)
	}
	now := time.Now()
	var out []Entry
	for i := len(handles) - 1; i >= max(0, len(handles)-s.cfg.PerSession); i-- {
		if s.expired(handles[i], now) {
			break // the others are older
		}
		h, _, err := readEntry(dir, handles[i])
		if err != nil {
			continue // being written, or being removed
		}
		if filter.Extension != "" && h.Extension != filter.Extension || filter.Succeeded && h.Failed {
			continue
		}
		if out = append(out, h.Entry); len(out) == filter.Limit {
			break
		}
	}
	return out, nil
}

// Remove forgets one result.
func (s *Store) Remove(scope Scope, handle string) error {
	if _, ok := madeAt(handle); !ok {
		return missing(s.cfg.Keep)
	}
	if err := s.unshare(scope, 0, handle); err != nil {
		return err
	}
	dir, err := s.folder(scope, false)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Remove(handle); err != nil {
		return s.unreadable(err)
	}
	if err := dir.Remove(handle + ".text"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.unreadable(err)
	}
	return nil
}

// RemoveSession forgets all results of a scope.
func (s *Store) RemoveSession(scope Scope) error {
	if scope.Principal == "" {
		return refuse(capability.Denied, "remove results", errors.New("missing principal"), "name a principal")
	}
	if err := s.unshare(scope, 0, ""); err != nil {
		return err
	}
	if err := s.root.RemoveAll(scope.folder()); err != nil {
		return refuse(capability.Unavailable, "remove results", err, "make "+s.cfg.Dir+" writable")
	}
	return nil
}
