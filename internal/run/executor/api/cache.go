package api

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A cache keeps answers to GET requests and to queries of GraphQL as HTTP allows a
// private cache to. An
// entry belongs to one principal, one set of secrets and one request with all of
// its headers, so no caller is given what another was told. Its users hold
// Executor.mu.
type cache struct {
	by    map[cacheKey]*entry
	bytes int
}

type cacheKey [sha256.Size]byte

const (
	mostCached   = 32 << 20 // bytes of all answers
	largestEntry = 4 << 20
)

type entry struct {
	answer *answer
	host   string
	until  time.Time // fresh before then
	etag   string
	since  string // Last-Modified
}

func newCache() cache { return cache{by: map[cacheKey]*entry{}} }

func (n *entry) fresh(now time.Time) bool { return now.Before(n.until) }

// ask makes a request conditional.
func (n *entry) ask(h http.Header) {
	if n.etag != "" && h.Get("If-None-Match") == "" {
		h.Set("If-None-Match", n.etag)
	}
	if n.since != "" && n.etag == "" && h.Get("If-Modified-Since") == "" {
		h.Set("If-Modified-Since", n.since)
	}
}

// at returns the answer for an address; a copy, because pages are added to it.
func (a *answer) at(u *url.URL) *answer {
	out := *a
	out.url = u
	return &out
}

// remembered returns what is known of a request, or nil.
func (x *exchange) remembered(u *url.URL) *entry {
	x.mu.Lock()
	none := len(x.cache.by) == 0
	x.mu.Unlock()
	if none || !x.cacheable() {
		return nil
	}
	key := x.cacheKey(u)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cache.by[key]
}

func (x *exchange) cacheable() bool {
	return x.plan.method == http.MethodGet && x.plan.body == nil || x.plan.query()
}

func (x *exchange) cacheKey(u *url.URL) cacheKey {
	var secrets []string
	for _, a := range x.plan.op.auth {
		v, _ := x.secret(a.Secret)
		secrets = append(secrets, a.Secret, v)
	}
	raw, _ := json.Marshal([]any{x.call.Principal, u.String(), x.plan.header, x.plan.cookies, secrets, x.plan.body}) // plain data
	return sha256.Sum256(raw)
}

// remember keeps an answer where it says that it may be kept. A request that
// changes something makes what is known of its host old.
func (x *exchange) remember(u *url.URL, a *answer) {
	if !x.plan.safe() {
		x.mu.Lock()
		defer x.mu.Unlock()
		for k, n := range x.cache.by {
			if n.host == x.plan.url.Host {
				x.drop(k)
			}
		}
		return
	}
	if !x.cacheable() || a.status != http.StatusOK || a.truncated || a.broken != "" || len(a.body) > largestEntry {
		return
	}
	n := newEntry(a, time.Now())
	if g := x.plan.op.graph; g != nil && n != nil {
		n.etag, n.since = "", "" // a POST is not asked again whether it changed
		if n.until.IsZero() || !g.faultless(a) {
			return
		}
	}
	if n == nil {
		return
	}
	key := x.cacheKey(u)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(key)
	if x.cache.bytes+len(a.body) > mostCached {
		x.cache = newCache()
	}
	x.cache.by[key] = n
	x.cache.bytes += len(a.body)
}

// drop is called with mu held.
func (x *exchange) drop(key cacheKey) {
	if n, ok := x.cache.by[key]; ok {
		x.cache.bytes -= len(n.answer.body)
		delete(x.cache.by, key)
	}
}

// newEntry reads what an answer says about keeping it; nil: it may not be.
func newEntry(a *answer, now time.Time) *entry {
	n := &entry{answer: a, host: a.url.Host, etag: a.header.Get("ETag"), since: a.header.Get("Last-Modified")}
	if strings.TrimSpace(a.header.Get("Vary")) == "*" {
		return nil
	}
	stale := false
	for _, word := range strings.Split(strings.Join(a.header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(word)), "=")
		switch name {
		case "no-store":
			return nil
		case "no-cache":
			stale = true
		case "max-age":
			if sec, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); err == nil && sec > 0 {
				age, _ := strconv.ParseInt(a.header.Get("Age"), 10, 32)
				n.until = now.Add(time.Duration(sec-max(0, age)) * time.Second)
			}
		}
	}
	if stale {
		n.until = time.Time{}
	}
	if n.until.IsZero() && n.etag == "" && n.since == "" {
		return nil
	}
	return n
}

// renew takes over what a 304 says.
func (x *exchange) renew(u *url.URL, have *entry, a *answer) *answer {
	whole := *have.answer
	whole.header = have.answer.header.Clone()
	for name, values := range a.header {
		if name != "Content-Length" && name != "Content-Encoding" && name != "Content-Type" {
			whole.header[name] = values
		}
	}
	x.remember(u, &whole)
	return &whole
}
