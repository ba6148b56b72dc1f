package mcpgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/know/source/mcptools"
)

// The kinds of things a server lists in addition to tools, as their pins name
// them.
const (
	kindPrompt   = "prompt"
	kindResource = "resource"
	kindTemplate = "template"
	kindAdvice   = "instructions"
)

// A besides holds the prompts, resources, templates and instructions of a server
// that may be used: neither their text nor a difference from what was accepted
// bars them.
type besides struct {
	prompts   []*mcp.Prompt
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate

	instructions string // for models, in the server's own words

	barred map[string]string // by kind and name: the rule that bars it
}

// besides checks listed prompts, resources and templates as tools are checked:
// by their texts, and against what was accepted.
func (s *server) besides(ctx context.Context, o *offer, h *head) besides {
	out := besides{barred: map[string]string{}}
	all := make([]pin.Tool, 0, len(h.Prompts)+len(h.Resources)+len(h.Templates))
	add := func(kind, name, title, description string, whole, rest any) {
		all = append(all, pin.Tool{Name: kind + " " + name, Title: title, Description: description, Input: object(rest)})
		for _, f := range mcptools.Findings(object(whole)) {
			if f.Severity == capability.Grave {
				out.barred[kind+" "+name] = f.Rule
				s.problem(o, capability.Grave, "quarantined", fmt.Sprintf("the %s %s is not offered: %s: %s", kind, show(name), f.Rule, f.Excerpt), "tell its author")
				return
			}
		}
	}
	for _, p := range h.Prompts {
		rest := *p
		rest.Title, rest.Description = "", ""
		add(kindPrompt, p.Name, p.Title, p.Description, p, &rest)
	}
	for _, r := range h.Resources {
		rest := *r
		rest.Title, rest.Description, rest.Size, rest.Annotations = "", "", 0, undated(r.Annotations)
		add(kindResource, r.URI, r.Title, r.Description, r, &rest)
	}
	for _, t := range h.Templates {
		rest := *t
		rest.Title, rest.Description, rest.Annotations = "", "", undated(t.Annotations)
		add(kindTemplate, t.URITemplate, t.Title, t.Description, t, &rest)
	}
	if text := h.Info.Instructions; text != "" {
		add(kindAdvice, s.def.Name, "", text, text, nil)
	}
	s.compare(ctx, o, &out, all)
	out.choose(h)
	for i, r := range out.resources {
		out.resources[i] = s.boundResource(r)
	}
	if out.barred[kindAdvice+" "+s.def.Name] == "" {
		out.instructions = h.Info.Instructions
	}
	return out
}

// object returns v as JSON. It cannot fail, because v was decoded from JSON.
func object(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(err.Error())
	}
	return raw
}

// undated returns annotations without the time of the last change, which
// belongs to the content and not to what was accepted.
func undated(a *mcp.Annotations) *mcp.Annotations {
	if a == nil {
		return nil
	}
	out := *a
	if _, err := time.Parse(time.RFC3339, out.LastModified); err == nil {
		out.LastModified = ""
	}
	return &out
}

// compare bars everything that differs from what was accepted.
func (s *server) compare(ctx context.Context, o *offer, out *besides, all []pin.Tool) {
	if s.g.cfg.Pins == nil || len(all) == 0 {
		return
	}
	verdicts, err := s.g.cfg.Pins.Check(ctx, pin.OffersKey(s.pinKey()), all)
	if err != nil {
		s.problem(o, capability.Grave, "mcp-pins", "its prompts and resources could not be compared with what was accepted: "+err.Error(), "fix the store; see ken doctor")
	}
	for i := range all {
		name := all[i].Name
		f, bad := finding(verdicts[name])
		if !bad {
			continue
		}
		if out.barred[name] == "" {
			out.barred[name] = f.Rule
			s.problem(o, capability.Grave, "quarantined", fmt.Sprintf("the %s is not offered: %s: %s", show(name), f.Rule, f.Excerpt), "ken extension review mcp:"+s.def.Name)
		}
	}
}

// choose keeps what is not barred.
func (b *besides) choose(h *head) {
	for _, p := range h.Prompts {
		if b.barred[kindPrompt+" "+p.Name] == "" {
			b.prompts = append(b.prompts, p)
		}
	}
	for _, r := range h.Resources {
		if b.barred[kindResource+" "+r.URI] == "" {
			b.resources = append(b.resources, r)
		}
	}
	for _, t := range h.Templates {
		if b.barred[kindTemplate+" "+t.URITemplate] == "" {
			b.templates = append(b.templates, t)
		}
	}
}

// barred rejects a call that gets a barred prompt or reads a barred resource.
func (s *server) barred(call capability.Call, e *entry) error {
	var in struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
	}
	var key string
	switch e.Run.Runner {
	case runResource, runPrompt:
		if json.NewDecoder(bytes.NewReader(call.Arguments)).Decode(&in) != nil {
			return nil // errors are reported where they are used
		}
		key = kindResource + " " + in.URI
		if e.Run.Runner == runPrompt {
			key = kindPrompt + " " + in.Name
		}
	default:
		return nil
	}
	o := s.offered()
	if o == nil || o.besides.barred[key] == "" {
		return nil
	}
	out := &capability.Error{
		Kind: capability.Conflict, Op: "call", Target: string(call.Target), Rule: o.besides.barred[key],
		Err: fmt.Errorf("the %s is in quarantine", show(key)), Fix: "ken extension review mcp:" + s.def.Name,
	}
	return out
}
