package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/jsonappend"
	"ken/internal/untrusted"
)

// resultScheme is where kept results are read.
const resultScheme = "ken://result/"

func (ep *endpoint) listPrompts(req *mcp.ListPromptsRequest) (*answer, error) {
	l := ep.offerings(ep.view()).prompts
	ep.sessionOf(req).saw(prompts, l.hash)
	if req.Params == nil {
		return l.answer("", false)
	}
	return l.answer(req.Params.Cursor, isModern(req.Params))
}

func (ep *endpoint) listResources(req *mcp.ListResourcesRequest) (*answer, error) {
	o := ep.offerings(ep.view())
	ep.sessionOf(req).saw(resources, o.resources.hash+o.templates.hash)
	if req.Params == nil {
		return o.resources.answer("", false)
	}
	return o.resources.answer(req.Params.Cursor, isModern(req.Params))
}

func (ep *endpoint) listTemplates(req *mcp.ListResourceTemplatesRequest) (*answer, error) {
	o := ep.offerings(ep.view())
	if req.Params == nil {
		return o.templates.answer("", false)
	}
	return o.templates.answer(req.Params.Cursor, isModern(req.Params))
}

// getPrompt returns a prompt: a text of Ken's own, or a back end's through a call
// like any other.
func (ep *endpoint) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*answer, error) {
	p := req.Params
	v, modern, sess := ep.view(), isModern(p), ep.sessionOf(req)
	src, ok := ep.offerings(v).prompt[p.Name]
	if !ok {
		return nil, fault(jsonrpc.CodeInvalidParams, "unknown prompt "+untrusted.Line(p.Name, 80), nil)
	}
	if src.text != "" {
		text, description, err := ep.text(ctx, v, src.text)
		if err != nil {
			return nil, wireError(ctx, err, "")
		}
		b := append(complete(modern), `"description":`...)
		b = jsonappend.String(b, description)
		b = append(b, `,"messages":[{"role":"user","content":{"type":"text","text":`...)
		b = jsonappend.String(b, text)
		return &answer{body: append(b, `}}]}`...)}, nil
	}
	args, err := json.Marshal(struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments,omitempty"`
	}{src.name, p.Arguments})
	if err != nil {
		return nil, err
	}
	x := &exchange{ep: ep, sess: sess, view: v, ss: req.Session, modern: modern, subject: "prompts/get " + p.Name, caps: req.ClientCapabilities}
	x.prepare(ctx, src.reader, args, p)
	res, pause, err := x.run(ctx, p.InputResponses, p.RequestState)
	if err != nil || pause != nil {
		return pause, wireError(ctx, err, x.waiting)
	}
	if res, err = ep.whole(ctx, sess, res); err != nil {
		return nil, wireError(ctx, err, "")
	}
	if res.Failed || len(res.Parts) == 0 {
		return nil, fault(jsonrpc.CodeInternalError, textOf(res), nil)
	}
	raw, broken := safeTexts(cmp.Or(string(res.Parts[0].JSON), res.Parts[0].Text))
	a, err := passOn(modern, raw)
	if err == nil {
		a.broke(broken)
	}
	return a, err
}

// safeTexts breaks chat template tokens in the texts of a prompt, because a
// model reads them. URIs and data stay unchanged.
func safeTexts(raw string) (string, int) {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw, 0
	}
	broken := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for key, one := range v {
				text, is := one.(string)
				if !is || key == "data" || key == "blob" || key == "uri" {
					walk(one)
					continue
				}
				safe, n := untrusted.Tokens(text)
				v[key] = safe
				broken += n
			}
		}
	}
	walk(v)
	if broken == 0 {
		return raw, 0
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw, 0
	}
	return string(out), broken
}

// passOn returns a result of a back end as it is.
func passOn(modern bool, raw string) (*answer, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		return nil, fault(jsonrpc.CodeInternalError, "the server's answer cannot be read", nil)
	}
	a := &answer{}
	if meta, ok := m["_meta"]; ok {
		_ = json.Unmarshal(meta, &a.Meta) // what is not an object says nothing
	}
	delete(m, "_meta")
	delete(m, "resultType")
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	a.body = body
	if modern {
		a.body = append([]byte(`{"resultType":"complete"`), body...)
		if a.body[24] = ','; len(body) == 2 {
			a.body = []byte(`{"resultType":"complete"}`)
		}
	}
	return a, nil
}

// readResource reads a resource: a text of Ken's own, a kept result, or a back
// end's through a call like any other.
func (ep *endpoint) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*answer, error) {
	p := req.Params
	v, modern, sess := ep.view(), isModern(p), ep.sessionOf(req)
	if handle, ok := strings.CutPrefix(p.URI, resultScheme); ok && ep.s.cfg.Whole != nil {
		res, err := ep.s.cfg.Whole(ctx, ep.who, sess.id, handle)
		if err != nil {
			return nil, notFoundOr(ctx, err, p.URI, modern, "")
		}
		return contents(modern, res.Parts, p.URI, "text/plain", ""), nil
	}
	o := ep.offerings(v)
	src, ok := o.find(p.URI)
	if !ok {
		if src, ok = o.servers[sess.linked(p.URI)]; !ok {
			return nil, notFound(p.URI, modern)
		}
		src.name = p.URI
	}
	if src.file != "" {
		parts, err := ep.ownFile(v, src)
		if err != nil {
			return nil, notFoundOr(ctx, err, p.URI, modern, "")
		}
		return contents(modern, parts, p.URI, src.mime, ""), nil
	}
	if src.text != "" {
		text, _, err := ep.text(ctx, v, src.text)
		if err != nil {
			return nil, notFoundOr(ctx, err, p.URI, modern, "")
		}
		return contents(modern, []capability.Part{{Text: text}}, p.URI, src.mime, ""), nil
	}
	if strings.HasPrefix(src.name, "ui://") {
		sess.open(src.server)
	}
	args, err := json.Marshal(map[string]string{"uri": src.name})
	if err != nil {
		return nil, err
	}
	x := &exchange{ep: ep, sess: sess, view: v, ss: req.Session, modern: modern, subject: "resources/read " + p.URI, caps: req.ClientCapabilities}
	x.prepare(ctx, src.reader, args, p)
	res, pause, err := x.run(ctx, p.InputResponses, p.RequestState)
	if err != nil || pause != nil {
		return pause, notFoundOr(ctx, err, p.URI, modern, x.waiting)
	}
	if res, err = ep.whole(ctx, sess, res); err != nil {
		return nil, wireError(ctx, err, "")
	}
	if res.Failed {
		return nil, fault(jsonrpc.CodeInternalError, textOf(res), nil)
	}
	return contents(modern, res.Parts, p.URI, src.mime, src.name), nil
}

// contents writes the result of resources/read. What the server calls own is at
// uri for the client.
func contents(modern bool, parts []capability.Part, uri, mime, own string) *answer {
	parts, leftOut := lightParts(parts)
	parts, broken := safeParts(parts)
	b := append(completeList(modern), `"contents":[`...)
	for i := range parts {
		p := parts[i]
		if p.MIME == "" {
			p.MIME = mime
		}
		at := p.Link
		if at == "" || at == own {
			at = uri
		}
		if i > 0 {
			b = append(b, ',')
		}
		meta, _ := metaOf(&p)
		b = appendContents(b, &p, at, meta)
	}
	a := &answer{body: append(b, `]}`...)}
	if leftOut > 0 {
		a.set(metaLeftOut, leftOut)
	}
	a.broke(broken)
	return a
}

// text reads one of Ken's own texts as a model may see it.
func (ep *endpoint) text(ctx context.Context, v door.View, id capability.ID) (text, description string, err error) {
	d, err := ep.s.cfg.Door.Describe(ctx, v, string(id))
	if err != nil {
		return "", "", err
	}
	text = strings.TrimSpace(d.Detail.Body + "\n\n" + d.Detail.Usage)
	switch {
	case text == "" && d.Withheld != "":
		return "", "", &capability.Error{Kind: capability.Denied, Op: "read", Target: string(id), Err: errors.New(d.Withheld)}
	case text == "":
		text = d.Description
	}
	if d.Trust < capability.TrustUser {
		text = untrusted.Block(text, untrusted.BlockConfig{Key: ep.s.key, Origin: string(id), Max: 1 << 20})
	}
	return text, d.Description, nil
}

// whole returns all of a result that was cut for a model: what reads it here is a
// client.
func (ep *endpoint) whole(ctx context.Context, sess *session, res capability.Result) (capability.Result, error) {
	if res.Handle == "" || res.Meta["truncated"] != "true" || ep.s.cfg.Whole == nil {
		return res, nil
	}
	return ep.s.cfg.Whole(ctx, ep.who, sess.id, res.Handle)
}

func textOf(res capability.Result) string {
	var b strings.Builder
	for _, p := range res.Parts {
		b.WriteString(p.Text)
	}
	return untrusted.Line(cmp.Or(b.String(), "it failed and did not say why"), 2000)
}

// codeNotFound is what a missing resource is called before 2026-07-28; then it
// is invalid params.
const codeNotFound = -32002

func notFound(uri string, modern bool) error {
	code := int64(codeNotFound)
	if modern {
		code = jsonrpc.CodeInvalidParams
	}
	return fault(code, "Resource not found", map[string]string{"uri": uri})
}

func notFoundOr(ctx context.Context, err error, uri string, modern bool, more string) error {
	if err != nil && capability.KindOf(err) == capability.NotFound {
		return notFound(uri, modern)
	}
	return wireError(ctx, err, more)
}

// wireError returns err as an error of the protocol, for requests whose results
// cannot carry one.
func wireError(ctx context.Context, err error, more string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if wire, ok := answered(err); ok {
		return wire
	}
	code := int64(jsonrpc.CodeInternalError)
	if capability.KindOf(err) == capability.Invalid {
		code = jsonrpc.CodeInvalidParams
	}
	return fault(code, err.Error()+more, nil)
}

// complete passes a completion on to the back end whose prompt or template it
// is about. Ken's own have nothing to complete.
func (ep *endpoint) complete(ctx context.Context, req *mcp.CompleteRequest) (*answer, error) {
	p := *req.Params
	modern := isModern(&p)
	o := ep.offerings(ep.view())
	var src origin
	var ok bool
	if p.Ref != nil && p.Ref.Type == "ref/prompt" {
		src, ok = o.prompt[p.Ref.Name]
	} else if p.Ref != nil {
		for _, t := range o.template {
			if t.template == p.Ref.URI {
				src, ok = t.origin, true
				src.name = p.Ref.URI
				break
			}
		}
	}
	if !ok {
		return nil, fault(jsonrpc.CodeInvalidParams, "there is nothing of that name to complete", nil)
	}
	if src.server == "" || ep.s.cfg.Backends == nil {
		return &answer{body: append(complete(modern), `"completion":{"values":[]}}`...)}, nil
	}
	ref := *p.Ref
	if ref.Type == "ref/prompt" {
		ref.Name = src.name
	}
	p.Ref, p.Meta = &ref, nil
	raw, err := json.Marshal(&p)
	if err != nil {
		return nil, err
	}
	out, err := ep.s.cfg.Backends.Complete(ctx, ep.who, ep.sessionOf(req).id, src.server, raw)
	if err != nil {
		return nil, wireError(ctx, err, "")
	}
	return passOn(modern, string(out))
}

// subscribe asks a back end to tell of changes of a resource; Ken's own texts
// are told of as changes of the list.
func (ep *endpoint) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	src, ok := ep.offerings(ep.view()).find(uri)
	if !ok {
		return notFound(uri, isModern(req.Params))
	}
	if src.server == "" {
		return nil
	}
	sess := ep.sessionOf(req)
	stop, err := ep.s.cfg.Backends.Subscribe(ctx, ep.who, sess.id, src.server, src.name, func() {
		_ = ep.sdk.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri})
	})
	if err != nil {
		return wireError(ctx, err, "")
	}
	sess.subscribed(uri, stop)
	return nil
}

func (ep *endpoint) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	ep.sessionOf(req).subscribed(req.Params.URI, nil)
	return nil
}
