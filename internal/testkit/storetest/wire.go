//go:build unix

package storetest

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Wire stands between a store and its PostgreSQL server. It counts how often the
// server answered, and can slow it down or cut it off.
type Wire struct {
	Address string // of the same store, by this way

	trips atomic.Int64
	about atomic.Int64 // those that concern words
	bytes atomic.Int64
	words [][]byte
	slow  atomic.Int64 // nanoseconds before each answer
	down  atomic.Bool
	next  atomic.Pointer[moment]
	mu    sync.Mutex
	open  map[net.Conn]bool
}

// A moment is when all connections are to be cut.
type moment struct {
	text  []byte
	after bool // once the server answers
	down  bool // and no new one is to begin
}

// CutBefore cuts all connections as soon as a client sends text, before the server
// has it.
func (w *Wire) CutBefore(text string) { w.next.Store(&moment{text: []byte(text)}) }

// CutAfter cuts all connections as soon as the server answers to text. With down, no
// new one begins until Up.
func (w *Wire) CutAfter(text string, down bool) {
	w.next.Store(&moment{text: []byte(text), after: true, down: down})
}

// NewWire returns a way to the server of an address, whose host is a folder with a Unix
// socket. Trips whose requests have one of some words are counted apart.
func NewWire(t testing.TB, address string, words ...string) *Wire {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	target := filepath.Join(q.Get("host"), ".s.PGSQL.5432")
	dir, err := os.MkdirTemp("", "kenwire") // a short path: the socket's name has a limit
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{open: map[net.Conn]bool{}}
	for _, word := range words {
		w.words = append(w.words, []byte(word))
	}
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	w.Address = u.String()
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if w.down.Load() {
				c.Close()
				continue
			}
			done.Go(func() { w.carry(c, target) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.Cut()
		done.Wait()
		os.RemoveAll(dir)
	})
	return w
}

// Trips returns how many times the server was ready for the next request: one for each
// time that a client waited for it.
func (w *Wire) Trips() int64 { return w.trips.Load() }

// About is like Trips for requests with one of the words.
func (w *Wire) About() int64 { return w.about.Load() }

// Bytes returns how much went to the server and came back.
func (w *Wire) Bytes() int64 { return w.bytes.Load() }

// Slow makes every answer take longer.
func (w *Wire) Slow(by time.Duration) { w.slow.Store(int64(by)) }

// Cut ends all connections; new ones can be had at once, unless Down was called.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Close()
	}
}

// Down cuts all connections and lets no new one begin until Up.
func (w *Wire) Down() { w.down.Store(true); w.Cut() }

// Up is Down's other end.
func (w *Wire) Up() { w.down.Store(false) }

func (w *Wire) hold(c net.Conn) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[c] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, c)
		c.Close()
	}
}

func (w *Wire) carry(client net.Conn, target string) {
	defer w.hold(client)()
	server, err := net.Dial("unix", target)
	if err != nil {
		return
	}
	defer w.hold(server)()
	var said atomic.Bool            // one of the words, since the last answer
	var mute atomic.Pointer[moment] // the next answer does not get through
	go func() {
		defer server.Close()
		const longest = 64 // of a word
		buf := make([]byte, longest+1<<16)
		for end := 0; ; { // it ends when either side does
			n, err := client.Read(buf[end:])
			if err != nil {
				return
			}
			w.bytes.Add(int64(n))
			if slices.ContainsFunc(w.words, func(word []byte) bool { return bytes.Contains(buf[:end+n], word) }) {
				said.Store(true)
				clear(buf[:end]) // it was counted
			}
			if m := w.next.Load(); m != nil && bytes.Contains(buf[:end+n], m.text) && w.next.CompareAndSwap(m, nil) {
				if !m.after {
					w.Cut()
					return
				}
				mute.Store(m)
			}
			if _, err := server.Write(buf[end : end+n]); err != nil {
				return
			}
			kept := min(longest, end+n)
			copy(buf, buf[end+n-kept:end+n])
			end = kept
			if said.Load() {
				end = 0
			}
		}
	}()
	head := make([]byte, 5) // the kind of a message, and its length without that
	for {
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		if m := mute.Load(); m != nil {
			w.down.Store(m.down)
			w.Cut()
			return
		}
		const ready = 'Z'
		if head[0] == ready {
			w.trips.Add(1)
			if said.Swap(false) {
				w.about.Add(1)
			}
			time.Sleep(time.Duration(w.slow.Load()))
		}
		w.bytes.Add(int64(binary.BigEndian.Uint32(head[1:])) + 1)
		if _, err := client.Write(head); err != nil {
			return
		}
		if _, err := io.CopyN(client, server, int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return
		}
	}
}
