package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/jsonappend"
	"ken/internal/jsonvalid"
	"ken/internal/untrusted"
)

// metaHandle is the key in _meta of the handle of a result that was cut.
const metaHandle = "ken/handle"

// metaBroken is the key in _meta for the number of chat template tokens that
// were broken in a result; see [untrusted.Tokens].
const metaBroken = "ken/brokenTokens"

// metaLeftOut is the key in _meta for the size in bytes of a server's _meta that
// is longer than mostMeta and was left out.
const metaLeftOut = "ken/leftOutMeta"

const mostMeta = 1 << 20

// safeParts returns parts whose texts contain no chat template tokens, because
// a client passes them to its model. Structured content and data are for
// programs and stay exact; JSON in a text stays the same value.
func safeParts(parts []capability.Part) (out []capability.Part, broken int) {
	for i := range parts {
		p := &parts[i]
		text, n := untrusted.Tokens(p.Text)
		if n == 0 {
			continue
		}
		if out == nil {
			out = slices.Clone(parts)
		}
		out[i].Text = text
		broken += n
	}
	if out == nil {
		out = parts
	}
	return out, broken
}

// lightParts returns parts with at most mostMeta bytes of what their makers said of
// them, and how many bytes were left out.
func lightParts(parts []capability.Part) (out []capability.Part, leftOut int) {
	out = parts
	sum := 0
	for i := range parts {
		if sum += len(parts[i].Extra); sum <= mostMeta {
			continue
		}
		if leftOut == 0 {
			out = slices.Clone(parts)
		}
		leftOut += len(parts[i].Extra)
		sum -= len(parts[i].Extra)
		out[i].Extra = nil
	}
	return out, leftOut
}

// toolResult writes a result in the words of the protocol.
func toolResult(modern bool, res capability.Result) *answer {
	parts, leftOut := lightParts(res.Parts)
	parts, broken := safeParts(parts)
	res.Parts = parts
	a := writeResult(modern, res)
	if leftOut > 0 {
		a.set(metaLeftOut, leftOut)
	}
	a.pass(res.Meta["_meta"])
	a.handle(res.Handle)
	a.broke(broken)
	return a
}

func writeResult(modern bool, res capability.Result) *answer {
	if len(res.Parts) == 1 && plain(&res.Parts[0]) {
		return said(modern, res.Parts[0].Text, res.Failed)
	}
	b := append(complete(modern), `"content":[`...)
	var structured json.RawMessage
	written := 0
	for i := range res.Parts {
		p := &res.Parts[i]
		if p.JSON != nil && p.MIME == "application/json" && i == len(res.Parts)-1 && (modern || isObject(p.JSON)) {
			structured = p.JSON
			if written > 0 {
				continue // the text of it is there already
			}
		}
		if written > 0 {
			b = append(b, ',')
		}
		b = appendBlock(b, p)
		written++
	}
	b = append(b, ']')
	if structured != nil {
		b = append(b, `,"structuredContent":`...)
		b = append(b, structured...)
	}
	if res.Failed {
		b = append(b, `,"isError":true`...)
	}
	return &answer{body: append(b, '}')}
}

// pass adds what a server said of its result. Names of Ken's own are not the
// server's to say.
func (a *answer) pass(meta string) {
	if meta == "" {
		return
	}
	if len(meta) > mostMeta {
		a.set(metaLeftOut, len(meta))
		return
	}
	raw := []byte(meta)
	if !jsonvalid.Valid(raw) {
		return
	}
	for key, value := range untrusted.Members(raw) { // what is not an object has none
		if !strings.HasPrefix(key, "ken/") {
			a.set(key, value)
		}
	}
}

func (a *answer) set(key string, value any) {
	if a.Meta == nil {
		a.Meta = map[string]any{}
	}
	a.Meta[key] = value
}

func (a *answer) handle(h string) {
	if h != "" {
		a.set(metaHandle, h)
	}
}

// broke records how many tokens were broken.
func (a *answer) broke(n int) {
	if n > 0 {
		a.set(metaBroken, n)
	}
}

// plain reports whether a part is a text and nothing else.
func plain(p *capability.Part) bool {
	return p.JSON == nil && p.Data == nil && p.Link == "" && p.Extra == nil
}

// appendBlock writes one block of content.
func appendBlock(b []byte, p *capability.Part) []byte {
	switch {
	case p.Link != "" && (p.Text != "" || p.Data != nil):
		b = append(b, `{"type":"resource","resource":`...)
		_, meta := metaOf(p)
		b = append(appendContents(b, p, p.Link, meta), ',')
	case p.Link != "":
		b = append(b, `{"type":"resource_link","uri":`...)
		b = append(jsonappend.String(b, p.Link), ',')
		if p.MIME != "" {
			b = append(b, `"mimeType":`...)
			b = append(jsonappend.String(b, p.MIME), ',')
		}
		if !strings.Contains(string(p.Extra), `"name"`) { // it must have one
			b = append(b, `"name":`...)
			b = append(jsonappend.String(b, p.Link), ',')
		}
	case p.Data != nil && strings.HasPrefix(p.MIME, "image/"), p.Data != nil && strings.HasPrefix(p.MIME, "audio/"):
		b = append(b, `{"type":"`...)
		b = append(b, p.MIME[:5]...)
		b = append(b, `","data":"`...)
		b = base64.StdEncoding.AppendEncode(b, p.Data)
		b = append(b, `","mimeType":`...)
		b = append(jsonappend.String(b, p.MIME), ',')
	case p.Data != nil:
		b = append(b, `{"type":"resource","resource":`...)
		b = append(appendContents(b, p, "ken://data", nil), ',')
	case p.JSON != nil:
		b = append(b, `{"type":"text","text":`...)
		text, _ := untrusted.Tokens(string(p.JSON)) // the same value
		b = append(jsonappend.String(b, text), ',')
	default:
		b = append(b, `{"type":"text","text":`...)
		b = append(jsonappend.String(b, p.Text), ',')
	}
	b = appendExtra(b, p.Extra)
	b[len(b)-1] = '}' // for the last comma
	return b
}

// appendContents writes what a resource holds, and what its maker said of it.
func appendContents(b []byte, p *capability.Part, uri string, meta json.RawMessage) []byte {
	b = append(b, `{"uri":`...)
	b = jsonappend.String(b, uri)
	if p.MIME != "" {
		b = append(b, `,"mimeType":`...)
		b = jsonappend.String(b, p.MIME)
	}
	switch {
	case p.Data != nil:
		b = append(b, `,"blob":"`...)
		b = base64.StdEncoding.AppendEncode(b, p.Data)
		b = append(b, '"')
	case p.JSON != nil:
		b = append(b, `,"text":`...)
		b = jsonappend.String(b, string(p.JSON))
	default:
		b = append(b, `,"text":`...)
		b = jsonappend.String(b, p.Text)
	}
	if len(meta) > 0 {
		b = append(b, `,"_meta":`...)
		b = append(b, meta...)
	}
	return append(b, '}')
}

// metaOf returns what the maker of a part said of it in "_meta", and, for a
// resource in a block of content, in "_meta" of the resource.
func metaOf(p *capability.Part) (own, resource json.RawMessage) {
	var m struct {
		Meta     json.RawMessage `json:"_meta"`
		Resource struct {
			Meta json.RawMessage `json:"_meta"`
		} `json:"resource"`
	}
	if len(p.Extra) == 0 || json.Unmarshal(p.Extra, &m) != nil {
		return nil, nil
	}
	return m.Meta, m.Resource.Meta
}

// extras are what may be said of a block besides what it holds.
var extras = [...]string{"name", "title", "description", "size", "icons", "annotations", "_meta"}

// appendExtra passes on what the maker of a block said of it, each with a comma
// behind.
func appendExtra(b []byte, extra json.RawMessage) []byte {
	if len(extra) == 0 {
		return b
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(extra, &m) != nil {
		return b
	}
	for _, key := range extras {
		if v, ok := m[key]; ok {
			b = append(b, '"')
			b = append(b, key...)
			b = append(b, `":`...)
			b = append(append(b, v...), ',')
		}
	}
	return b
}
