// Package openai speaks the two wires of OpenAI. [Chat] is Chat Completions,
// which Ollama, vLLM, llama.cpp, OpenRouter, DeepSeek and many others copy, each
// a little differently; [Responses] is the newer one, used without any state on
// the server.
//
// Both write a request byte for byte the same each time, and a conversation
// that has grown begins with the bytes that it had before, because that is what
// prompt caches go by. The list of tools changes in one case only, which
// [Responses] names.
//
// Neither wire has a mark for a result that failed: its text must tell.
//
// Servers differ in what they take. Where one refuses a parameter that the
// conversation can do without, the request is made again without it, and the
// model keeps that in mind for the next.
package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strings"

	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/llm"
)

// A Chat is a model behind Chat Completions. It is safe for concurrent use.
//
// The wire has no way to give tools in the middle of a conversation: a request
// with such a block is [llm.Unsupported]. Images of results follow in a message
// of the user's, because results are text there. Texts of one message are
// joined by an empty line.
type Chat struct {
	cfg provider.Config
	// Refused is what the server has not accepted so far. A caller that replaces
	// a model passes on what the old one learned.
	Refused *Refusals
}

// NewChat makes a model of a server that has /chat/completions under its base
// URL. Nothing is sent before the first request.
func NewChat(cfg provider.Config) *Chat { return &Chat{cfg: named(cfg), Refused: &Refusals{}} }

// Generate implements [llm.Model].
func (c *Chat) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	cfg := ofRequest(c.cfg, req)
	return provider.Generate(ctx, cfg, func(ctx context.Context) iter.Seq2[llm.Chunk, error] {
		return exchange{
			cfg: cfg, path: "/chat/completions", refused: c.Refused,
			encode: func(without omit) ([]byte, omit, error) { return encodeChat(cfg, req, without) },
			decode: func(r io.Reader, sent omit) iter.Seq2[llm.Chunk, error] {
				return decodeChat(r, req.Messages, sent)
			},
		}.run(ctx)
	})
}

// A Responses is a model behind the Responses API. It is safe for concurrent
// use once its fields are set.
//
// Requests leave nothing on the server; reasoning comes encrypted and is sent
// back as it came. Tools in a message of the user's are additional_tools. Tools
// in the result of a call follow that result as a tool search that the client
// made; tool_search stands at the end of the list of tools where the request
// names its search, or has one made already.
type Responses struct {
	// Table says which models match a prefix only where it is marked; for them
	// a mark follows the system text. Nil means the built-in rows.
	Table *model.Table

	cfg provider.Config
	// Refused is what the server has not accepted so far. A caller that replaces
	// a model passes on what the old one learned.
	Refused *Refusals
}

// NewResponses makes a model of a server that has /responses under its base
// URL. Nothing is sent before the first request.
func NewResponses(cfg provider.Config) *Responses {
	return &Responses{cfg: named(cfg), Refused: &Refusals{}}
}

// Generate implements [llm.Model].
func (m *Responses) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	cfg := ofRequest(m.cfg, req)
	marked := m.marked(cfg.Model, req.Cache)
	return provider.Generate(ctx, cfg, func(ctx context.Context) iter.Seq2[llm.Chunk, error] {
		return exchange{
			cfg: cfg, path: "/responses", refused: m.Refused,
			encode: func(without omit) ([]byte, omit, error) { return encodeResponses(cfg, req, marked, without) },
			decode: func(r io.Reader, sent omit) iter.Seq2[llm.Chunk, error] {
				return decodeResponses(r, req.Messages, sent)
			},
		}.run(ctx)
	})
}

// marked reports whether a conversation gets a mark: a model that is not known
// might refuse it.
func (m *Responses) marked(name, cache string) bool {
	row, known := m.Table.Find(model.Responses, name)
	return known && row.Cache.Marked && cache != ""
}

func named(cfg provider.Config) provider.Config {
	if cfg.Name == "" {
		cfg.Name = "openai"
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = "https://api.openai.com/v1"
	}
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	return cfg
}

// ofRequest is the configuration as one request changes it.
func ofRequest(cfg provider.Config, req llm.Request) provider.Config {
	if req.Model != "" {
		cfg.Model = req.Model
	}
	if req.MaxTokens > 0 {
		cfg.MaxTokens = req.MaxTokens
	}
	return cfg
}

// An exchange is one attempt: a request, perhaps made again without what the
// server refused of it, and the answer.
type exchange struct {
	cfg     provider.Config
	path    string
	refused *Refusals
	encode  func(without omit) (body []byte, sent omit, err error)
	decode  func(r io.Reader, sent omit) iter.Seq2[llm.Chunk, error]
}

func (x exchange) run(ctx context.Context) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		without := x.refused.of(x.cfg.Model)
		for {
			sent, err := x.once(ctx, without, yield)
			bit := refusedBit(err) & sent &^ without
			if bit == 0 {
				if err != nil {
					yield(llm.Chunk{}, err)
				}
				return
			}
			without |= bit
			// Reasoning that one account or model cannot read says nothing
			// about that of other conversations.
			if bit != omitThoughts {
				x.refused.add(x.cfg.Model, bit)
			}
		}
	}
}

// once makes one request and passes its answer on. An error after the first
// chunk is passed on too; one before it is given back with what was sent.
func (x exchange) once(ctx context.Context, without omit, yield func(llm.Chunk, error) bool) (omit, error) {
	body, sent, err := x.encode(without)
	if err != nil {
		return 0, err
	}
	header := http.Header{}
	key, err := x.cfg.Secret(ctx)
	if err != nil {
		return 0, err
	}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	resp, err := provider.Post(ctx, x.cfg, x.path, header, body, func(status int, _ http.Header, body []byte) *llm.Error {
		return faultOf(status, body, sent)
	})
	if err != nil {
		return sent, err
	}
	defer resp.Body.Close()
	started := false
	for chunk, err := range x.decode(resp.Body, sent) {
		if err != nil && !started {
			return sent, err
		}
		started = true
		if !yield(chunk, err) || err != nil {
			return 0, nil
		}
	}
	return 0, nil
}

// mostEvent bounds one event. The last event of Responses holds the whole
// answer again.
const mostEvent = 16 << 20

// opened looks at the start of an answer. whole means that it is one object:
// some servers do not stream, and some say of a failure only within an answer
// that has the status of a success.
func opened(r io.Reader) (from *bufio.Reader, whole bool, err error) {
	from = bufio.NewReader(r)
	for {
		c, err := from.ReadByte()
		if err != nil {
			return from, false, nil // for the reader to find
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '<':
			return nil, false, malformed("the answer is a page for people", nil)
		}
		return from, c == '{', from.UnreadByte()
	}
}

// readWhole reads an answer that is one object.
func readWhole(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostEvent+1))
	if err == nil && len(data) > mostEvent {
		err = provider.ErrEventSize
	}
	return data, err
}

// malformed is the error of an answer that is not of the wire.
func malformed(what string, err error) *llm.Error {
	return &llm.Error{Kind: llm.Malformed, Message: what, Err: err}
}

// isObject reports whether text is one JSON object.
func isObject(text []byte) bool {
	start := bytes.TrimLeft(text, " \t\r\n")
	return len(start) > 0 && start[0] == '{' && json.Valid(text)
}
