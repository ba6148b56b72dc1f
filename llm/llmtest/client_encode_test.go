package llmtest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"ken/llm"
)

// encode makes the body of a request.
func (c *client) encode(req llm.Request) ([]byte, error) {
	out := fields{"model": cmp.Or(req.Model, "scripted"), "stream": true, "stream_options": fields{"include_usage": true}}
	if c.flaw == "own model" {
		out["model"] = "mine"
	}
	if req.MaxTokens > 0 {
		out["max_completion_tokens"] = req.MaxTokens
	}
	if req.Effort != "" {
		out["reasoning_effort"] = req.Effort
	}
	if req.Cache != "" && c.flaw != "no cache" {
		out["prompt_cache_key"] = req.Cache
	}
	if c.flaw == "random" {
		out["user"] = strconv.Itoa(rand.Int())
	}
	var list []fields
	for i, t := range req.Tools {
		if c.flaw == "few tools" && i >= 100 || c.flaw == "narrows tools" && req.Allowed != nil && !slices.Contains(req.Allowed, t.Name) {
			continue
		}
		list = append(list, fields{"type": "function", "function": fields{"name": t.Name, "description": t.Description, "parameters": t.Schema}})
	}
	if list != nil {
		out["tools"] = list
		if req.Allowed != nil && c.flaw != "ignores allowed" {
			out["tool_choice"] = chosen(req.Allowed)
		}
	}
	var messages []fields
	if req.System != "" && c.flaw != "no system" {
		messages = append(messages, fields{"role": "system", "content": req.System})
	}
	for _, m := range req.Messages {
		more, err := c.message(m)
		if err != nil {
			return nil, err
		}
		messages = append(messages, more...)
	}
	if c.flaw == "rewrites" {
		messages = slices.Insert(messages, 1, fields{"role": "user", "content": fmt.Sprint(len(messages))})
	}
	out["messages"] = messages
	body := []byte(compact(out))
	if c.flaw == "ascii" {
		body = bytes.Map(func(r rune) rune {
			if r > 126 {
				return '?'
			}
			return r
		}, body)
	}
	return body, nil
}

func chosen(names []string) any {
	if len(names) == 0 {
		return "none"
	}
	var list []fields
	for _, name := range names {
		list = append(list, fields{"type": "function", "function": fields{"name": name}})
	}
	return fields{"type": "allowed_tools", "allowed_tools": fields{"mode": "auto", "tools": list}}
}

func (c *client) message(m llm.Message) ([]fields, error) {
	var out, parts, calls, images []fields
	text := func(t string) { parts = append(parts, fields{"type": "text", "text": t}) }
	picture := func(i *llm.Image) fields {
		return fields{"type": "image_url", "image_url": fields{"url": "data:" + i.MIME + ";base64," + base64.StdEncoding.EncodeToString(i.Data)}}
	}
	for _, b := range m.Blocks {
		switch {
		case b.Tools != nil && c.flaw != "drops tools":
			return nil, &llm.Error{Kind: llm.Unsupported, Provider: "client", Feature: llm.Inline}
		case b.Text != "":
			text(b.Text)
		case b.Image != nil && c.flaw != "no images":
			parts = append(parts, picture(b.Image))
		case b.Reasoning != nil && c.flaw == "foreign thought":
			text(b.Reasoning.Text)
		case b.Call != nil:
			args := string(b.Call.Arguments)
			if !json.Valid(b.Call.Arguments) && c.flaw != "replays raw" {
				args = compact(fields{"raw": args})
			}
			calls = append(calls, fields{"id": b.Call.ID, "type": "function", "function": fields{"name": b.Call.Name, "arguments": args}})
		case b.Result != nil && c.flaw != "no results":
			said := ""
			for _, inner := range b.Result.Blocks {
				said += inner.Text
				if inner.Tools != nil && c.flaw != "drops tools" {
					return nil, &llm.Error{Kind: llm.Unsupported, Provider: "client", Feature: llm.Search}
				}
				if inner.Image != nil {
					images = append(images, picture(inner.Image))
				}
			}
			out = append(out, fields{"role": "tool", "tool_call_id": b.Result.ID, "content": said})
		}
	}
	if images != nil && c.flaw != "no images" {
		out = append(out, fields{"role": "user", "content": images})
	}
	if m.Role == llm.Assistant {
		said := fields{"role": "assistant"}
		if parts != nil {
			said["content"] = parts
		}
		if calls != nil {
			said["tool_calls"] = calls
		}
		return append(out, said), nil
	}
	if parts != nil {
		out = append(out, fields{"role": "user", "content": parts})
	}
	return out, nil
}
