package config

import (
	"path/filepath"
	"slices"

	"ken/capability"
	"ken/internal/dirs"
	"ken/internal/govern/policyfile"
)

// ClientRulesFile returns the file with the rules that ken connect took from the
// settings of clients. Ken writes it; it lies beside the user's ken.yaml.
func ClientRulesFile(places dirs.Places) string {
	return filepath.Join(places.Home, "client-rules.json")
}

// within reports whether a folder is another or lies in it, by either way that a
// link leads to them.
func within(path, folder string) bool {
	resolved := func(p string) string {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return real
		}
		return p
	}
	for _, pair := range [][2]string{{path, folder}, {resolved(path), resolved(folder)}} {
		if rel, err := filepath.Rel(pair[1], pair[0]); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// readClientRules reads the rules of clients. A file that cannot be used is a
// problem: without it a client could do what its user denied.
func (c *Config) readClientRules(places dirs.Places) []capability.Problem {
	file := ClientRulesFile(places)
	if !exists(file) {
		return nil
	}
	data, _, err := readFile(file)
	if err != nil {
		return []capability.Problem{unreadable(file, err)}
	}
	rules, err := policyfile.ParseClientRules(file, data, func(folder string) bool { return within(places.Workspace, folder) })
	var problems []capability.Problem
	for _, e := range issuesOf(err) {
		problems = append(problems, capability.Problem{
			Code: "bad-policy", Origin: capability.Origin{Path: file, Line: e.Line}, Message: visible(e.Message), Fix: visible(e.Fix),
		})
	}
	c.Policy.Rules = slices.Concat(c.Policy.Rules, rules) // last, for no file of settings says them
	c.files = append(c.files, file)
	return problems
}
