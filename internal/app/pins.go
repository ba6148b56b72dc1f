package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/know/source"
	"ken/internal/run/mcpgateway"
	"ken/internal/tokenizer"
)

// A ServerReview is what a person must look at before the tools of an MCP server
// that are new or changed may be used.
type ServerReview struct {
	Server  string        `json:"server"`
	Waiting []pin.Waiting `json:"waiting"`
	Digest  string        `json:"digest"` // of all that waits

	key string
}

// ServerReviews lists the servers that were ever listed, with what waits at
// each.
func (a *App) ServerReviews(ctx context.Context) ([]pin.Server, error) {
	if a.gateway == nil || len(a.gateway.Status()) == 0 {
		return nil, nil
	}
	desk, err := a.serving.pins.get()
	if err != nil {
		return nil, err
	}
	all, err := desk.List(ctx)
	keys := map[string]bool{}
	for _, s := range a.servers() {
		keys[pin.ServerKey(s.Name, s.Origin.Path)] = true
	}
	return slices.DeleteFunc(all, func(s pin.Server) bool { return !keys[s.Key] }), err
}

// ReviewServer gives what waits at a server.
func (a *App) ReviewServer(ctx context.Context, name string) (ServerReview, error) {
	r := ServerReview{Server: name}
	list := a.servers()
	i := slices.IndexFunc(list, func(s mcpgateway.Server) bool { return s.Name == name })
	if i < 0 || a.gateway == nil {
		return r, &capability.Error{Kind: capability.NotFound, Op: "review", Target: "mcp:" + name, Err: errors.New("there is no MCP server of this name"), Fix: "see ken extension list"}
	}
	desk, err := a.serving.pins.get()
	if err != nil {
		return r, err
	}
	r.key = pin.ServerKey(name, list[i].Origin.Path)
	if r.Waiting, err = desk.Pending(ctx, r.key); err != nil {
		return r, err
	}
	h := sha256.New()
	for _, w := range r.Waiting {
		fmt.Fprintf(h, "%d:%s%d:%s", len(w.Tool), w.Tool, len(w.Hash), w.Hash)
	}
	r.Digest = hex.EncodeToString(h.Sum(nil)[:8])
	return r, nil
}

// AcceptTools lets be used what was shown.
func (a *App) AcceptTools(ctx context.Context, r ServerReview) error {
	desk, err := a.serving.pins.get()
	if err != nil {
		return err
	}
	shown := map[string]string{}
	for _, w := range r.Waiting {
		shown[w.Tool] = w.Hash
	}
	if err := desk.Accept(ctx, r.key, shown, a.Principal); err != nil {
		return err
	}
	return a.gateway.Review(ctx, r.Server)
}

// A ServerCost is what the tools of a server are to a client that shows them
// all to its model.
type ServerCost struct {
	Server string
	Tools  int
	Tokens int
}

// ServerCosts counts the definitions of the tools of every server.
func (a *App) ServerCosts(ctx context.Context) []ServerCost {
	by := map[string]*ServerCost{}
	for e := range a.Oversee().All() {
		if e.Origin.Format != source.FormatMCP || e.Run == nil || e.Run.Runner != "mcp.call" {
			continue
		}
		c := by[e.Category]
		if c == nil {
			c = &ServerCost{Server: e.Category}
			by[e.Category] = c
		}
		d, err := a.catalog.Inspect(ctx, e)
		if err != nil {
			continue // it changes this moment
		}
		// Texts and schemas as they are, without the escapes that JSON needs.
		head, _ := json.Marshal(map[string]string{"name": e.Name, "description": e.Description}) // texts cannot fail
		c.Tools++
		c.Tokens += tokenizer.Count(string(head)) + tokenizer.Count(string(d.Schema))
	}
	var out []ServerCost
	for _, c := range by {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(x, y ServerCost) int { return cmp.Or(y.Tokens-x.Tokens, strings.Compare(x.Server, y.Server)) })
	return out
}
