// Package gemini speaks Google's Gemini wire: generateContent, streamed as
// server-sent events.
//
// The wire gives parts rather than messages, and any part may carry a
// signature of the thoughts before it, which has to come back on that very
// part. Blocks keep it: a call in its Opaque, a thought in its own, and a text
// in a [llm.Reasoning] that stands behind it and has nothing but the
// signature. A wire that is not this one leaves all of these out.
//
// Its cache is implicit, so Request.Cache has nothing to ask for. It cannot
// take tools in the middle of a conversation.
package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/llm"
)

// wire is the name of these blocks of reasoning.
const wire = string(model.Gemini)

// A Model answers over the Gemini wire. It is safe for concurrent use.
type Model struct {
	cfg   provider.Config
	table *model.Table
}

// New makes a Model. An empty BaseURL means Google's own.
func New(cfg provider.Config) *Model {
	cfg.Name = cmp.Or(cfg.Name, "gemini")
	cfg.BaseURL = strings.TrimRight(cmp.Or(cfg.BaseURL, "https://generativelanguage.googleapis.com"), "/")
	return &Model{cfg: cfg, table: model.NewTable(nil)}
}

// Generate streams one answer, as [llm.Model] says.
func (m *Model) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	cfg := m.cfg
	cfg.Model = cmp.Or(req.Model, cfg.Model)
	if req.MaxTokens == 0 {
		req.MaxTokens = cfg.MaxTokens
	}
	row, _ := m.table.Find(model.Gemini, cfg.Model)
	body, err := encode(req, traitsOf(cfg.Model, row))
	if err != nil {
		return failed(cfg, err)
	}
	return provider.Generate(ctx, cfg, func(ctx context.Context) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			resp, err := m.post(ctx, cfg, body)
			if err != nil {
				yield(llm.Chunk{}, err)
				return
			}
			defer resp.Body.Close()
			decode(provider.Events(resp.Body, 0), req)(yield)
		}
	})
}

func failed(cfg provider.Config, err error) iter.Seq2[llm.Chunk, error] {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		e.Provider, e.Model = cfg.Name, cfg.Model
	}
	return func(yield func(llm.Chunk, error) bool) { yield(llm.Chunk{}, err) }
}

func (m *Model) post(ctx context.Context, cfg provider.Config, body []byte) (*http.Response, error) {
	key, err := cfg.Secret(ctx)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if key != "" {
		header.Set("X-Goog-Api-Key", key)
	}
	resp, err := provider.Post(ctx, cfg, path(cfg), header, body, classify)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" || kind == "" {
		return resp, nil
	}
	resp.Body.Close()
	return nil, &llm.Error{
		Kind: llm.Malformed, Provider: cfg.Name, Model: cfg.Model, Status: resp.StatusCode,
		Err: fmt.Errorf("the answer is %.60q, not a stream of events", kind),
	}
}

// path is where a model answers. A name may say what kind of model it is, as
// tunedModels/x does.
func path(cfg provider.Config) string {
	version := "/v1beta"
	if base := cfg.BaseURL; strings.HasSuffix(base, "/v1beta") || strings.HasSuffix(base, "/v1") {
		version = ""
	}
	kind, name, ok := strings.Cut(cfg.Model, "/")
	if !ok {
		kind, name = "models", cfg.Model
	}
	return version + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name) + ":streamGenerateContent?alt=sse"
}

// traits are what a request depends on besides what it says.
type traits struct {
	thinks bool // it may be asked for its thoughts
	levels bool // how long it thinks is a level; otherwise a budget
	signed bool // it refuses a call whose signature is missing
	media  bool // the result of a function may hold images
}

func traitsOf(name string, row model.Row) traits {
	name = name[strings.LastIndexByte(name, '/')+1:]
	old := strings.HasPrefix(name, "gemini-1") || strings.HasPrefix(name, "gemini-2")
	return traits{
		thinks: row.Reasoning,
		levels: !old,
		signed: !old && strings.HasPrefix(name, "gemini-"),
		media:  !old,
	}
}
