package policyfile

import (
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
)

func readRule(r *yamldoc.Reader, name string, i int) policy.Rule {
	line := r.Line("id")
	rule := policy.Rule{ID: r.String("id"), Where: place(name, line)}
	if rule.ID == "" {
		rule.ID = fmt.Sprintf("rules[%d]", i)
	}
	if f, ok := r.Field("effect"); ok {
		word, _ := f.Value.Any.(string)
		effect := slices.Index(policy.EffectWords(), word)
		if effect < 0 {
			r.Issue(f.Line, "rule "+rule.ID+": unknown effect", "write effect: deny, ask or allow")
		}
		rule.Effect = policy.Effect(max(effect, 0))
	} else {
		r.Issue(line, "rule "+rule.ID+" has no effect", "write effect: deny, ask or allow")
	}
	refuseEmptyLists(r, rule.ID)
	rule.Scope = readWord(r, "scope", policy.ScopeWords(), policy.Once)
	rule.Capabilities, rule.Except, rule.Actions = r.Strings("capabilities"), r.Strings("except"), r.Strings("actions")
	rule.Kinds, rule.Sources = r.Strings("kinds"), r.Strings("sources")
	rule.Tenants, rule.Roles, rule.Principals = r.Strings("tenants"), r.Strings("roles"), r.Strings("principals")
	rule.Agents, rule.Modes = r.Strings("agents"), r.Strings("modes")
	for _, i := range readList(r, "effects", policy.ClassWords()) {
		rule.Classes = append(rule.Classes, policy.Class(i+1))
	}
	for _, i := range readList(r, "trust", []string{"remote", "workspace", "user", "builtin"}) {
		rule.Trust = append(rule.Trust, capability.Trust(i))
	}
	for _, i := range readList(r, "intents", policy.Intents()) {
		rule.Intents = append(rule.Intents, policy.Intent(i+1))
	}
	for _, i := range readList(r, "origins", []string{"model", "person"}) {
		rule.Origins = append(rule.Origins, []capability.Caller{capability.ByModel, capability.ByPerson}[i])
	}
	surfaces := policy.SurfaceWords()
	for _, i := range readList(r, "surfaces", surfaces) {
		rule.Surfaces = append(rule.Surfaces, policy.Surface(surfaces[i]))
	}
	rule.Paths, rule.Hosts = r.Strings("paths"), r.Strings("hosts")
	if f, ok := r.Field("access"); ok {
		rule.Access, _ = f.Value.Any.(string)
		if rule.Access != "read" && rule.Access != "write" {
			r.Issue(f.Line, "rule "+rule.ID+": unknown access", "write access: read or access: write")
		}
	}
	if f, ok := r.Field("argv"); ok {
		rule.Argv = readArgv(r, f)
	}
	rule.Match, rule.NotMatch = r.Strings("match"), r.Strings("notMatch")
	rule.Destructive, _ = r.Bool("destructive")
	rule.Reason, rule.Instead = r.String("reason"), r.String("instead")
	r.RefuseRest()
	if err := rule.Check(); err != nil {
		r.Issue(line, "rule "+rule.ID+": "+err.Error(), "")
	}
	return rule
}

// refuseEmptyLists refuses a list that is written and has nothing in it. Without the
// list a rule is about everything, which is not what its author can have meant.
func refuseEmptyLists(r *yamldoc.Reader, id string) {
	for _, key := range []string{
		"capabilities", "except", "actions", "kinds", "sources", "effects", "trust", "tenants", "roles", "principals", "agents",
		"modes", "intents", "origins", "surfaces", "paths", "argv", "hosts", "match", "notMatch",
	} {
		f, _ := r.Field(key)
		if f.Key == "" { // it is not written
			continue
		}
		items, isList := f.Value.Any.([]yamldoc.Value)
		if !isList {
			items = []yamldoc.Value{f.Value}
		}
		empty := func(v yamldoc.Value) bool {
			list, isList := v.Any.([]yamldoc.Value)
			return v.Any == nil || v.Any == "" || isList && len(list) == 0
		}
		if len(items) == 0 || slices.ContainsFunc(items, empty) {
			r.Issue(f.Line, "rule "+id+": "+key+" is empty or has an empty item", "list what the rule is about, or remove "+key+": without it, the rule is about everything")
		}
	}
}

// readArgv reads a list of commands, each a text or a list of words, of which
// each may again be a list of those that will do.
func readArgv(r *yamldoc.Reader, f yamldoc.Field) [][][]string {
	items, ok := f.Value.Any.([]yamldoc.Value)
	if !ok {
		r.Issue(f.Line, "argv is "+f.Value.Kind()+", want a list", `write argv: ["git push", [npm, [publish, unpublish]]]`)
		return nil
	}
	var all [][][]string
	for _, item := range items {
		switch v := item.Any.(type) {
		case string:
			p, err := policy.ParseCommand(v)
			if err != nil {
				r.Issue(item.Line, err.Error(), "")
				continue
			}
			all = append(all, p)
		case []yamldoc.Value:
			var p [][]string
			for _, w := range v {
				p = append(p, alternatives(r, w))
			}
			all = append(all, p)
		default:
			r.Issue(item.Line, "a command of argv is "+item.Kind(), "write it as text or as a list of words")
		}
	}
	return all
}

func alternatives(r *yamldoc.Reader, v yamldoc.Value) []string {
	items, ok := v.Any.([]yamldoc.Value)
	if !ok {
		items = []yamldoc.Value{v}
	}
	var words []string
	for _, item := range items {
		s, isText := item.Any.(string)
		if !isText {
			s = item.Text
		}
		if s == "" {
			r.Issue(item.Line, "a word of argv is "+item.Kind(), "write it as text")
		}
		words = append(words, s)
	}
	return words
}
