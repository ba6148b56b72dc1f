package policy

import (
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	expast "github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"

	"ken/capability"
)

// A planKey is all of a request that rules look at before its arguments. What
// no rule looks at is left empty, so that a catalog of thousands makes few
// plans.
type planKey struct {
	tenant, user string
	agent        string
	roles        uint64
	mode         string
	origin       capability.Caller
	surface      Surface
	intent       Intent
	action       string
	anyAction    bool // for Visible: the action is not known

	ident
	source, kind               string
	trust                      capability.Trust
	class                      Class
	readOnly, destructive, mcp bool
	anyProgram                 bool
	declared, required         Permission
}

// A plan is what is left of the rules for a planKey: those that apply in any
// case, those that depend on a fact, and an organisation's policies that Cedar
// must be asked about once the arguments are known.
type plan struct {
	lists
	attrs     []types.String // that any policy that is left open reads
	static    types.RecordMap
	entities  types.EntityMap
	principal types.EntityUID
	resource  types.EntityUID
}

const mostPlans = 1 << 16

// plan returns the plan for a key, from memory where it was made before.
func (r *Rules) plan(key *planKey, roles []string) *plan {
	r.mu.RLock()
	p := r.plans[*key]
	r.mu.RUnlock()
	if p != nil {
		return p
	}
	p = r.makePlan(key, roles)
	r.mu.Lock()
	if len(r.plans) >= mostPlans {
		clear(r.plans)
	}
	r.plans[*key] = p
	r.mu.Unlock()
	return p
}

// rolesID returns a number for a list of roles.
func (r *Rules) rolesID(roles []string) uint64 {
	if len(roles) == 0 {
		return 0
	}
	var buf [128]byte
	b := buf[:0]
	for _, role := range roles {
		for n := len(role); n > 0; n >>= 7 {
			b = append(b, byte(n&0x7f))
		}
		b = append(b, 0xff)
		b = append(b, role...)
	}
	r.mu.RLock()
	id, ok := r.roles[string(b)]
	r.mu.RUnlock()
	if ok {
		return id
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.roles[string(b)]; ok {
		return id
	}
	if len(r.roles) >= mostPlans {
		clear(r.roles)
		clear(r.plans)
	}
	// Numbers are never used again: an old one may still be held.
	r.lastRoles++
	id = r.lastRoles
	r.roles[string(b)] = id
	return id
}

// AgentOf returns the agent of a principal where any rule depends on it, and an
// empty text where none does.
func (r *Rules) AgentOf(p capability.Principal) string {
	if r == nil || !r.needs.agents {
		return ""
	}
	return p.Agent
}

func (r *Rules) key(v *Viewer, c *Capability, intent Intent, action string) planKey {
	k := planKey{
		tenant: v.Principal.Tenant, roles: r.rolesID(v.Principal.Roles),
		mode: v.Mode, origin: judgedAs(v.Origin), surface: v.Surface,
		trust: c.Trust, class: c.Class, readOnly: c.ReadOnly, destructive: c.Destructive, mcp: c.MCP, anyProgram: c.AnyProgram,
		declared: c.Declared.set, required: c.Required.set,
	}
	if c.Class == Exec {
		k.required |= PermExec // nothing starts without it, whatever the executor says
	}
	n := &r.needs
	if n.users {
		k.user = v.Principal.ID
	}
	k.agent = r.AgentOf(v.Principal)
	if n.intents {
		k.intent = intent
	}
	if n.actions {
		k.action = action
	}
	if n.sources {
		k.source = c.Source
	}
	if n.kinds {
		k.kind = string(c.Kind)
	}
	k.ident = ident{string(c.ID), knownName(c)}
	if !n.anyName {
		k.ident = r.told(k.ident)
	}
	return k
}

// knownName returns the name by which rules know a capability. A server's tool
// has only its own name; other tools may have several.
func knownName(c *Capability) string {
	if c.MCP {
		return c.Name
	}
	return ToolName(c.Name)
}

// An ident is what rules may know a capability by.
type ident struct{ id, name string }

// told returns an ident that no rule tells from the full one: a name that no rule
// asks for is empty, and of all names that the same patterns match there is one, so
// that a rule about mcp:server/* makes one plan and not one for each tool.
func (r *Rules) told(full ident) ident {
	if len(r.needs.patterns) == 0 {
		return ident{r.standIn(full.id, ""), r.standIn(full.name, "")}
	}
	r.mu.RLock()
	short, ok := r.idents[full]
	r.mu.RUnlock()
	if ok {
		return short
	}
	id, name := r.matches(full.id), r.matches(full.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.idents) >= mostPlans {
		clear(r.idents)
		clear(r.alike)
	}
	short = ident{r.standIn(full.id, id), r.standIn(full.name, name)}
	r.idents[full] = short
	return short
}

// matches returns which patterns match a name, as text with a byte for eight of
// them. It is empty if none does.
func (r *Rules) matches(name string) string {
	var set []byte
	for i, p := range r.needs.patterns {
		if !p.Match(types.String(name)) {
			continue
		}
		if set == nil {
			set = make([]byte, (len(r.needs.patterns)+7)/8)
		}
		set[i/8] |= 1 << (i % 8)
	}
	return string(set)
}

// standIn returns the name that stands for a name and for all others that these
// patterns match. One that a rule names exactly stands for itself. If any pattern matches, r.mu must be held.
func (r *Rules) standIn(name, matched string) string {
	switch {
	case r.needs.named(name):
		return name
	case matched == "":
		return ""
	}
	first, ok := r.alike[matched]
	if !ok {
		first = name
		r.alike[matched] = name
	}
	return first
}

func (r *Rules) makePlan(key *planKey, roles []string) *plan {
	p := &plan{
		principal: types.NewEntityUID("User", types.String(key.user)),
		resource:  types.NewEntityUID("Capability", types.String(key.id)),
		static:    r.staticContext(key),
	}
	p.entities = types.EntityMap{p.principal: principalEntity(p.principal, key, roles), p.resource: resourceEntity(p.resource, key)}
	context := types.RecordMap{}
	for k, v := range p.static {
		context[k] = v
	}
	for _, name := range dynamicNames {
		context[name] = eval.Variable(name)
	}
	if key.anyAction {
		context["action"] = eval.Variable("action")
	}
	env := eval.Env{Entities: p.entities, Principal: p.principal, Action: callAction(), Resource: p.resource, Context: types.NewRecord(context)}
	for _, ru := range r.candidates(key, roles) {
		left, keep := eval.PartialPolicy(env, ru.compiled.static)
		if !keep {
			continue
		}
		open := len(left.Conditions) > 0 || scoped(left)
		p.add(ru, open)
		if open {
			p.attrs = append(p.attrs, ru.attrs...)
		}
	}
	slices.Sort(p.attrs)
	p.attrs = slices.Compact(p.attrs)
	p.index()
	return p
}

// scoped reports whether partial evaluation left a scope undecided.
func scoped(p *expast.Policy) bool {
	all := expast.ScopeTypeAll{}
	return p.Principal != expast.IsPrincipalScopeNode(all) || p.Action != expast.IsActionScopeNode(all) || p.Resource != expast.IsResourceScopeNode(all)
}

// candidates are the rules that may be about a key, in the order of checks.
func (r *Rules) candidates(key *planKey, roles []string) []*rule {
	var list []*rule
	take := func(from []*rule) {
		for _, ru := range from {
			if (ru.classes == 0 || ru.classes&(1<<key.class) != 0) && ru.only.about(key, roles) {
				list = append(list, ru)
			}
		}
	}
	take(r.general)
	if key.name != "" {
		take(r.byName[key.name])
	}
	if key.id != "" && key.id != key.name {
		take(r.byName[key.id])
	}
	slices.SortFunc(list, func(a, b *rule) int { return a.order - b.order })
	return slices.Compact(list)
}

// about reports whether a rule may be about a key. It may be wrong only by
// saying yes: Cedar decides.
func (r *Rule) about(key *planKey, roles []string) bool {
	return (len(r.Capabilities) == 0 || slices.ContainsFunc(r.Capabilities, func(s string) bool {
		return s == key.id || s == key.name || ToolName(s) == key.name || wild(s, key.id, false) || wild(s, key.name, false)
	})) &&
		(len(r.Roles) == 0 || slices.ContainsFunc(r.Roles, func(s string) bool { return slices.Contains(roles, s) })) &&
		among(r.Tenants, key.tenant) && among(r.Principals, key.user) && among(r.Agents, key.agent) && among(r.Modes, key.mode) &&
		among(r.Sources, key.source) && among(r.Kinds, key.kind) && among(r.Trust, key.trust) &&
		among(r.Intents, key.intent) && among(r.Origins, key.origin) && among(r.Surfaces, key.surface) &&
		(key.anyAction || among(r.Actions, key.action))
}

func among[T comparable](list []T, x T) bool { return len(list) == 0 || slices.Contains(list, x) }

func callAction() types.EntityUID { return types.NewEntityUID("Action", "call") }

func principalEntity(uid types.EntityUID, key *planKey, roles []string) types.Entity {
	parents := []types.EntityUID{types.NewEntityUID("Tenant", types.String(key.tenant))}
	var names []types.Value
	for _, role := range roles {
		parents = append(parents, types.NewEntityUID("Role", types.String(role)))
		names = append(names, types.String(role))
	}
	return types.Entity{UID: uid, Parents: types.NewEntityUIDSet(parents...), Attributes: types.NewRecord(types.RecordMap{
		"tenant": types.String(key.tenant), "roles": types.NewSet(names...),
	})}
}

func resourceEntity(uid types.EntityUID, key *planKey) types.Entity {
	parents := []types.EntityUID{
		types.NewEntityUID("Class", types.String(key.class.String())),
		types.NewEntityUID("Trust", types.String(key.trust.String())),
		types.NewEntityUID("Name", types.String(key.name)),
	}
	if key.class == Edit {
		parents = append(parents, types.NewEntityUID("Class", "write"))
	}
	return types.Entity{UID: uid, Parents: types.NewEntityUIDSet(parents...), Attributes: types.NewRecord(types.RecordMap{
		"id": types.String(key.id), "name": types.String(key.name), "kind": types.String(key.kind), "source": types.String(key.source),
		"class": types.String(key.class.String()), "trust": types.String(key.trust.String()), "trustLevel": types.Long(key.trust),
		"mcp": types.Boolean(key.mcp), "readOnly": types.Boolean(key.readOnly), "destructive": types.Boolean(key.destructive),
		"anyProgram": types.Boolean(key.anyProgram),
	})}
}

// staticContext is the part of the context that a key settles.
func (r *Rules) staticContext(key *planKey) types.RecordMap {
	return types.RecordMap{
		"action": types.String(key.action), "intent": types.String(key.intent.String()), "mode": types.String(key.mode),
		"origin": types.String(originName(key.origin)), "surface": types.String(key.surface),
		"agent":      types.String(key.agent),
		"deployment": types.String(r.settings.Deployment.String()), "profile": types.String(r.settings.Profile.String()),
		"declared": nameSet(Permissions{set: key.declared}.Names()), "required": nameSet(Permissions{set: key.required}.Names()),
	}
}

func nameSet(names []string) types.Set {
	values := make([]types.Value, len(names))
	for i, n := range names {
		values[i] = types.String(n)
	}
	return types.NewSet(values...)
}

// The names of the context's attributes: dynamicNames are those that only a
// call settles.
var (
	dynamicNames = []types.String{
		"session", "time", "risk", "facts", "path", "paths", "writes", "host", "hosts", "program", "command", "opaque", "destructive",
	}
	contextNames = append([]types.String{
		"action", "intent", "mode", "origin", "surface", "agent", "deployment", "profile", "declared", "required",
	}, dynamicNames...)
)
