// Package provider holds what the vendors' protocols have in common: a POST
// that does not leak keys, an answer that streams as server-sent events, and
// retries that never take back a chunk. Each vendor's protocol has its own
// folder and implements [llm.Model] with [Generate], [Post] and [Events].
//
// Everything that a server sends is untrusted: its sizes are bounded, and its
// words are cleaned before they stand in an error.
package provider

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"ken/llm"
)

// A Config says where a model is and how it is called. It is a value: wires keep
// a copy. The caller must not change its header afterwards.
type Config struct {
	Name      string // in errors: "openai"
	BaseURL   string // without a slash at its end: https://api.anthropic.com
	Model     string
	Key       func(context.Context) (string, error) // nil: none is sent
	Header    http.Header                           // besides; it wins over the wire's own
	Client    *http.Client                          // nil: a shared one with limits on dialling, none on the whole
	Retry     Retry
	MaxTokens int            // of an answer, where the request says none
	Notify    func(Retrying) // called before each wait; may be nil

	// Silence is how long a server may send nothing, before its answer and
	// within it. Zero means 10 minutes.
	Silence time.Duration
}

// Secret asks for the key. Without one it is empty; that it could not be had is
// an [llm.Auth] error.
func (c Config) Secret(ctx context.Context) (string, error) {
	if c.Key == nil {
		return "", nil
	}
	key, err := c.Key(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return "", c.ended(ctx)
		}
		return "", &llm.Error{
			Kind: llm.Auth, Provider: c.Name, Model: c.Model, Err: err,
			Fix: "store a key for " + c.Name,
		}
	}
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", &llm.Error{
			Kind: llm.Auth, Provider: c.Name, Model: c.Model,
			Message: "the key has characters that no key has",
			Fix:     "store the key of " + c.Name + " again, on one line",
		}
	}
	return key, nil
}

// silence is the limit of [Config.Silence].
func (c Config) silence() time.Duration {
	if c.Silence > 0 {
		return c.Silence
	}
	return 10 * time.Minute
}

// client returns a copy of the configured client that follows redirects only as
// [stay] allows.
func (c Config) client() *http.Client {
	from := c.Client
	if from == nil {
		from = shared()
	}
	client := *from
	client.CheckRedirect = stay
	return &client
}

// shared is one client for everybody, so that connections are used again.
var shared = sync.OnceValue(func() *http.Client {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}}
})

// stay follows a redirect only where it stays with the same server and the same
// method: the key and the conversation are for no other.
func stay(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || req.Method != first.Method ||
		req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}
