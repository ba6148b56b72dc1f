package mcpgateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/know/source/mcpskill"
	"ken/internal/run/mcpgateway/link"
)

// A server may repeat in its lists what it was given: a token as the default of
// an argument, or in a description. Lists are kept in files, shown to people and
// put into prompts, so secrets are taken out of them where they arrive.

// addressable returns lists without what holds a secret in its name or address:
// changed, it would name nothing at the server. Notes say how many there were.
func addressable(got link.Lists, redact func(string) string) link.Lists {
	got.Notes = slices.Clone(got.Notes)
	got.Tools = keepPlain(got.Tools, "tool", &got.Notes, redact, func(t *mcp.Tool) string { return t.Name })
	got.Prompts = keepPlain(got.Prompts, "prompt", &got.Notes, redact, func(p *mcp.Prompt) string { return p.Name })
	got.Resources = keepPlain(got.Resources, "resource", &got.Notes, redact, func(r *mcp.Resource) string { return r.URI })
	got.Templates = keepPlain(got.Templates, "resource template", &got.Notes, redact, func(t *mcp.ResourceTemplate) string { return t.URITemplate })
	got.Skills = keepPlain(got.Skills, "skill", &got.Notes, redact, func(e *mcpskill.Entry) string { return e.URI })
	return got
}

func keepPlain[T any](list []*T, what string, notes *[]string, redact func(string) string, name func(*T) string) []*T {
	kept := slices.DeleteFunc(slices.Clone(list), func(item *T) bool { return redact(name(item)) != name(item) })
	switch n := len(list) - len(kept); n {
	case 0:
		return list
	case 1:
		*notes = append(*notes, fmt.Sprintf("1 %s is left out: its name or address holds a secret", what))
	default:
		*notes = append(*notes, fmt.Sprintf("%d %ss are left out: their names or addresses hold a secret", n, what))
	}
	return kept
}

// redactJSON returns a JSON text without the secrets in its strings, keys
// included. Everything else keeps its bytes.
func redactJSON(text []byte, redact func(string) string) ([]byte, error) {
	var out []byte
	done := 0
	for at := bytes.IndexByte(text, '"'); at >= 0; {
		end := at + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(text))
		s, plain := plainString(text[at:end])
		if !plain {
			if err := json.Unmarshal(text[at:end], &s); err != nil {
				return nil, fmt.Errorf("remove secrets from the server's lists: %w", err)
			}
		}
		if clean := redact(s); clean != s {
			quoted, err := json.Marshal(clean)
			if err != nil {
				return nil, fmt.Errorf("remove secrets from the server's lists: %w", err)
			}
			out = append(append(out, text[done:at]...), quoted...)
			done = end
		}
		next := bytes.IndexByte(text[end:], '"')
		if next < 0 {
			break
		}
		at = end + next
	}
	if done == 0 {
		return text, nil
	}
	return append(out, text[done:]...), nil
}

// plainString returns the text of a JSON string. It reports false for a string
// with an escape, or one that is not valid: that is for the decoder.
func plainString(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[len(quoted)-1] != '"' {
		return "", false
	}
	inner := quoted[1 : len(quoted)-1]
	for _, c := range inner {
		if c < ' ' || c == '\\' {
			return "", false
		}
	}
	if !utf8.Valid(inner) {
		return "", false
	}
	return string(inner), true
}
