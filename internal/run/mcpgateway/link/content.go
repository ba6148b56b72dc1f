package link

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/jsonvalid"
	"ken/internal/untrusted"
)

// MIME types of parts that hold JSON of the protocol.
const (
	MIMEStructured = "application/json"                 // structuredContent
	MIMEPrompt     = "application/vnd.mcp.prompt+json"  // a GetPromptResult
	MIMEContent    = "application/vnd.mcp.content+json" // a content block of a kind not known here
)

// The mapping between what a server answers and [capability.Result]. It loses
// nothing, so that servers of the result can say it again.
//
//	tools/call                            Part
//	─────────────────────────────────     ────────────────────────────────────────
//	{type:text, text}                     Text
//	{type:image|audio, data, mimeType}    Data, MIME
//	{type:resource_link, uri, mimeType}   Link, MIME; name, title, description,
//	                                      size and icons are members of Extra
//	{type:resource, resource:{uri,        Text or Data, with Link and MIME;
//	  mimeType, text|blob, _meta}}        resource._meta is Extra.resource._meta
//	any other type, or data that is       JSON the block as it came,
//	  not base64                          MIME application/vnd.mcp.content+json
//	structuredContent                     the last Part: JSON, MIME application/json
//	annotations and _meta of a block      members of Extra under those names
//	isError                               Failed
//	_meta of the result                   Meta["_meta"], as JSON
//
//	resources/read                        Part
//	{uri, mimeType, text|blob, _meta}     as type:resource, with _meta in Extra._meta
//
//	prompts/get                           Part
//	the whole result                      JSON as it came, MIME application/vnd.mcp.prompt+json
//
// The way back, by the first rule that holds:
//
//  1. JSON with MIME application/json, as the last part: structuredContent.
//  2. JSON with MIME application/vnd.mcp.content+json: the block as it is.
//  3. any other JSON: a text block of it.
//  4. Extra.type "image", "audio" or "resource": a block of that type. It is set
//     only where the next rules would say something else: data whose MIME type
//     is not of its kind, and an embedded resource without content.
//  5. Link with Text or Data: an embedded resource, with text or blob.
//  6. Link alone: a resource_link.
//  7. Data: audio for audio/…, image for image/…, else an embedded resource
//     with a blob and the uri "ken:part".
//  8. MIME image/… or audio/… without anything else: such a block, empty.
//  9. else: text, which may be empty.
//
// The members of Extra except type and resource become members of the block.

// An answer is what came back for a request.
type answer struct {
	result   capability.Result
	asks     bool // the server wants to know more first
	requests map[string]json.RawMessage
	state    string
}

// asking are the members of a result that asks.
type asking struct {
	ResultType    string                     `json:"resultType"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	RequestState  string                     `json:"requestState"`
}

func (a asking) answer() (answer, bool) {
	if a.ResultType != "input_required" {
		return answer{}, false
	}
	return answer{asks: true, requests: a.InputRequests, state: a.RequestState}, true
}

type wireCall struct {
	asking
	Content    []wireBlock     `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	Meta       json.RawMessage `json:"_meta"`
}

type wireBlock struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Data        string          `json:"data"`
	MIMEType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Resource    *wireResource   `json:"resource"`
	Annotations json.RawMessage `json:"annotations"`
	Meta        json.RawMessage `json:"_meta"`
	Name        json.RawMessage `json:"name"`
	Title       json.RawMessage `json:"title"`
	Description json.RawMessage `json:"description"`
	Size        json.RawMessage `json:"size"`
	Icons       json.RawMessage `json:"icons"`
}

type wireResource struct {
	URI      string          `json:"uri"`
	MIMEType string          `json:"mimeType"`
	Text     string          `json:"text"`
	Blob     string          `json:"blob"`
	Meta     json.RawMessage `json:"_meta"`
}

// decodeCall decodes a result of tools/call.
func decodeCall(raw json.RawMessage) (answer, error) {
	if res, ok := plainResult(raw); ok {
		return answer{result: res}, nil
	}
	return decodeAnyCall(raw)
}

// decodeAnyCall is decodeCall for all results.
func decodeAnyCall(raw json.RawMessage) (answer, error) {
	var w wireCall
	if err := json.Unmarshal(raw, &w); err != nil {
		return answer{}, err
	}
	if a, ok := w.asking.answer(); ok {
		return a, nil
	}
	res := capability.Result{Failed: w.IsError}
	if len(w.Content) > 0 || present(w.Structured) {
		res.Parts = make([]capability.Part, 0, len(w.Content)+1)
	}
	var asSent []json.RawMessage
	for i := range w.Content {
		part, ok := w.Content[i].part()
		if !ok {
			if asSent == nil {
				var err error
				if asSent, err = blocks(raw); err != nil {
					return answer{}, err
				}
			}
			part = capability.Part{JSON: asSent[i], MIME: MIMEContent}
		}
		res.Parts = append(res.Parts, part)
	}
	if present(w.Structured) {
		res.Parts = append(res.Parts, capability.Part{JSON: w.Structured, MIME: MIMEStructured})
	}
	if present(w.Meta) {
		res.Meta = map[string]string{"_meta": string(w.Meta)}
	}
	return answer{result: res}, nil
}

// plainResult reads a result that has texts and nothing else, as most have. It
// reports false for all others.
func plainResult(raw json.RawMessage) (res capability.Result, ok bool) {
	if !jsonvalid.Valid(raw) {
		return res, false
	}
	var content, meta, failed json.RawMessage
	for name, value := range untrusted.Members(raw) {
		switch {
		case name == "content" && content == nil:
			content = value
		case name == "_meta" && meta == nil:
			meta = value
		case name == "isError" && failed == nil && (string(value) == "true" || string(value) == "false"):
			failed = value
		case name == "resultType" && string(value) == `"complete"`:
		default:
			return res, false
		}
	}
	if len(content) == 0 || content[0] != '[' {
		return res, false
	}
	for block := range untrusted.Items(content) {
		text, ok := plainText(block)
		if !ok {
			return res, false
		}
		res.Parts = append(res.Parts, capability.Part{Text: text})
	}
	res.Failed = string(failed) == "true"
	if present(meta) {
		res.Meta = map[string]string{"_meta": string(meta)}
	}
	return res, true
}

// plainText reads a block of text without annotations.
func plainText(block json.RawMessage) (text string, ok bool) {
	var kind, raw json.RawMessage
	for name, value := range untrusted.Members(block) {
		switch {
		case name == "type" && kind == nil:
			kind = value
		case name == "text" && raw == nil:
			raw = value
		default:
			return "", false
		}
	}
	if string(kind) != `"text"` || len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if text, ok = jsonvalid.Text(raw); ok {
		return text, true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

func blocks(raw json.RawMessage) ([]json.RawMessage, error) {
	var w struct {
		Content []json.RawMessage `json:"content"`
	}
	err := json.Unmarshal(raw, &w)
	return w.Content, err
}

func present(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

// part maps a block. It is not ok where the block is of a kind that is not
// known, or breaks the rules of its kind.
func (b *wireBlock) part() (part capability.Part, ok bool) {
	var extra object
	switch b.Type {
	case "text":
		part.Text = b.Text
	case "image", "audio":
		data, err := base64.StdEncoding.DecodeString(b.Data)
		if err != nil {
			return part, false
		}
		part.Data, part.MIME = data, b.MIMEType
		if !strings.HasPrefix(b.MIMEType, b.Type+"/") {
			extra.text("type", b.Type)
		}
	case "resource_link":
		part.Link, part.MIME = b.URI, b.MIMEType
		if b.URI == "" {
			return part, false
		}
		extra.add("name", b.Name)
		extra.add("title", b.Title)
		extra.add("description", b.Description)
		extra.add("size", b.Size)
		extra.add("icons", b.Icons)
	case "resource":
		if b.Resource == nil || b.Resource.URI == "" {
			return part, false
		}
		var err error
		if part, err = b.Resource.part(); err != nil {
			return part, false
		}
		if part.Text == "" && part.Data == nil {
			extra.text("type", b.Type)
		}
		if present(b.Resource.Meta) {
			extra.add("resource", fmt.Appendf(nil, `{"_meta":%s}`, b.Resource.Meta))
		}
	default:
		return part, false
	}
	extra.add("annotations", b.Annotations)
	extra.add("_meta", b.Meta)
	part.Extra = extra.json()
	return part, true
}

func (r *wireResource) part() (capability.Part, error) {
	part := capability.Part{Text: r.Text, Link: r.URI, MIME: r.MIMEType}
	if r.Blob != "" && r.Text == "" {
		data, err := base64.StdEncoding.DecodeString(r.Blob)
		if err != nil {
			return part, fmt.Errorf("blob of %s: %w", r.URI, err)
		}
		part.Data = data
	}
	return part, nil
}

// decodeRead decodes a result of resources/read.
func decodeRead(raw json.RawMessage) (answer, error) {
	var w struct {
		asking
		Contents []wireResource  `json:"contents"`
		Meta     json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return answer{}, err
	}
	if a, ok := w.asking.answer(); ok {
		return a, nil
	}
	var res capability.Result
	for i := range w.Contents {
		part, err := w.Contents[i].part()
		if err != nil {
			return answer{}, err
		}
		var extra object
		if part.Text == "" && part.Data == nil {
			extra.text("type", "resource")
		}
		extra.add("_meta", w.Contents[i].Meta)
		part.Extra = extra.json()
		res.Parts = append(res.Parts, part)
	}
	if present(w.Meta) {
		res.Meta = map[string]string{"_meta": string(w.Meta)}
	}
	return answer{result: res}, nil
}

// decodePrompt keeps a result of prompts/get as it is.
func decodePrompt(raw json.RawMessage) (answer, error) {
	var w struct {
		asking
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return answer{}, err
	}
	if a, ok := w.asking.answer(); ok {
		return a, nil
	}
	return answer{result: capability.Result{Parts: []capability.Part{{JSON: raw, MIME: MIMEPrompt}}}}, nil
}

// An object is a JSON object in the making. Zero is one without members.
type object []byte

func (o *object) add(name string, value json.RawMessage) {
	if !present(value) {
		return
	}
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(*o, '"')
	*o = append(*o, name...)
	*o = append(*o, '"', ':')
	*o = append(*o, value...)
}

// text adds a string.
func (o *object) text(name, value string) {
	quoted, err := json.Marshal(value)
	if err != nil {
		return // unreachable: a string
	}
	o.add(name, quoted)
}

func (o object) json() json.RawMessage {
	if len(o) == 0 {
		return nil
	}
	return json.RawMessage(append(o, '}'))
}
