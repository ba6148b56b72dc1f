// Package statusfile publishes the status of a process's MCP servers in a file,
// so that ken doctor, which is another process, can show it.
package statusfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ken/internal/procid"
	"ken/internal/run/mcpgateway"
)

// A Note is the content of a file: DIR/<pid>-<random>.json, which exists while
// the process follows its servers.
type Note struct {
	PID     int           `json:"pid"`
	Began   string        `json:"began"` // of the process, see procid.Began
	What    string        `json:"what"`  // the command
	Since   time.Time     `json:"since"`
	Servers []ServerState `json:"servers"`
}

// A ServerState is the state of a server and the last error that it had, even
// if it has worked since.
type ServerState struct {
	Name     string           `json:"name"`
	State    mcpgateway.State `json:"state"`
	Backends int              `json:"backends,omitempty"`
	Restarts int              `json:"restarts,omitempty"`
	Err      string           `json:"error,omitempty"`
	At       time.Time        `json:"at,omitzero"` // when Err was seen first
	Noise    int              `json:"noise,omitempty"`
	Sample   string           `json:"sample,omitempty"`
}

// A Writer writes the file of a process when the status of its servers changed.
// It is for one goroutine.
type Writer struct {
	file    string
	note    Note
	last    map[string]mcpgateway.Status // by server
	noise   map[string]int               // by server: lines of connections that have ended
	written []byte
}

// NewWriter returns a Writer for a file in dir, which it does not write yet. A
// process may have several, one for each gateway.
func NewWriter(dir string) *Writer {
	pid := os.Getpid()
	began, _ := procid.Began(pid) // where it is unknown the pid alone must do
	what := "ken"
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		what += " " + os.Args[1]
	}
	return &Writer{
		file: filepath.Join(dir, fmt.Sprintf("%d-%08x.json", pid, rand.Uint32())),
		note: Note{PID: pid, Began: began, What: what, Since: time.Now().Round(time.Second)},
		last: map[string]mcpgateway.Status{}, noise: map[string]int{},
	}
}

// Update writes the file if the status of the servers has changed.
func (w *Writer) Update(list []mcpgateway.Status) error {
	before := map[string]ServerState{}
	for _, t := range w.note.Servers {
		before[t.Name] = t
	}
	w.note.Servers = nil
	for _, st := range list {
		was := w.last[st.Name]
		if st.Noise < was.Noise { // the lines of another connection
			w.noise[st.Name] += was.Noise
		}
		w.last[st.Name] = st
		t := before[st.Name]
		t.Name, t.State, t.Backends, t.Restarts = st.Name, st.State, st.Backends, st.Restarts
		if st.Err != "" && st.Err != was.Err {
			t.Err, t.At = st.Err, time.Now().Round(time.Second)
		}
		if t.Noise = w.noise[st.Name] + st.Noise; st.Noise > 0 {
			t.Sample = st.NoiseSample
		}
		w.note.Servers = append(w.note.Servers, t)
	}
	text, err := json.Marshal(w.note)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(w.file); err == nil && bytes.Equal(text, w.written) {
		return nil
	}
	if err := writePrivate(w.file, text); err != nil {
		return fmt.Errorf("write the status of the MCP servers: %w", err)
	}
	w.written = text
	return nil
}

// Close removes the file.
func (w *Writer) Close() error {
	if err := os.Remove(w.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writePrivate replaces a file as a whole; only this user can read it.
func writePrivate(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".note-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

const (
	maxSize  = 4 << 20   // bytes of a file that is read
	staleAge = time.Hour // after which an unfinished file is removed
)

// Read returns the notes of the processes that run now. It removes the files of
// processes that ended without removing them.
func Read(dir string) []Note {
	var out []Note
	list, _ := os.ReadDir(dir) // none, where there is no folder
	for _, e := range list {
		file := filepath.Join(dir, e.Name())
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
			continue
		case !strings.HasSuffix(e.Name(), ".json"):
			if time.Since(info.ModTime()) > staleAge {
				_ = os.Remove(file) // the next Read tries again
			}
			continue
		}
		note, err := readNote(file, info.Size())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !note.runs() {
			_ = os.Remove(file)
			continue
		}
		out = append(out, note)
	}
	return out
}

func readNote(file string, size int64) (Note, error) {
	var n Note
	if size > maxSize {
		return n, fmt.Errorf("read %s: file has %d bytes, more than %d", file, size, maxSize)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(text, &n)
}

// runs reports whether the process that wrote a note still runs. Its pid may be
// that of another process by now.
func (n Note) runs() bool {
	began, alive := procid.Began(n.PID)
	return alive && began == n.Began
}
