package mcpserver

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/skillshelf"
	"ken/internal/untrusted"
)

// offerings are the prompts and resources that a principal is shown: Ken's own
// texts, and what back ends have. They do not change.
type offerings struct {
	print                         uint64
	prompts, resources, templates *list

	prompt   map[string]origin // by the name that clients see
	resource map[string]origin // by the address that clients see
	template []pattern
	servers  map[string]origin // by the server's name: how its resources are read

	skills    skillshelf.Shelf
	skillList *list
}

// An origin is where a prompt or a resource is read.
type origin struct {
	text   capability.ID // of Ken's own; empty for a back end's
	reader capability.ID // the capability that reads it
	server string
	name   string // at the server
	mime   string
	file   string // of the skill that text names
}

// A pattern matches the addresses of a template.
type pattern struct {
	origin
	template string
	match    *regexp.Regexp
}

// offerings returns the cached lists, and rebuilds them if they are stale; it never blocks on a back end.
func (a *audience) offerings(v door.View) *offerings {
	var texts, pages []*door.Entry
	h := fnv.New64a()
	for e := range v.All() {
		if e.State == "active" && e.Available && (e.Kind == capability.KindSkill || e.Kind == capability.KindCard) {
			texts = append(texts, e)
			h.Write([]byte(e.ID))
			h.Write([]byte(e.Hash))
			h.Write([]byte(e.Withheld))
		}
		if callable(e) && a.s.page(e).Address != "" {
			pages = append(pages, e)
			h.Write([]byte(e.ID))
			h.Write([]byte(e.Hash))
		}
	}
	var offers []Offer
	if a.s.cfg.Backends != nil {
		all, version := a.s.cfg.Backends.Offers(a.who)
		h.Write(binary.LittleEndian.AppendUint64(nil, version))
		for _, o := range all {
			o.Read, o.Prompt = seen(v, o.Read), seen(v, o.Prompt)
			h.Write([]byte(o.Server + "\x00" + string(o.Read) + "\x00" + string(o.Prompt) + "\x00"))
			o.Skills = seenSkills(v, o.Skills)
			for _, sk := range o.Skills {
				h.Write([]byte(sk.Read + "\x00"))
			}
			offers = append(offers, o)
		}
	}
	print := h.Sum64()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lists == nil || a.lists.print != print {
		a.lists = makeOfferings(a.s, texts, offers)
		a.lists.addPages(a.s, pages)
		a.lists.print = print
	}
	return a.lists
}

// seen returns an id if it is one that the viewer may use.
func seen(v door.View, id capability.ID) capability.ID {
	if e, err := v.Lookup(string(id)); id == "" || err != nil || e.State != "active" {
		return ""
	}
	return id
}

// A shelf collects one list.
type shelf struct {
	field string
	items map[string]json.RawMessage
}

func (s *shelf) put(name string, item any) {
	raw, err := json.Marshal(item)
	if err != nil {
		return // nothing that was read from JSON cannot be written
	}
	s.items[name] = raw
}

func (s *shelf) list() *list {
	names := make([]string, 0, len(s.items))
	for name := range s.items {
		names = append(names, name)
	}
	sort.Strings(names)
	items := make([]json.RawMessage, len(names))
	for i, name := range names {
		items[i] = s.items[name]
	}
	return newList(s.field, names, items)
}

func makeOfferings(s *Server, texts []*door.Entry, offers []Offer) *offerings {
	o := &offerings{prompt: map[string]origin{}, resource: map[string]origin{}, servers: map[string]origin{}}
	ps, rs, ts := shelf{"prompts", map[string]json.RawMessage{}}, shelf{"resources", map[string]json.RawMessage{}}, shelf{"resourceTemplates", map[string]json.RawMessage{}}
	// The names of prompts are given in the order of those of tools: Ken's own and
	// the user's texts, then the servers' prompts, then a project's texts.
	texts = named(texts)
	o.addSkills(s, texts, offers)
	project := slices.IndexFunc(texts, func(e *door.Entry) bool { return late(e) > 1 })
	if project < 0 {
		project = len(texts)
	}
	o.addTexts(&ps, &rs, texts[:project])
	for _, offer := range offers {
		if offer.Prompt != "" {
			for _, p := range offer.Prompts {
				name := p.Name
				if _, taken := o.prompt[name]; taken {
					name = offer.Server + "__" + name
				}
				item := safePrompt(p)
				item.Name = name
				ps.put(name, &item)
				o.prompt[name] = origin{reader: offer.Prompt, server: offer.Server, name: p.Name}
			}
		}
		if offer.Read != "" {
			o.addResources(&rs, &ts, offer)
		}
	}
	o.addTexts(&ps, &rs, texts[project:])
	o.prompts, o.resources, o.templates = ps.list(), rs.list(), ts.list()
	return o
}

// addTexts adds texts that Ken has itself, as prompts and as resources.
func (o *offerings) addTexts(ps, rs *shelf, texts []*door.Entry) {
	for _, e := range texts {
		name := unique(e.Name, e, o.prompt)
		ps.put(name, &mcp.Prompt{Name: name, Title: e.DisplayName, Description: e.Description})
		o.prompt[name] = origin{text: e.ID}
		uri := textURI(e)
		rs.put(uri, &mcp.Resource{URI: uri, Name: e.Name, Title: e.DisplayName, Description: e.Description, MIMEType: "text/markdown"})
		o.resource[uri] = origin{text: e.ID, mime: "text/markdown"}
	}
}

// safe returns a server's text without chat template tokens.
func safe(s string) string {
	s, _ = untrusted.Tokens(s)
	return s
}

// safePrompt returns a copy of a prompt whose texts are safe.
func safePrompt(p *mcp.Prompt) mcp.Prompt {
	out := *p
	out.Title, out.Description, out.Arguments = safe(p.Title), safe(p.Description), nil
	for _, a := range p.Arguments {
		if a == nil {
			continue // ignore a null in the server's list
		}
		one := *a
		one.Title, one.Description = safe(a.Title), safe(a.Description)
		out.Arguments = append(out.Arguments, &one)
	}
	return out
}

// addResources adds the resources of a back end. An address that another one
// has already is given one below ken://mcp/.
func (o *offerings) addResources(rs, ts *shelf, offer Offer) {
	o.servers[offer.Server] = origin{reader: offer.Read, server: offer.Server}
	for _, r := range offer.Resources {
		uri := r.URI
		if _, taken := o.resource[uri]; taken || strings.HasPrefix(uri, "ken:") || o.skills.Others(offer.Server, uri) {
			uri = "ken://mcp/" + url.PathEscape(offer.Server) + "/" + url.PathEscape(r.URI)
		}
		item := *r
		item.URI, item.Name, item.Title, item.Description = uri, safe(r.Name), safe(r.Title), safe(r.Description)
		rs.put(uri, &item)
		o.resource[uri] = origin{reader: offer.Read, server: offer.Server, name: r.URI, mime: r.MIMEType}
	}
	for _, t := range offer.Templates {
		match, ok := templatePattern(t.URITemplate)
		if _, taken := ts.items[t.URITemplate]; !ok || taken {
			continue // the first to have it answers
		}
		item := *t
		item.Name, item.Title, item.Description = safe(t.Name), safe(t.Title), safe(t.Description)
		ts.put(t.URITemplate, &item)
		o.template = append(o.template, pattern{origin{reader: offer.Read, server: offer.Server, mime: t.MIMEType}, t.URITemplate, match})
	}
}

// textURI is the address of one of Ken's own texts.
func textURI(e *door.Entry) string {
	name := strings.TrimPrefix(string(e.ID), string(e.Kind)+":")
	return "ken://" + string(e.Kind) + "/" + url.PathEscape(name)
}

// templatePattern makes a URI template (RFC 6570) one that matches what it can
// become. It takes more than the template would: the server decides.
func templatePattern(template string) (*regexp.Regexp, bool) {
	if len(template) > 2048 || strings.Count(template, "{") > 32 {
		return nil, false
	}
	var b strings.Builder
	b.WriteString("^")
	for rest := template; rest != ""; {
		before, after, open := strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(before))
		if !open {
			break
		}
		expression, end, closed := strings.Cut(after, "}")
		if !closed || expression == "" {
			return nil, false
		}
		switch expression[0] {
		case '+', '#', '/', '.', ';', '?', '&':
			b.WriteString(".*")
		default:
			b.WriteString("[^/?#]*")
		}
		rest = end
	}
	b.WriteString("$")
	re, err := regexp.Compile(b.String())
	return re, err == nil
}

// find returns where an address is read.
func (o *offerings) find(uri string) (origin, bool) {
	if s, ok := o.skillFile(uri); ok {
		return s, true
	}
	if s, ok := o.resource[uri]; ok {
		return s, true
	}
	for _, p := range o.template {
		if p.match.MatchString(uri) {
			s := p.origin
			s.name = uri
			return s, true
		}
	}
	return origin{}, false
}
