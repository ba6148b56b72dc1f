package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ken/capability"
)

// Decide judges one call. It neither changes nor keeps the request; the same
// request returns the same decision. Nil rules refuse.
func (r *Rules) Decide(q *Request) Decision {
	if r == nil {
		return refuse(stageExists, "no-rules", "No rules are loaded, so nothing is allowed", "Fix the configuration; ken doctor shows the problem", "policy")
	}
	v := Viewer{Principal: q.Principal, Mode: q.Mode, Origin: q.Origin, Surface: q.Surface}
	if d, ok := r.sane(&v, &q.Capability); !ok {
		return d
	}
	intent, known := ParseIntent(q.Intent)
	if !known {
		d := refuse(stageIntent, "unknown-intent", "Unknown intent "+quoted(q.Intent), "", "")
		d.Reason.Intents = "one of " + strings.Join(Intents(), ", ")
		d.Reason.Instead = selectIntent + d.Reason.Intents
		return d
	}
	var buf [8]string
	seen := r.look(&q.Facts, q.Capability.Class != Read && q.Capability.Class != Meta, buf[:])
	seen.sent = r.sent(q)
	seen.hidden = q.Facts.Hidden != "" && !runsAnything(&q.Capability)
	key := r.key(&v, &q.Capability, intent, q.Action)
	j := judgement{
		rules: r, plan: r.plan(&key, q.Principal.Roles), q: q, seen: &seen,
		risk: riskOf(&q.Capability).with(&q.Facts, &seen),
	}
	d := j.decide()
	d.Risk = j.risk
	if d.Effect != Allow {
		r.sayUnreached(&d, &key, q)
		d.sayClaim(&q.Capability)
	}
	if d.Effect != Deny && r.implies(&v, &q.Capability, intent) {
		d.Implied = ReadFile
	}
	return d
}

// sane refuses what no rule can judge: no principal, no call, and words that are not
// known.
func (r *Rules) sane(v *Viewer, c *Capability) (Decision, bool) {
	var d Decision
	switch {
	case v.Principal.ID == "":
		d = refuse(stageExists, "nobody", "Missing principal", "Call as a known principal", "")
	case c.ID == "":
		d = refuse(stageExists, "no-capability", "The call names no capability", "Call discover_capabilities to find one", "")
	case c.Disabled != "":
		d = refuse(stageEnabled, "disabled", c.Disabled, c.Fix, "ken extension enable")
	case !c.Class.known():
		d = refuse(stageExists, "unknown-effect", "The effects of this capability are unknown", "", "the executor's effect class")
	case c.Declared.unknown != "":
		d = refuse(stagePermission, "unknown-permission", "Unknown permission "+quoted(c.Declared.unknown), "Known permissions: "+strings.Join(permissionNames, ", "), declaredIn)
	case c.Required.unknown != "":
		d = refuse(stagePermission, "unknown-permission", "Unknown permission "+quoted(c.Required.unknown), "Known permissions: "+strings.Join(permissionNames, ", "), "")
	case c.AppOnly && v.Origin == capability.ByModel:
		d = refuse(stageExists, "app-only", "Only pages of the server may call this tool, because it says so itself (_meta.ui.visibility)", "Use another tool of the server", "")
	case v.Origin != capability.ByModel && v.Origin != capability.ByPerson && v.Origin != capability.ByApp:
		d = refuse(stageExists, "unknown-origin", "Unknown origin "+quoted(string(v.Origin)), "", "")
	case v.Surface != "" && indexOf(surfaceNames[:], string(v.Surface)) < 0:
		d = refuse(stageExists, "unknown-surface", "Unknown surface "+quoted(string(v.Surface)), "", "")
	case v.Mode != "" && !r.hasMode(v.Mode):
		d = refuse(stageMode, "unknown-mode", "Unknown mode "+quoted(v.Mode), "Choose another mode", "policy.modes")
	default:
		return d, true
	}
	return d, false
}

func (r *Rules) hasMode(name string) bool {
	_, ok := r.settings.Modes[name]
	return ok
}

func quoted(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return fmt.Sprintf("%q", s)
}

func refuse(st stage, id, text, instead, knob string) Decision {
	return Decision{Reason: Reason{Rule: id, Stage: stageNames[st], Text: text, Instead: instead, Knob: knob}}
}

func (j *judgement) decide() Decision {
	own, shared := &j.plan.lists, &j.rules.shared
	if ru := j.first(&own.denies, &shared.denies); ru != nil {
		return j.deny(ru)
	}
	ask, scope := j.first(&own.askOnce, &shared.askOnce), Once
	if ask == nil && j.broken == nil {
		ask, scope = j.first(&own.askLonger, &shared.askLonger), Session
	}
	if j.broken != nil {
		return j.failed()
	}
	permit := j.first(&own.permits, &shared.permits)
	if permit == nil && j.broken == nil {
		// Nothing permits it as it stands; perhaps something does with consent.
		permit = j.first(&own.mayOnce, &shared.mayOnce)
		narrow := permit != nil
		if permit == nil && j.broken == nil {
			permit = j.first(&own.mayLonger, &shared.mayLonger)
		}
		if permit != nil && (ask == nil || narrow && scope != Once) {
			ask, scope = permit, permit.scope
		}
	}
	switch {
	case j.broken != nil:
		return j.failed()
	case permit == nil:
		return refuse(stageConsent, "default", "No rule allows this call", "Use another capability", "policy.profile, or a rule that allows it")
	case ask == nil:
		return Decision{Effect: Allow, Reason: permit.reason()}
	}
	for i := range j.q.Grants {
		if g := &j.q.Grants[i]; g.covers(j.q, scope) {
			return Decision{Effect: Allow, Reason: ask.reason(), Grant: g.ID}
		}
	}
	why := ask.reason()
	if ask.test != nil && ask.test.kind == testUnseen {
		why.Text += ": " + j.seen.unseen
	}
	if hidden := j.q.Facts.Hidden; hidden != "" {
		if ask.test == nil || ask.test.kind != testHidden {
			why.Text += ". " + hiddenText
		}
		why.Text += ": " + hidden
	}
	return Decision{Effect: Ask, Reason: why, Needs: Consent{Needed: true, Scope: scope, Rule: ask.id, Why: why.Text}}
}

const hiddenText = "Git may run a program that the project's settings name"

// runsAnything reports whether a capability runs any program that its arguments
// name, so that permission for it covers the programs of a project too.
func runsAnything(c *Capability) bool {
	return c.AnyProgram || c.Trust == capability.TrustBuiltin && ToolName(c.Name) == "shell"
}

func (j *judgement) deny(ru *rule) Decision {
	d := Decision{Reason: ru.reason()}
	if ru.test != nil && ru.test.kind == testBad {
		d.Reason.Text = j.seen.bad
		if j.seen.instead != "" {
			d.Reason.Instead = j.seen.instead
		}
	}
	if ru.test != nil && ru.test.kind == testSent {
		d.Reason = sentReason(d.Reason, j.q.Capability.ID, j.seen.sent)
	}
	return d
}

// failed refuses because a policy could not be evaluated: it might have been
// the one that forbids.
func (j *judgement) failed() Decision {
	d := Decision{Reason: j.broken.reason()}
	d.Reason.Text = "A policy could not be evaluated: " + j.fault
	return d
}

func (ru *rule) reason() Reason {
	return Reason{Rule: ru.id, Where: ru.where, Stage: stageNames[ru.stage], Text: ru.text, Instead: ru.instead, Knob: ru.knob, Intents: ru.intents}
}

// implies reports whether a call runs under an implied READ_FILE.
func (r *Rules) implies(v *Viewer, c *Capability, intent Intent) bool {
	s := &r.settings
	return s.Intents == Relaxed && c.Class == Read && judgedAs(v.Origin) == capability.ByModel &&
		(s.IntentSurfaces == nil || slices.Contains(s.IntentSurfaces, v.Surface)) && !slices.Contains(r.intents[intent], Read)
}

// AsksIntent reports whether a model's calls at a surface need an intent.
func (r *Rules) AsksIntent(at Surface) bool {
	if r == nil {
		return true
	}
	s := &r.settings
	return s.Intents != Off && (s.IntentSurfaces == nil || slices.Contains(s.IntentSurfaces, at))
}

// IntentsAt returns the intents that a model may choose from at a surface; none if
// its calls need no intent, or if there are no rules.
func (r *Rules) IntentsAt(at Surface) []string {
	if r == nil || !r.AsksIntent(at) {
		return nil
	}
	return Intents()
}

// ModeNames returns the names of the modes, sorted.
func (r *Rules) ModeNames() []string {
	return slices.Sorted(maps.Keys(r.Settings().Modes))
}

// Denies reports whether the settings deny a permission to every call. Nil
// rules deny it.
func (r *Rules) Denies(p Permission) bool {
	if r == nil {
		return true
	}
	effect, said := r.settings.Permissions[p]
	return said && effect == Deny
}

// IntentAllows reports whether an intent lets calls of a class pass, where
// intents are asked for. It decides nothing: [Rules.Decide] does.
func (r *Rules) IntentAllows(intent string, class Class) bool {
	i, known := ParseIntent(intent)
	if r == nil || !known {
		return false
	}
	return class == Meta || class == Read && r.settings.Intents == Relaxed || slices.Contains(r.intents[i], class)
}

// Wider reports whether an intent lets calls pass that another does not.
func (r *Rules) Wider(from, to string) bool {
	for class := Read; class < classes; class++ {
		if r.IntentAllows(to, class) && !r.IntentAllows(from, class) {
			return true
		}
	}
	return false
}

// Visible reports whether a class of principals may know of a capability: it
// is false only where every call would be refused, whatever its action,
// arguments, intent and consent. What depends on arguments in the policies of
// an organisation counts as possible.
func (r *Rules) Visible(v *Viewer, c *Capability) bool {
	if r == nil {
		return false
	}
	if _, ok := r.sane(v, c); !ok {
		return false
	}
	return r.admits(r.key(v, c, NoIntent, ""), riskOf(c), v.Principal.Roles)
}

// Viewing returns [Rules.Visible] for one viewer who looks at many capabilities, one
// after the other. Most are to the rules what the one before was, and are not
// looked up again. What it returns is for one goroutine.
func (r *Rules) Viewing(v *Viewer) func(c *Capability) bool {
	if r == nil {
		return func(*Capability) bool { return false }
	}
	var last struct {
		planKey
		floor   Risk
		visible bool
	}
	met := false
	return func(c *Capability) bool {
		if _, ok := r.sane(v, c); !ok {
			return false
		}
		if key, floor := r.key(v, c, NoIntent, ""), riskOf(c); !met || key != last.planKey || floor != last.floor {
			last.planKey, last.floor, last.visible, met = key, floor, r.admits(key, floor, v.Principal.Roles), true
		}
		return last.visible
	}
}

// admits reports whether any intent admits what a key is about. floor is the risk of
// a call without arguments.
func (r *Rules) admits(key planKey, floor Risk, roles []string) bool {
	last := NoIntent
	if r.needs.intents {
		last = Execute
	}
	key.anyAction = r.needs.actions
	for intent := NoIntent; intent <= last; intent++ {
		if r.needs.intents {
			key.intent = intent
		}
		if p := r.plan(&key, roles); p.bearable(floor) && r.shared.bearable(floor) && r.shared.permitting()+p.permitting() > 0 {
			return true
		}
	}
	return false
}

// HiddenBecause returns why [Rules.Visible] is false for a capability. That no
// intent is declared hides nothing, so the reason is about an intent only if no
// intent admits the capability.
func (r *Rules) HiddenBecause(p capability.Principal, c Capability) Reason {
	q := Request{Principal: p, Capability: c}
	first := r.Decide(&q).Reason
	for i := Plan; i < intents; i++ {
		q.Intent = i.String()
		if reason := r.Decide(&q).Reason; reason.Stage != stageNames[stageIntent] {
			return reason
		}
	}
	return first
}

// bearable reports whether no rule refuses whatever the arguments are. floor is
// the risk of a call that has none, which is the least.
func (l *lists) bearable(floor Risk) bool {
	for i := range l.denies.all {
		s := &l.denies.all[i]
		switch {
		case s.open:
		case s.test == nil, s.test.kind == testRisk && int(floor.Score) > s.test.above:
			return false
		case s.test.kind == testCommands && len(s.test.argv) == 0:
			return false // an empty list of commands
		}
	}
	return true
}

// permitting counts the rules that could permit.
func (l *lists) permitting() int {
	return len(l.permits.all) + len(l.mayOnce.all) + len(l.mayLonger.all)
}

// Tool returns the limits that tool-access.json sets for a tool. Nil rules have
// everything off.
func (r *Rules) Tool(name string) Tool {
	if r == nil {
		return Tool{}
	}
	return r.settings.Access.Tool(name)
}
