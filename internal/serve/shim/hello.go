package shim

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"unicode/utf8"
)

// Protocol is the version of what the shim and the daemon say to each other.
// Before MCP's own bytes there are three lines of JSON:
//
//	daemon → shim   a Greeting, as soon as it has seen who is calling
//	shim → daemon   a Hello, and right behind it what the client writes
//	daemon → shim   a Reply, and right behind it what the server writes
//
// From there on both directions are the client's and the server's. Either
// side closes its own direction when its source ends. After a Hello that asks
// the daemon to retire, the Reply is the last thing said; that much every
// version understands.
const Protocol = 1

// Bounds of the lines, their ends included.
const (
	MaxHello    = 256 << 10
	MaxGreeting = 4 << 10
	MaxReply    = 16 << 10
)

// What a Hello can ask for.
const (
	DoServe  = "serve"
	DoRetire = "retire" // stop accepting, let the socket go, finish the clients
)

// ErrAbsent says that no daemon listens, or that it is going.
var ErrAbsent = errors.New("daemon not running")

// A Greeting says which daemon it is.
type Greeting struct {
	V       int    `json:"v"`
	Build   string `json:"build"`             // see Build
	Made    int64  `json:"made"`              // see Build
	Version string `json:"version,omitempty"` // in words for people
	PID     int    `json:"pid"`
	Clients int    `json:"clients"`         // that are served now
	Stays   bool   `json:"stays,omitempty"` // it is ken serve, which goes on without clients

	// Error says why this caller is not served; the connection ends.
	Error string `json:"error,omitempty"`
}

// A Hello says who calls, from where, and with what.
type Hello struct {
	V     int    `json:"v"`
	Do    string `json:"do"`
	Build string `json:"build,omitempty"`
	Made  int64  `json:"made,omitempty"`
	PID   int    `json:"pid,omitempty"`

	// Dir is the client's working directory, absolute: the workspace, and
	// where relative names in Args and Env begin.
	Dir string `json:"cwd,omitempty"`

	// Args are the flags of ken mcp as they were given.
	Args []string `json:"args,omitempty"`

	// Env is what the daemon needs to know of the client's environment: HOME,
	// PATH, and what begins with KEN_ or XDG_.
	Env map[string]string `json:"env,omitempty"`
}

// Getenv looks a variable up in what the client sent.
func (h Hello) Getenv(name string) string { return h.Env[name] }

// A Reply says whether the client is served.
type Reply struct {
	OK    bool   `json:"ok,omitempty"`
	Error string `json:"error,omitempty"`
}

// forwarded selects the variables of a Hello. What JSON cannot say is left
// out and named.
func forwarded(environ []string) (env map[string]string, lost []string) {
	env = map[string]string{}
	for _, e := range environ {
		n, value, ok := bytes.Cut([]byte(e), []byte("="))
		name := string(n)
		if !ok || name != "HOME" && name != "PATH" && !bytes.HasPrefix(n, []byte("KEN_")) && !bytes.HasPrefix(n, []byte("XDG_")) {
			continue
		}
		if !utf8.ValidString(e) {
			lost = append(lost, string(bytes.ToValidUTF8(n, []byte("?"))))
			continue
		}
		env[name] = string(value)
	}
	return env, lost
}

// newHello makes the line that asks for service.
func newHello(dir string, args, environ []string) (line []byte, lost []string, err error) {
	for _, s := range append([]string{dir}, args...) {
		if !utf8.ValidString(s) {
			return nil, nil, errors.New("tell the daemon about " + strconv.Quote(s) + ": it is not UTF-8; use --standalone")
		}
	}
	h := Hello{V: Protocol, Do: DoServe, PID: os.Getpid(), Dir: dir, Args: args}
	h.Build, h.Made = Build()
	h.Env, lost = forwarded(environ)
	if line = h.line(); len(line) > MaxHello {
		return nil, nil, errors.New("tell the daemon about this client: flags and environment have " + strconv.Itoa(len(line)) + " bytes, over " + strconv.Itoa(MaxHello) +
			"; make PATH or a KEN_ or XDG_ variable shorter, or use --standalone")
	}
	return line, lost, nil
}
