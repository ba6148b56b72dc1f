package mcpgateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/know/source/mcpskill"
	"ken/internal/know/source/mcptools"
)

// The runners of recipes.
const (
	runCall     = "mcp.call"
	runResource = "mcp.resource"
	runPrompt   = "mcp.prompt"
	runSkill    = "mcp.skill"
)

// An offer is what a server brings to the catalog: its lists, judged. It is not
// changed once it is made.
type offer struct {
	head   head
	listed time.Time
	sum    string

	// standing is the token of the pins by which it was judged; empty where they
	// changed meanwhile.
	standing string

	capabilities []*capability.Capability
	problems     []capability.Problem
	entries      map[capability.ID]*entry

	readResource, getPrompt capability.ID // empty where the server has none

	skills map[capability.ID]*mcpskill.Entry

	besides besides
}

// An entry is a capability of an offer, and how it is called.
type entry struct {
	*capability.Capability
	wire   string // the tool's name as its server spells it
	at     span   // of its object in the file
	object []byte // the object itself, where no file holds it
	barred string // why it must not be called, or empty
}

// resourceTool and promptTool are the names of Ken's own tools for what is no
// tool.
const (
	resourceTool = "read_resource"
	promptTool   = "get_prompt"
)

const (
	resourceObject = `{"name":%q,"title":"Read a resource","description":"Reads a resource of this MCP server by its URI.",` +
		`"inputSchema":{"type":"object","properties":{"uri":{"type":"string","description":"URI of the resource"}},"required":["uri"],"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":true}}`
	promptObject = `{"name":%q,"title":"Get a prompt","description":"Gets a prompt of this MCP server by its name.",` +
		`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"Name of the prompt"},` +
		`"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"Its arguments"}},"required":["name"],"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":true}}`
)

// A listed tool is one on its way into an offer.
type listedTool struct {
	mcptools.Tool
	name string
	wire string // as the server spells it
	at   span
}

// offer judges lists. What did not change is taken from the offer before, so
// that its capabilities stay the same pointers. An error of the pins bars what
// they would have judged, and is in the problems.
func (s *server) offer(ctx context.Context, l *lists, before *offer) *offer {
	standing := s.standing(ctx).Token
	o := &offer{head: l.head, listed: l.listed, sum: l.sum, entries: make(map[capability.ID]*entry, len(l.tools)+2)}
	tools, pinned := s.collect(o, l)
	verdicts := s.judge(ctx, o, pinned)
	list := make([]mcptools.Tool, 0, len(tools))
	for i := range tools {
		t := &tools[i]
		v := verdicts[t.name]
		t.Exposed = v.Exposed
		if f, bad := finding(v); bad {
			t.Findings = []capability.Finding{f}
		}
		list = append(list, t.Tool)
	}
	made, problems := mcptools.Read(s.g.parsed, mcptools.Server{
		Name: s.def.Name, Trust: s.def.Trust, Origin: s.origin(), Permissions: s.def.permissions(), TrustHints: s.def.TrustHints,
	}, list)
	o.problems = append(o.problems, problems...)
	s.enter(o, l, tools, made, before)
	o.besides = s.besides(ctx, o, &l.head)
	if s.standing(ctx).Token == standing {
		o.standing = standing
	}
	return o
}

// collect takes the tools of lists that are wanted, and Ken's own. The second
// list is all there are, for the pins.
func (s *server) collect(o *offer, l *lists) (tools []listedTool, all []pin.Tool) {
	seen := make(map[string]string, len(l.tools)) // by name, as the server spells it
	add := func(object []byte, runner string, at span, own bool) {
		f, err := mcptools.Split(object)
		if err != nil {
			s.problem(o, capability.Grave, "bad-tool", "a tool of its list is left out: "+err.Error(), "tell its author")
			return
		}
		all = append(all, pin.Tool{
			Name: f.Name, Title: f.Title, Description: f.Description, Input: f.Input, Output: f.Output, Annotations: f.Annotations, Extra: f.Extra,
		})
		if first, twice := seen[f.Name]; twice {
			how := ""
			if first != f.Wire {
				how = " (in two Unicode forms)"
			}
			s.problem(o, capability.Grave, "duplicate-tool", fmt.Sprintf("the server lists the tool %s twice%s; Ken uses the first one", show(f.Name), how), "tell its author")
			return
		}
		seen[f.Name] = f.Wire
		if s.def.Wants(f.Name) {
			tools = append(tools, listedTool{Tool: mcptools.Tool{JSON: object, Runner: runner, Own: own}, name: f.Name, wire: f.Wire, at: at})
		}
	}
	for i := range l.tools {
		add(l.tool(i), runCall, l.tools[i], false)
	}
	own := func(name, object, runner string) capability.ID {
		for seen[name] != "" {
			name += "_" // the server's own tool of that name stands
		}
		add(fmt.Appendf(nil, object, name), runner, span{}, true)
		if !s.def.Wants(name) {
			return ""
		}
		return mcptools.ID(s.def.Name, name)
	}
	if l.HasResources {
		o.readResource = own(resourceTool, resourceObject, runResource)
	}
	if l.HasPrompts {
		o.getPrompt = own(promptTool, promptObject, runPrompt)
	}
	o.skills = make(map[capability.ID]*mcpskill.Entry, len(l.Skills))
	for _, e := range sortedSkills(l.Skills) {
		name := skillTool(e, seen)
		object, err := skillObject(name, s.def.Name, e)
		if err != nil {
			s.problem(o, capability.Grave, "bad-skill", fmt.Sprintf("the skill %s is left out: %v", show(e.URI), err), "tell its author")
			continue
		}
		add(object, runSkill, span{}, true)
		if s.def.Wants(name) {
			o.skills[mcptools.ID(s.def.Name, name)] = e
		}
	}
	for _, note := range l.Notes {
		s.problem(o, capability.Warning, "mcp-list", note, "")
	}
	return tools, all
}

// judge asks the pins. Whatever goes wrong, nothing is accepted by it.
func (s *server) judge(ctx context.Context, o *offer, tools []pin.Tool) map[string]pin.Verdict {
	if s.g.cfg.Pins == nil {
		all := make(map[string]pin.Verdict, len(tools))
		for _, t := range tools {
			all[t.Name] = pin.Verdict{State: pin.Accepted}
		}
		return all
	}
	verdicts, err := s.g.cfg.Pins.Check(ctx, s.pinKey(), tools)
	if err != nil {
		s.problem(o, capability.Grave, "mcp-pins", "the tools could not be compared with the accepted ones: "+err.Error(), "fix the store; see ken doctor")
	}
	return verdicts
}

// pinKey names the server for the pins.
func (s *server) pinKey() string { return pin.ServerKey(s.def.Name, s.def.Origin.Path) }

// Rules of the findings about tools that were not accepted.
const (
	ruleNew     = "mcp-new"
	ruleChanged = "mcp-changed"
)

// IsPinFinding reports whether a finding says that a tool is new or not what was
// accepted.
func IsPinFinding(f capability.Finding) bool { return f.Rule == ruleNew || f.Rule == ruleChanged }

// finding puts a tool into quarantine that was not accepted.
func finding(v pin.Verdict) (f capability.Finding, bad bool) {
	f = capability.Finding{Severity: capability.Grave, Field: "tool", Excerpt: v.Diff}
	switch v.State {
	case pin.Accepted:
		return f, false
	case pin.Added:
		f.Rule = ruleNew
	case pin.Changed:
		f.Rule = ruleChanged
	default:
		f.Rule, f.Excerpt = "mcp-unpinned", "Ken cannot tell whether this is the accepted version"
	}
	return f, true
}

// enter fills an offer with the capabilities that were made of tools, in their
// order, some left out.
func (s *server) enter(o *offer, l *lists, tools []listedTool, made []*capability.Capability, before *offer) {
	next := 0
	o.capabilities = make([]*capability.Capability, 0, len(made))
	for _, c := range made {
		for next < len(tools) && tools[next].name != c.Name {
			next++
		}
		if next == len(tools) {
			break // cannot be: each was made of one
		}
		t := &tools[next]
		next++
		if before != nil {
			if old := before.entries[c.ID]; old != nil && same(old.Capability, c) {
				c = old.Capability
			}
		}
		e := &entry{Capability: c, wire: t.wire, at: t.at}
		if t.Own || s.g.shelf.dir == "" {
			e.object = t.JSON
		}
		if len(t.Findings) > 0 {
			e.barred = t.Findings[0].Rule
		}
		o.entries[c.ID] = e
		o.capabilities = append(o.capabilities, c)
	}
}

// same reports whether two capabilities of one id are the same to everybody.
func same(a, b *capability.Capability) bool {
	return a.Hash == b.Hash && a.Trust == b.Trust && a.Origin == b.Origin && a.Effects == b.Effects && sameClaims(a.Claims, b.Claims) &&
		slices.Equal(a.Findings, b.Findings)
}

func sameClaims(a, b *capability.Claims) bool { return a == b || a != nil && b != nil && *a == *b }

// equal reports whether two offers are the same to a catalog.
func (o *offer) equal(p *offer) bool {
	return o != nil && p != nil && o.sum == p.sum && slices.Equal(o.capabilities, p.capabilities) && slices.Equal(o.problems, p.problems) && maps.Equal(o.besides.barred, p.besides.barred)
}

// mostProblems bounds what one server may bring to a report.
const mostProblems = 50

func (s *server) problem(o *offer, severity capability.Severity, code, message, fix string) {
	if len(o.problems) < mostProblems {
		o.problems = append(o.problems, capability.Problem{Severity: severity, Code: code, Origin: s.origin(), Message: message, Fix: fix})
	}
}

// origin is where the server is configured, as its capabilities have it.
func (s *server) origin() capability.Origin {
	o := s.def.Origin
	o.Source, o.Format = s.src.name, mcptools.Format
	if o.Location == "" {
		o.Location = capability.Local
	}
	return o
}

// show makes a name from outside fit for a message.
func show(name string) string {
	if len(name) > 60 {
		name = name[:60] + "…"
	}
	return fmt.Sprintf("%q", name)
}

// batch returns the offer to a catalog.
func (o *offer) batch() capability.Batch {
	return capability.Batch{Capabilities: o.capabilities, Problems: o.problems}
}
