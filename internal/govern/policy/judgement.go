package policy

import (
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"ken/internal/address"
	"ken/internal/programs"
)

// A judgement is one call on its way through a plan.
type judgement struct {
	rules  *Rules
	plan   *plan
	q      *Request
	seen   *observation
	risk   Risk
	broken *rule // a policy that could not be evaluated
	fault  string

	// The context of the combination of arguments that was last asked about.
	combination [3]int
	context     types.Record
	ready       bool
}

// asks evaluates an organisation's policy for every combination of a call's
// files, hosts and commands: a forbid for any of them, a permit for all. A
// policy that fails is noted and counts as not applying; the caller refuses.
func (j *judgement) asks(ru *rule) bool {
	f := &j.q.Facts
	paths, hosts, commands := max(1, len(f.Paths)), max(1, len(f.Hosts)), max(1, len(f.Commands))
	reads := func(names ...types.String) bool {
		return slices.ContainsFunc(names, func(n types.String) bool { _, ok := slices.BinarySearch(ru.attrs, n); return ok })
	}
	if !reads("path", "writes") {
		paths = 1
	}
	if !reads("host") {
		hosts = 1
	}
	if !reads("program", "command") {
		commands = 1
	}
	if paths*hosts*commands > mostFacets {
		j.broken, j.fault = ru, "the call names too many files, hosts and commands to judge each"
		return false
	}
	for i := range paths {
		for k := range hosts {
			for n := range commands {
				yes := j.authorize(ru, i, k, n)
				if j.broken != nil {
					return false
				}
				if yes == ru.forbid {
					return yes
				}
			}
		}
	}
	return !ru.forbid
}

func (j *judgement) authorize(ru *rule, path, host, command int) bool {
	if at := [3]int{path, host, command}; !j.ready || at != j.combination {
		context := make(types.RecordMap, len(j.plan.attrs))
		for _, name := range j.plan.attrs {
			context[name] = j.attribute(name, path, host, command)
		}
		j.combination, j.context, j.ready = at, types.NewRecord(context), true
	}
	_, diag := cedar.Authorize(single{ru}, j.plan.entities, cedar.Request{
		Principal: j.plan.principal, Action: callAction(), Resource: j.plan.resource, Context: j.context,
	})
	if len(diag.Errors) > 0 {
		j.broken, j.fault = ru, diag.Errors[0].Message
		return false
	}
	return len(diag.Reasons) > 0
}

func (j *judgement) attribute(name types.String, path, host, command int) types.Value {
	if v, ok := j.plan.static[name]; ok {
		if name == "action" {
			return types.String(j.q.Action)
		}
		return v
	}
	f := &j.q.Facts
	switch name {
	case "session":
		return types.String(j.q.Session)
	case "time":
		return types.Long(j.q.Time.Unix())
	case "risk":
		return types.Long(j.risk.Score)
	case "facts":
		return nameSet(j.rules.facts(f, j.seen, j.risk))
	case "path":
		if path < len(j.seen.paths) {
			return types.String(j.seen.paths[path])
		}
	case "paths":
		return nameSet(j.seen.paths)
	case "writes":
		return types.Boolean(path < len(f.Paths) && f.Paths[path].Write)
	case "host":
		if host < len(f.Hosts) {
			return types.String(strings.ToLower(address.Bare(f.Hosts[host])))
		}
	case "hosts":
		var all []string
		for _, h := range f.Hosts {
			all = append(all, strings.ToLower(address.Bare(h)))
		}
		return nameSet(all)
	case "program":
		if command < len(f.Commands) {
			return types.String(programs.Name(f.Commands[command][0]))
		}
	case "command":
		if command < len(f.Commands) {
			return types.String(strings.Join(f.Commands[command], " "))
		}
	case "opaque":
		return types.Boolean(f.Opaque != "")
	case "destructive":
		return types.Boolean(j.seen.destructive)
	}
	return types.String("")
}

// facts lists the names of all tests that hold.
func (r *Rules) facts(f *Facts, s *observation, risk Risk) []string {
	var names []string
	for _, t := range r.tests {
		if t.holds(f, s, risk) {
			names = append(names, t.name)
		}
	}
	return names
}
