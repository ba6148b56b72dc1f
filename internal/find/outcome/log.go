package outcome

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/wholefile"
)

// A Config bounds a log. Zero fields mean the defaults.
type Config struct {
	MaxBytes int64 // of one file; 8 MB. At least one line fits whatever it says.
	Keep     int   // how many files; 4
}

const (
	defaultMaxBytes = 8 << 20
	defaultKeep     = 4

	// lookAgain is how often a log makes sure that its file is still the one
	// in its folder, and how long it waits after a failure.
	lookAgain = time.Second

	// Events of [Log.Add] are written together: so many, so many bytes of lines, or
	// those of so much time.
	mostAdded      = 64
	mostAddedBytes = 32 << 10
	addedFor       = 100 * time.Millisecond
)

// A Log is an append-only file of events in a folder, in whole lines, shared by
// any number of goroutines, Logs and processes. When a file is full the next
// one is begun and the oldest is removed; files are never renamed.
//
// Its files are outcomes-NNNNNN.jsonl, and key, the key of [Log.Hash]. Lines
// are not forced to the disk: a crash of the machine may lose the last.
type Log struct {
	dir string
	cfg Config
	key []byte

	mu     sync.Mutex
	file   *os.File // nil until opened, after a failure, and when closed
	size   int64    // of file, as last seen
	looked time.Time
	retry  time.Time // after a failure: not to be tried before
	closed bool
	health Health

	line  []byte // the one that is being encoded
	added []byte // lines of Add that are not written yet
	count int    // how many
	later *time.Timer
}

// Health is what a [Log] went through since it was opened.
type Health struct {
	Dir     string    `json:"dir"`
	Written int       `json:"written"`
	Lost    int       `json:"lost"`            // events that could not be written
	Error   string    `json:"error,omitempty"` // the last failure, empty when the last event was written
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// Open makes the log of a folder, and the folder where it is missing. It always
// returns a Log: with an error, one that tries again later and counts what it
// loses, for a log that cannot be written must not stop a turn. The caller
// closes it.
func Open(dir string, cfg Config) (*Log, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if cfg.Keep <= 0 {
		cfg.Keep = defaultKeep
	}
	l := &Log{dir: dir, cfg: cfg, health: Health{Dir: dir}}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.ready(0)
	if err != nil {
		err = l.failed(err)
	}
	l.key = loadKey(dir)
	return l, err
}

// Append writes one event. An error means that it was lost; the turn goes on,
// and the error says what to do. The event's slices are only read.
func (l *Log) Append(e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.add(e); err != nil {
		return err
	}
	return l.flush()
}

// Add is Append for an event whose caller does not wait. It is written with others, within
// a moment and before anything of this process reads the log. [Log.Health] counts it
// if it is lost.
func (l *Log) Add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.add(e) // Health has it
	switch {
	case l.count >= mostAdded || len(l.added) >= mostAddedBytes:
		_ = l.flush()
	case l.count == 0:
	case l.later == nil:
		l.later = time.AfterFunc(addedFor, l.Flush)
	case l.count == 1:
		l.later.Reset(addedFor)
	}
}

// Flush writes what was added.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.flush() // Health has it
}

// add encodes an event behind those that wait to be written.
func (l *Log) add(e Event) error {
	if l.closed {
		l.health.Lost++
		return &capability.Error{Kind: capability.Internal, Op: "write outcome log", Target: l.dir, Err: fs.ErrClosed, Fix: "open the log again"}
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Round(0)
	line, err := encode(l.line[:0], e)
	if err != nil {
		l.health.Lost++
		return l.failed(fmt.Errorf("encode %s event: %w", e.Kind, err))
	}
	if l.line = line; cap(line) > mostAddedBytes {
		l.line = nil // of a large event; the next one is small
	}
	if l.count > 0 && int64(len(l.added)+len(line)) > l.cfg.MaxBytes {
		_ = l.flush() // together they have no place in one file
	}
	l.added = append(l.added, line...)
	l.count++
	return nil
}

// flush writes what was added.
func (l *Log) flush() error {
	if l.count == 0 {
		return nil
	}
	n, err := l.count, l.write(l.added)
	l.count, l.added = 0, l.added[:0]
	if cap(l.added) > 2*mostAddedBytes {
		l.added = nil
	}
	if err != nil {
		l.health.Lost += n
		return l.failed(err)
	}
	l.health.Written += n
	l.health.Error = ""
	return nil
}

func (l *Log) write(lines []byte) error {
	if err := l.ready(int64(len(lines))); err != nil {
		return err
	}
	n, err := l.file.Write(lines)
	l.size += int64(n)
	if err != nil {
		// The next open of the file ends the half-written line.
		l.drop()
		return err
	}
	if info, err := l.file.Stat(); err == nil {
		l.size = info.Size() // others write too
	}
	return nil
}

// ready has a file open that takes n more bytes.
func (l *Log) ready(n int64) error {
	now := time.Now()
	if l.file == nil && now.Before(l.retry) {
		return errors.New(l.health.Error)
	}
	if l.file != nil && now.Sub(l.looked).Abs() >= lookAgain {
		l.looked = now
		if !l.current() {
			l.drop()
		}
	}
	if l.file != nil && (l.size == 0 || l.size+n <= l.cfg.MaxBytes) {
		return nil
	}
	return l.next(n)
}

// current reports whether the open file is still in the folder.
func (l *Log) current() bool {
	here, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(l.file.Name())
	return err == nil && os.SameFile(here, there)
}

// next opens the newest file, or begins one when that is full. Two processes
// that begin one at the same time open the same.
func (l *Log) next(n int64) error {
	l.drop()
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	files, err := logFiles(l.dir)
	if err != nil {
		return err
	}
	seq := uint64(1)
	if len(files) > 0 {
		seq = files[len(files)-1]
	}
	if err := l.open(seq); err != nil {
		return err
	}
	if l.size > 0 && l.size+n > l.cfg.MaxBytes {
		l.drop()
		seq++
		if err := l.open(seq); err != nil {
			return err
		}
	}
	for _, old := range files {
		if old+uint64(l.cfg.Keep) <= seq {
			os.Remove(logPath(l.dir, old)) // what cannot be removed now is tried at the next file
		}
	}
	return nil
}

func (l *Log) open(seq uint64) error {
	name := logPath(l.dir, seq)
	// A pipe would block, and a link could lead anywhere.
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; remove it", name)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size, l.looked = f, info.Size(), time.Now()
	last := []byte{'\n'}
	if l.size > 0 {
		if _, err := f.ReadAt(last, l.size-1); err != nil {
			l.drop()
			return err
		}
	}
	if last[0] != '\n' {
		// A line that a crash left half-written must not spoil the next one.
		if _, err := f.Write([]byte{'\n'}); err != nil {
			l.drop()
			return err
		}
		l.size++
	}
	return nil
}

func (l *Log) drop() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// failed remembers a failure and puts it into the caller's words.
func (l *Log) failed(err error) error {
	now := time.Now()
	if l.file == nil && now.After(l.retry) {
		l.retry = now.Add(lookAgain)
	}
	l.health.Error, l.health.ErrorAt = err.Error(), now
	return &capability.Error{
		Kind: capability.Unavailable, Op: "write outcome log", Target: l.dir, Err: err,
		Fix: "make the folder writable or free space; what is shown goes on without being learned from",
	}
}

// Health says how writing went.
func (l *Log) Health() Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.flush()
	return l.health
}

// Close writes what was added and ends writing; Events can still be read. Closing
// again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.flush() // Health has it
	l.closed = true
	if l.later != nil {
		l.later.Stop()
	}
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Hash returns a short keyed hash of a message: equal messages of one folder hash
// alike, and without the folder's key a short message cannot be guessed from it.
func (l *Log) Hash(message string) string {
	mac := hmac.New(sha256.New, l.key)
	mac.Write([]byte(message))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

const keyLen = 32

// loadKey reads the folder's key or makes one. Where it cannot be kept, this
// process has one of its own.
func loadKey(dir string) []byte {
	name := filepath.Join(dir, "key")
	if key, err := os.ReadFile(name); err == nil && len(key) == keyLen {
		return key
	}
	own := make([]byte, keyLen)
	rand.Read(own)
	// What another process made first stays; what is damaged is replaced.
	if err := wholefile.Create(name, own); err != nil {
		if info, err := os.Stat(name); err == nil && info.Size() != keyLen {
			_ = wholefile.Write(name, own, 0o600) // what is there then counts
		}
	}
	if key, err := os.ReadFile(name); err == nil && len(key) == keyLen {
		return key
	}
	return own
}

func logPath(dir string, seq uint64) string {
	return filepath.Join(dir, fmt.Sprintf("outcomes-%06d.jsonl", seq))
}

// logFiles lists the numbers of a folder's files, oldest first. What is not a
// regular file is passed over.
func logFiles(dir string) ([]uint64, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, d := range list {
		number, ok := strings.CutPrefix(d.Name(), "outcomes-")
		number, ok2 := strings.CutSuffix(number, ".jsonl")
		if !ok || !ok2 || len(number) < 6 || len(number) > 18 || !d.Type().IsRegular() {
			continue
		}
		seq, err := strconv.ParseUint(number, 10, 64)
		if err == nil && logPath(dir, seq) == filepath.Join(dir, d.Name()) {
			out = append(out, seq)
		}
	}
	slices.Sort(out)
	return out, nil
}
