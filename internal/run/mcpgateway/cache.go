package mcpgateway

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/know/source/mcpskill"
	"ken/internal/run/mcpgateway/link"
)

// What a server offers is kept in one JSON file: a line of its own for the
// head, one for each tool, and one for the end, so that a tool is read again by
// its place.
//
//	{"version":1,"listed":"…","head":{…},
//	"tools":[
//	{"name":"read_file",…},
//	{"name":"write_file",…}
//	],"sum":"…"}
const (
	listsVersion = 1
	mostLists    = 256 << 20 // bytes of a file
)

// A head is what a server offers besides its tools. All of it came from
// outside.
type head struct {
	Server       string                  `json:"server"`
	Info         link.Info               `json:"info"`
	Notes        []string                `json:"notes,omitempty"`
	HasPrompts   bool                    `json:"hasPrompts,omitempty"`
	HasResources bool                    `json:"hasResources,omitempty"`
	Prompts      []*mcp.Prompt           `json:"prompts,omitempty"`
	Resources    []*mcp.Resource         `json:"resources,omitempty"`
	Templates    []*mcp.ResourceTemplate `json:"templates,omitempty"`
	Skills       []*mcpskill.Entry       `json:"skills,omitempty"`
}

// lists are what a server offers, as a file holds it.
type lists struct {
	head
	listed time.Time
	data   []byte
	tools  []span
	sum    string // of all but when it was listed
}

// A span is where something lies in data.
type span struct{ at, end int }

func (l *lists) tool(i int) []byte { return l.data[l.tools[i].at:l.tools[i].end] }

// newLists puts what a server listed into its form, without secrets.
func newLists(server string, info link.Info, got link.Lists, now time.Time, redact func(string) string) (*lists, error) {
	info.Pid = 0
	got = addressable(got, redact)
	l := &lists{head: head{
		Server: server, Info: info, Notes: got.Notes,
		HasPrompts: info.HasPrompts, HasResources: info.HasResources,
		Prompts: got.Prompts, Resources: got.Resources, Templates: got.Templates, Skills: got.Skills,
	}}
	first, err := json.Marshal(l.head)
	if err != nil {
		return nil, fmt.Errorf("cache the server's lists: %w", err)
	}
	clean, err := redactJSON(first, redact)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(clean, first) {
		first, l.head = clean, head{}
		if err := json.Unmarshal(first, &l.head); err != nil {
			return nil, fmt.Errorf("cache the server's lists: %w", err)
		}
	}
	h := sha256.New()
	h.Write(first)
	l.listed = now.UTC().Truncate(time.Second)
	l.data = fmt.Appendf(nil, "{\"version\":%d,\"listed\":%q,\"head\":%s,\n\"tools\":[\n", listsVersion, l.listed.Format(time.RFC3339), first)
	for i, t := range got.Tools {
		object, err := json.Marshal(t)
		if err != nil {
			return nil, fmt.Errorf("cache the tool %q: %w", t.Name, err)
		}
		if object, err = redactJSON(object, redact); err != nil {
			return nil, err
		}
		if i > 0 {
			l.data = append(l.data, ",\n"...)
		}
		at := len(l.data)
		l.data = append(l.data, object...)
		l.tools = append(l.tools, span{at, len(l.data)})
		h.Write(object)
		h.Write([]byte{'\n'})
	}
	l.sum = hex.EncodeToString(h.Sum(nil)[:16])
	l.data = fmt.Appendf(l.data, "\n],\"sum\":%q}\n", l.sum)
	return l, nil
}

// parseLists reads a file back. The tools are checked where they are read.
func parseLists(data []byte) (*lists, error) {
	damaged := errors.New("the cached lists are damaged")
	line, rest, ok := bytes.Cut(data, []byte(",\n"))
	opening, rest, ok2 := bytes.Cut(rest, []byte("\n"))
	if !ok || !ok2 || string(opening) != `"tools":[` {
		return nil, damaged
	}
	var first struct {
		Version int
		Listed  time.Time
		Head    json.RawMessage
	}
	if err := json.Unmarshal(append(bytes.Clone(line), '}'), &first); err != nil {
		return nil, damaged
	}
	if first.Version != listsVersion {
		return nil, fmt.Errorf("the cached lists have version %d, this program reads %d", first.Version, listsVersion)
	}
	l := &lists{listed: first.Listed, data: data}
	if json.Unmarshal(first.Head, &l.head) != nil {
		return nil, damaged
	}
	at := len(data) - len(rest)
	for {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			return nil, damaged
		}
		line := data[at : at+n]
		if bytes.HasPrefix(line, []byte("],")) {
			var end struct{ Sum string }
			if json.Unmarshal(append([]byte("{"), line[2:]...), &end) != nil || end.Sum == "" || at+n+1 != len(data) {
				return nil, damaged
			}
			l.sum = end.Sum
			if err := l.checkSum(first.Head); err != nil {
				return nil, err // nothing of it may become an offer
			}
			return l, nil
		}
		if len(line) > 0 {
			l.tools = append(l.tools, span{at, at + len(bytes.TrimSuffix(line, []byte{','}))})
		}
		at += n + 1
	}
}

// checkSum finds a file that was changed after it was written.
func (l *lists) checkSum(first []byte) error {
	h := sha256.New()
	h.Write(first)
	for i := range l.tools {
		h.Write(l.tool(i))
		h.Write([]byte{'\n'})
	}
	if hex.EncodeToString(h.Sum(nil)[:16]) != l.sum {
		return errors.New("the cached lists were modified")
	}
	return nil
}

// A shelf is the folder with the files. Without a folder it keeps nothing.
type shelf struct {
	dir  string
	salt []byte
}

// newShelf opens the folder and makes its salt, once.
func newShelf(dir string) (*shelf, error) {
	s := &shelf{salt: make([]byte, 32)}
	rand.Read(s.salt)
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, fmt.Errorf("create the cache folder: %w", err)
	}
	salt, err := sharedSalt(filepath.Join(dir, "salt"), s.salt)
	if err != nil {
		return s, fmt.Errorf("open the cache folder: %w", err)
	}
	s.salt, s.dir = salt, dir
	return s, nil
}

// sharedSalt returns what the file holds, or puts salt there. Of several processes
// one is first.
func sharedSalt(name string, salt []byte) ([]byte, error) {
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		scratch := name + "." + rand.Text()
		if err := os.WriteFile(scratch, salt, 0o600); err != nil {
			return nil, err
		}
		err := os.Link(scratch, name) // unlike a rename it replaces nothing
		os.Remove(scratch)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	have, err := os.ReadFile(name)
	if err == nil && len(have) != len(salt) {
		err = fmt.Errorf("%s is damaged; remove it", name)
	}
	return have, err
}

func (s *shelf) file(identity string) string {
	if s.dir == "" {
		return ""
	}
	return filepath.Join(s.dir, identity+".json")
}

// load reads a server's file; nil when there is none.
func (s *shelf) load(identity string) (*lists, error) {
	name := s.file(identity)
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostLists {
		return nil, errors.New("the cached lists are not a regular file, or too large")
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	return parseLists(data)
}

// store writes a server's file, whole or not at all.
func (s *shelf) store(identity string, l *lists) error {
	name := s.file(identity)
	if name == "" {
		return nil
	}
	scratch := name + "." + rand.Text()
	err := os.WriteFile(scratch, l.data, 0o600)
	if err == nil {
		err = os.Rename(scratch, name)
	}
	if err != nil {
		os.Remove(scratch)
		return fmt.Errorf("cache the server's lists: %w", err)
	}
	return nil
}

// read returns the bytes of a span of a server's file.
func (s *shelf) read(identity string, at span) ([]byte, error) {
	f, err := os.Open(s.file(identity))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, at.end-at.at)
	_, err = f.ReadAt(b, int64(at.at))
	return b, err
}
