package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"

	"ken/llm"
)

// outputs are the items of an answer, and for each how it is streamed.
func (responses) outputs(in *incoming, r Reply) []fields {
	var list []fields
	if r.Thought != "" {
		list = append(list, fields{
			"type": "reasoning", "id": "rs_" + in.id, "encrypted_content": sign(Responses, r.Thought),
			"summary": []fields{{"type": "summary_text", "text": r.Thought}},
		})
	}
	if r.Text != "" {
		phase := "final_answer"
		if len(r.Calls) > 0 {
			phase = "commentary"
		}
		list = append(list, fields{
			"type": "message", "id": "msg_" + in.id, "status": "completed", "role": "assistant", "phase": phase,
			"content": []fields{{"type": "output_text", "text": r.Text, "annotations": []any{}, "logprobs": []any{}}},
		})
	}
	for i, call := range r.Calls {
		item := fields{
			"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", in.id, i), "status": "completed",
			"call_id": callID("call_", in, i, call), "name": call.Name, "arguments": string(call.Arguments),
		}
		if space := in.namespace(call.Name); space != "" {
			item["namespace"] = space
		}
		if in.searches(call.Name) {
			item = fields{
				"type": "tool_search_call", "id": fmt.Sprintf("tsc_%s_%d", in.id, i), "status": "completed",
				"call_id": callID("call_", in, i, call), "arguments": asObject(call.Arguments), "execution": "client",
			}
		}
		list = append(list, item)
	}
	return list
}

// namespace returns the group of tools that a tool of this name is in; empty: none.
// Only programs that are not Ken group their tools.
func (in *incoming) namespace(name string) string {
	if in.Unread == "" {
		return ""
	}
	type tool struct{ Type, Name string }
	type group struct {
		tool
		Tools []tool
	}
	var o struct {
		Tools []group
		Input json.RawMessage
	}
	if json.Unmarshal(in.Body, &o) != nil {
		return "" // a field of another type than here: there are no groups
	}
	groups := o.Tools
	var items []struct{ Tools []group }
	if json.Unmarshal(o.Input, &items) == nil { // a text otherwise
		for _, item := range items {
			groups = append(groups, item.Tools...)
		}
	}
	for _, g := range groups {
		for _, t := range g.Tools {
			if g.Type == "namespace" && t.Name == name {
				return g.Name
			}
		}
	}
	return ""
}

// searches reports whether the script's call is one of the client's search: the
// request has one, and no function of this name.
func (in *incoming) searches(name string) bool {
	search := false
	for _, t := range in.Request.Tools {
		if t.Name == name && name != searchTool {
			return false
		}
		search = search || t.Name == searchTool
	}
	for _, m := range in.Request.Messages {
		for _, t := range givenIn(m) {
			if t.Name == name {
				return false
			}
		}
	}
	return search
}

func (p responses) response(in *incoming, r Reply, status string, output []fields) fields {
	m := fields{
		"id": "resp_" + in.id, "object": "response", "created_at": 1790000000, "status": status, "model": in.Request.Model,
		"output": output, "error": nil, "incomplete_details": nil, "instructions": nil, "parallel_tool_calls": true,
		"tools": []any{}, "tool_choice": "auto", "metadata": fields{}, "temperature": 1, "top_p": 1, "usage": nil,
	}
	switch status {
	case "incomplete":
		reason := "max_output_tokens"
		if r.Stop == llm.StopRefuse {
			reason = "content_filter"
		}
		m["incomplete_details"] = fields{"reason": reason}
		m["usage"] = p.usage(r.Usage)
	case "completed":
		m["usage"] = p.usage(r.Usage)
	}
	return m
}

func (responses) usage(u llm.Usage) fields {
	return fields{
		"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"input_tokens_details":  fields{"cached_tokens": u.CachedRead, "cache_write_tokens": u.CachedWrite},
		"output_tokens_details": fields{"reasoning_tokens": u.Thought},
	}
}

func (responses) status(r Reply) string {
	if r.Stop == llm.StopLength || r.Stop == llm.StopRefuse {
		return "incomplete"
	}
	return "completed"
}

func (p responses) play(out *sink, in *incoming, r Reply) {
	n := &narrator{out: out}
	n.send("response.created", fields{"response": p.response(in, r, "in_progress", []fields{})})
	n.send("response.in_progress", fields{"response": p.response(in, r, "in_progress", []fields{})})
	list := append([]fields{}, p.outputs(in, r)...)
	for i, item := range list {
		n.item(i, item, r)
	}
	out.finish()
	status := p.status(r)
	n.send("response."+status, fields{"response": p.response(in, r, status, list)})
}

// A narrator tells how an answer comes to be, in numbered events.
type narrator struct {
	out    *sink
	number int
}

func (n *narrator) send(name string, data fields) {
	data["type"], data["sequence_number"] = name, n.number
	n.number++
	n.out.event(name, data)
}

// item tells of one item of the output, from its beginning without content to
// its end.
func (n *narrator) item(i int, item fields, r Reply) {
	begun := maps.Clone(item)
	begun["status"] = "in_progress"
	with := func(more fields) fields {
		more["item_id"], more["output_index"] = item["id"], i
		return more
	}
	pieces := func(name, text string, more fields) {
		for _, f := range fragments(text, r.Fragments) {
			delta := maps.Clone(with(more))
			delta["delta"] = f
			n.send(name, delta)
			n.out.said()
		}
	}
	add := func() { n.send("response.output_item.added", fields{"output_index": i, "item": begun}) }
	switch item["type"] {
	case "reasoning":
		delete(begun, "status")
		begun["summary"], begun["encrypted_content"] = []any{}, "begun"
		add()
		part := func(text string) fields { return fields{"type": "summary_text", "text": text} }
		n.send("response.reasoning_summary_part.added", with(fields{"summary_index": 0, "part": part("")}))
		pieces("response.reasoning_summary_text.delta", r.Thought, fields{"summary_index": 0})
		n.send("response.reasoning_summary_text.done", with(fields{"summary_index": 0, "text": r.Thought}))
		n.send("response.reasoning_summary_part.done", with(fields{"summary_index": 0, "part": part(r.Thought)}))
	case "message":
		begun["content"] = []any{}
		add()
		part := func(text string) fields {
			return fields{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
		}
		n.send("response.content_part.added", with(fields{"content_index": 0, "part": part("")}))
		pieces("response.output_text.delta", r.Text, fields{"content_index": 0, "logprobs": []any{}})
		n.send("response.output_text.done", with(fields{"content_index": 0, "text": r.Text, "logprobs": []any{}}))
		n.send("response.content_part.done", with(fields{"content_index": 0, "part": part(r.Text)}))
	case "function_call":
		arguments := item["arguments"].(string)
		begun["arguments"] = ""
		add()
		pieces("response.function_call_arguments.delta", arguments, fields{})
		n.send("response.function_call_arguments.done", with(fields{"arguments": arguments, "name": item["name"]}))
	default:
		add()
	}
	n.send("response.output_item.done", fields{"output_index": i, "item": item})
}

func (p responses) whole(in *incoming, r Reply) any {
	return p.response(in, r, p.status(r), append([]fields{}, p.outputs(in, r)...))
}

func (responses) failure(f failure) any { return openaiError(f) }

// failed is a response that failed, as the wire reports what goes wrong after
// its first event.
func (p responses) failed(out *sink, f failure) {
	response := fields{
		"id": "resp_failed", "object": "response", "created_at": 1790000000, "status": "failed", "model": "scripted",
		"output": []any{}, "error": fields{"code": f.code, "message": f.message}, "incomplete_details": nil, "usage": nil,
	}
	out.event("response.failed", fields{"type": "response.failed", "sequence_number": 999, "response": response})
}

func (responses) fault(f Fault) failure { return openaiFault(f) }
