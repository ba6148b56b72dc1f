package policy

import (
	"encoding/json"
	"strings"

	"ken/capability"
)

// A Decision is the answer to a [Request]. The zero value refuses.
type Decision struct {
	Effect Effect  `json:"effect"`
	Reason Reason  `json:"reason"`
	Risk   Risk    `json:"risk"`
	Needs  Consent `json:"needs,omitzero"`

	// Implied is the intent under which a relaxed call runs that declared
	// none; it is recorded as if it had been declared.
	Implied Intent `json:"-"`

	// Grant is the id of the consent that answered, where one did.
	Grant string `json:"grant,omitempty"`
}

// A Reason says why, for a model, a person and a record. It holds no
// arguments.
type Reason struct {
	Rule    string `json:"rule"`              // the policy that decided
	Where   string `json:"where,omitempty"`   // its place in a file
	Stage   string `json:"stage"`             // the check that it belongs to
	Text    string `json:"text"`              // what is the matter
	Instead string `json:"instead,omitempty"` // what is allowed
	Knob    string `json:"knob,omitempty"`    // the setting that changes it

	// Intents names the intents that would allow the call, where the intent is
	// the reason. Instead says so in words for a model, which has a tool to
	// select one.
	Intents string `json:"-"`
}

// Fix returns what is allowed instead, and the setting that changes it.
func (r Reason) Fix() string {
	if r.Knob == "" {
		return r.Instead
	}
	return strings.TrimPrefix(r.Instead+"; changed by "+r.Knob, "; ")
}

// A Refusal is the cause in the error of a call that is denied or needs an
// approval.
type Refusal struct{ Reason Reason }

func (r *Refusal) Error() string { return r.Reason.Text }

// A Consent is what a person must be asked.
type Consent struct {
	Needed bool   `json:"needed"`
	Scope  Scope  `json:"scope"` // the widest answer that counts
	Rule   string `json:"rule,omitempty"`
	Why    string `json:"why,omitempty"`
}

// sayClaim adds to a question, and to a refusal by intent, that the source says
// less of the call than Ken takes it for.
func (d *Decision) sayClaim(c *Capability) {
	if c.Claim == "" || d.Effect != Ask && d.Reason.Stage != stageNames[stageIntent] {
		return
	}
	d.Reason.Text += "; " + c.Claim
	if d.Needs.Needed {
		d.Needs.Why = d.Reason.Text
	}
}

// Message returns the reason as one text that a model can act on.
func (d Decision) Message() string {
	var b strings.Builder
	b.WriteString(d.Reason.Text)
	if d.Reason.Instead != "" {
		b.WriteString(". " + d.Reason.Instead)
	}
	if d.Reason.Rule != "" {
		b.WriteString(". Rule: " + d.Reason.Rule)
	}
	if d.Reason.Knob != "" {
		b.WriteString(". Changed by: " + d.Reason.Knob)
	}
	return b.String()
}

// Result returns a refusal or a question as the result of the call, so that
// every call has one and the model can go on.
func (d Decision) Result() capability.Result {
	raw, err := json.Marshal(d)
	parts := []capability.Part{{Text: d.Message()}}
	if err == nil {
		parts = append(parts, capability.Part{JSON: raw})
	}
	return capability.Result{
		Failed: true, Parts: parts,
		Meta: map[string]string{"decision": d.Effect.String(), "rule": d.Reason.Rule},
	}
}

// Err returns a denial or a question as an error, and nil if the call is
// allowed.
func (d Decision) Err(target capability.ID) error {
	kind := capability.Denied
	switch d.Effect {
	case Allow:
		return nil
	case Ask:
		kind = capability.Unapproved
	}
	return &capability.Error{
		Kind: kind, Op: "decide", Target: string(target), Rule: d.Reason.Rule, Fix: d.Reason.Fix(), Err: &Refusal{d.Reason},
	}
}
