package result

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/objectstore"
	"ken/internal/store"
)

// Config says where results are kept and for how long. Only Dir is required.
type Config struct {
	// Dir is made when it is missing. It must be the user's own, closed to
	// others.
	Dir string

	// Keep is how long a result can be read. Zero: 24 hours.
	Keep time.Duration

	// PerSession is how many results of one session are kept; the oldest go
	// first. Zero: 64.
	PerSession int

	// MaxBytes bounds the text of one result. Zero: 64 MiB.
	MaxBytes int64

	// MaxTotal bounds all texts together; the oldest go first. It is applied
	// by [Store.Sweep], which a Store also runs by itself now and then, so
	// that each process can exceed it by about a sixteenth. Zero: 2 GiB.
	MaxTotal int64

	// Shared is the store by which several replicas share results; then Dir holds
	// copies. PerSession applies there too, and MaxTotal does not. Nil: the folder is
	// all there is.
	Shared func() (*store.Store, error)

	// Objects has the texts of shared results that are longer than 32 KiB. Nil: Shared
	// has them. It needs Shared, which has the descriptions.
	Objects *objectstore.Bucket
}

const (
	// Whole is how many characters of a result can be read as one piece. A
	// longer one is spilled: it is read by ranges and searches only.
	Whole = 1_000_000

	inline    = 32 << 10 // bytes that live in the file that describes them
	tailBytes = 64 << 10 // of the end of an output that is too long
	gapBytes  = 128      // the line that says what is missing
	sweepEach = 256      // results
	pruneEach = 16
)

// A Scope is who may read a result. A Principal without an ID is no one and
// has none.
type Scope struct {
	Tenant, Principal, Session string
}

// ScopeOf returns the scope of a call.
func ScopeOf(call capability.Call) Scope {
	return Scope{Tenant: call.Principal.Tenant, Principal: call.Principal.ID, Session: call.Session}
}

// folder names the scope's folder. The length before each field keeps
// neighbours apart.
func (s Scope) folder() string {
	h := sha256.New()
	for _, field := range []string{s.Tenant, s.Principal, s.Session} {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// A Store keeps results. It is safe for any number of goroutines, and any
// number of Stores may share one folder.
type Store struct {
	cfg  Config
	root *os.Root

	last     atomic.Int64 // time of the newest handle
	sweeping sync.Mutex
	written  atomic.Int64 // bytes since the last sweep
	made     atomic.Int64 // results since the last sweep
	objects  time.Time    // when objects were last swept; sweeping is held for it
}

// Open makes the folder when it is missing and opens it.
func Open(cfg Config) (*Store, error) {
	if cfg.Dir == "" {
		return nil, refuse(capability.Invalid, "open results", errors.New("missing folder"), "set Config.Dir")
	}
	if cfg.Keep <= 0 {
		cfg.Keep = 24 * time.Hour
	}
	if cfg.PerSession <= 0 {
		cfg.PerSession = 64
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 64 << 20
	}
	cfg.MaxBytes = max(cfg.MaxBytes, 2*tailBytes)
	if cfg.MaxTotal <= 0 {
		cfg.MaxTotal = 2 << 30
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, refuse(capability.Unavailable, "open results", err, "make the folder writable")
	}
	if err := closed(cfg.Dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, refuse(capability.Unavailable, "open results", err, "make the folder readable")
	}
	return &Store{cfg: cfg, root: root}, nil
}

// Close releases the folder. Writers and entries that are open stay usable.
func (s *Store) Close() error { return s.root.Close() }

// closed refuses a folder that others may look into.
func closed(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return refuse(capability.Unavailable, "open results", err, "make the folder readable")
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return refuse(capability.Denied, "open results", fmt.Errorf("%s has mode %04o: others can see it", dir, mode), "chmod 700 "+dir)
	}
	return nil
}

func refuse(kind capability.ErrorKind, op string, err error, fix string) error {
	return &capability.Error{Kind: kind, Op: op, Err: err, Fix: fix}
}

// A handle is "r", a time in nanoseconds, which only sorts, and 128 random
// bits, all in base 32.
const (
	handleBytes  = 8 + 16
	handleLength = 1 + (handleBytes*8+4)/5
)

var handleText = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// newHandle makes a handle later than every other of this Store.
func (s *Store) newHandle() (string, time.Time) {
	now := time.Now()
	for {
		last := s.last.Load()
		ns := max(now.UnixNano(), last+1)
		if s.last.CompareAndSwap(last, ns) {
			var raw [handleBytes]byte
			binary.BigEndian.PutUint64(raw[:8], uint64(ns))
			rand.Read(raw[8:]) // never fails
			return "r" + handleText.EncodeToString(raw[:]), time.Unix(0, ns).UTC()
		}
	}
}

// madeAt returns the time within a handle, and whether it is one.
func madeAt(handle string) (time.Time, bool) {
	if len(handle) != handleLength || handle[0] != 'r' {
		return time.Time{}, false
	}
	raw, err := handleText.DecodeString(handle[1:])
	// One spelling only: the unused bits at the end must be what we write.
	if err != nil || len(raw) != handleBytes || handleText.EncodeToString(raw) != handle[1:] {
		return time.Time{}, false
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(raw[:8]))).UTC(), true
}

func (s *Store) expired(handle string, now time.Time) bool {
	made, ok := madeAt(handle)
	return !ok || now.Sub(made) >= s.cfg.Keep
}

// folder opens the folder of a scope.
func (s *Store) folder(scope Scope, create bool) (*os.Root, error) {
	if scope.Principal == "" {
		return nil, refuse(capability.Denied, "open results", errors.New("missing principal"), "name a principal")
	}
	name := scope.folder()
	dir, err := s.root.OpenRoot(name)
	// A sweep may take the folder away again while it is empty.
	for tries := 0; create && errors.Is(err, fs.ErrNotExist) && tries < 3; tries++ {
		if err := s.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, refuse(capability.Unavailable, "keep result", err, "make "+s.cfg.Dir+" writable")
		}
		dir, err = s.root.OpenRoot(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing(s.cfg.Keep)
	case err != nil:
		return nil, refuse(capability.Unavailable, "open results", err, "see that "+filepath.Join(s.cfg.Dir, name)+" is a folder of yours")
	}
	return dir, nil
}

// missing is the one answer for a handle that is wrong, someone else's, gone
// or never was.
func missing(keep time.Duration) error {
	return refuse(capability.NotFound, "read result", errors.New("result not found"),
		fmt.Sprintf("results are kept for %s and read only in their session (results.keep); run the command again", duration.Text(keep)))
}

// handlesIn lists the results in a folder, oldest first.
func handlesIn(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	var out []string
	for _, e := range entries {
		if _, ok := madeAt(e.Name()); ok {
			out = append(out, e.Name())
		}
	}
	return sorted(out), err
}

// baseOf takes the ending off a file's name.
func baseOf(name string) (handle, ending string) {
	handle, ending, _ = strings.Cut(name, ".")
	return handle, ending
}
