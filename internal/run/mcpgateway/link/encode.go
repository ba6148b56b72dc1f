package link

import (
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
)

// Encode is the way back from a result to tools/call, by the rules in content.go.
// Results that did not come from here are mapped as well as those rules can.
func Encode(res capability.Result) (json.RawMessage, error) {
	out := wireOut{Content: []json.RawMessage{}, IsError: res.Failed}
	if meta := json.RawMessage(res.Meta["_meta"]); json.Valid(meta) {
		out.Meta = meta
	}
	for i, part := range res.Parts {
		if i == len(res.Parts)-1 && part.JSON != nil && part.MIME == MIMEStructured {
			out.Structured = part.JSON
			break
		}
		block, err := encodeBlock(part)
		if err != nil {
			return nil, fmt.Errorf("part %d of the result: %w", i+1, err)
		}
		out.Content = append(out.Content, block)
	}
	return json.Marshal(out)
}

type wireOut struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	IsError    bool              `json:"isError,omitempty"`
	Meta       json.RawMessage   `json:"_meta,omitempty"`
}

func encodeBlock(part capability.Part) (json.RawMessage, error) {
	if part.JSON != nil && part.MIME == MIMEContent {
		return part.JSON, nil
	}
	block := make(map[string]any)
	if len(part.Extra) > 0 {
		var extra map[string]json.RawMessage
		if err := json.Unmarshal(part.Extra, &extra); err != nil {
			return nil, fmt.Errorf("extra: %w", err)
		}
		for name, value := range extra {
			block[name] = value
		}
	}
	switch kind := kindOf(part, block["type"]); kind {
	case "image", "audio":
		block["type"], block["data"], block["mimeType"] = kind, append([]byte{}, part.Data...), part.MIME
	case "resource_link":
		block["type"], block["uri"] = kind, part.Link
		if part.MIME != "" {
			block["mimeType"] = part.MIME
		}
	case "resource":
		inner := resourceOf(part)
		if raw, ok := block["resource"].(json.RawMessage); ok {
			var more struct {
				Meta json.RawMessage `json:"_meta"`
			}
			if json.Unmarshal(raw, &more) == nil && present(more.Meta) {
				inner["_meta"] = more.Meta
			}
		}
		block["type"], block["resource"] = kind, inner
	default:
		block["type"], block["text"] = "text", part.Text
		if part.JSON != nil {
			block["text"] = string(part.JSON)
		}
	}
	return json.Marshal(block)
}

// kindOf is rules 3 to 9 of those in content.go.
func kindOf(part capability.Part, marked any) string {
	raw, _ := marked.(json.RawMessage)
	mark := strings.Trim(string(raw), `"`)
	filled := part.Text != "" || part.Data != nil
	switch {
	case part.JSON != nil:
		return "text"
	case mark == "image" || mark == "audio" || mark == "resource":
		return mark
	case part.Link != "" && filled:
		return "resource"
	case part.Link != "":
		return "resource_link"
	case part.Text == "" && strings.HasPrefix(part.MIME, "image/"):
		return "image"
	case part.Text == "" && strings.HasPrefix(part.MIME, "audio/"):
		return "audio"
	case part.Data != nil:
		return "resource"
	}
	return "text"
}

func resourceOf(part capability.Part) map[string]any {
	inner := map[string]any{"uri": part.Link}
	if part.Link == "" {
		inner["uri"] = "ken:part"
	}
	if part.MIME != "" {
		inner["mimeType"] = part.MIME
	}
	if part.Data != nil {
		inner["blob"] = part.Data
	} else {
		inner["text"] = part.Text
	}
	return inner
}
