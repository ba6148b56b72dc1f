package extension

import (
	"encoding/json"
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/recipe"
	"ken/internal/know/source/seal"
	"ken/internal/yamldoc"
)

// A packageSpec is what one action or tool says of how it is called, and the schema
// that was made of it.
type packageSpec struct {
	path     string
	line     int
	how      packageHow
	fields   *yamldoc.Reader // nil where the entry is only a name or a template
	template string
	at       int            // line of the template or of argv
	argv     *yamldoc.Value // the command as a list

	schema json.RawMessage
	bad    bool // something in it costs the action, and was said
}

// argvLine returns the line of an argument.
func (s *packageSpec) argvLine(index int) int {
	if s.argv != nil {
		if items, _ := s.argv.Any.([]yamldoc.Value); index < len(items) {
			return items[index].Line
		}
	}
	return s.at
}

// settle fills in how a capability runs: recipe, schema, and what it needs.
// It reports false when the package cannot be followed, and says so.
func (x *extension) settle(c *capability.Capability, s *packageSpec) bool {
	c.RequiredTools, c.RequiredPlatforms, c.RequiredSecrets = []string{string(x.id)}, x.platforms, x.secrets
	if c.Category == "" {
		c.Category = x.category
	}
	if !x.permit(c, s) {
		return false
	}
	c.Run = &capability.Recipe{TimeoutSec: s.how.timeoutSec, MaxOutputSize: s.how.maxOutputSize, Env: s.how.env}
	s.how.options.Or(x.options).Fill(c.Run)
	c.Effects = x.effects(c, s)
	t, ok := x.commandLine(c, s)
	if !ok {
		return false
	}
	if t.argv != nil {
		c.Run.Argv, s.how.tool = t.argv, t.argv[0]
	}
	s.schema = x.commandSchema(c.Name, s, t)
	return !s.bad && x.checkCommand(c, s) && x.runner(c, s)
}

// commandLine takes the command apart that an action gives as a template or as
// a list; one without has none.
func (x *extension) commandLine(c *capability.Capability, s *packageSpec) (t commandTemplate, ok bool) {
	var err *templateError
	switch {
	case s.argv != nil && s.template != "":
		x.Fault("two-commands", s.path, s.at, fmt.Sprintf("%s has a template and argv", c.Name), "keep argv, and remove the template")
		return t, false
	case s.argv != nil:
		argv, bad := argvTexts(*s.argv)
		if bad == nil {
			t, bad = listTemplate(argv)
		}
		if bad != nil {
			x.Fault("bad-argv", s.path, s.argvLine(bad.position), fmt.Sprintf("argv[%d] of %s: %s", bad.position, c.Name, bad.message), bad.fix)
			return t, false
		}
	case s.template != "":
		if t, err = parseTemplate(s.template); err != nil {
			x.Fault("bad-template", s.path, s.at, fmt.Sprintf("template of %s, position %d: %s", c.Name, err.position, err.message), err.fix)
			return t, false
		}
	default:
		return t, true
	}
	if !recipe.ToolName().MatchString(t.argv[0]) {
		x.Fault("bad-tool", s.path, s.at, fmt.Sprintf("%s runs %q, which is not the plain name of a program", c.Name, t.argv[0]), "name a program that is installed, in small letters and without a path")
		return t, false
	}
	return t, true
}

// argvTexts returns a list of arguments. Numbers and booleans are taken as they
// are written.
func argvTexts(v yamldoc.Value) ([]string, *templateError) {
	items, ok := v.Any.([]yamldoc.Value)
	if !ok {
		return nil, &templateError{0, fmt.Sprintf("argv is %s, not a list", v.Kind()), "write one item per argument, as in [git, status]"}
	}
	argv := make([]string, len(items))
	for i, item := range items {
		text, isText := item.Any.(string)
		switch {
		case isText:
			argv[i] = text
		case item.Text != "":
			argv[i] = item.Text
		default:
			return nil, &templateError{i, fmt.Sprintf("it is %s, not a text", item.Kind()), "put it into quotes, as in \"{name}\""}
		}
	}
	return argv, nil
}

// checkCommand holds the arguments against the schema, as those of any recipe.
func (x *extension) checkCommand(c *capability.Capability, s *packageSpec) bool {
	if c.Run.Argv == nil {
		return true
	}
	if message, fix := recipe.CheckArgv(c.Run.Argv, seal.Parameters(s.schema)); message != "" {
		x.Fault("bad-recipe", s.path, s.at, fmt.Sprintf("%s: %s", c.Name, message), fix)
		return false
	}
	for _, e := range recipe.CheckPlaces(c.Run.Argv, recipe.PlacesOf(s.schema)) {
		e.Report(x.Unit, s.path, s.argvLine(e.Index))
		if e.Grave {
			return false
		}
	}
	return true
}

// runner settles which executor and which program carry the capability out.
func (x *extension) runner(c *capability.Capability, s *packageSpec) bool {
	h := s.how
	if h.handler != "" {
		return x.handler(c, s)
	}
	if h.runner == "" && h.tool == "" {
		x.Warn("no-runner", s.path, s.line, fmt.Sprintf("%s does not say what runs it", c.Name), "add runner:, as in runner: exec.git")
		c.Unavailable = "its package does not say what runs it; add runner: to it"
		c.Run = nil
		return true
	}
	program, isExec := recipe.ToolOf(h.runner)
	if h.tool != "" && (isExec || h.runner == "") && program != h.tool {
		if h.runner != "" {
			c.Meta = mergeMeta(c.Meta, map[string]string{"runner": h.runner})
		}
		h.runner, program, isExec = recipe.RunnerOf(h.tool), h.tool, true
	}
	if !recipe.RunnerName().MatchString(h.runner) || isExec && !recipe.ToolName().MatchString(program) {
		x.Fault("bad-runner", s.path, s.line, fmt.Sprintf("%s is run by %q, which names no program", c.Name, h.runner), "write exec. and the name of a program in small letters, as in exec.git, or say tool: git")
		return false
	}
	c.Run.Runner = h.runner
	if message, fix := recipe.CheckAsk(c.Run, seal.Parameters(s.schema)); message != "" {
		x.Fault("bad-recipe", s.path, s.line, fmt.Sprintf("%s: %s", c.Name, message), fix)
		return false
	}
	if isExec {
		if own := x.ownProgram(program); own != "" {
			x.own(c, s, own)
		} else {
			c.RequiredBins = []string{program}
		}
	}
	x.wantPermission(c.Run.Runner, s)
	return true
}

// wantPermission mentions, once for a package, that its runners need a
// permission which the manifest does not ask for.
func (x *extension) wantPermission(runner string, s *packageSpec) {
	need := recipe.PermissionFor(runner)
	if own := s.how.permissions; need != "" && own != nil && slices.Contains(x.permissions, need) && !slices.Contains(own.names, need) {
		x.Warn("missing-permission", own.path, own.line, recipe.MissingPermission(runner, need), fmt.Sprintf("add %s to these permissions", need))
		return
	}
	if need == "" || slices.Contains(x.permissions, need) || x.wanted[need] {
		return
	}
	x.wanted[need] = true
	x.Warn("missing-permission", s.path, s.line, recipe.MissingPermission(runner, need),
		fmt.Sprintf("add %q to permissions_required in %s", need, format.ExtensionManifest))
}
