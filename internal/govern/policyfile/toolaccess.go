package policyfile

import (
	"fmt"
	"time"

	"golang.org/x/text/unicode/norm"

	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
)

// ParseToolAccess reads tool-access.json. Anything that is unknown, of the
// wrong type, empty or given twice is an error with its line, and then nothing
// is enabled.
func ParseToolAccess(name string, data []byte) (policy.ToolAccess, error) {
	root, err := readJSON(data, 64<<10)
	if err != nil {
		return policy.ToolAccess{}, refusal("read tool access", name, err)
	}
	a, err := toolAccess(root)
	if err != nil {
		return policy.ToolAccess{}, refusal("read tool access", name, err)
	}
	a.Name = name
	return a, nil
}

func toolAccess(root *yamldoc.Map) (policy.ToolAccess, error) {
	a := policy.DefaultToolAccess()
	r := yamldoc.NewReader(root)
	if err := nothingEmpty(root, ""); err != nil {
		return policy.ToolAccess{}, err
	}
	g := r.Map("global")
	if b, ok := g.Bool("enabled"); ok {
		a.Enabled = b
	}
	a.Mode = readWord(g, "mode", policy.AccessModeWords(), a.Mode)
	if f, ok := g.Field("allowedTools"); ok {
		a.Allowed = g.Strings(f.Key)
		for i, name := range a.Allowed {
			a.Allowed[i] = norm.NFC.String(name)
		}
	}
	g.RefuseRest()
	if f, ok := r.Field("tools"); ok {
		m, isMap := f.Value.Any.(*yamldoc.Map)
		if !isMap {
			return policy.ToolAccess{}, &yamldoc.Error{Line: f.Line, Message: "tools is " + f.Value.Kind() + ", want a map", Fix: `write {"tools": {"shell": {"enabled": true}}}`}
		}
		for _, t := range m.Fields {
			one, err := toolEntry(r, t)
			if err != nil {
				return policy.ToolAccess{}, err
			}
			name := policy.ToolName(norm.NFC.String(t.Key))
			if old, twice := a.Tools[name]; twice && old.Line > 0 {
				return policy.ToolAccess{}, &yamldoc.Error{Line: t.Line, Message: fmt.Sprintf("tool %s is another name of %s on line %d", t.Key, name, old.Line), Fix: "keep one of them"}
			}
			a.Tools[name] = one
		}
	}
	r.RefuseRest()
	return a, joined(r.Issues())
}

func toolEntry(root *yamldoc.Reader, f yamldoc.Field) (policy.Tool, error) {
	m, ok := f.Value.Any.(*yamldoc.Map)
	if !ok {
		return policy.Tool{}, &yamldoc.Error{Line: f.Line, Message: fmt.Sprintf("tools.%s is %s, want a map", f.Key, f.Value.Kind()), Fix: `write {"enabled": true}`}
	}
	t := policy.DefaultTool(policy.ToolName(f.Key))
	t.Line = f.Line
	r := yamldoc.NewReader(m)
	if b, ok := r.Bool("enabled"); ok {
		t.Enabled = b
	}
	t.Mode = readWord(r, "mode", policy.AccessModeWords(), t.Mode)
	if p, ok := r.Field("allowedPrefixes"); ok {
		t.AllowedPrefixes = r.Strings(p.Key)
		for _, s := range t.AllowedPrefixes {
			if _, err := policy.ParseCommand(s); err != nil {
				r.Issue(p.Line, "tools."+f.Key+".allowedPrefixes: "+err.Error(), "")
			}
		}
	}
	if n, ok := r.Int("timeoutMs"); ok {
		if n <= 0 {
			r.Issue(r.Line("timeoutMs"), fmt.Sprintf("tools.%s.timeoutMs is %d", f.Key, n), "write a number above zero")
		}
		t.Timeout = time.Duration(min(n, int(policy.MaxToolTimeout/time.Millisecond))) * time.Millisecond
	}
	if n, ok := r.Int("maxOutputChars"); ok {
		if n <= 0 {
			r.Issue(r.Line("maxOutputChars"), fmt.Sprintf("tools.%s.maxOutputChars is %d", f.Key, n), "write a number above zero")
		}
		t.MaxOutputChars = min(n, policy.MaxToolOutput)
	}
	if b, ok := r.Bool("allowAnyCwd"); ok {
		t.AllowAnyCwd = b
	}
	r.RefuseRest()
	return t, joined(r.Issues())
}
