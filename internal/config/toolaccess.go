package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ken/capability"
	"ken/internal/config/orchestration"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/govern/policyfile"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

const accessKey = "policy.toolAccess"

// accessFile is the seed's file about tools, below a directory.
func accessFile(dir string) string { return filepath.Join(dir, "context", "tool-access.json") }

// ownAccess adds what the user says about tools elsewhere: in tool-access.json
// and in the environment. explicit is true where a file was named that stands
// for the user's.
func ownAccess(p dirs.Places, c *Config, explicit bool) []capability.Problem {
	file := accessFile(p.Home)
	said, inConfig := c.origins[accessKey]
	switch there := exists(file); {
	case !there, inConfig && explicit:
	case inConfig:
		return []capability.Problem{{
			Code: "two-files", Origin: capability.Origin{Path: file},
			Message: accessKey + " is said at " + said.where + " as well", Fix: "keep one of the two",
		}}
	default:
		access, problems := readAccess(file)
		if len(problems) > 0 {
			return problems
		}
		c.Policy.Access = access
		c.files = append(c.files, file)
		c.sayAccess(file, true)
	}
	if len(p.Tools) == 0 {
		return nil
	}
	before := yamledit.Flow(showAccess(c.Policy.Access))
	access, err := c.Policy.Access.WithEnv(func(name string) string { return p.Tools[name] })
	if err != nil {
		var problems []capability.Problem
		for _, e := range separate(err) {
			problems = append(problems, capability.Problem{
				Code: "bad-environment", Origin: capability.Origin{Path: "environment"},
				Message: visible(e.Error()), Fix: "fix the variable, or unset it",
			})
		}
		return problems
	}
	c.Policy.Access = access
	if yamledit.Flow(showAccess(access)) != before {
		var names []string
		for _, name := range dirs.ToolVariables() {
			if p.Tools[name] != "" {
				names = append(names, name)
			}
		}
		c.sayAccess("environment ("+strings.Join(names, " ")+")", true)
	}
	return nil
}

// projectAccess narrows the user's tool access to what the project's file
// leaves of it.
func projectAccess(p dirs.Places, c *Config) []capability.Problem {
	file := accessFile(p.Workspace)
	if !exists(file) || sameFile(file, accessFile(p.Home)) {
		return nil
	}
	data, _, err := readProjectFile(p.Workspace, file)
	access, problems := parseAccess(file, data, err)
	if len(problems) > 0 {
		return problems
	}
	c.Policy.Access = narrowed(c.Policy.Access, access)
	c.files = append(c.files, file)
	c.sayAccess(file, false)
	return nil
}

func (c *Config) sayAccess(where string, own bool) {
	was, said := c.origins[accessKey]
	if said {
		where = was.where + ", " + where
	}
	c.origins[accessKey] = saying{where, own || was.own}
}

// exists counts what cannot be looked at as there: reading it will tell.
func exists(file string) bool {
	_, err := os.Lstat(file)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

func readAccess(file string) (policy.ToolAccess, []capability.Problem) {
	data, _, err := readFile(file)
	return parseAccess(file, data, err)
}

// parseAccess reads the text of a tool-access.json, or says why there is none.
func parseAccess(file string, data []byte, err error) (policy.ToolAccess, []capability.Problem) {
	if err != nil {
		return policy.ToolAccess{}, []capability.Problem{unreadable(file, err)}
	}
	access, err := policyfile.ParseToolAccess(file, data)
	var problems []capability.Problem
	for _, e := range issuesOf(err) {
		problems = append(problems, capability.Problem{
			Code: "bad-policy", Origin: capability.Origin{Path: file, Line: e.Line}, Message: visible(e.Message), Fix: visible(e.Fix),
		})
	}
	return access, problems
}

// separate takes joined errors apart.
func separate(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

func toolAccessSetting() setting[Config] {
	return policySetting("toolAccess", "Which tools and commands may be used, in the format of tool-access.json.",
		func(into, from *policy.Settings) { into.Access = from.Access },
		func(c *Config) any { return showAccess(c.Policy.Access) },
		anything[*Config], // what is wider has no effect: see join
	).joined(func(into, from *Config) { into.Policy.Access = narrowed(into.Policy.Access, from.Policy.Access) })
}

// narrowed returns what is left of the user's tool access. What a project's says
// nothing about is as the user has it.
func narrowed(user, project policy.ToolAccess) policy.ToolAccess {
	const shell = "shell" // the only tool that is there unasked
	if t := project.Tool(shell); t.Line == 0 {
		project.Tools = maps.Clone(project.Tools)
		if project.Tools == nil {
			project.Tools = map[string]policy.Tool{}
		}
		project.Tools[shell] = user.Tool(shell)
	}
	return user.Narrow(project)
}

func showAccess(a policy.ToolAccess) any {
	field := func(m *yamldoc.Map, key string, v any) {
		m.Fields = append(m.Fields, yamldoc.Field{Key: key, Value: yamldoc.Value{Any: v}})
	}
	global, tools, out := &yamldoc.Map{}, &yamldoc.Map{}, &yamldoc.Map{}
	field(global, "enabled", a.Enabled)
	field(global, "mode", a.Mode.String())
	if len(a.Allowed) > 0 {
		field(global, "allowedTools", listOf(a.Allowed))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		t, one := a.Tools[name], &yamldoc.Map{}
		field(one, "enabled", t.Enabled)
		field(one, "mode", t.Mode.String())
		if len(t.AllowedPrefixes) > 0 || t.Mode == policy.AccessAllowlist {
			field(one, "allowedPrefixes", listOf(t.AllowedPrefixes))
		}
		field(one, "timeoutMs", int64(t.Timeout/time.Millisecond))
		field(one, "maxOutputChars", int64(t.MaxOutputChars))
		field(one, "allowAnyCwd", t.AllowAnyCwd)
		field(tools, name, one)
	}
	field(out, "global", global)
	field(out, "tools", tools)
	return out
}

// RuleFiles lists every file that can change what [Config.Policy] is, whether
// it is there or not. explicit is what Load was given.
func RuleFiles(places dirs.Places, explicit string, c Config) []string {
	out := []string{ClientRulesFile(places), accessFile(places.Home), accessFile(places.Workspace), orchestration.File(places.Workspace), SharedFile(places)}
	if explicit != "" {
		file, _, _ := filesOf(places, explicit) // made absolute; what is wrong with it is Load's to say
		out = append(out, file)
	} else {
		for _, dir := range []string{places.Home, places.Project} {
			out = append(out, filepath.Join(dir, YAMLName), filepath.Join(dir, JSONName))
		}
	}
	for _, f := range c.Policy.Cedar {
		out = append(out, f.Name)
	}
	return out
}
