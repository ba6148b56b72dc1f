package mcpbridge

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/redaction"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/mcpgateway"
	"ken/internal/serve/mcpserver"
	"ken/internal/serve/skillshelf"
)

// Backends are the MCP servers behind Ken, as clients of Ken see them. Secrets
// are not sent to servers, and are removed from their answers.
type Backends struct {
	Gateway  *mcpgateway.Gateway
	Redactor *redaction.Redactor
}

// Offers implements [mcpserver.Backends].
func (b Backends) Offers(capability.Principal) ([]mcpserver.Offer, uint64) {
	version := b.Gateway.Version() // before the lists: a change in between is announced again
	var out []mcpserver.Offer
	for _, o := range b.Gateway.Offers() {
		one := mcpserver.Offer{
			Server: o.Server, Prompts: o.Prompts, Resources: o.Resources, Templates: o.Templates,
			Instructions: o.Instructions, Read: o.Read, Prompt: o.Prompt,
		}
		for _, sk := range o.Skills {
			s := skillshelf.Skill{URI: sk.URI, Frontmatter: sk.Frontmatter, Read: sk.Read}
			for _, f := range sk.Resources {
				s.Files = append(s.Files, skillshelf.File(f))
			}
			one.Skills = append(one.Skills, s)
		}
		out = append(out, one)
	}
	return out, version
}

// Next implements [mcpserver.Backends].
func (b Backends) Next(ctx context.Context, after uint64) (uint64, error) {
	return b.Gateway.Next(ctx, after)
}

// Complete implements [mcpserver.Backends].
func (b Backends) Complete(ctx context.Context, who capability.Principal, session, server string, params json.RawMessage) (json.RawMessage, error) {
	var p mcp.CompleteParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "complete", Target: server, Err: err}
	}
	if err := b.Redactor.Check("complete", server, string(params), p.Argument.Value); err != nil {
		return nil, err
	}
	res, err := b.Gateway.Complete(ctx, who, session, server, &p)
	if err != nil {
		return nil, err
	}
	for i, value := range res.Completion.Values {
		res.Completion.Values[i] = b.Redactor.Held(value)
	}
	return json.Marshal(res)
}

// Subscribe implements [mcpserver.Backends].
func (b Backends) Subscribe(ctx context.Context, who capability.Principal, session, server, uri string, updated func()) (func(), error) {
	if err := b.Redactor.Check("subscribe", server, uri); err != nil {
		return nil, err
	}
	return b.Gateway.Subscribe(ctx, who, session, uri, updated)
}

// ExposedName returns the name that the gateway gave a server's tool. Other
// formats keep unknown keys in Meta, so there the key means nothing.
func ExposedName(e *door.Entry) string {
	if e.Origin.Format != mcptools.Format {
		return ""
	}
	return e.Meta[mcptools.MetaExposed]
}

// PageOf returns what a server says of its pages and one of its tools.
func PageOf(e *door.Entry) mcpserver.Page {
	if e.Origin.Format != mcptools.Format {
		return mcpserver.Page{}
	}
	return mcpserver.Page{Address: e.Meta[mcptools.MetaApp], Only: e.Meta[mcptools.MetaAppOnly] != "", Never: e.Meta[mcptools.MetaNotApp] != ""}
}
