// Package mcpsession holds the sessions of MCP clients over HTTP, of the protocol
// before 2026-07-28: how many there are, how long one may be idle, and the calls in
// them that are made past the SDK.
package mcpsession

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/serve/refusal"
)

// Header names a session in requests.
const Header = "Mcp-Session-Id"

// Sessions are the sessions over HTTP. There are so many at most, a principal has a
// share of them, and one that is not used for a while is closed.
type Sessions struct {
	most, share int
	idle        time.Duration

	mu sync.Mutex
	by map[string]*Session
}

// New returns room for at most so many sessions, each of which may be idle for so long.
// One principal gets an eighth of them, so that it takes none from the others.
func New(most int, idle time.Duration) *Sessions {
	return &Sessions{most: most, share: max(2, most/8), idle: idle, by: map[string]*Session{}}
}

// A Session is one client's.
type Session struct {
	SDK *mcp.ServerSession

	id, key string

	// The lock of Sessions guards these.
	busy  int // requests that run, streams that are open
	last  time.Time
	timer *time.Timer

	mu        sync.Mutex
	over      bool
	calls     map[string]context.CancelFunc     // that are made past the SDK, by the id of the request
	questions map[string]chan *jsonrpc.Response // of these calls to the client
	streams   map[string]*Stream                // of their events that go on, by name
}

// Arrive adds a session. key identifies the principal that it belongs to.
func (s *Sessions) Arrive(id, key string, ss *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &Session{SDK: ss, id: id, key: key, last: time.Now()}
	one.timer = time.AfterFunc(s.idle, func() { ss.Close() })
	s.by[id] = one
}

// Depart removes a session and ends its calls.
func (s *Sessions) Depart(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.by[id]; one != nil {
		one.timer.Stop()
		one.end()
		delete(s.by, id)
	}
}

// Find returns the session with this id if it belongs to the principal with this key,
// and nil otherwise.
func (s *Sessions) Find(id, key string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.by[id]; one != nil && one.key == key {
		return one
	}
	return nil
}

// Serve passes a request on to the SDK, if there is room for it.
func (s *Sessions) Serve(w http.ResponseWriter, r *http.Request, key string, h http.Handler) {
	id := r.Header.Get(Header)
	if id == "" && r.Method == http.MethodPost {
		if full := s.room(key); full != "" {
			w.Header().Set("Retry-After", "60")
			refusal.Write(w, http.StatusServiceUnavailable, full+"; end some, or try again later")
			return
		}
	}
	if s.begin(id) {
		defer s.finish(id)
	}
	if one := s.Find(id, key); one != nil && one.resume(w, r) {
		return
	}
	refusal.Serve(w, r, h)
}

// room makes sure of room for one more session of a principal, or says why there is
// none. It closes the session that has been idle for longest: of this principal if it
// has its share, and else of the one that has the most.
func (s *Sessions) room(key string) (full string) {
	s.mu.Lock()
	have := map[string]int{}
	for _, one := range s.by {
		have[one.key]++
	}
	from := key
	switch {
	case have[key] >= s.share:
		full = fmt.Sprintf("this caller has %d sessions in use, and that is the most for one", have[key])
	case len(s.by) < s.most:
		s.mu.Unlock()
		return ""
	default:
		for k, n := range have {
			if n > have[from] {
				from = k
			}
		}
		full = fmt.Sprintf("%d sessions are in use, and that is the most", s.most)
	}
	oldest := s.idlest(from)
	if oldest == nil && have[key] < s.share {
		oldest = s.idlest("")
	}
	s.mu.Unlock()
	if oldest == nil {
		return full
	}
	oldest.SDK.Close()
	return ""
}

// idlest returns the session of a principal, or with "" of any, that has been idle for
// longest. The lock is held.
func (s *Sessions) idlest(key string) *Session {
	var oldest *Session
	for _, one := range s.by {
		if one.busy == 0 && (key == "" || one.key == key) && (oldest == nil || one.last.Before(oldest.last)) {
			oldest = one
		}
	}
	return oldest
}

func (s *Sessions) begin(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.by[id]
	if one == nil {
		return false
	}
	one.busy++
	one.timer.Stop()
	return true
}

func (s *Sessions) finish(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.by[id]; one != nil {
		one.last = time.Now()
		if one.busy--; one.busy == 0 {
			one.timer.Reset(s.idle)
		}
	}
}

// Begin notes a call that begins in a session. It reports false if the session is over,
// and twice if a call with the same id runs. Until [Sessions.Finish] the session is not
// idle.
func (s *Sessions) Begin(one *Session, call string, cancel context.CancelFunc) (began, twice bool) {
	if began, twice = one.take(call, cancel); !began {
		return began, twice
	}
	if !s.begin(one.id) {
		one.drop(call)
		return false, false
	}
	return true, false
}

// Finish notes the end of a call that has begun.
func (s *Sessions) Finish(one *Session, call string) {
	one.drop(call)
	s.finish(one.id)
}
