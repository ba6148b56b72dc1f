package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"ken/capability"
)

// intentLife is how long an intent that was selected lasts, where there are no
// turns to end it.
const intentLife = 10 * time.Minute

// A session is one client's conversation. Of a client without sessions
// (2026-07-28 over HTTP) it is all that the client does.
type session struct {
	id string

	mu      sync.Mutex
	client  string
	surface string
	apps    bool // the client shows pages of servers (MCP Apps)
	intent  string
	until   time.Time // of the intent
	logging bool      // the client has asked for log lines
	used    time.Time // of a session in a lobby
	running int       // calls
	told    [kinds]string
	stops   map[string]func() // subscriptions by address
	links   map[string]string // addresses in results, with the server they are of
	opened  map[string]bool   // servers whose pages the client has read
}

// maxLinks is how many addresses in results are remembered.
const maxLinks = 256

// link remembers which server an address in a result is of, so that it can be
// read though no list has it.
func (s *session) link(uri, server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links == nil || len(s.links) >= maxLinks {
		s.links = map[string]string{}
	}
	s.links[uri] = server
}

func (s *session) linked(uri string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[uri]
}

// open notes that the client has read a page of a server.
func (s *session) open(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil {
		s.opened = map[string]bool{}
	}
	s.opened[server] = true
}

func (s *session) hasOpened(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[server]
}

// What lists there are, and their changes.
type kind int

const (
	tools kind = iota
	prompts
	resources
	kinds
)

// meet notes who the client is, and what it is shown.
func (s *session) meet(client, surface string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.surface == "" || s.client != client {
		s.client, s.surface = client, surface
	}
}

// clientName returns what the client calls itself.
func (s *session) clientName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// logs reports whether the client has asked for log lines.
func (s *session) logs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logging
}

// maxRunning is how many calls of one session run at once. A client that does
// not read its answers holds no more than these.
const maxRunning = 64

// enter begins a call, unless there are too many.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= maxRunning {
		return false
	}
	s.running++
	return true
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// shown returns the surface of the session; empty: none was chosen yet.
func (s *session) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return surfaceOf(s.surface)
}

// menu names the menu of the session: its surface, whether the client wants text
// only, and whether it shows pages of servers.
func (s *session) menu() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apps && s.surface != "" {
		return s.surface + withApps
	}
	return s.surface
}

// declare notes whether the client shows pages of servers.
func (s *session) declare(apps bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps = apps
}

// active returns the intent in force.
func (s *session) active(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.intent != "" && !now.Before(s.until) {
		s.intent = ""
	}
	return s.intent
}

func (s *session) selectIntent(name string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intent, s.until = name, now.Add(intentLife)
}

// saw notes which list the client has.
func (s *session) saw(k kind, hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[k] = hash
}

// behind reports whether the client has a list that is no longer so.
func (s *session) behind(k kind, hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return hash != "" && s.told[k] != "" && s.told[k] != hash
}

// subscribed keeps what ends a subscription; what was there for the same
// address ends now.
func (s *session) subscribed(uri string, stop func()) {
	s.mu.Lock()
	if s.stops == nil {
		s.stops = map[string]func(){}
	}
	old := s.stops[uri]
	s.stops[uri] = stop
	if stop == nil {
		delete(s.stops, uri)
	}
	s.mu.Unlock()
	if old != nil {
		old()
	}
}

// end stops all that the session has going.
func (s *session) end() {
	s.mu.Lock()
	stops := s.stops
	s.stops = nil
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// maxLobby is how many clients without sessions are remembered.
const maxLobby = 4096

// A lobby remembers clients that have no sessions, by principal and name.
type lobby struct {
	mu sync.Mutex
	by map[string]*session
}

// find returns the session of a client. Its id is the same whenever the client
// comes, in any process; that of an agent, whose word is no person's, is another
// than that of another client of the same name, so that no consent for
// the one session counts for the other.
func (l *lobby) find(who capability.Principal, agent bool, client, surface string, now time.Time) *session {
	key := audienceKey(who) + "\x00" + client
	if agent {
		key = "agent\x00" + key
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.by[key]
	if s == nil {
		if l.by == nil {
			l.by = map[string]*session{}
		}
		if len(l.by) >= maxLobby {
			l.forget()
		}
		sum := sha256.Sum256([]byte(key))
		s = &session{id: "mcp-" + hex.EncodeToString(sum[:12])}
		s.meet(client, surface)
		l.by[key] = s
	}
	s.used = now
	return s
}

// forget drops the client that has been away for longest.
func (l *lobby) forget() {
	var oldest string
	for key, s := range l.by {
		if oldest == "" || s.used.Before(l.by[oldest].used) {
			oldest = key
		}
	}
	delete(l.by, oldest)
}

// audienceKey identifies the sessions that share a principal: its name, tenant
// and roles, and the agent if it has its own token.
func audienceKey(p capability.Principal) string {
	key := p.Tenant + "\x00" + p.ID + "\x00" + strings.Join(p.Roles, "\x00")
	if p.Agent != "" {
		key = "\x01" + p.Agent + "\x01" + key
	}
	return key
}
