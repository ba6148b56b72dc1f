package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/recipe"
	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

// run reads a manifest's recipe. An error in it rejects the capability: a recipe
// that is followed only in part would do something other than what was written.
func (m *manifest) run(top *yamldoc.Reader, c *capability.Capability, schema json.RawMessage) (*capability.Recipe, bool) {
	f, given := top.Field("run")
	if !given {
		return nil, true
	}
	if _, isMap := f.Value.Any.(*yamldoc.Map); !isMap {
		m.Fault("bad-recipe", m.at, f.Line, "run is not a recipe with a runner and its arguments", "write "+recipe.Example(f.Value))
		return nil, false
	}
	r := top.Map("run")
	out := &capability.Recipe{
		Runner: r.String("runner"),
		Argv:   r.Strings("argv"),
		Action: r.String("action"),
		Env:    r.Words("env"),
		Method: strings.ToUpper(r.String("method")),
		URL:    r.String("url"),
	}
	out.TimeoutSec, _ = r.Int("timeoutSec")
	out.MaxOutputSize, _ = r.Int("maxOutputSize")
	before := len(r.Issues())
	recipe.ReadOptions(r).Fill(out)
	if issues := r.Issues(); len(issues) > before {
		m.Fault("bad-recipe", m.at, issues[before].Line, "run."+issues[before].Message, issues[before].Fix)
		return nil, false
	}
	for _, f := range r.Rest() {
		m.Warn("unknown-key", m.at, f.Line, "run has no key "+f.Key+"; it has no effect", "remove it, or correct its name")
	}
	for _, e := range r.Issues() {
		if strings.HasPrefix(e.Path, "run.") {
			m.Fault("bad-recipe", m.at, e.Line, e.Message, e.Fix)
			return nil, false
		}
	}
	key, message, fix := recipe.Check(out, c.Parameters)
	if message != "" {
		m.Fault("bad-recipe", m.at, r.Line(key), message, fix)
		return nil, false
	}
	for _, e := range recipe.CheckPlaces(out.Argv, recipe.PlacesOf(schema)) {
		e.Report(m.Unit, m.at, r.Line("argv"))
		if e.Grave {
			return nil, false
		}
	}
	m.lintRunner(out.Runner, c.Permissions, r.Line("runner"))
	return out, true
}

// lintRunner says what will keep a recipe from running.
func (m *manifest) lintRunner(runner string, permissions []string, line int) {
	family, _, _ := strings.Cut(runner, ".")
	if !slices.Contains(recipe.Runners(), family) {
		// A plugin may run it. The catalog knows, and reports it if nothing
		// does.
		if near := spelling.Nearest(family, recipe.Runners()); near != "" {
			m.Warn("unknown-runner", m.at, line, "no runner of Ken is called "+runner, "did you mean "+near+strings.TrimPrefix(runner, family)+"?")
		}
		return
	}
	if need := recipe.PermissionFor(runner); need != "" && !slices.Contains(permissions, need) {
		m.Warn("missing-permission", m.at, line, recipe.MissingPermission(runner, need), fmt.Sprintf("add permissions: [%s]", need))
	}
}
