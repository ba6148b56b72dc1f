package policy

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	expast "github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
	"golang.org/x/text/unicode/norm"
)

// Schema is what policies may speak of, in Cedar's own notation.
const Schema = `entity Tenant;
entity Role;
entity User in [Tenant, Role] { tenant: String, roles: Set<String> };
entity Class;
entity Trust;
entity Name;
entity Capability in [Class, Trust, Name] {
  id: String, name: String, kind: String, source: String, class: String, trust: String, trustLevel: Long,
  mcp: Bool, readOnly: Bool, destructive: Bool
};
action call appliesTo { principal: User, resource: Capability, context: {
  action: String, intent: String, mode: String, origin: String, surface: String, deployment: String, profile: String,
  declared: Set<String>, required: Set<String>,
  session: String, time: Long, risk: Long, facts: Set<String>,
  path: String, paths: Set<String>, writes: Bool, host: String, hosts: Set<String>,
  program: String, command: String, opaque: Bool, destructive: Bool
} };
`

// cedarFile takes over the policies of an organisation. A policy may carry the
// annotations id, reason, instead and ask ("once" or "session"), which makes a
// forbid a question and a permit one that needs consent; any other is refused,
// since a misspelt ask would permit.
//
// path, host and command stand for each of a call's files, hosts and commands
// in turn, or "" where there is none: a forbid applies when it does for one
// combination, a permit when it does for all. A permit that names capabilities
// and does not mention trust covers only the user's own; see [reaching].
func (c *compiler) cedarFile(f CedarFile) {
	if f.Text == nil {
		c.fault("read cedar file %s: the text was not loaded", f.Name)
		return
	}
	if at := norm.NFC.QuickSpan(f.Text); !norm.NFC.IsNormal(f.Text) {
		c.fault("read cedar file %s: line %d is not in Unicode normalization form C (NFC), in which Ken compares ids; save the file as NFC, and write \\u{…} for a path that needs another form",
			f.Name, 1+bytes.Count(f.Text[:at], []byte("\n")))
		return
	}
	list, err := cedar.NewPolicyListFromBytes(f.Name, f.Text)
	if err != nil {
		c.fault("%w", parseFault(f.Name, err))
		return
	}
	v, err := validator()
	if err != nil {
		c.fault("read cedar file %s: %w", f.Name, err)
		return
	}
	for i, p := range list {
		where := fmt.Sprintf("%s:%d:%d", f.Name, p.Position().Line, p.Position().Column)
		p = reaching(p)
		syntax := (*expast.Policy)(p.AST())
		ru := rule{
			id: fmt.Sprintf("%s#%d", f.Name, i+1), where: where, org: true, compiled: compiled{whole: p, static: syntax},
			forbid: p.Effect() == cedar.Forbid, stage: stageMode, knob: where,
			text: "An organisation's policy decided",
		}
		if err := v.Policy(ru.id, syntax); err != nil {
			c.fault("%s: %w; see the schema that ken policy show --schema prints", where, checkFault(ru.id, err))
			continue
		}
		if err := ru.annotations(p); err != nil {
			c.fault("%s: %w", where, err)
			continue
		}
		if !ru.forbid || ru.ask {
			ru.stage = stageConsent
		}
		c.reads(&ru, syntax)
		c.add(ru)
	}
}

func validator() (*validate.Validator, error) {
	var s schema.Schema
	if err := s.UnmarshalCedar([]byte(Schema)); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return validate.New(resolved), nil
}

func (ru *rule) annotations(p *cedar.Policy) error {
	for key, value := range p.Annotations() {
		v := string(value)
		switch key {
		case "id":
			ru.id = v
		case "reason":
			ru.text = v
		case "instead":
			ru.instead = v
		case "ask":
			i := indexOf(scopeNames[:], v)
			if i < 0 {
				return fmt.Errorf("unknown value @ask(%q); write @ask(\"once\") or @ask(\"session\")", v)
			}
			ru.ask, ru.scope = true, Scope(i)
		default:
			return fmt.Errorf("unknown annotation @%s; known annotations: @id, @reason, @instead, @ask", key)
		}
	}
	return nil
}

// reads notes what a policy looks at: the attributes of the context, the names
// of capabilities by which it can be found, and what tells requests apart.
func (c *compiler) reads(ru *rule, p *expast.Policy) {
	n := &c.r.needs
	n.intents = true
	switch s := p.Resource.(type) {
	case expast.ScopeTypeEq:
		ru.names = []string{string(s.Entity.ID)}
	case expast.ScopeTypeIn:
		if s.Entity.Type == "Name" {
			ru.names = []string{string(s.Entity.ID)}
		}
		n.uid(s.Entity)
	}
	switch s := p.Principal.(type) {
	case expast.ScopeTypeEq:
		n.users = true
	case expast.ScopeTypeIn:
		n.uid(s.Entity)
	}
	for _, cond := range p.Conditions {
		expast.Inspect(expast.NewNode(cond.Body), func(node expast.IsNode) bool {
			switch x := node.(type) {
			case expast.NodeTypeAccess:
				return !c.attribute(ru, x.StrOpNode)
			case expast.NodeTypeHas:
				return !c.attribute(ru, x.StrOpNode)
			case expast.NodeValue:
				if uid, ok := x.Value.(types.EntityUID); ok {
					n.uid(uid)
				}
			case expast.NodeTypeVariable:
				// Bare, as in principal == User::"x" or resource in a set.
				n.users = n.users || x.Name == "principal"
				n.anyName = n.anyName || x.Name == "resource"
				if x.Name == "context" {
					ru.attrs = append(ru.attrs, contextNames...)
				}
			}
			return true
		})
	}
	slices.Sort(ru.attrs)
	ru.attrs = slices.Compact(ru.attrs)
}

func (n *needs) uid(uid types.EntityUID) {
	switch uid.Type {
	case "Capability", "Name":
		n.names[string(uid.ID)] = true
	case "User":
		n.users = true
	}
}

// attribute notes one attribute, and reports whether it is one of the
// principal, the resource or the context.
func (c *compiler) attribute(ru *rule, x expast.StrOpNode) bool {
	of, ok := x.Arg.(expast.NodeTypeVariable)
	if !ok {
		return false
	}
	n := &c.r.needs
	switch string(of.Name) + "." + string(x.Value) {
	case "resource.source":
		n.sources = true
	case "resource.kind":
		n.kinds = true
	case "context.action":
		n.actions = true
	case "context.agent":
		n.agents = true
	}
	if of.Name == "context" {
		ru.attrs = append(ru.attrs, x.Value)
	}
	if of.Name == "resource" && (x.Value == "id" || x.Value == "name") {
		n.anyName = true
	}
	return true
}
