package toolreview

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"ken/internal/coldsort"
	"ken/internal/tokenizer"
)

// A Cost is what the tools of a server cost a client that shows all of them to
// its model.
type Cost struct {
	Server string
	Tools  int
	Tokens int
}

// Costs counts the tools of every server and the tokens of their definitions.
func (v *Reviews) Costs(ctx context.Context) []Cost {
	by := map[string]*Cost{}
	for e := range v.cfg.Catalog.Snapshot().All() {
		if !isTool(e) {
			continue
		}
		c := by[e.Category]
		if c == nil {
			c = &Cost{Server: e.Category}
			by[e.Category] = c
		}
		d, err := v.cfg.Catalog.Inspect(ctx, e)
		if err != nil {
			continue // it changes this moment
		}
		// Texts and schemas as they are, without the escapes that JSON needs.
		head, _ := json.Marshal(map[string]string{"name": e.Name, "description": e.Description}) // texts cannot fail
		c.Tools++
		c.Tokens += tokenizer.Count(string(head)) + tokenizer.Count(string(d.Schema))
	}
	var out []Cost
	for _, c := range by {
		out = append(out, *c)
	}
	coldsort.By(out, func(x, y Cost) int { return cmp.Or(y.Tokens-x.Tokens, strings.Compare(x.Server, y.Server)) })
	return out
}
