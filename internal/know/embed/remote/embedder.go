// Package remote gets vectors from an embedding service with OpenAI's
// interface, such as Ollama, vLLM or LM Studio.
//
// An [Embedder] asks the service. A [Cache] stands before it, or before any
// other embedder, and keeps the vectors of capabilities in a file, so that
// what did not change is not asked for again.
//
//	e, err := remote.New(remote.Config{URL: "http://127.0.0.1:11434/v1", Model: "nomic-embed-text"})
//	documents := remote.NewCache(e, dir) // for capabilities
//	queries := e                         // for messages, which are kept nowhere
//
// The texts of capabilities and the messages of people go to the service. Who
// configures one decides that.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"ken/internal/address"
	"ken/internal/untrusted"
)

// Config describes an [Embedder]. Zero fields mean the defaults.
type Config struct {
	// URL is where the service is, up to the part that its other services
	// share: http://127.0.0.1:11434/v1. A query is sent along and not shown.
	URL string

	// Model is the service's name of the model.
	Model string

	// APIKey is sent as a bearer token to the host of URL and nowhere else.
	APIKey Key

	// Dimensions is the length that every vector must have. When 0 the first
	// answer says it. It is not sent: a model has the length it has.
	Dimensions int

	// Timeout ends one attempt: 30 seconds.
	Timeout time.Duration

	// Batch is how many texts are sent at once: 64. A service that finds them
	// too many gets fewer.
	Batch int
}

const (
	defaultTimeout = 30 * time.Second
	defaultBatch   = 64
	maxDimensions  = 16384
)

// MaxText is how many bytes of a text are sent; the rest is not read. It is
// more than the text of a capability has, and about what the usual models of 512
// tokens read; some services refuse longer texts.
const MaxText = 2000

// An Embedder is an llm.Embedder over a service. It may be used by many
// goroutines at once. Nothing is sent before the first Embed, so that a service
// that is down costs vectors and not the start of the program.
type Embedder struct {
	cfg    Config  // without its URL
	ask    *string // where requests go, with a query that may hold a secret; see [Key]
	shown  string  // the same for messages
	name   string
	client *http.Client

	dims atomic.Int64 // 0: not known yet
}

// New makes an Embedder, or says what is wrong with its configuration.
func New(cfg Config) (*Embedder, error) {
	refuse := func(what, fix string) (*Embedder, error) {
		return nil, fmt.Errorf("embedding service: %s; %s", what, fix)
	}
	u, err := url.Parse(strings.TrimSpace(cfg.URL))
	switch {
	case err != nil: // the cause would repeat the address, and a password in it
		return refuse("the address is not a URL", "write one like http://127.0.0.1:11434/v1")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return refuse("the address is not one of http or https", "write one like http://127.0.0.1:11434/v1")
	case address.Unprotected(u):
		return refuse("the address "+untrusted.Line(u.Scheme+"://"+u.Host, 200)+" would send the key, messages and texts unprotected over the network", "write https://"+untrusted.Line(u.Host, 200)+" in discovery.embeddingUrl, or use an address of this machine")
	case u.User != nil:
		return refuse("the address holds a name or password", "take it out and give a key instead")
	case strings.TrimSpace(cfg.Model) == "":
		return refuse("no model is named", "name one that the service has, such as nomic-embed-text")
	case cfg.Dimensions < 0 || cfg.Dimensions > maxDimensions:
		return refuse(fmt.Sprintf("vectors of %d numbers", cfg.Dimensions), fmt.Sprintf("give a number up to %d, or 0 to learn it", maxDimensions))
	}
	if err := cfg.APIKey.check(); err != nil {
		return refuse(err.Error(), "look at what the environment variable holds")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Batch <= 0 {
		cfg.Batch = defaultBatch
	}
	base := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/embeddings")
	u.Path, u.RawPath, u.Fragment = base+"/embeddings", "", ""
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	ask := u.String()
	cfg.URL = ""
	e := &Embedder{
		cfg: cfg, ask: &ask, shown: untrusted.Line(shown.String(), 200),
		name: cfg.Model + "@" + u.Host + base, client: client(),
	}
	e.dims.Store(int64(cfg.Dimensions))
	return e, nil
}

// client follows no redirect: a key, and what people write, go where the
// configuration says. For the same reason a proxy from the environment, which
// reads what is not encrypted, is used for https only.
func client() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: func(r *http.Request) (*url.URL, error) {
				if r.URL.Scheme != "https" {
					return nil, nil
				}
				return http.ProxyFromEnvironment(r)
			},
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        90 * time.Second,
			ForceAttemptHTTP2:      true,
		},
	}
}

// Close closes idle connections. The Embedder can be used afterwards.
func (e *Embedder) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// Model names the weights by the model and the service that has it, since two
// services may mean different weights by one name: nomic-embed-text@host/v1.
func (e *Embedder) Model() string { return e.name }

// Dimensions is the length of every vector, or 0 as long as it is neither
// configured nor learnt from an answer.
func (e *Embedder) Dimensions() int { return int(e.dims.Load()) }

// Format writes the name of the model, whatever the verb.
func (e *Embedder) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, untrusted.Line(e.name, 200)) // a State keeps its own errors
}

// MarshalText writes the same, for JSON and logs.
func (e *Embedder) MarshalText() ([]byte, error) { return fmt.Append(nil, e), nil }

// Embed returns one vector per text, in order, of unit length. The vectors belong
// to the caller. Texts of white space alone are not sent, since services refuse
// them; their vector is zero, as is that of a text for which the service returns
// zeros. Of the others the first [MaxText] bytes are sent. Either all texts get
// a vector or there is an error: a *capability.Error that says what to do, with
// ctx's own error inside when ctx ended.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(texts))
	var send []string
	var of []int // the texts that are sent
	for i, text := range texts {
		if text := cut(text); text != "" {
			send, of = append(send, text), append(of, i)
		}
	}
	if len(texts) > 0 && len(send) == 0 && e.Dimensions() == 0 {
		if _, err := e.batch(ctx, []string{probe}); err != nil { // the length of a zero vector is not known yet
			return nil, err
		}
	}
	for len(send) > 0 {
		n := min(len(send), e.cfg.Batch)
		got, err := e.batch(ctx, send[:n])
		if err != nil {
			return nil, err
		}
		for i, v := range got {
			vectors[of[i]] = v
		}
		send, of = send[n:], of[n:]
	}
	for i, v := range vectors {
		if v == nil {
			vectors[i] = make([]float32, e.Dimensions())
		}
	}
	return vectors, nil
}

// probe is a text that is asked for to learn about a model.
const probe = "weather forecast for tomorrow"

// cut returns what is sent of a text: nothing of one that says nothing.
func cut(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > MaxText {
		text = strings.TrimSpace(strings.ToValidUTF8(text[:MaxText], ""))
	}
	return text
}

// batch asks for a few vectors, in halves if the service finds them too many.
func (e *Embedder) batch(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := e.request(ctx, texts)
	if r, ok := errors.AsType[*refusal](err); ok && len(texts) > 1 &&
		(r.status == http.StatusRequestEntityTooLarge || r.status == http.StatusUnprocessableEntity) {
		half := len(texts) / 2
		if vectors, err = e.batch(ctx, texts[:half]); err == nil {
			var more [][]float32
			more, err = e.batch(ctx, texts[half:])
			vectors = append(vectors, more...)
		}
	}
	return vectors, err
}

// learn checks the length of vectors against the one known.
func (e *Embedder) learn(vectors [][]float32) error {
	for _, v := range vectors {
		e.dims.CompareAndSwap(0, int64(len(v)))
		if dims := e.Dimensions(); len(v) != dims {
			return fmt.Errorf("service returned a vector of %d numbers, not %d", len(v), dims)
		}
	}
	return nil
}
