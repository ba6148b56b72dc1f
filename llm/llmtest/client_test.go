package llmtest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ken/llm"
)

// A client speaks Chat Completions as simply as the contract allows, or with one
// flaw. It is how the kit is tested.
type client struct {
	url, flaw string
	busy      atomic.Int32
}

const clientKey = "key-of-the-test"

func (c *client) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if n := c.busy.Add(1); n > 1 && c.flaw == "one at a time" {
			yield(llm.Chunk{}, errors.New("busy"))
			c.busy.Add(-1)
			return
		}
		defer c.busy.Add(-1)
		body, failed := c.encode(req)
		if failed != nil {
			yield(llm.Chunk{}, failed)
			return
		}
		tries := 3
		if c.flaw == "once" {
			tries = 1
		}
		for try := 1; ; try++ {
			chunks := 0
			err := c.attempt(ctx, body, func(k llm.Chunk) bool { chunks++; return yield(k, nil) })
			if err == nil {
				return
			}
			e, ok := errors.AsType[*llm.Error](err)
			if ok {
				e.Tries = try
			}
			passes := ok && (again(e.Kind) || c.flaw == "takes back" || c.flaw == "tries auth again" || c.flaw == "insists")
			if try == tries || !passes || chunks > 0 && c.flaw != "takes back" {
				if !errors.Is(err, errStopped) {
					yield(llm.Chunk{}, c.spoilt(err))
				}
				return
			}
			wait := e.RetryAfter
			if c.flaw == "impatient" {
				wait = 0
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				yield(llm.Chunk{}, c.spoilt(ctx.Err()))
				return
			}
		}
	}
}

// spoilt is an error with what flaws do to it.
func (c *client) spoilt(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	switch {
	case c.flaw == "own error" && !ok:
		return errors.New("something went wrong")
	case c.flaw == "no kinds" && ok:
		e.Kind = llm.Unknown
	case c.flaw == "tells key" && ok:
		e.Message += " with " + clientKey
	}
	return err
}

var errStopped = errors.New("the caller has enough")

func fail(kind llm.Kind, format string, args ...any) *llm.Error {
	return &llm.Error{Kind: kind, Provider: "client", Message: fmt.Sprintf(format, args...)}
}

func (c *client) attempt(ctx context.Context, body []byte, yield func(llm.Chunk) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if c.flaw != "leaks" {
			cancel()
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+clientKey)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		if c.flaw == "follows" {
			return nil
		}
		return http.ErrUseLastResponse
	}, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fail(llm.Unreachable, "%v", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return c.refusal(response)
	}
	if c.flaw == "leaks" {
		go func() { <-ctx.Done(); response.Body.Close() }() // for ever
		return c.read(ctx, response.Body, yield)
	}
	defer response.Body.Close()
	return c.read(ctx, response.Body, yield)
}

func (c *client) refusal(response *http.Response) error {
	body, _ := io.ReadAll(response.Body)
	var in struct {
		Error struct{ Message, Code, Type string }
	}
	if json.Unmarshal(body, &in) != nil {
		return fail(llm.Malformed, "HTTP %d", response.StatusCode)
	}
	e := fail(llm.Invalid, "%s", in.Error.Message)
	if c.flaw != "repeats errors" {
		e.Message = fmt.Sprintf("%.200q", in.Error.Message)
	}
	switch {
	case in.Error.Code == "insufficient_quota":
		e.Kind = llm.Quota
	case in.Error.Code == "context_length_exceeded":
		e.Kind = llm.TooLong
	case response.StatusCode == 401:
		e.Kind = llm.Auth
	case response.StatusCode == 429:
		e.Kind = llm.Rate
	case response.StatusCode >= 500:
		e.Kind = llm.Overloaded
	}
	if ms, err := strconv.Atoi(response.Header.Get("Retry-After-Ms")); err == nil {
		e.RetryAfter = time.Duration(ms) * time.Millisecond
	}
	return e
}

// wire is an event of the stream.
type wire struct {
	Error   *struct{ Message string }
	Choices []struct {
		Delta struct {
			C         string `json:"content"`
			R         string `json:"reasoning_content"`
			ToolCalls []struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		In         struct {
			Cached int `json:"cached_tokens"`
			Write  int `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Out struct {
			Thought int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
}

func (c *client) read(ctx context.Context, body io.Reader, yield func(llm.Chunk) bool) error {
	if c.flaw == "buffers" {
		all, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(all)
	}
	lines := bufio.NewScanner(body)
	if c.flaw != "short lines" {
		lines.Buffer(nil, 64<<20)
	}
	a := &assembly{client: c, yield: yield}
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "" || strings.HasPrefix(lines.Text(), ":"):
			continue
		case !ok:
			return fail(llm.Malformed, "a line that is no event")
		case data == "[DONE]":
			return a.end()
		}
		var event wire
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return fail(llm.Malformed, "an event that is no JSON")
		}
		if err := a.take(event); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.begun:
		return fail(llm.Cut, "the stream broke off")
	}
	return fail(llm.Unreachable, "nothing came")
}

// An assembly puts an answer together.
type assembly struct {
	client *client
	yield  func(llm.Chunk) bool
	begun  bool
	text   strings.Builder
	calls  []llm.ToolCall
	stop   string
	usage  llm.Usage
}

func (a *assembly) send(c llm.Chunk) error {
	a.begun = true
	if !a.yield(c) {
		return errStopped
	}
	return nil
}

func (a *assembly) take(event wire) error {
	if event.Error != nil {
		if a.begun {
			return fail(llm.Cut, "%s", event.Error.Message)
		}
		return fail(llm.Overloaded, "%s", event.Error.Message)
	}
	if u := event.Usage; u != nil {
		a.usage = llm.Usage{Input: u.Prompt, CachedRead: u.In.Cached, CachedWrite: u.In.Write, Output: u.Completion, Thought: u.Out.Thought}
		if a.client.flaw == "uncached input" {
			a.usage.Input -= a.usage.CachedRead
		}
	}
	for _, choice := range event.Choices {
		a.stop = cmp.Or(choice.FinishReason, a.stop)
		if choice.Delta.R != "" && a.client.flaw != "no thought" {
			if err := a.send(llm.Chunk{Thought: choice.Delta.R}); err != nil {
				return err
			}
		}
		if choice.Delta.C != "" {
			a.text.WriteString(choice.Delta.C)
			if err := a.send(llm.Chunk{Text: choice.Delta.C}); err != nil {
				return err
			}
		}
		for _, call := range choice.Delta.ToolCalls {
			for len(a.calls) <= call.Index {
				a.calls = append(a.calls, llm.ToolCall{})
			}
			to := &a.calls[call.Index]
			to.ID, to.Name = to.ID+call.ID, to.Name+call.Function.Name
			to.Arguments = append(to.Arguments, call.Function.Arguments...)
		}
	}
	return nil
}

func (a *assembly) end() error {
	flaw := a.client.flaw
	if text := a.text.String(); text != "" && flaw != "no block" {
		if flaw == "other block" {
			text += "!"
		}
		if err := a.send(llm.Chunk{Block: &llm.Block{Text: text}}); err != nil {
			return err
		}
	} else if flaw == "empty block" {
		_ = a.send(llm.Chunk{Block: &llm.Block{}})
	}
	for i := range a.calls {
		switch {
		case flaw == "same id":
			a.calls[i].ID = "call"
		case flaw == "repairs" && !json.Valid(a.calls[i].Arguments):
			a.calls[i].Arguments = []byte("{}")
		case flaw == "first call only" && i > 0:
			continue
		}
		if err := a.send(llm.Chunk{Block: &llm.Block{Call: &a.calls[i]}}); err != nil {
			return err
		}
	}
	stop := map[string]llm.StopReason{"length": llm.StopLength, "content_filter": llm.StopRefuse, "tool_calls": llm.StopCalls, "stop": llm.StopEnd}[a.stop]
	if flaw == "always done" {
		stop = llm.StopEnd
	}
	if flaw == "no stop" {
		return nil
	}
	return a.send(llm.Chunk{Stop: stop, Usage: &a.usage})
}
