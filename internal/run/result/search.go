package result

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/duration"
)

// A Match is one line that a search found.
type Match struct {
	Line   int64  `json:"line"`   // from 1
	Column int64  `json:"column"` // character in the line, from 1
	Char   int64  `json:"char"`   // character in the result, from 1
	Text   string `json:"text"`   // the line, or what surrounds the match in a long one
	Cut    bool   `json:"cut,omitempty"`
}

const (
	shortLine = 64 << 10 // bytes of a line that are searched as one piece
	around    = 120      // characters shown before and after a match in a long line
)

// search finds the lines that match. It stops after searchTime, or when the
// caller does, and says how far it came; a pattern cannot make it run longer
// than one short line takes.
func (o *stored) search(ctx context.Context, q Query) (Excerpt, error) {
	re, err := q.compile()
	if err != nil {
		return Excerpt{}, err
	}
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	s := searcher{ctx: limited, re: re, of: o, most: q.Count, room: q.Limit}
	if s.most == 0 {
		s.most = manyMatches
	}
	s.most = min(s.most, mostMatches)
	err = s.run()
	if ctx.Err() != nil {
		return Excerpt{}, ctx.Err()
	}
	x := Excerpt{Matches: s.matches, Found: s.found}
	var left []string
	if more := s.found - int64(len(s.matches)); more > 0 {
		left = append(left, fmt.Sprintf("%d more lines match; search for less, or read op lines from %d", more, s.next))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		left = append(left, fmt.Sprintf("the search stopped after %s at line %d of %d; use a simpler pattern", duration.Text(searchTime), s.at.lines+1, o.Kept.Lines))
		err = nil
	}
	if o.Lost > 0 {
		left = append(left, fmt.Sprintf("%d bytes of the output were never kept: %s", o.Lost, o.Note))
	}
	x.Left = strings.Join(left, "; ")
	return x, err
}

func (q Query) compile() (*regexp.Regexp, error) {
	pattern := q.Pattern
	if !q.Regexp {
		pattern = regexp.QuoteMeta(pattern)
	}
	if q.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, refuse(capability.Invalid, "search result", err, "write the pattern as RE2, or leave regexp out to search for plain text")
	}
	return re, nil
}

type searcher struct {
	ctx     context.Context
	re      *regexp.Regexp
	of      *stored
	at      position // beginning of the line that is searched
	most    int64
	room    int64 // characters that may still be given
	matches []Match
	found   int64
	next    int64 // first line that matched and is not given
}

func (s *searcher) run() error {
	in := bufio.NewReaderSize(io.NewSectionReader(s.of.text, 0, s.of.Kept.Bytes), shortLine)
	for {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if err := s.longLine(in, line); err != nil {
				return err
			}
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case len(line) == 0:
			return nil
		}
		text := line
		if n := len(text) - 1; text[n] == '\n' {
			text = text[:n]
		}
		if at := s.re.FindIndex(text); at != nil {
			s.hit(text, at[0], at[1], runeCount(text[:at[0]]))
		}
		s.at.byte += int64(len(line))
		s.at.chars += runeCount(line)
		s.at.lines++
	}
}

// longLine searches a line that is too long for one piece, a character at a
// time, and passes over it.
func (s *searcher) longLine(in *bufio.Reader, first []byte) error {
	begin := s.at
	count := counter{}
	count.add(first)
	for {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		more, err := in.ReadSlice('\n')
		count.add(more)
		if err == nil || errors.Is(err, io.EOF) {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	count.finish()
	length := count.bytes - count.newlines
	line := &runes{ctx: s.ctx, in: bufio.NewReaderSize(io.NewSectionReader(s.of.text, begin.byte, length), shortLine)}
	at := s.re.FindReaderIndex(line)
	if line.err != nil {
		return line.err
	}
	if at != nil {
		if err := s.longHit(begin, length, int64(at[0]), int64(at[1])); err != nil {
			return err
		}
	}
	s.at = position{begin.byte + count.bytes, begin.chars + count.chars, begin.lines + 1}
	return nil
}

// longHit reads what surrounds a match in a long line.
func (s *searcher) longHit(begin position, length, from, to int64) error {
	before := counter{}
	r := io.NewSectionReader(s.of.text, begin.byte, from)
	buf := make([]byte, blockSize)
	for {
		n, err := r.Read(buf)
		before.add(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}
	before.finish()
	start := max(0, from-around*utf8.UTFMax)
	end := min(length, min(to, from+around)+around*utf8.UTFMax)
	text := make([]byte, end-start)
	if _, err := s.of.text.ReadAt(text, begin.byte+start); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	// A window that began inside a character begins at the next.
	for start > 0 && len(text) > 0 && !utf8.RuneStart(text[0]) && start < from {
		text, start = text[1:], start+1
	}
	s.at = begin
	s.hitIn(text, int(from-start), int(min(to, end)-start), before.chars, true)
	return nil
}

func (s *searcher) hit(line []byte, from, to int, column int64) {
	s.hitIn(line, from, to, column, false)
}

// hitIn notes a match at text[from:to]; column is how many characters of the
// line stand before it.
func (s *searcher) hitIn(text []byte, from, to int, column int64, cut bool) {
	s.found++
	begin, end := from, to
	for n := 0; n < around && begin > 0; n++ {
		_, size := utf8.DecodeLastRune(text[:begin])
		begin -= size
	}
	end = min(end, from+runesLength(text[from:], 2*around))
	end += runesLength(text[end:], around)
	shown := validText(text[begin:end])
	size := int64(utf8.RuneCountInString(shown))
	if int64(len(s.matches)) >= s.most || size > s.room {
		if s.next == 0 {
			s.next = s.at.lines + 1
			s.most = 0 // the answer has no holes
		}
		return
	}
	s.room -= size
	s.matches = append(s.matches, Match{
		Line: s.at.lines + 1, Column: column + 1, Char: s.at.chars + column + 1, Text: shown,
		Cut: cut || begin > 0 || end < len(text),
	})
}

// runes reads a long line for the regexp engine and ends it when time is up.
type runes struct {
	ctx context.Context
	in  *bufio.Reader
	n   int
	err error
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; r.n%4096 == 0 && r.ctx.Err() != nil {
		r.err = r.ctx.Err()
		return 0, 0, io.EOF
	}
	c, size, err := r.in.ReadRune()
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return c, size, err
}
