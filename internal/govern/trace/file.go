package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ken/capability"
	"ken/internal/wholefile"
)

// FileName is the file that effects are told in.
const FileName = "agent_trace.jsonl"

// A File tells of effects, a line each, in a folder that people have made for
// it. It makes no folder. It is safe for any number of goroutines and
// processes.
type File struct {
	dir  string
	mu   sync.Mutex
	lost atomic.Int64
}

// NewFile makes a File for a folder, which need not be there.
func NewFile(dir string) *File { return &File{dir: dir} }

// A Line is one effect.
type Line struct {
	Time       time.Time     `json:"timestamp"`
	Session    string        `json:"session,omitempty"`
	Turn       string        `json:"turn,omitempty"`
	Intent     string        `json:"intent,omitempty"`
	Work       []string      `json:"intent_ids,omitempty"` // of active_intents.yaml
	Capability capability.ID `json:"capability"`
	Action     string        `json:"action,omitempty"`
	Class      string        `json:"class,omitempty"`
	Effect     string        `json:"effect,omitempty"`
	Audit      string        `json:"audit"` // CHAIN:NUMBER
	Hash       string        `json:"content_hash"`
	Files      []Changed     `json:"files,omitempty"`
	OK         bool          `json:"ok"`
	TraceID    string        `json:"trace_id"`
	SpanID     string        `json:"span_id"`
}

// LineOf returns the line of a call.
func LineOf(c *Call) Line {
	session, turn := Turn(c.Call)
	id := IDs(c)
	return Line{
		Time: c.Ended.UTC(), Session: session, Turn: turn, Intent: c.Call.Intent, Work: c.Work,
		Capability: c.Call.Target, Action: c.Call.Action, Class: c.Class, Effect: c.Effect, Audit: c.Record,
		Hash: c.ContentHash(), Files: c.Files, OK: c.Err == nil && !c.Result.Failed, TraceID: id.Trace, SpanID: id.Span,
	}
}

// There reports whether the folder is there.
func (f *File) There() bool {
	if (wholefile.Stamp{Path: f.dir}).Unchanged() {
		return false // as in nearly all projects
	}
	info, err := os.Stat(f.dir)
	return err == nil && info.IsDir()
}

// Append tells of a call. Without the folder it does nothing.
func (f *File) Append(c *Call) error {
	b, err := json.Marshal(LineOf(c))
	if err == nil {
		err = f.write(append(b, '\n'))
	}
	if err != nil {
		f.lost.Add(1)
		return fmt.Errorf("record the call of %s in %s: %w", c.Call.Target, FileName, err)
	}
	return nil
}

// Lost counts what could not be told.
func (f *File) Lost() int64 { return f.lost.Load() }

func (f *File) write(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	// The project may have made the folder a link to elsewhere, which is refused, or
	// put a pipe in the place of the file, which would be waited for.
	root, err := os.OpenRoot(filepath.Dir(f.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	// One write of a line: lines of several processes do not mix.
	out, err := root.OpenFile(filepath.Join(filepath.Base(f.dir), FileName), os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info, err := out.Stat(); err != nil || !info.Mode().IsRegular() {
		out.Close()
		return cmp.Or(err, errors.New("not a regular file"))
	}
	if _, err := out.Write(line); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
