package policy

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	expast "github.com/cedar-policy/cedar-go/x/exp/ast"
	"golang.org/x/text/unicode/norm"

	"ken/capability"
)

// Rules are compiled settings. They never change, and may be used by any number
// of goroutines. A nil *Rules refuses everything.
type Rules struct {
	settings Settings
	version  string
	rules    []*rule // in the order of checks
	byName   map[string][]*rule
	general  []*rule // those that may be about any name
	shared   lists   // those that are about every call, and differ by its facts alone
	tests    []*test
	protect  globSet
	secrets  globSet
	intents  map[Intent][]Class
	needs    needs

	// What was worked out before; it changes no answer. See plan.go.
	mu     sync.RWMutex
	plans  map[planKey]*plan
	roles  map[string]uint64
	idents map[ident]ident
	alike  map[string]string // a name for each set of patterns that match; see Rules.standIn

	lastRoles uint64
}

// needs says which parts of a request any rule looks at. What none looks at
// need not tell plans apart.
type needs struct {
	names    map[string]bool // of capabilities, exact
	lengths  uint64          // of names: bit n stands for n bytes, the last one also for more
	patterns []types.Pattern // of names
	anyName  bool            // it is unknown which names matter
	sources  bool
	kinds    bool
	users    bool
	agents   bool
	actions  bool
	intents  bool
}

// name adds the exact name of a capability.
func (n *needs) name(name string) {
	n.names[name] = true
	n.lengths |= 1 << min(len(name), 63)
}

// named reports whether a rule names exactly this. It is asked of every name of a
// catalog, and most have a length that no name in the rules has.
func (n *needs) named(name string) bool {
	return n.lengths>>min(len(name), 63)&1 != 0 && n.names[name]
}

// A stage is one of the ordered checks.
type stage uint8

const (
	stageExists stage = iota
	stageEnabled
	stageMode
	stageIntent
	stagePermission
	stageArguments
	stageRisk
	stageConsent
)

var stageNames = [...]string{"exists", "enabled", "mode", "intent", "permission", "arguments", "risk", "consent"}

// A rule is one Cedar policy and what to say when it decides.
type rule struct {
	id, where           string
	text, instead, knob string
	intents             string // see [Reason.Intents]
	stage               stage
	forbid              bool
	ask                 bool // a refusal that consent lifts, or a permission that needs it
	scope               Scope
	test                *test // the question about facts, if any
	unless              bool  // the rule applies where the answer is no
	names               []string
	classes             uint16 // bits; 0 is all
	when                []ast.Node
	only                Rule // some of what when says, to pass a rule over quickly
	order               int  // among all rules

	org      bool
	attrs    []types.String // of the context, that an organisation's policy reads
	compiled compiled
}

// compiled is a rule as Cedar evaluates it.
type compiled struct {
	whole  *cedar.Policy
	static *expast.Policy // without the question about facts
}

// Compile makes rules of settings, or says everything that is wrong with them.
func Compile(s Settings) (*Rules, error) {
	s = s.normalized()
	r := &Rules{
		settings: s, version: rand.Text(), byName: map[string][]*rule{}, plans: map[planKey]*plan{}, roles: map[string]uint64{}, idents: map[ident]ident{},
		alike: map[string]string{},
		needs: needs{names: map[string]bool{}}, intents: intentMap(),
	}
	maps.Copy(r.intents, s.IntentMap)
	c := compiler{r: r, ids: map[string]bool{}}
	c.numbers()
	c.access()
	c.deployment()
	c.modes()
	c.writeScope()
	c.intentRules()
	c.permissions()
	c.arguments()
	c.risk()
	for i := range s.Rules {
		c.rule(&s.Rules[i])
	}
	for _, f := range s.Cedar {
		c.cedarFile(f)
	}
	c.profile()
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	c.finish()
	return r, nil
}

// normalized returns the settings with the names of capabilities in Unicode
// normalization form C, which is that of the catalog.
func (s Settings) normalized() Settings {
	s.Rules = slices.Clone(s.Rules)
	for i := range s.Rules {
		s.Rules[i].Capabilities, s.Rules[i].Except = normalized(s.Rules[i].Capabilities), normalized(s.Rules[i].Except)
	}
	s.SendSecrets = maps.Clone(s.SendSecrets)
	for name, list := range s.SendSecrets {
		s.SendSecrets[name] = normalized(list)
	}
	return s
}

func normalized(list []string) []string {
	if !slices.ContainsFunc(list, func(s string) bool { return !norm.NFC.IsNormalString(s) }) {
		return list
	}
	list = slices.Clone(list)
	for i, s := range list {
		list[i] = norm.NFC.String(s)
	}
	return list
}

type compiler struct {
	r    *Rules
	ids  map[string]bool
	errs []error
}

func (c *compiler) fault(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *compiler) numbers() {
	s := &c.r.settings
	if s.AskAbove < 0 || s.DenyAbove > MaxRisk || s.AskAbove > s.DenyAbove {
		c.fault("askAbove is %d and denyAbove is %d; want 0 ≤ askAbove ≤ denyAbove ≤ 100", s.AskAbove, s.DenyAbove)
	}
	c.r.protect = newGlobSet(c.globs("protect", slices.Concat(protectedFiles, s.Protect)))
	c.r.secrets = newGlobSet(c.globs("secrets", slices.Concat(secretFiles, s.Secrets)))
}

func (c *compiler) globs(key string, list []string) []glob {
	var out []glob
	for _, s := range list {
		g, err := parseGlob(s)
		if err != nil {
			c.fault("%s: %w", key, err)
			continue
		}
		out = append(out, g)
	}
	return out
}

// add takes a rule over and makes its Cedar policies.
func (c *compiler) add(ru rule) {
	if c.ids[ru.id] {
		c.fault("two rules are named %s; rename one", ru.id)
		return
	}
	c.ids[ru.id] = true
	if ru.test != nil {
		if ru.test.name == "" {
			ru.test.name = ru.id
		}
		c.r.tests = append(c.r.tests, ru.test)
	}
	if !ru.org {
		ru.compiled.whole = cedar.NewPolicyFromAST(ru.policy(true))
		ru.compiled.static = (*expast.Policy)(ru.policy(false))
	}
	c.r.rules = append(c.r.rules, &ru)
}

// policy writes the rule as Cedar, with or without its question about facts.
func (ru *rule) policy(facts bool) *ast.Policy {
	note := ast.Annotation("id", types.String(ru.id)).Annotation("stage", types.String(stageNames[ru.stage]))
	if ru.ask {
		note = note.Annotation("ask", types.String(ru.scope.String()))
	}
	p := note.Permit()
	if ru.forbid {
		p = note.Forbid()
	}
	for _, n := range ru.when {
		p = p.When(n)
	}
	if !facts || ru.test == nil {
		return p
	}
	fact := ast.Context().Access("facts").Contains(ast.String(ru.test.name))
	if ru.unless {
		return p.Unless(fact)
	}
	return p.When(fact)
}

// finish sorts the rules into the order of checks and by what they can match.
func (c *compiler) finish() {
	r := c.r
	slices.SortStableFunc(r.rules, func(a, b *rule) int { return int(a.stage) - int(b.stage) })
	for i, ru := range r.rules {
		ru.order = i
		switch {
		case len(ru.when) == 0 && ru.classes == 0 && !ru.org:
			r.shared.add(ru, false)
			continue
		case len(ru.names) == 0:
			r.general = append(r.general, ru)
			continue
		}
		for _, name := range ru.names {
			r.needs.name(name)
			r.byName[name] = append(r.byName[name], ru)
		}
	}
	r.shared.index()
}

// Cedar writes all rules as one Cedar document, in the order of checks.
func (r *Rules) Cedar() []byte {
	var b strings.Builder
	if r == nil {
		return nil
	}
	for _, ru := range r.rules {
		if ru.where != "" {
			b.WriteString("// " + ru.where + "\n")
		}
		b.Write(ru.compiled.whole.MarshalCedar())
		b.WriteString("\n\n")
	}
	return []byte(b.String())
}

// Version returns a name for these rules that no other rules have or had.
// Results computed under one version must not be used under another. A pointer
// would not do, because later rules may be allocated at the same address. Nil
// rules have the version "".
func (r *Rules) Version() string {
	if r == nil {
		return ""
	}
	return r.version
}

// Settings returns what the rules were made of.
func (r *Rules) Settings() Settings {
	if r == nil {
		return Settings{}
	}
	return r.settings
}

// rule compiles one written line of policy.
func (c *compiler) rule(in *Rule) {
	t, err := in.check()
	if err != nil {
		c.fault("%s: rule %s: %w", in.Where, in.ID, err)
		return
	}
	for _, m := range in.Modes {
		if _, ok := c.r.settings.Modes[m]; !ok {
			c.fault("%s: rule %s: unknown mode %q; define it below modes", in.Where, in.ID, m)
		}
	}
	ru := rule{
		id: in.ID, where: in.Where, stage: stageMode, forbid: in.Effect != Allow, ask: in.Effect == Ask, scope: in.Scope, test: t,
		text: in.Reason, instead: in.Instead, knob: cmp.Or(in.Knob, "policy.rules "+in.ID),
	}
	switch {
	case in.Effect != Deny:
		ru.stage = stageConsent
	case t != nil:
		ru.stage = stageArguments
	}
	if ru.text == "" {
		ru.text = map[Effect]string{Deny: "A rule forbids this call", Ask: "A rule requires approval", Allow: "A rule allows this call"}[in.Effect]
	}
	ru.only = *in
	ru.when, ru.names, ru.classes = c.selectors(in)
	c.add(ru)
}

// selectors writes what a rule is about as conditions, and gives the names and
// classes by which it can be found.
func (c *compiler) selectors(in *Rule) (when []ast.Node, names []string, classes uint16) {
	when, names = c.capabilities(in.Capabilities)
	if except, _ := c.capabilities(in.Except); len(except) > 0 {
		when = append(when, ast.Not(except[0]))
	}
	all := func(nodes []ast.Node) {
		if len(nodes) > 0 {
			when = append(when, anyOf(nodes))
		}
	}
	all(each(in.Classes, func(x Class) ast.Node {
		classes |= 1 << x
		if x == Write {
			classes |= 1 << Edit
		}
		return ast.Resource().In(entity("Class", x.String()))
	}))
	all(each(in.Trust, func(x capability.Trust) ast.Node { return attr(ast.Resource(), "trust", x.String()) }))
	all(each(in.Kinds, func(x string) ast.Node { c.r.needs.kinds = true; return attr(ast.Resource(), "kind", x) }))
	all(each(in.Sources, func(x string) ast.Node { c.r.needs.sources = true; return attr(ast.Resource(), "source", x) }))
	all(each(in.Tenants, func(x string) ast.Node { return ast.Principal().In(entity("Tenant", x)) }))
	all(each(in.Roles, func(x string) ast.Node { return ast.Principal().In(entity("Role", x)) }))
	all(each(in.Principals, func(x string) ast.Node {
		c.r.needs.users = true
		return ast.Principal().Equal(entity("User", x))
	}))
	all(each(in.Agents, func(x string) ast.Node { c.r.needs.agents = true; return attr(ast.Context(), "agent", x) }))
	all(each(in.Actions, func(x string) ast.Node { c.r.needs.actions = true; return attr(ast.Context(), "action", x) }))
	all(each(in.Modes, func(x string) ast.Node { return attr(ast.Context(), "mode", x) }))
	all(each(in.Intents, func(x Intent) ast.Node { c.r.needs.intents = true; return attr(ast.Context(), "intent", x.String()) }))
	all(each(in.Origins, func(x capability.Caller) ast.Node { return attr(ast.Context(), "origin", originName(x)) }))
	all(each(in.Surfaces, func(x Surface) ast.Node { return attr(ast.Context(), "surface", string(x)) }))
	if in.Effect == Allow && !in.Destructive {
		when = append(when, ast.Not(ast.Resource().Access("destructive")))
	}
	if in.byID() {
		when = append(when, trusted())
	}
	return when, names, classes
}

func (c *compiler) capabilities(list []string) (when []ast.Node, names []string) {
	var nodes []ast.Node
	exact := true
	for _, s := range list {
		if strings.Contains(s, "*") {
			exact = false
			pattern := patternOf(s)
			c.r.needs.patterns = append(c.r.needs.patterns, pattern)
			nodes = append(nodes, ast.Resource().Access("id").Like(pattern), ast.Resource().Access("name").Like(pattern))
			continue
		}
		name := ToolName(s)
		c.r.needs.name(name)
		c.r.needs.name(s)
		names = append(names, name)
		if s != name {
			names = append(names, s)
		}
		nodes = append(nodes, attr(ast.Resource(), "id", s), attr(ast.Resource(), "name", name))
		if s != name { // only Ken's own tools have aliases
			nodes = append(nodes, attr(ast.Resource(), "name", s))
		}
	}
	if len(nodes) > 0 {
		when = append(when, anyOf(nodes))
	}
	if !exact {
		names = nil
	}
	return when, names
}

func attr(of ast.Node, name, value string) ast.Node {
	return of.Access(types.String(name)).Equal(ast.String(value))
}

func entity(kind types.EntityType, id string) ast.Node {
	return ast.Value(types.NewEntityUID(kind, types.String(id)))
}

// patternOf returns the pattern of a name with *.
func patternOf(s string) types.Pattern {
	var parts []any
	for i, piece := range strings.Split(s, "*") {
		if i > 0 {
			parts = append(parts, types.Wildcard{})
		}
		if piece != "" {
			parts = append(parts, piece)
		}
	}
	return types.NewPattern(parts...)
}

func anyOf(nodes []ast.Node) ast.Node {
	n := nodes[0]
	for _, next := range nodes[1:] {
		n = n.Or(next)
	}
	return n
}

func each[T any](list []T, f func(T) ast.Node) []ast.Node {
	var nodes []ast.Node
	for _, x := range list {
		nodes = append(nodes, f(x))
	}
	return nodes
}
