package policy

import (
	"fmt"
	"strings"

	"ken/capability"
)

// sent returns the secrets in the arguments of a call that its capability may not
// have: it does not declare them, and policy.sendSecrets does not name it. As
// with rules, an id counts for what is trusted as the user's own or more.
func (r *Rules) sent(q *Request) []string {
	var out []string
	for _, name := range q.Facts.Secrets {
		if !r.maySend(name, &q.Capability) {
			out = append(out, name)
		}
	}
	return out
}

func (r *Rules) maySend(name string, c *Capability) bool {
	if c.Trust < capability.TrustUser {
		return false
	}
	for _, id := range r.settings.SendSecrets[name] {
		if id == string(c.ID) || wild(id, string(c.ID), false) {
			return true
		}
	}
	return false
}

// sentReason names the secrets, and how a capability comes to have one.
func sentReason(why Reason, id capability.ID, names []string) Reason {
	what := "secret " + names[0]
	if len(names) > 1 {
		what = "secrets " + strings.Join(names, ", ")
	}
	why.Text = fmt.Sprintf("The arguments contain the %s, which %s does not declare", what, id)
	why.Instead = fmt.Sprintf("Remove the value. To give a capability a secret, name the secret: requiredSecrets: [%s] in its manifest, or ${secret:%s} in the definition of its server", names[0], names[0])
	why.Knob = "policy.sendSecrets"
	return why
}
