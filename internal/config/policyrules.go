package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// modes are the built-in ones and those of files. A project may add some; one
// of a name that there is already would replace what the user chose.
func modes() setting[Config] {
	take := func(into, from *Config) {
		into.Policy.Modes, into.spoken.modes = from.Policy.Modes, from.spoken.modes
	}
	return setting[Config]{
		name:  "policy.modes",
		doc:   "Modes besides code, debug, ask and architect, as in {review: {groups: [read]}, docs: {groups: [read, edit], files: ['*.md']}}.",
		joins: true, exact: true, take: take,
		show: func(c *Config) any { return &yamldoc.Map{Fields: c.spoken.modes} },
		read: func(r *reading, at spot, v yamldoc.Value, into *Config) {
			if s, ok := r.policy(at, "modes", v); ok {
				m, _ := v.Any.(*yamldoc.Map) // anything else was refused
				into.Policy.Modes, into.spoken.modes = s.Modes, m.Fields
			}
		},
		noWider: func(a, b *Config) bool {
			for _, f := range a.spoken.modes {
				if was, there := b.Policy.Modes[f.Key]; there && !sameMode(a.Policy.Modes[f.Key], was) {
					return false
				}
			}
			return true
		},
		join: func(into, from *Config) {
			joined := Config{Policy: policy.Settings{Modes: maps.Clone(into.Policy.Modes)}, spoken: into.spoken}
			for _, f := range from.spoken.modes {
				if _, there := joined.Policy.Modes[f.Key]; !there {
					joined.Policy.Modes[f.Key] = from.Policy.Modes[f.Key]
					joined.spoken.modes = append(slices.Clip(joined.spoken.modes), f)
				}
			}
			take(into, &joined)
		},
	}
}

func sameMode(a, b policy.Mode) bool {
	return slices.Equal(a.Groups, b.Groups) && slices.Equal(a.Globs, b.Globs) &&
		(a.Files == nil) == (b.Files == nil) && (a.Files == nil || a.Files.String() == b.Files.String())
}

// rules are those of all files. A project's may refuse and ask.
func rules() setting[Config] {
	take := func(into, from *Config) {
		into.Policy.Rules, into.spoken.rules = from.Policy.Rules, from.spoken.rules
	}
	return setting[Config]{
		name: "policy.rules",
		doc:  "Rules of your own, as in [{id: no-push, effect: deny, argv: [git push], reason: ask Ada}].",
		read: func(r *reading, at spot, v yamldoc.Value, into *Config) {
			if s, ok := r.policy(at, "rules", v); ok {
				into.Policy.Rules = s.Rules
				into.spoken.rules, _ = v.Any.([]yamldoc.Value)
				r.nameRules(into)
			}
		},
		show: func(c *Config) any { return slices.Concat([]yamldoc.Value{}, c.spoken.rules) },
		noWider: func(a, b *Config) bool {
			for i, rule := range a.Policy.Rules {
				if rule.Effect == policy.Allow && !slices.ContainsFunc(b.spoken.rules, func(v yamldoc.Value) bool { return yamledit.Equal(v.Any, a.spoken.rules[i].Any) }) {
					return false
				}
			}
			return true
		},
		take: take, joins: true,
		join: func(into, from *Config) {
			joined := Config{Policy: policy.Settings{Rules: slices.Clip(into.Policy.Rules)}, spoken: into.spoken}
			for i, rule := range from.Policy.Rules {
				raw := from.spoken.rules[i]
				if slices.ContainsFunc(into.spoken.rules, func(v yamldoc.Value) bool { return yamledit.Equal(v.Any, raw.Any) }) {
					continue
				}
				joined.Policy.Rules = append(joined.Policy.Rules, rule)
				joined.spoken.rules = append(slices.Clip(joined.spoken.rules), raw)
			}
			take(into, &joined)
		},
	}
}

// nameRules prefixes the ids of a project's rules that have none of their own, so
// that they differ from those of the user's, and refuses two rules with one id.
func (r *reading) nameRules(c *Config) {
	seen := map[string]bool{}
	for i := range c.Policy.Rules {
		rule := &c.Policy.Rules[i]
		if m, ok := c.spoken.rules[i].Any.(*yamldoc.Map); ok {
			if _, named := m.Get("id"); !named && r.workspace {
				rule.ID = "project." + rule.ID
			}
		}
		if seen[rule.ID] {
			r.fault(spot{line: c.spoken.rules[i].Line}, "duplicate-name", "give one of them another id", "policy.rules: two rules have the id %s", plain(rule.ID))
		}
		seen[rule.ID] = true
	}
}

// distinctRules reports the rules of this file that have the id of one of
// another.
func (r *reading) distinctRules(rules []policy.Rule) {
	seen := map[string]string{}
	for _, rule := range rules {
		if first, twice := seen[rule.ID]; twice {
			r.fault(spot{line: lineOf(rule.Where)}, "duplicate-name", "give it another id", "policy.rules: the id %s is taken at %s already", plain(rule.ID), first)
			continue
		}
		seen[rule.ID] = rule.Where
	}
}

// lineOf returns the line of a place written file:line.
func lineOf(where string) int {
	line := 0
	if i := strings.LastIndexByte(where, ':'); i >= 0 {
		fmt.Sscan(where[i+1:], &line)
	}
	return line
}
