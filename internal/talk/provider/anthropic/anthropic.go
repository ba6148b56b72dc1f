// Package anthropic speaks the Messages wire.
//
// Requests are the same bytes for the same conversation, and a longer
// conversation begins with the bytes of the shorter one, but for the marks of
// the cache; see [Model.Encode]. There is no tool_choice, whatever
// [llm.Request.Allowed] says: changing it would cost the cached prefix, so the
// caller refuses calls instead.
package anthropic

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strings"

	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/llm"
)

const (
	wire    = string(model.Messages)
	path    = "/v1/messages"
	version = "2023-06-01"

	// inlineBeta lets a message define tools. Tools that are found by a search
	// need no such word any more.
	inlineBeta = "inline-tools-2026-09-15"

	baseURL   = "https://api.anthropic.com"
	maxTokens = 8192 // of an answer; the wire demands a number
)

// A Model answers by the Messages wire. It is safe for concurrent use.
type Model struct {
	cfg provider.Config
}

// New returns a model. An empty name means "anthropic", an empty base URL the
// vendor's own, and without a number of tokens an answer has at most 8192.
func New(cfg provider.Config) *Model {
	if cfg.Name == "" {
		cfg.Name = "anthropic"
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = baseURL
	}
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	if cfg.MaxTokens <= 0 {
		cfg.MaxTokens = maxTokens
	}
	return &Model{cfg: cfg}
}

// Generate implements [llm.Model].
func (m *Model) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	cfg := m.cfg
	if req.Model != "" {
		cfg.Model = req.Model
	}
	return func(yield func(llm.Chunk, error) bool) {
		// The body is made once: tries differ in nothing.
		body, uses, err := m.encode(req)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		provider.Generate(ctx, cfg, func(ctx context.Context) iter.Seq2[llm.Chunk, error] {
			return attempt(ctx, cfg, body, uses)
		})(yield)
	}
}

// attempt makes one request and reads its answer.
func attempt(ctx context.Context, cfg provider.Config, body []byte, uses features) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		header, err := headers(ctx, &cfg, uses)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		resp, err := provider.Post(ctx, cfg, path, header, body, uses.classify)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		defer resp.Body.Close()
		if kind := resp.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/event-stream") {
			yield(llm.Chunk{}, uses.foreign(resp, kind))
			return
		}
		read(resp.Body, uses, yield)
	}
}

// foreign is the error of an answer that is no stream.
func (f features) foreign(resp *http.Response, kind string) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if e := f.classify(0, resp.Header, body); e != nil {
		return e
	}
	return &llm.Error{Kind: llm.Malformed, Status: resp.StatusCode, Message: "the answer is " + kind + ", not text/event-stream"}
}

// headers are those of the wire. A beta that the configuration asks for stays
// beside ours.
func headers(ctx context.Context, cfg *provider.Config, uses features) (http.Header, error) {
	key, err := cfg.Secret(ctx)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	h.Set("Anthropic-Version", version)
	if key != "" {
		h.Set("X-Api-Key", key)
	}
	if !uses.inline {
		return h, nil
	}
	h.Set("Anthropic-Beta", inlineBeta)
	if own := cfg.Header.Values("Anthropic-Beta"); len(own) > 0 {
		cfg.Header = cfg.Header.Clone()
		cfg.Header.Set("Anthropic-Beta", strings.Join(append(own, inlineBeta), ","))
	}
	return h, nil
}
