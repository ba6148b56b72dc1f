package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/executor"
)

const readSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"File, relative to the workspace"},` +
	`"limit":{"type":"integer","minimum":1,"description":"Most lines"},` +
	`"offset":{"type":"integer","minimum":1,"description":"First line, from 1"},` +
	`"byte":{"type":"integer","minimum":0,"description":"Go on at this byte: nextByte of an earlier result"}},` +
	`"required":["path"],"additionalProperties":false}`

type readInput struct {
	Path   string `json:"path"`
	Offset *int64 `json:"offset"`
	Limit  *int64 `json:"limit"`
	Byte   *int64 `json:"byte"`
}

// A reading is what is told about a text that was read.
type reading struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`          // of the whole file
	Hash  string `json:"hash,omitempty"` // of the whole file; absent when it is too large to change
	Lines int64  `json:"lines,omitempty"`

	From     int64 `json:"from,omitempty"` // lines of the text, from 1; absent after byte
	To       int64 `json:"to,omitempty"`
	NextByte int64 `json:"nextByte,omitempty"` // where to go on

	BOM   bool `json:"bom,omitempty"`
	CRLF  bool `json:"crlf,omitempty"`
	Lossy bool `json:"lossy,omitempty"` // some bytes are no UTF-8 and stand as U+FFFD
}

func (e *Executor) readFacts(call capability.Call) ([]executor.Path, bool, error) {
	_, p, err := e.readInput(call)
	return []executor.Path{{Name: p.shown}}, false, err
}

func (e *Executor) readInput(call capability.Call) (readInput, place, error) {
	in, err := executor.Decode[readInput](call)
	if err != nil {
		return in, place{}, err
	}
	for _, n := range []*int64{in.Offset, in.Limit} {
		if n != nil && *n < 1 {
			return in, place{}, executor.BadArguments(call, errors.New("offset and limit must be at least 1"), "")
		}
	}
	if in.Byte != nil && (*in.Byte < 0 || in.Offset != nil) {
		return in, place{}, executor.BadArguments(call, errors.New("byte is below 0, or given with offset"), "give one of them")
	}
	p, err := e.locate("read", in.Path, false)
	if err == nil {
		err = p.admit("read", false)
	}
	return in, p, err
}

func (e *Executor) read(ctx context.Context, call capability.Call) (capability.Result, error) {
	in, p, err := e.readInput(call)
	if err != nil {
		return capability.Result{}, err
	}
	f, info, err := e.open(p)
	if err != nil {
		return trouble("read", p, err)
	}
	defer f.Close()
	about := reading{Path: p.shown, Bytes: info.Size()}
	head := make([]byte, 8<<10)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return trouble("read", p, err)
	}
	if what := binary(head[:n]); what != "" {
		return failed("%s is %s of %d bytes, not text", p.shown, what, info.Size()), nil
	}
	about.BOM = bytes.HasPrefix(head[:n], []byte("\uFEFF"))
	about.CRLF = bytes.Contains(head[:n], []byte("\r\n"))
	if err := e.survey(ctx, f, info, &about); err != nil {
		return trouble("read", p, err)
	}
	start, line, err := begin(ctx, f, in, about.BOM)
	if errors.Is(err, errPastEnd) {
		return failed("%s has only %d lines", p.shown, line), nil
	} else if err != nil {
		return trouble("read", p, err)
	}
	text, err := e.window(f, start, in.Limit, line, &about)
	if err != nil {
		return trouble("read", p, err)
	}
	return answer(about, text, about.NextByte > 0), nil
}

// survey hashes and counts a file that is not too large.
func (e *Executor) survey(ctx context.Context, f *os.File, info fs.FileInfo, about *reading) error {
	if info.Size() > e.cfg.MaxFile {
		return nil
	}
	data, err := readAll(io.NewSectionReader(f, 0, e.cfg.MaxFile+1), e.cfg.MaxFile)
	if err != nil {
		return err
	}
	about.Bytes, about.Hash = int64(len(data)), hashOf(data)
	about.Lines = int64(bytes.Count(data, []byte("\n")))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		about.Lines++
	}
	return ctx.Err()
}

// hashOf identifies a content. Half of a SHA-256 costs a model fewer tokens,
// and chance does not find two.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

var errPastEnd = errors.New("past the end")

// begin finds the byte at which to start, and its line where that is known; of
// a file that ends before, it gives the number of lines.
func begin(ctx context.Context, f *os.File, in readInput, bom bool) (start, line int64, err error) {
	if in.Byte != nil {
		return *in.Byte, 0, nil
	}
	if bom {
		start = 3
	}
	if in.Offset == nil || *in.Offset == 1 {
		return start, 1, nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, start, 1<<62), 64<<10)
	for line = 1; line < *in.Offset; {
		chunk, err := r.ReadSlice('\n')
		start += int64(len(chunk))
		switch {
		case err == nil:
			line++
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(chunk) == 0 {
				line--
			}
			return start, line, errPastEnd
		default:
			return start, line, err
		}
		if line%4096 == 0 && ctx.Err() != nil {
			return start, line, ctx.Err()
		}
	}
	if _, err := r.Peek(1); errors.Is(err, io.EOF) {
		return start, line - 1, errPastEnd
	}
	return start, line, nil
}

// window reads the text from a byte on, as much as a result may hold.
func (e *Executor) window(f *os.File, start int64, limit *int64, line int64, about *reading) (string, error) {
	most := int64(e.cfg.MaxChars)*utf8.UTFMax + utf8.UTFMax
	buf := make([]byte, min(most, max(about.Bytes-start, 0)))
	n, err := f.ReadAt(buf, start)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	whole := buf[:n]
	cut := bound(whole, e.cfg.MaxChars)
	if limit != nil {
		at := 0
		for range *limit {
			i := bytes.IndexByte(whole[at:cut], '\n')
			if i < 0 {
				at = cut
				break
			}
			at += i + 1
		}
		cut = at
	}
	// Lines stay whole where one fits.
	if cut < len(whole) && whole[cut-1] != '\n' {
		if i := bytes.LastIndexByte(whole[:cut], '\n'); i >= 0 {
			cut = i + 1
		}
	}
	if cut < n {
		about.NextByte = start + int64(cut)
	}
	text := whole[:cut]
	if line > 0 && cut > 0 {
		about.From, about.To = line, line+int64(bytes.Count(text[:cut-1], []byte("\n")))
	}
	about.Lossy = !utf8.Valid(text)
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// bound returns how many bytes the first most characters of a text have.
func bound(text []byte, most int) int {
	at := 0
	for range most {
		if at >= len(text) {
			break
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// readAll reads a file that must not have more than most bytes.
func readAll(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return data, err
}

// binary says what a file is whose beginning is no text, or "".
func binary(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return "a UTF-16 file"
	case bytes.IndexByte(head, 0) >= 0:
		return "a binary file"
	}
	return ""
}
