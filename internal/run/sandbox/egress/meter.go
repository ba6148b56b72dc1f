package egress

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Reasons for a refusal that callers tell apart.
const (
	NotListed = "the host is not on the list of allowed hosts"
	Spent     = "the byte limit of the run is reached"
)

var errSpent = errors.New(Spent)

// A meter is what all connections of a proxy share: bytes left and a pace.
type meter struct {
	mu      sync.Mutex
	left    int64
	bounded bool
	rate    int64     // bytes a second; 0: no pace
	free    time.Time // when the next byte may pass
}

// piece is how many bytes pass at a time, so that a pace is felt evenly.
const piece = 16 << 10

// take asks to pass n bytes, waits for their turn, and says how many may pass.
func (m *meter) take(ctx context.Context, n int) (int, error) {
	m.mu.Lock()
	n = min(n, piece)
	if m.bounded {
		n = int(min(int64(n), m.left))
		m.left -= int64(n)
	}
	var wait time.Duration
	if m.rate > 0 && n > 0 {
		now := time.Now()
		if m.free.Before(now) {
			m.free = now
		}
		wait = m.free.Sub(now)
		m.free = m.free.Add(time.Duration(n) * time.Second / time.Duration(m.rate))
	}
	m.mu.Unlock()
	if n == 0 {
		return 0, errSpent
	}
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return n, nil
}

// giveBack returns what was taken and did not pass.
func (m *meter) giveBack(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bounded {
		m.left += int64(n)
	}
}

// A metered connection counts, bounds and paces what passes, and reports it
// once when closed.
type metered struct {
	net.Conn
	ctx    context.Context
	meter  *meter
	idle   time.Duration
	report func(Connection)

	mu   sync.Mutex
	c    Connection
	done bool
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.meter.take(m.ctx, len(p))
	if err != nil {
		m.note(err)
		return 0, err
	}
	m.SetReadDeadline(time.Now().Add(m.idle))
	got, err := m.Conn.Read(p[:n])
	m.meter.giveBack(n - got)
	m.mu.Lock()
	m.c.Down += int64(got)
	m.mu.Unlock()
	return got, err
}

func (m *metered) Write(p []byte) (int, error) {
	sum := 0
	for len(p) > 0 {
		n, err := m.meter.take(m.ctx, len(p))
		if err != nil {
			m.note(err)
			return sum, err
		}
		m.SetWriteDeadline(time.Now().Add(m.idle))
		// They count before they go: the answer may come, and all be closed
		// and reported, before this goroutine is on again.
		m.sent(n)
		put, err := m.Conn.Write(p[:n])
		m.sent(put - n)
		sum += put
		if err != nil {
			return sum, err
		}
		p = p[put:]
	}
	return sum, nil
}

func (m *metered) sent(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.c.Up += int64(n)
}

func (m *metered) note(err error) {
	if errors.Is(err, errSpent) {
		m.cut(err.Error())
	}
}

// cut ends the connection for a reason that will be reported.
func (m *metered) cut(why string) {
	m.mu.Lock()
	if m.c.Refused == "" {
		m.c.Refused = why
	}
	m.mu.Unlock()
	m.Close()
}

func (m *metered) closeWrite() {
	if c, ok := m.Conn.(*net.TCPConn); ok {
		c.CloseWrite()
	}
}

func (m *metered) Close() error {
	err := m.Conn.Close()
	m.mu.Lock()
	c, first := m.c, !m.done
	m.done = true
	m.mu.Unlock()
	if first {
		c.Took = time.Since(c.Begun)
		m.report(c)
	}
	return err
}
