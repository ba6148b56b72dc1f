package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// list returns the events as "name|data", and the error.
func list(r io.Reader, most int) ([]string, error) {
	var got []string
	for e, err := range Events(r, most) {
		if err != nil {
			return got, err
		}
		got = append(got, e.Name+"|"+string(e.Data))
	}
	return got, nil
}

func TestEvents(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
		err      error
	}{
		{"nothing", "", nil, nil},
		{"one", "data: a\n\n", []string{"|a"}, nil},
		{"named", "event: ping\ndata: {}\n\n", []string{"ping|{}"}, nil},
		{"a name is for one event", "event: x\ndata: 1\n\ndata: 2\n\n", []string{"x|1", "|2"}, nil},
		{"crlf", "event: x\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []string{"x|1", "|2"}, nil},
		{"cr", "event: x\rdata: 1\r\rdata: 2\r\r", []string{"x|1", "|2"}, nil},
		{"mixed ends", "data: 1\r\n\ndata: 2\n\r\n", []string{"|1", "|2"}, nil},
		{"many lines", "data: a\ndata:b\ndata\n\n", []string{"|a\nb\n"}, nil},
		{"one space is taken away", "data:  a \n\n", []string{"| a "}, nil},
		{"colons in data", "data: a: b\n\n", []string{"|a: b"}, nil},
		{"comments", ": keep\n:\ndata: a\n: more\n\n", []string{"|a"}, nil},
		{"ids and unknown fields", "id: 7\nretry: 10\nfoo: x\nbar\ndata: a\n\n", []string{"|a"}, nil},
		{"without data", "event: x\n\nevent: y\ndata:\n\ndata: a\n\n", []string{"|a"}, nil},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"|a"}, nil},
		{"no mark in the middle", "data: a\n\n\ufeffdata: b\n\n", []string{"|a"}, nil},
		{"last empty line is missing", "data: a\n\ndata: b\n", []string{"|a", "|b"}, nil},
		{"cut in a line", "data: a\n\ndata: {\"b", []string{"|a"}, io.ErrUnexpectedEOF},
		{"not events", "<html>\n<body>no</body>\n", nil, nil},
		{"as large as may be", "data: 0123456789\n\n", []string{"|0123456789"}, nil},
		{"larger", "data: a\n\ndata: 0123456789x\n\n", []string{"|a"}, ErrEventSize},
		{"larger in lines", "data: 01234\ndata: 56789\n\n", nil, ErrEventSize},
		{"a huge line", "data: " + strings.Repeat("x", 100_000), nil, ErrEventSize},
		{"a huge comment", ": " + strings.Repeat("x", 100_000), nil, ErrEventSize},
	}
	for _, tt := range tests {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(tt.in),
			"bytes": iotest.OneByteReader(strings.NewReader(tt.in)),
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				got, err := list(r, 10)
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
					t.Errorf("Events(%q) = %v, %v, want error %v (-want +got):\n%s", tt.in, got, err, tt.err, diff)
				}
			})
		}
	}
}

func TestEventsReadError(t *testing.T) {
	broken := errors.New("reset")
	got, err := list(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 0)
	if diff := cmp.Diff([]string{"|a"}, got); diff != "" || !errors.Is(err, broken) {
		t.Errorf("Events = %v, %v; want [|a], %v", got, err, broken)
	}
}

// TestEventsEndless reads lines that never end an event, and stops in time.
func TestEventsEndless(t *testing.T) {
	for _, line := range []string{"data: x\n", "xxxxxxxx"} {
		r := &endless{text: line}
		if _, err := list(r, 1000); !errors.Is(err, ErrEventSize) {
			t.Errorf("Events of endless %q = %v, want %v", line, err, ErrEventSize)
		}
		if r.read > 64<<10 {
			t.Errorf("read %d bytes of endless %q before refusing", r.read, line)
		}
	}
}

type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, strings.Repeat(e.text, len(p)/len(e.text)+1))
	e.read += n
	return n, nil
}

// FuzzEvents holds that events do not depend on how the bytes are cut into
// reads, that bounds hold, and that written events are read back.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: x\r\n\r\n:c\rdata: y\r\r\ufeff"), 7)
	f.Add([]byte("\xef\xbb\xbfdata: {}\n\n"), 3)
	f.Add([]byte("data"), 1)
	f.Fuzz(func(t *testing.T, in []byte, most int) {
		most = 1 + (most&0xff+0xff)&0xff
		whole, err := list(bytes.NewReader(in), most)
		parts, perr := list(iotest.OneByteReader(bytes.NewReader(in)), most)
		if diff := cmp.Diff(whole, parts); diff != "" || fmt.Sprint(err) != fmt.Sprint(perr) {
			t.Fatalf("whole %v, byte by byte %v:\n%s", err, perr, diff)
		}
		var again bytes.Buffer
		for e := range Events(bytes.NewReader(in), most) {
			if len(e.Data) > most {
				t.Fatalf("an event of %d bytes, bound %d", len(e.Data), most)
			}
			if len(e.Data) == 0 {
				break
			}
			fmt.Fprintf(&again, "event: %s\ndata: %s\n\n", e.Name, bytes.ReplaceAll(e.Data, []byte("\n"), []byte("\ndata: ")))
		}
		if back, err := list(&again, 1<<20); err != nil || !cmp.Equal(whole, back) {
			t.Fatalf("written and read again: %v, %q; want %q", err, back, whole)
		}
	})
}
