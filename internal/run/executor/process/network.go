package process

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ken/internal/run/sandbox/egress"
)

// traffic counts what passed a proxy.
type traffic struct {
	made, refused, bytes atomic.Int64

	mu  sync.Mutex
	why []string // of the first few refusals
}

// mostReasons is how many refusals a result tells about.
const mostReasons = 5

func (t *traffic) add(c egress.Connection) {
	if c.Refused != "" {
		t.refused.Add(1)
		t.mu.Lock()
		if why := c.Host + ": " + c.Refused; len(t.why) < mostReasons && !slices.Contains(t.why, why) {
			t.why = append(t.why, why)
		}
		t.mu.Unlock()
	} else {
		t.made.Add(1)
	}
	t.bytes.Add(c.Up + c.Down)
}

// hosts finds the hosts that stand in arguments. What a program makes of its
// arguments it is unknown; the sandbox limits it, not this.
func hosts(argv []string) []string {
	var out []string
	for _, u := range urls(argv) {
		if h := strings.ToLower(u.Hostname()); !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// addresses returns them as a proxy allows them.
func addresses(argv []string) []string {
	var out []string
	for _, u := range urls(argv) {
		host := strings.ToLower(u.Hostname())
		if port := u.Port(); port != "" {
			host = net.JoinHostPort(host, port)
		}
		out = append(out, host)
	}
	return out
}

func urls(argv []string) []*url.URL {
	var out []*url.URL
	for _, arg := range argv[1:] {
		i := strings.Index(arg, "://")
		if i < 0 {
			continue
		}
		start := i
		for start > 0 && (arg[start-1] >= 'a' && arg[start-1] <= 'z' || arg[start-1] >= 'A' && arg[start-1] <= 'Z' || arg[start-1] == '+') {
			start--
		}
		// A star would be a pattern where a name is meant.
		if u, err := url.Parse(arg[start:]); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), "*") {
			out = append(out, u)
		}
	}
	return out
}
