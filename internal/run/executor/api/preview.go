package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/executor"
)

var _ executor.Previewer = (*Executor)(nil)

// Preview returns the request that a call would send: method and address, headers
// and body. Of credentials it has only the names.
func (e *Executor) Preview(ctx context.Context, call capability.Call, _ *capability.Capability) ([]executor.Shown, error) {
	p, err := e.plan(ctx, call)
	if err != nil {
		return nil, err
	}
	request := executor.Shown{Name: "request", Text: p.method + " " + p.url.String()}
	if p.method == http.MethodDelete {
		request.Marks = []executor.Mark{{To: len(p.method), Why: "deletes something on the server"}}
	}
	out := []executor.Shown{request}
	if text := p.headerText(); text != "" {
		out = append(out, executor.Shown{Name: "headers", Text: text})
	}
	if len(p.body) > 0 {
		out = append(out, executor.Shown{Name: "body", Text: p.bodyText()})
	}
	return out, nil
}

// headerText lists the headers. The value of one that carries a credential is not
// in it.
func (p *plan) headerText() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(p.header)) {
		value := strings.Join(p.header[name], ", ")
		if carriesCredential(name) {
			value = "(hidden)"
		}
		lines = append(lines, name+": "+value)
	}
	if len(p.cookies) > 0 {
		lines = append(lines, "Cookie: (hidden)")
	}
	for _, a := range p.op.auth {
		where := "Authorization"
		if a.Scheme == "apiKey" {
			where = a.Name
			if a.In != "header" {
				where = a.In + " " + a.Name
			}
		}
		lines = append(lines, where+": (the secret "+a.Secret+")")
	}
	return strings.Join(lines, "\n")
}

func carriesCredential(header string) bool {
	name := strings.ToLower(header)
	for _, part := range []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "signature"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// bodyText returns the body as people read it.
func (p *plan) bodyText() string {
	var indented bytes.Buffer
	if json.Indent(&indented, p.body, "", "  ") == nil {
		return indented.String()
	}
	if !utf8.Valid(p.body) || bytes.IndexByte(p.body, 0) >= 0 {
		return fmt.Sprintf("%d bytes of %s", len(p.body), p.header.Get("Content-Type"))
	}
	return string(p.body)
}
