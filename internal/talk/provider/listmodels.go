package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"ken/llm"
)

// mostList is the maximum size of a list of models in bytes.
const mostList = 4 << 20

// List asks a server for its list of models, with a GET of path under the base
// URL. It returns their ids, or none if the server answers without a readable
// list. The error is an [llm.Error] if nothing answers, the key is rejected, or
// the server fails.
func List(ctx context.Context, cfg Config, path string, header http.Header) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.BaseURL+path, nil)
	if err != nil {
		return nil, &llm.Error{
			Kind: llm.Invalid, Provider: cfg.Name, Model: cfg.Model, Err: inner(err),
			Fix: "set the provider's url to an address that begins with https:// or http://",
		}
	}
	req.Header.Set("Accept", "application/json")
	for _, h := range []http.Header{header, cfg.Header} {
		for name, values := range h {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	resp, err := cfg.client().Do(req)
	if err != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return nil, &llm.Error{Kind: llm.Unreachable, Provider: cfg.Name, Model: cfg.Model, Err: errSilent, Fix: cfg.fix(llm.Unreachable)}
		}
		return nil, cfg.unreachable(ctx, ctx, err, req.Header)
	}
	defer resp.Body.Close()
	switch kind := StatusKind(resp.StatusCode); {
	case resp.StatusCode/100 == 2:
	case resp.StatusCode/100 == 3 || resp.StatusCode >= 500 || kind == llm.Auth:
		return nil, cfg.refused(ctx, resp, req.Header, nil)
	default:
		return nil, nil // it answers, but has no list
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostList))
	if err != nil {
		return nil, cfg.unreachable(ctx, ctx, err, req.Header)
	}
	var list struct {
		Data   []struct{ ID string }   // OpenAI, Anthropic
		Models []struct{ Name string } // Gemini: models/NAME
	}
	if json.Unmarshal(body, &list) != nil {
		return nil, nil
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	for _, m := range list.Models {
		ids = append(ids, m.Name)
	}
	return ids, nil
}
