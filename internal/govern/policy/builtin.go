package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/ast"

	"ken/capability"
)

// within is the condition that a capability has one of some classes, and the
// bits by which rules are found.
func within(list ...Class) (ast.Node, uint16) {
	var bits uint16
	nodes := each(list, func(c Class) ast.Node {
		bits |= 1 << c
		return attr(ast.Resource(), "class", c.String())
	})
	return anyOf(nodes), bits
}

const effectful = 1<<Read | 1<<Write | 1<<Edit | 1<<Exec | 1<<Network

func notMeta() ast.Node { return ast.Not(attr(ast.Resource(), "class", "meta")) }

// access compiles tool-access.json.
func (c *compiler) access() {
	a := c.r.settings.Access
	knob := "tool-access.json"
	if a.Name != "" {
		knob = a.Name
	}
	switch {
	case !a.Enabled || a.Mode == AccessOff:
		c.add(rule{
			id: "toolAccess.global", stage: stageEnabled, forbid: true, when: []ast.Node{notMeta()}, classes: effectful,
			text: "All tools are switched off", knob: cmp.Or(a.By, knob+" global.enabled and global.mode"),
		})
	case a.Mode == AccessAllowlist:
		when := []ast.Node{notMeta()}
		if allowed, _ := c.capabilities(a.Allowed); len(allowed) > 0 {
			when = append(when, ast.Not(allowed[0]))
		}
		c.add(rule{
			id: "toolAccess.global.allowedTools", stage: stageEnabled, forbid: true, when: when, classes: effectful,
			text: "This tool is not on the list of allowed tools", instead: "Allowed: " + listed(a.Allowed), knob: cmp.Or(a.By, knob+" global.allowedTools"),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		c.tool(name, a.Tools[name], knob)
	}
}

// tool compiles the entry of a tool. The entry "shell" applies to Ken's own
// shell, not to a server's tool of that name, and to tools that run any program
// a caller names, because those would be a way around it. The default entry
// applies to the shell alone.
func (c *compiler) tool(name string, t Tool, knob string) {
	when, names := c.capabilities([]string{name})
	ru := rule{
		id: "toolAccess.tools." + name, stage: stageEnabled, forbid: true, when: when, names: names,
		text: "This tool is switched off", knob: cmp.Or(t.By, fmt.Sprintf("%s tools.%s.enabled and .mode", knob, name)),
	}
	if ToolName(name) == "shell" {
		ru.when = append(ru.when, attr(ast.Resource(), "trust", capability.TrustBuiltin.String()))
		if usual := DefaultTool("shell"); t.Line > 0 || t.Enabled != usual.Enabled || t.Mode != usual.Mode || !slices.Equal(t.AllowedPrefixes, usual.AllowedPrefixes) {
			more := ru
			more.id += ".programs"
			more.when, more.names, more.classes = []ast.Node{ast.Resource().Access("anyProgram")}, nil, 1<<Exec
			more.text = "This tool runs any program, and the shell is switched off"
			c.toolRule(more, name, t, knob)
		}
	}
	c.toolRule(ru, name, t, knob)
}

func (c *compiler) toolRule(ru rule, name string, t Tool, knob string) {
	if t.Line > 0 {
		ru.where = capability.Origin{Path: c.r.settings.Access.Name, Line: t.Line}.String()
	}
	if !t.Enabled || t.Mode == AccessOff {
		c.add(ru)
		return
	}
	if t.Mode == AccessFull {
		return
	}
	q := &test{kind: testCommands, every: true}
	for _, s := range t.AllowedPrefixes {
		p, err := parsePattern(s)
		if err != nil {
			c.fault("%s: tools.%s.allowedPrefixes: %w", knob, name, err)
			continue
		}
		q.argv = append(q.argv, p)
	}
	ru.id += ".allowedPrefixes"
	ru.stage, ru.test, ru.unless = stageArguments, q, true
	ru.text = "This command is not on the list of allowed commands"
	ru.instead = "Ken allows single commands that begin with " + listed(t.AllowedPrefixes) + ". They must not contain ; & | $ ` < > or options that run other programs. For a program that runs project code, such as make or npm, list each command, as in make test. git alone covers only commands that read a repository, such as git log; list git push separately"
	ru.knob = cmp.Or(t.By, fmt.Sprintf("%s tools.%s.allowedPrefixes", knob, name))
	c.add(ru)
}

func listed(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// deployment refuses processes and writes where strangers may reach Ken.
func (c *compiler) deployment() {
	d := c.r.settings.Deployment
	if d == LocalOpen {
		return
	}
	when, bits := within(Exec, Write, Edit)
	c.add(rule{
		id: "deployment." + d.String(), stage: stageMode, forbid: true, when: []ast.Node{when}, classes: bits,
		text: "Processes and writes are off in this deployment", instead: "Reading is allowed", knob: "policy.deployment",
	})
}

// modes refuses, for every mode, the groups that it does not name.
func (c *compiler) modes() {
	mcp := ast.Resource().Access("mcp")
	for _, name := range slices.Sorted(maps.Keys(c.r.settings.Modes)) {
		m := c.r.settings.Modes[name]
		here := attr(ast.Context(), "mode", name)
		refuse := func(g Group, when ast.Node, bits uint16) {
			c.add(rule{
				id: fmt.Sprintf("modes.%s.%s", name, g), where: m.Where, stage: stageMode, forbid: true,
				when: []ast.Node{here, when, notMeta()}, only: Rule{Modes: []string{name}}, classes: bits & effectful,
				text: fmt.Sprintf("The mode %s does not include the group %s", name, g), instead: "It includes " + groups(m.Groups), knob: "policy.modes." + name + ".groups",
			})
		}
		own := func(list ...Class) (ast.Node, uint16) {
			when, bits := within(list...)
			return ast.Not(mcp).And(when), bits
		}
		has := func(g Group) bool { return slices.Contains(m.Groups, g) }
		if !has(GroupRead) {
			when, bits := own(Read)
			refuse(GroupRead, when, bits)
		}
		if !has(GroupCommand) {
			when, bits := own(Exec)
			refuse(GroupCommand, when, bits)
		}
		if !has(GroupMCP) {
			refuse(GroupMCP, mcp, effectful)
			if !has(GroupNetwork) {
				when, bits := own(Network)
				refuse(GroupNetwork, when, bits)
			}
		}
		when, bits := own(Write, Edit)
		switch {
		case !has(GroupEdit):
			refuse(GroupEdit, when, bits)
		case m.Files != nil || len(m.Globs) > 0:
			c.add(rule{
				id: "modes." + name + ".files", where: m.Where, stage: stageArguments, forbid: true,
				when: []ast.Node{here, when}, only: Rule{Modes: []string{name}}, classes: bits, unless: true,
				test: &test{kind: testFiles, files: m.Files, globs: c.globs("modes."+name+".files", m.Globs)},
				text: fmt.Sprintf("The mode %s may not change this file", name), instead: "It may change " + patterns(m), knob: "policy.modes." + name + ".files",
			})
		}
	}
}

// writeScope refuses changes outside the files of the work at hand.
func (c *compiler) writeScope() {
	w := c.r.settings.Scope
	if w == nil {
		return
	}
	when, bits := within(Write, Edit)
	ru := rule{
		id: "scope.write", where: w.Where, stage: stageArguments, forbid: true,
		when: []ast.Node{attr(ast.Context(), "origin", "model"), when}, classes: bits, unless: true,
		test: &test{kind: testFiles, globs: c.globs("owned_scope", w.Globs)},
		text: "REQ-001: the file is outside the scope of " + listed(w.Work), instead: "In scope: " + listed(w.Globs), knob: "owned_scope in " + w.Where,
	}
	if w.Trouble != "" {
		ru.text, ru.instead = "The scope of the work cannot be read: "+w.Trouble, "Fix the file"
	}
	c.add(ru)
	// What a program writes is not known beforehand.
	when, bits = within(Exec)
	c.add(rule{
		id: "scope.exec", where: w.Where, stage: stageArguments, forbid: true, ask: true,
		when: []ast.Node{attr(ast.Context(), "origin", "model"), when}, classes: bits,
		text: "A program could change files outside the scope of " + listed(w.Work), knob: ru.knob,
	})
}

func groups(list []Group) string {
	var words []string
	for _, g := range list {
		words = append(words, string(g))
	}
	return listed(words)
}

func patterns(m Mode) string {
	words := slices.Clone(m.Globs)
	if m.Files != nil {
		words = append(words, m.Files.String())
	}
	return listed(words)
}

// The seed's words for the two refusals.
const (
	noIntentText    = "Intent must be selected before executing tools"
	wrongIntentText = "Tool not allowed under selected intent"
)

// selectIntent begins what a refusal for the intent says to a model.
const selectIntent = "Call select_active_intent with "

// intentRules compile the seed's matrix: one refusal for each intent and class
// that do not go together, so that each can say what would.
func (c *compiler) intentRules() {
	s := &c.r.settings
	if s.Intents == Off {
		return
	}
	c.r.needs.intents = true
	here := []ast.Node{attr(ast.Context(), "origin", "model")}
	if s.IntentSurfaces != nil {
		nodes := each(s.IntentSurfaces, func(x Surface) ast.Node { return attr(ast.Context(), "surface", string(x)) })
		if len(nodes) == 0 {
			return
		}
		here = append(here, anyOf(nodes))
	}
	for class := Read; class < classes; class++ {
		if s.Intents == Relaxed && class == Read {
			continue
		}
		of, bits := within(class)
		fit := c.r.intentsFor(class)
		instead, which := "No intent allows calls of the class "+class.String(), ""
		if len(fit) > 0 {
			which = fmt.Sprintf("%s for calls of the class %s", strings.Join(fit, " or "), class)
			instead = selectIntent + which
		}
		for intent := NoIntent; intent < intents; intent++ {
			if intent != NoIntent && slices.Contains(c.r.intents[intent], class) {
				continue
			}
			ru := rule{
				id: fmt.Sprintf("intents.%s.%s", intent, class), stage: stageIntent, forbid: true, only: Rule{Intents: []Intent{intent}},
				when:    append(slices.Clone(here), of, attr(ast.Context(), "intent", intent.String())),
				classes: bits, text: wrongIntentText, instead: instead, intents: which, knob: "policy.intents and policy.intentMap." + intent.String(),
			}
			if intent == NoIntent {
				ru.id, ru.text, ru.knob = "intents.none."+class.String(), noIntentText, "policy.intents"
			}
			c.add(ru)
		}
	}
}

// intentsFor lists the intents that allow a class.
func (r *Rules) intentsFor(class Class) []string {
	var names []string
	for i := Plan; i < intents; i++ {
		if slices.Contains(r.intents[i], class) {
			names = append(names, i.String())
		}
	}
	return names
}

// declaredIn names the keys that a capability's permissions are declared with.
const declaredIn = "permissions in its manifest; permissions_required in the manifest of a package"

// permissions refuses what was not declared. What the settings say of a
// permission counts for every capability that declares it: the sandbox gives a
// program what it declares, whether or not this call needs it.
func (c *compiler) permissions() {
	for i, name := range permissionNames {
		required := ast.Context().Access("required").Contains(ast.String(name))
		declared := ast.Context().Access("declared").Contains(ast.String(name))
		c.add(rule{
			id: "permissions.declared." + name, stage: stagePermission, forbid: true, when: []ast.Node{required, ast.Not(declared)},
			text: "The call needs the permission " + name + ", which the capability does not declare", knob: declaredIn,
		})
		effect, said := c.r.settings.Permissions[1<<i]
		if !said || effect == Allow {
			continue
		}
		c.add(rule{
			id: "permissions." + name, stage: stagePermission, forbid: true, ask: effect == Ask, scope: Session,
			when: []ast.Node{required.Or(declared)},
			text: "The permission " + name + " is not granted", knob: "policy.permissions." + name,
		})
	}
}

// arguments compiles what holds for the arguments of every call.
func (c *compiler) arguments() {
	profile := c.r.settings.Profile
	c.add(rule{
		id: "arguments.malformed", stage: stageArguments, forbid: true, test: &test{kind: testBad},
		text: traversal, instead: "Name files below the workspace, without ..",
	})
	c.add(rule{
		id: "arguments.outsideWrite", stage: stageArguments, forbid: true, test: &test{kind: testOutsideWrite},
		text: "The call writes outside the workspace", instead: "Name files below the workspace", knob: "policy.writeRoots",
	})
	c.add(rule{
		id: "arguments.outsideRead", stage: stageArguments, forbid: true, ask: profile == Personal || profile == Team, test: &test{kind: testOutsideRead},
		text: "The call reads outside the workspace", instead: "Name files below the workspace", knob: "policy.readRoots",
	})
	c.add(rule{
		id: "arguments.metadata", stage: stageArguments, forbid: true, test: &test{kind: testMetadata},
		text: "The host is a metadata service that returns this machine's credentials",
	})
	c.add(rule{
		id: "arguments.knownSecret", stage: stageArguments, forbid: true, test: &test{kind: testSent},
		text: "The arguments contain a secret that the capability does not declare", knob: "policy.sendSecrets",
	})
	if profile == Seed {
		return // the seeds ask nothing
	}
	c.add(rule{
		id: "arguments.unseen", stage: stageArguments, forbid: true, ask: true, test: &test{kind: testUnseen},
		text: "Ken could not check every file in reach of the call for secrets and protected files", knob: "policy.secrets, policy.protect",
	})
	c.add(rule{
		id: "arguments.protected", stage: stageArguments, forbid: true, ask: true, test: &test{kind: testProtected},
		text: "The call changes a file that controls an agent or runs automatically", knob: "policy.protect",
	})
	c.add(rule{
		id: "arguments.secret", stage: stageArguments, forbid: true, ask: true, test: &test{kind: testSecret},
		text: "The call reads a file that contains secrets", knob: "policy.secrets",
	})
	c.add(rule{
		id: "arguments.hidden", stage: stageArguments, forbid: true, ask: true, scope: Session, test: &test{kind: testHidden},
		text: hiddenText, instead: "Remove the setting from the project, or approve the call", knob: "policy.profile",
	})
	c.add(rule{
		id: "arguments.destructive", stage: stageArguments, forbid: true, ask: true, test: &test{kind: testDestructive},
		text: "The call is destructive", knob: "policy.profile",
	})
}

func (c *compiler) risk() {
	s := &c.r.settings
	if s.DenyAbove < MaxRisk {
		c.add(rule{
			id: "risk.denyAbove", stage: stageRisk, forbid: true, test: &test{kind: testRisk, above: s.DenyAbove},
			text: fmt.Sprintf("The risk of this call is above %d", s.DenyAbove), knob: "policy.denyAbove",
		})
	}
	if s.AskAbove < s.DenyAbove {
		c.add(rule{
			id: "risk.askAbove", stage: stageRisk, forbid: true, ask: true, test: &test{kind: testRisk, above: s.AskAbove},
			text: fmt.Sprintf("The risk of this call is above %d", s.AskAbove), knob: "policy.askAbove",
		})
	}
}

// profile compiles what a profile says of calls that nothing else decides.
func (c *compiler) profile() {
	person := attr(ast.Context(), "origin", "person")
	destructive := ast.Resource().Access("destructive")
	trusted := trusted()
	network := ast.Context().Access("required").Contains(ast.String("network"))
	name := c.r.settings.Profile.String()
	permit := func(id, text string, ask bool, scope Scope, list []Class, when ...ast.Node) {
		of, bits := within(list...)
		c.add(rule{
			id: name + "." + id, stage: stageConsent, ask: ask, scope: scope, classes: bits,
			when: append([]ast.Node{of}, when...), text: text, knob: "policy.profile, or a rule that allows it",
		})
	}
	every := []Class{Read, Write, Edit, Exec, Network}
	permit("meta", "Asking, finding and finishing are allowed", false, Once, []Class{Meta})
	switch c.r.settings.Profile {
	case Personal:
		permit("person", "Calls by a person are allowed", false, Once, every, person, ast.Not(destructive))
		permit("read", "Reading is allowed", false, Once, []Class{Read}, ast.Not(destructive))
		permit("write", "Writing requires approval, once or for the session", true, Session, []Class{Write, Edit}, ast.Not(destructive), ast.Not(person))
		permit("exec", "Starting a process requires approval, once or for the session", true, Session, []Class{Exec}, ast.Not(destructive), ast.Not(person), ast.Not(network))
		permit("outbound", "Using the network requires approval each time", true, Once, []Class{Network}, ast.Not(person))
		permit("outboundProgram", "Starting a process that uses the network requires approval each time", true, Once, []Class{Exec}, ast.Not(destructive), ast.Not(person), network)
		permit("destructive", "Destructive calls require approval each time", true, Once, every, destructive)
	case Team:
		permit("person", "Calls by a person are allowed", false, Once, every, person, ast.Not(destructive))
		permit("read", "Reading with capabilities that the user trusts is allowed", false, Once, []Class{Read}, trusted, ast.Not(destructive))
		permit("readOther", "Reading with capabilities from others requires approval, once or for the session", true, Session, []Class{Read}, ast.Not(trusted), ast.Not(destructive), ast.Not(person))
		permit("write", "Writing requires approval, once or for the session", true, Session, []Class{Write, Edit}, ast.Not(destructive), ast.Not(person))
		permit("exec", "Starting a process requires approval each time", true, Once, []Class{Exec}, ast.Not(destructive), ast.Not(person))
		permit("outbound", "Using the network requires approval each time", true, Once, []Class{Network}, ast.Not(person))
		permit("destructive", "Destructive calls require an operator and approval each time", true, Once, every, destructive,
			ast.Principal().In(entity("Role", "operator")))
	case Seed:
		permit("all", "Calls that pass every check are allowed", false, Once, every)
	default:
		permit("read", "Reading with capabilities that the user trusts is allowed", false, Once, []Class{Read}, trusted, ast.Not(destructive))
		of, bits := within(Write, Edit, Exec, Network)
		c.add(rule{
			id: name + ".consent", stage: stageConsent, forbid: true, ask: true, classes: bits, when: []ast.Node{of},
			text: "Calls that do more than read require approval each time, even if a rule allows them", knob: "policy.profile",
		})
	}
}
