package app

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
	"ken/internal/serve/doctor"
)

// A serverNote is what a process that uses servers leaves for the doctor: the
// file <state>/mcp-status/<pid>-….json, for as long as it watches them.
type serverNote struct {
	PID     int             `json:"pid"`
	Began   string          `json:"began"` // of the process, see procid.Began
	What    string          `json:"what"`
	Since   time.Time       `json:"since"`
	Servers []serverTrouble `json:"servers"`
}

// A serverTrouble is how a server stands, and the last that went wrong with it
// even if it has worked since.
type serverTrouble struct {
	Name     string           `json:"name"`
	State    mcpgateway.State `json:"state"`
	Backends int              `json:"backends,omitempty"`
	Restarts int              `json:"restarts,omitempty"`
	Err      string           `json:"error,omitempty"`
	At       time.Time        `json:"at,omitzero"` // when Err was seen first
	Noise    int              `json:"noise,omitempty"`
	Sample   string           `json:"sample,omitempty"`
}

func (a *App) serverNotes() string { return filepath.Join(a.Places.State, "mcp-status") }

// A notebook writes a process's note when it changed. It is for one goroutine.
type notebook struct {
	file    string
	note    serverNote
	now     map[string]mcpgateway.Status // as each server was seen last
	past    map[string]int               // noise of connections that are over
	written []byte
}

// newNotebook makes a notebook whose file is not there yet. A process may have
// several, one for each gateway.
func newNotebook(dir string) *notebook {
	pid := os.Getpid()
	began, _ := procid.Began(pid) // without it the pid alone must do
	what := "ken"
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		what += " " + os.Args[1]
	}
	return &notebook{
		file: filepath.Join(dir, fmt.Sprintf("%d-%08x.json", pid, rand.Uint32())),
		note: serverNote{PID: pid, Began: began, What: what, Since: time.Now().Round(time.Second)},
		now:  map[string]mcpgateway.Status{}, past: map[string]int{},
	}
}

// look takes over how servers stand, and writes the file if that is news.
func (n *notebook) look(list []mcpgateway.Status) error {
	before := map[string]serverTrouble{}
	for _, t := range n.note.Servers {
		before[t.Name] = t
	}
	n.note.Servers = nil
	for _, st := range list {
		last := n.now[st.Name]
		if st.Noise < last.Noise { // the lines of another connection
			n.past[st.Name] += last.Noise
		}
		n.now[st.Name] = st
		t := before[st.Name]
		t.Name, t.State, t.Backends, t.Restarts = st.Name, st.State, st.Backends, st.Restarts
		if st.Err != "" && st.Err != last.Err {
			t.Err, t.At = st.Err, time.Now().Round(time.Second)
		}
		if t.Noise = n.past[st.Name] + st.Noise; st.Noise > 0 {
			t.Sample = st.NoiseSample
		}
		n.note.Servers = append(n.note.Servers, t)
	}
	text, err := json.Marshal(n.note)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(n.file); err == nil && bytes.Equal(text, n.written) {
		return nil
	}
	if err := writePrivate(n.file, text); err != nil {
		return fmt.Errorf("note how MCP servers stand: %w", err)
	}
	n.written = text
	return nil
}

func (n *notebook) close() error {
	if err := os.Remove(n.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writePrivate puts a file in its place as a whole, for this user alone.
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
	mostNote = 4 << 20   // bytes of a note that is read
	oldNote  = time.Hour // after which a note that nobody finished is rubbish
)

// ServerProcesses returns the processes that use servers now, and clears up after
// those that ended without doing so.
func (a *App) ServerProcesses() []doctor.Process {
	var out []doctor.Process
	list, _ := os.ReadDir(a.serverNotes()) // none, where there is no folder
	for _, e := range list {
		file := filepath.Join(a.serverNotes(), e.Name())
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
			continue
		case !strings.HasSuffix(e.Name(), ".json"):
			if time.Since(info.ModTime()) > oldNote {
				_ = os.Remove(file) // the next who looks tries again
			}
			continue
		}
		note, err := readNote(file, info.Size())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !note.lives() {
			_ = os.Remove(file)
			continue
		}
		out = append(out, note.process())
	}
	return out
}

func readNote(file string, size int64) (serverNote, error) {
	var n serverNote
	if size > mostNote {
		return n, fmt.Errorf("it has %d bytes", size)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(text, &n)
}

// lives reports whether the process that wrote a note runs: that of its pid may
// be another by now.
func (n serverNote) lives() bool {
	began, alive := procid.Began(n.PID)
	return alive && began == n.Began
}

func (n serverNote) process() doctor.Process {
	p := doctor.Process{PID: n.PID, What: n.What, Since: n.Since}
	for _, t := range n.Servers {
		p.Servers = append(p.Servers, doctor.Troubled{
			Name: t.Name, Runs: t.Backends, Restarts: t.Restarts, Err: t.Err, At: t.At, Noise: t.Noise, Sample: t.Sample,
			Down: t.Err != "" && (t.State == mcpgateway.Failed || t.State == mcpgateway.BackingOff),
		})
	}
	return p
}
