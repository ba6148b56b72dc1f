package result

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"ken/capability"
)

// An Excerpt is a piece of a result. Its Text is valid UTF-8, and the bytes
// that were not are replaced one by one.
type Excerpt struct {
	Entry   Entry   `json:"entry"`
	Entries []Entry `json:"entries,omitempty"` // of list
	Text    string  `json:"text,omitempty"`

	// Lines and Chars are the first and the last that Text holds, from 1, of
	// what is kept.
	Lines Range `json:"lines,omitzero"`
	Chars Range `json:"chars,omitzero"`

	Matches []Match `json:"matches,omitempty"`
	Found   int64   `json:"found,omitempty"` // lines that match, given or not

	// Left says what is not in the answer and how to get it; empty when
	// nothing is missing.
	Left string `json:"left,omitempty"`
}

// A Range is from the first to the last, both included. The zero Range is
// empty.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Read answers a query. It fails with capability.NotFound for a result that
// does not exist for this scope, whatever the reason.
func (s *Store) Read(ctx context.Context, scope Scope, q Query) (Excerpt, error) {
	if err := q.check(); err != nil {
		return Excerpt{}, err
	}
	if q.Op == OpList {
		entries, err := s.List(scope, Filter{Extension: q.Extension, Succeeded: q.Succeeded, Limit: int(min(q.Count, mostMatches))})
		return Excerpt{Entries: entries}, err
	}
	o, err := s.find(scope, q)
	if err != nil {
		return Excerpt{}, err
	}
	defer o.close()
	x, err := o.answer(ctx, q)
	x.Entry = o.Entry
	if err != nil && capability.KindOf(err) == capability.Internal && ctx.Err() == nil {
		err = s.unreadable(err)
	}
	return x, err
}

func (s *Store) find(scope Scope, q Query) (*stored, error) {
	switch q.Handle {
	case "", "last", "last_response":
		entries, err := s.List(scope, Filter{Extension: q.Extension, Succeeded: q.Succeeded, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			return nil, missing(s.cfg.Keep)
		}
		return s.open(scope, entries[0].Handle)
	}
	return s.open(scope, q.Handle)
}

func (o *stored) answer(ctx context.Context, q Query) (Excerpt, error) {
	count := q.Count
	if count == 0 {
		count = headLines
	}
	switch q.Op {
	case OpInfo:
		return Excerpt{}, nil
	case OpSearch:
		return o.search(ctx, q)
	case OpTail:
		return o.tail(count, q.Limit)
	case OpChars:
		return o.chars(ctx, q)
	case OpLines:
		last := q.To
		if last == 0 {
			last = o.Kept.Lines
		}
		return o.lines(ctx, q.From, last, q.Limit)
	case OpHead:
		return o.lines(ctx, 1, count, q.Limit)
	}
	if o.Kept.Chars <= q.Limit {
		return o.lines(ctx, 1, o.Kept.Lines, q.Limit)
	}
	return o.lines(ctx, 1, count, q.Limit)
}

// position is a place in the text.
type position struct {
	byte  int64
	chars int64 // before it
	lines int64 // line breaks before it
}

// blockSize is how much is read at a time.
const blockSize = 64 << 10

// walk goes through the text from its beginning in blocks that part no
// character, until visit returns false.
func (o *stored) walk(ctx context.Context, visit func(at position, block []byte) bool) error {
	r := io.NewSectionReader(o.text, 0, o.Kept.Bytes)
	buf := make([]byte, blockSize)
	have := 0
	var at position
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buf[have:])
		have += n
		end := err != nil
		if end && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		whole := have
		if !end {
			whole = wholeRunes(buf[:have])
		}
		block := buf[:whole]
		if len(block) > 0 && !visit(at, block) || end {
			return nil
		}
		at.byte += int64(whole)
		at.chars += runeCount(block)
		at.lines += int64(bytes.Count(block, []byte{'\n'}))
		have = copy(buf, buf[whole:have])
	}
}

// lineStart finds where a line begins, from 1; past the last it is the end.
func (o *stored) lineStart(ctx context.Context, line int64) (position, error) {
	found := position{}
	if line <= 1 {
		return found, nil
	}
	ok := false
	err := o.walk(ctx, func(at position, block []byte) bool {
		want := line - 1 - at.lines // line breaks to pass in this block
		if int64(bytes.Count(block, []byte{'\n'})) < want {
			return true
		}
		rest := block
		for ; want > 0; want-- {
			rest = rest[bytes.IndexByte(rest, '\n')+1:]
		}
		before := block[:len(block)-len(rest)]
		found = position{at.byte + int64(len(before)), at.chars + runeCount(before), line - 1}
		ok = true
		return false
	})
	if !ok {
		found = o.end()
	}
	return found, err
}

func (o *stored) end() position { return position{o.Kept.Bytes, o.Kept.Chars, o.Kept.Lines} }

// charStart finds where a character begins, from 1.
func (o *stored) charStart(ctx context.Context, char int64) (position, error) {
	found, ok := o.end(), false
	err := o.walk(ctx, func(at position, block []byte) bool {
		skip := char - 1 - at.chars
		if runeCount(block) <= skip {
			return true
		}
		n := runesLength(block, skip)
		found = position{at.byte + int64(n), char - 1, at.lines + int64(bytes.Count(block[:n], []byte{'\n'}))}
		ok = true
		return false
	})
	if !ok {
		found = o.end()
	}
	return found, err
}

// runesLength returns the length of the first n characters of p.
func runesLength(p []byte, n int64) int {
	at := 0
	for ; n > 0 && at < len(p); n-- {
		_, size := utf8.DecodeRune(p[at:])
		at += size
	}
	return at
}

// lines returns whole lines while the limit allows.
func (o *stored) lines(ctx context.Context, first, last, limit int64) (Excerpt, error) {
	from, err := o.lineStart(ctx, first)
	if err != nil {
		return Excerpt{}, err
	}
	if from.byte == o.Kept.Bytes {
		return Excerpt{Left: o.past(fmt.Sprintf("line %d", first))}, nil
	}
	text, err := o.textFrom(from, limit)
	if err != nil {
		return Excerpt{}, err
	}
	if wanted := last - first + 1; int64(bytes.Count(text, []byte{'\n'})) >= wanted {
		rest := text
		for ; wanted > 0; wanted-- {
			rest = rest[bytes.IndexByte(rest, '\n')+1:]
		}
		text = text[:len(text)-len(rest)]
	}
	return o.excerpt(from, text), nil
}

// past says why nothing is there.
func (o *stored) past(what string) string {
	if o.Kept.Bytes == 0 {
		return "the result is empty"
	}
	return fmt.Sprintf("%s is past the end: there are %d lines and %d characters", what, o.Kept.Lines, o.Kept.Chars)
}

func (o *stored) chars(ctx context.Context, q Query) (Excerpt, error) {
	from, err := o.charStart(ctx, q.From)
	if err != nil {
		return Excerpt{}, err
	}
	if from.byte == o.Kept.Bytes {
		return Excerpt{Left: o.past(fmt.Sprintf("character %d", q.From))}, nil
	}
	limit := q.Limit
	if q.To > 0 {
		limit = min(limit, q.To-q.From+1)
	}
	text, err := o.textFrom(from, limit)
	if err != nil {
		return Excerpt{}, err
	}
	return o.excerpt(from, text), nil
}

// tail returns the last lines; when they are too long, their end.
func (o *stored) tail(count, limit int64) (Excerpt, error) {
	// A few bytes more than the characters can take, since the first may be the
	// rest of one that begins before.
	size := min(o.Kept.Bytes, limit*utf8.UTFMax+utf8.UTFMax-1)
	text := make([]byte, size)
	if _, err := o.text.ReadAt(text, o.Kept.Bytes-size); err != nil && !errors.Is(err, io.EOF) {
		return Excerpt{}, err
	}
	start := len(text)
	for ; count > 0 && start > 0; count-- {
		start = bytes.LastIndexByte(text[:start-1], '\n') + 1
	}
	if int64(start) == 0 && size < o.Kept.Bytes {
		for start < utf8.UTFMax-1 && !utf8.RuneStart(text[start]) {
			start++
		}
	}
	text = text[start:]
	if over := runeCount(text) - limit; over > 0 {
		text = text[runesLength(text, over):]
	}
	from := position{
		byte: o.Kept.Bytes - int64(len(text)), chars: o.Kept.Chars - runeCount(text),
		lines: o.Kept.Lines - linesIn(text),
	}
	return o.excerpt(from, text), nil
}

func linesIn(text []byte) int64 {
	n := int64(bytes.Count(text, []byte{'\n'}))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// textFrom reads at most limit characters.
func (o *stored) textFrom(from position, limit int64) ([]byte, error) {
	text := make([]byte, min(o.Kept.Bytes-from.byte, limit*utf8.UTFMax))
	if _, err := o.text.ReadAt(text, from.byte); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return text[:runesLength(text, limit)], nil
}

// excerpt says what a piece of text is, and what stands around it.
func (o *stored) excerpt(from position, text []byte) Excerpt {
	chars := runeCount(text)
	x := Excerpt{Text: validText(text)}
	if len(text) > 0 {
		x.Chars = Range{from.chars + 1, from.chars + chars}
		x.Lines = Range{from.lines + 1, from.lines + linesIn(text)}
	}
	var left []string
	if from.byte > 0 {
		left = append(left, fmt.Sprintf("%d characters before this", from.chars))
	}
	if rest := o.Kept.Chars - from.chars - chars; rest > 0 {
		left = append(left, fmt.Sprintf("%d characters after it; go on with op chars from %d", rest, from.chars+chars+1))
	}
	if o.Lost > 0 {
		left = append(left, fmt.Sprintf("%d bytes of the output were never kept: %s", o.Lost, o.Note))
	}
	x.Left = strings.Join(left, "; ")
	return x
}

// validText replaces each byte that is not UTF-8, one for one, so that
// characters keep their numbers.
func validText(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	return string([]rune(string(text)))
}
