package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The views are the seed's three log files, for people and their greps. They
// are derived: the chains are the truth, and a view that is lost is made again
// by a query. Several processes append to the same files.
const (
	mainView       = "ken.log"          // everything
	capabilityView = "capabilities.log" // capability_…
	securityView   = "security.log"     // security_…, and what says UNKNOWN
)

var viewNames = [...]string{mainView, capabilityView, securityView}

// keptViews is how many views that grew too long stay beside each view.
const keptViews = 8

const (
	// viewPause is how long lines are collected before they are written together.
	// Without it the views took a twentieth of the time of a call.
	viewPause = 50 * time.Millisecond

	viewRoom   = 1024     // batches that may wait
	keptBuffer = 64 << 10 // a longer text leaves no buffer for the next
)

// A viewLine is a record in the seed's form, without its timestamp.
type viewLine struct {
	at   string
	text []byte
	room *[]byte // text is in it
	in   [len(viewNames)]bool
}

// viewRooms are buffers of lines that were written.
var viewRooms = sync.Pool{New: func() any { return new(make([]byte, 0, 512)) }}

func makeViewLine(r *Record) viewLine {
	room := viewRooms.Get().(*[]byte)
	e := encoder{b: append((*room)[:0], timestampHole...), spaced: true}
	e.seed(r)
	e.optional("status", string(r.Status))
	e.optional("effect_id", r.EffectID)
	e.optional("rule", r.Rule)
	*room = append(e.b, '}')
	v := viewLine{text: (*room)[len(timestampHole):], room: room}
	v.in = [...]bool{
		true,
		strings.HasPrefix(string(r.Event), "capability_"),
		strings.HasPrefix(string(r.Event), "security_") || r.Status == Lost,
	}
	return v
}

// ViewHealth says how the views are doing since the log was opened.
type ViewHealth struct {
	Written int64 // lines
	Lost    int64 // lines that are in the chain but not in a view
	Err     error // the newest trouble
}

type views struct {
	dir   string
	limit int64
	queue chan []viewLine
	hurry chan struct{} // closed when there is nothing more to collect
	done  chan struct{}

	files [len(viewNames)]viewFile // of the writing goroutine
	buf   []byte                   // and what it writes

	mu   sync.Mutex
	seen ViewHealth
}

type viewFile struct {
	f    *os.File
	lost int64 // lines since the last one that was written
}

// newViews starts the writer of the views in dir; "" means none.
func newViews(dir string, limit int64) *views {
	v := &views{dir: dir, limit: limit}
	if dir != "" {
		v.queue = make(chan []viewLine, viewRoom)
		v.hurry, v.done = make(chan struct{}), make(chan struct{})
		go v.run()
	}
	return v
}

func (v *views) on() bool { return v.dir != "" }

// add hands lines over and never waits: the trail does not stop for a view.
func (v *views) add(lines []viewLine) {
	if !v.on() {
		return
	}
	select {
	case v.queue <- lines:
	default:
		v.note(0, int64(len(lines)), errors.New("audit views: cannot write fast enough"))
	}
}

func (v *views) close() {
	if v.on() {
		close(v.hurry)
		close(v.queue)
		<-v.done
	}
}

func (v *views) health() ViewHealth {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}

func (v *views) note(written, lost int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen.Written += written
	v.seen.Lost += lost
	if err != nil {
		v.seen.Err = err
	}
}

func (v *views) run() {
	defer close(v.done)
	for lines := range v.queue {
		if len(v.queue) == 0 {
			v.pause()
		}
		// A view exceeds its limit by no more than a part of it.
		for size := textBytes(lines); size < v.limit/4 && len(v.queue) > 0; {
			more := <-v.queue
			lines, size = append(lines, more...), size+textBytes(more)
		}
		for i := range v.files {
			v.write(i, lines)
		}
		for _, line := range lines {
			if cap(*line.room) <= keptBuffer {
				viewRooms.Put(line.room)
			}
		}
	}
	for i := range v.files {
		if f := v.files[i].f; f != nil {
			_ = f.Close()
		}
	}
}

// pause waits for more lines.
func (v *views) pause() {
	timer := time.NewTimer(viewPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-v.hurry:
	}
}

func textBytes(lines []viewLine) (n int64) {
	for i := range lines {
		n += int64(len(lines[i].text))
	}
	return n
}

// write appends a batch to one view in a single write, so that lines of
// several processes do not mix.
func (v *views) write(i int, lines []viewLine) {
	vf := &v.files[i]
	buf := v.buf[:0]
	var n int64
	for _, line := range lines {
		if line.in[i] {
			buf = append(append(append(buf, `{"timestamp": "`...), line.at...), '"')
			buf = append(append(buf, line.text...), '\n')
			n++
		}
	}
	if cap(buf) <= keptBuffer {
		v.buf = buf
	}
	if n == 0 {
		return
	}
	if vf.lost > 0 {
		lost := fmt.Sprintf(`{"timestamp": "%s", "level": "WARNING", "logger": "ken.audit", "event": "view_lines_lost", "lost": %d}`+"\n", lines[0].at, vf.lost)
		buf = append([]byte(lost), buf...)
	}
	if err := v.put(vf, filepath.Join(v.dir, viewNames[i]), buf); err != nil {
		vf.lost += n
		v.note(0, n, fmt.Errorf("audit view %s: %w; the missing lines are in the chain: see ken audit query", viewNames[i], err))
		return
	}
	vf.lost = 0
	v.note(n, 0, nil)
}

func (v *views) put(vf *viewFile, path string, buf []byte) error {
	if err := v.ready(vf, path); err != nil {
		return err
	}
	if _, err := vf.f.Write(buf); err != nil {
		_ = vf.f.Close()
		vf.f = nil
		return err
	}
	return nil
}

// ready opens the view, again where someone moved it away, and sets aside one
// that grew too long.
func (v *views) ready(vf *viewFile, path string) error {
	if vf.f != nil {
		mine, err1 := vf.f.Stat()
		there, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			if there.Size() < v.limit {
				return nil
			}
			if err := setAside(path); err != nil {
				return err
			}
		}
		_ = vf.f.Close()
		vf.f = nil
	}
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := endLine(f, path); err != nil {
		_ = f.Close()
		return err
	}
	vf.f = f
	return nil
}

// endLine ends a line that a crash left unfinished.
func endLine(f *os.File, path string) error {
	r, err := os.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := r.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if !bytes.Equal(last, []byte("\n")) {
		_, err = f.Write([]byte("\n"))
	}
	return err
}

// setAside moves a view to a name of its own. Two processes may do it at once:
// names never collide, so nothing is overwritten.
func setAside(path string) error {
	aside := path + "." + newChain(time.Now())
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var old []string // by time, as their names sort
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+".") {
			old = append(old, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	for ; len(old) > keptViews; old = old[1:] {
		if err := os.Remove(old[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
