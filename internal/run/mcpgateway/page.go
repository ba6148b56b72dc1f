package mcpgateway

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/sandbox/egress"
	"ken/internal/untrusted"
)

// mostDomains is how many addresses each list of a page's policy may have.
const mostDomains = 64

// metaRemoved is the member of _meta that names the addresses that were taken from
// the policy of a page.
const metaRemoved = "ken/removedDomains"

// boundPages limits what a page of the server (MCP Apps) may reach. The page runs in
// the browser of the client, with the network of the user: a confined server whose
// page could reach any host would not be confined. Its pages reach what hosts names.
func (s *server) boundPages(res *capability.Result) {
	for i := range res.Parts {
		p := &res.Parts[i]
		if !strings.HasPrefix(p.Link, "ui://") && !strings.Contains(p.MIME, "profile=mcp-app") {
			continue
		}
		var extra map[string]json.RawMessage
		if json.Unmarshal(p.Extra, &extra) != nil {
			continue // there is no policy, so hosts let it reach nothing
		}
		meta, changed := s.boundPolicy(extra["_meta"])
		if !changed {
			continue
		}
		extra["_meta"] = meta
		p.Extra = object(extra)
	}
}

// boundResource is boundPages for a resource of a list.
func (s *server) boundResource(r *mcp.Resource) *mcp.Resource {
	if !strings.HasPrefix(r.URI, "ui://") || r.Meta == nil {
		return r
	}
	meta, changed := s.boundPolicy(object(r.Meta))
	if !changed {
		return r
	}
	out := *r
	out.Meta = nil
	_ = json.Unmarshal(meta, &out.Meta) // Ken wrote it
	return &out
}

// boundPolicy returns the _meta of a page with a policy that the definition of the
// server allows. A policy that cannot be read is removed, and so allows nothing.
func (s *server) boundPolicy(raw json.RawMessage) (out json.RawMessage, changed bool) {
	var meta, ui map[string]json.RawMessage
	if json.Unmarshal(raw, &meta) != nil || len(meta["ui"]) == 0 {
		return raw, false
	}
	var csp map[string]json.RawMessage
	if json.Unmarshal(meta["ui"], &ui) != nil || len(ui["csp"]) > 0 && json.Unmarshal(ui["csp"], &csp) != nil {
		delete(meta, "ui")
		meta[metaRemoved] = json.RawMessage(`["a policy that cannot be read"]`)
		return object(meta), true
	}
	var removed []string
	for name, value := range csp {
		var list, kept []string
		if json.Unmarshal(value, &list) != nil {
			delete(csp, name)
			removed = append(removed, name)
			continue
		}
		for _, domain := range list {
			if len(kept) < mostDomains && len(domain) <= 512 && s.mayReach(domain) {
				kept = append(kept, domain)
			} else if word := untrusted.Line(domain, 200); len(removed) < mostDomains && !slices.Contains(removed, word) {
				removed = append(removed, word)
			}
		}
		if len(kept) < len(list) {
			csp[name] = object(append([]string{}, kept...))
		}
	}
	if len(removed) == 0 {
		return raw, false
	}
	ui["csp"] = object(csp)
	meta["ui"] = object(ui)
	meta[metaRemoved] = object(removed)
	return object(meta), true
}

// mayReach reports whether a page of the server may name an address in its policy.
func (s *server) mayReach(domain string) bool {
	if s.def.URL != "" || s.def.EffectiveProfile() != ProfileConfined {
		return true
	}
	u, err := url.Parse(domain)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "ws": "80"}[u.Scheme]
	}
	return egress.Covers(s.def.Hosts, u.Hostname(), port)
}
