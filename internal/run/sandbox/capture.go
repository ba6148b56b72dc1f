package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"sync"
	"sync/atomic"
)

// A capture keeps the head and the tail of a stream, counts all of it, and
// passes all of it on. Its memory is bounded by what it keeps.
type capture struct {
	mu    sync.Mutex
	half  int
	head  []byte
	ring  []byte // the tail, written round and round once full
	next  int    // where the next byte of the tail goes
	bytes int64
	sum   hash.Hash // of all of it
}

func newCapture(keep int64) *capture {
	if keep < 0 {
		keep = 1 << 40 // no limit: all of it is head
		return &capture{half: int(keep), sum: sha256.New()}
	}
	return &capture{half: int(keep+1) / 2, sum: sha256.New()}
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.bytes += int64(n)
	c.sum.Write(p)
	if room := c.half - len(c.head); room > 0 {
		m := min(room, len(p))
		c.head = append(c.head, p[:m]...)
		p = p[m:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	for len(p) > 0 {
		if len(c.ring) < c.half {
			m := min(c.half-len(c.ring), len(p))
			c.ring = append(c.ring, p[:m]...)
			p = p[m:]
			continue
		}
		m := copy(c.ring[c.next:], p)
		c.next = (c.next + m) % c.half
		p = p[m:]
	}
	return n, nil
}

// output is what was kept so far, in buffers of its own.
func (c *capture) output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := Output{Bytes: c.bytes, SHA256: hex.EncodeToString(c.sum.Sum(nil)), Head: append([]byte(nil), c.head...)}
	o.Tail = append(o.Tail, c.ring[c.next:]...)
	o.Tail = append(o.Tail, c.ring[:c.next]...)
	return o
}

// A drain copies a stream to its capture and its writers until it ends.
type drain struct {
	from  io.Reader
	kept  *capture
	to    []io.Writer
	total *atomic.Int64 // of both streams
	stop  int64         // total at which over is called; <= 0 never
	over  func()
}

// buffers are what streams are read into: large for floods, and so not made
// again for each of the many that say little.
var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// run begins with a small one: most say little, and some for a long time.
func (d *drain) run() {
	buf := make([]byte, 4<<10)
	for large := false; ; {
		n, err := d.from.Read(buf)
		if n > 0 {
			d.Write(buf[:n])
		}
		if err != nil {
			return
		}
		if n == len(buf) && !large {
			b := buffers.Get().(*[128 << 10]byte)
			defer buffers.Put(b)
			buf, large = b[:], true
		}
	}
}

// Write takes one piece of the stream. It does not fail.
func (d *drain) Write(p []byte) (int, error) {
	d.kept.Write(p)
	for i, w := range d.to {
		if w == nil {
			continue
		}
		if _, err := w.Write(p); err != nil {
			d.to[i] = nil
		}
	}
	if t := d.total.Add(int64(len(p))); d.stop > 0 && t > d.stop {
		d.over()
	}
	return len(p), nil
}

// A shared writer lets two streams write to one place, a piece at a time.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
