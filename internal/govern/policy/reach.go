package policy

import (
	"fmt"
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	expast "github.com/cedar-policy/cedar-go/x/exp/ast"

	"ken/capability"
)

// byID reports whether a rule allows by ids or names without a condition on
// trust. Any project can give a capability any id, so such a rule covers only
// capabilities that the user added or named.
func (r *Rule) byID() bool {
	return r.Effect == Allow && len(r.Capabilities) > 0 && len(r.Trust) == 0
}

// trusted returns the condition that a capability is the user's own or Ken's.
func trusted() ast.Node {
	return ast.Resource().Access("trustLevel").GreaterThanOrEqual(ast.Long(int(capability.TrustUser)))
}

// sayUnreached adds to a question or denial that no other rule caused the rule
// that allows the id but does not cover this capability because of its trust.
func (r *Rules) sayUnreached(d *Decision, key *planKey, q *Request) {
	if q.Capability.Trust >= capability.TrustUser || d.Reason.Stage != stageNames[stageConsent] {
		return
	}
	for _, ru := range r.rules {
		if ru.only.byID() && (ru.classes == 0 || ru.classes&(1<<key.class) != 0) && ru.only.about(key, q.Principal.Roles) {
			d.Reason.Text += fmt.Sprintf("; the rule %s allows this id only for the user's own capabilities. To allow this one, add trust: [%s] to the rule", ru.id, q.Capability.Trust)
			if d.Needs.Needed {
				d.Needs.Why = d.Reason.Text
			}
			return
		}
	}
}

// reaching returns an organisation's policy as Ken applies it: a permit that
// names capabilities and does not mention trust covers only the user's own.
func reaching(p *cedar.Policy) *cedar.Policy {
	syntax := (*expast.Policy)(p.AST())
	if p.Effect() != cedar.Permit || !namesCapability(syntax) || speaksOfTrust(syntax) {
		return p
	}
	return cedar.NewPolicyFromAST(p.AST().When(trusted()))
}

func namesCapability(p *expast.Policy) bool {
	return mentions(p, []types.EntityType{"Capability", "Name"}, []types.String{"id", "name"})
}

func speaksOfTrust(p *expast.Policy) bool {
	return mentions(p, []types.EntityType{"Trust"}, []types.String{"trust", "trustLevel"})
}

// mentions reports whether a policy names an entity of one of the types, or one
// of the attributes of the resource.
func mentions(p *expast.Policy, entities []types.EntityType, attributes []types.String) (found bool) {
	switch s := p.Resource.(type) {
	case expast.ScopeTypeEq:
		found = slices.Contains(entities, s.Entity.Type)
	case expast.ScopeTypeIn:
		found = slices.Contains(entities, s.Entity.Type)
	}
	for _, cond := range p.Conditions {
		expast.Inspect(expast.NewNode(cond.Body), func(node expast.IsNode) bool {
			switch x := node.(type) {
			case expast.NodeTypeAccess:
				of, ok := x.Arg.(expast.NodeTypeVariable)
				found = found || ok && of.Name == "resource" && slices.Contains(attributes, x.Value)
			case expast.NodeValue:
				uid, ok := x.Value.(types.EntityUID)
				found = found || ok && slices.Contains(entities, uid.Type)
			}
			return !found
		})
	}
	return found
}
