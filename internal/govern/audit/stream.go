package audit

import (
	"io"
	"strings"
)

// A Stream takes the held values out of a text that comes in pieces, also where
// one value is in several of them. It keeps back only an end that may be the
// beginning of a value, until more comes or it is closed. It is for one goroutine
// at a time.
type Stream struct {
	r    *Redactor
	w    io.Writer
	last []byte // the byte before rest, which was passed on; empty at the beginning
	rest []byte // what was not
}

// Stream returns a Stream that passes on to w.
func (r *Redactor) Stream(w io.Writer) *Stream { return &Stream{r: r, w: w} }

// Write passes on what is certain.
func (s *Stream) Write(p []byte) (int, error) {
	held := s.held()
	if held == nil && len(s.rest) == 0 {
		return s.w.Write(p)
	}
	s.rest = append(s.rest, p...)
	if err := s.pass(held, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close passes on the rest. It does not close the writer.
func (s *Stream) Close() error { return s.pass(s.held(), true) }

func (s *Stream) held() *haystack {
	if s.r == nil {
		return nil
	}
	return s.r.held.Load()
}

func (s *Stream) pass(held *haystack, all bool) error {
	if len(s.rest) == 0 {
		return nil
	}
	text, from := string(s.last)+string(s.rest), len(s.last)
	cut := len(text)
	if held != nil && !all {
		for l := range layers(text) {
			open := min(held.open(l.text), held.openEscaped(l.text))
			cut = min(cut, l.place(open, open).from)
		}
		cut = max(from, cut)
	}
	var spans []span
	for _, found := range s.r.exact(text, nil) {
		if found.from < from || found.from >= cut {
			continue
		}
		cut = max(cut, found.to) // it is whole, whatever follows
		spans = append(spans, found)
	}
	if cut == from {
		return nil
	}
	clean := replace(text[:cut], spans)[from:]
	s.last, s.rest = append(s.last[:0], text[cut-1]), append(s.rest[:0], text[cut:]...)
	_, err := io.WriteString(s.w, clean)
	return err
}

// open returns where the longest end of a text begins that more text could make
// one of the needles, or the length of the text.
func (h *haystack) open(s string) int {
	for i := max(0, len(s)-h.longest); i < len(s); i++ {
		if i == len(s)-1 {
			if h.first[s[i]] {
				return i
			}
			continue
		}
		if !h.starts.has(s[i], s[i+1]) {
			continue
		}
		for _, n := range h.by[uint16(s[i])<<8|uint16(s[i+1])] {
			if strings.HasPrefix(n.text, s[i:]) && (n.word || len(n.text) > len(s)-i) {
				return i
			}
		}
	}
	return len(s)
}
