package policy

import (
	"fmt"
	"time"

	"golang.org/x/text/unicode/norm"

	"ken/internal/yamldoc"
)

// An AccessMode says which tools, or which commands of a tool, may be used.
// The zero value is off.
type AccessMode uint8

const (
	AccessOff AccessMode = iota
	AccessAllowlist
	AccessFull
)

var accessNames = [...]string{"off", "allowlist", "full"}

func (m AccessMode) String() string { return nameOf(accessNames[:], int(m), "off") }

// ToolAccess is what tool-access.json says. The zero value has everything off.
type ToolAccess struct {
	Name    string // the file, for messages; empty where there is none
	Enabled bool
	Mode    AccessMode
	Allowed []string // tools; for the mode allowlist
	Tools   map[string]Tool
}

// A Tool is the entry of one tool. Limits are the most a call may ask for.
type Tool struct {
	Enabled         bool
	Mode            AccessMode
	AllowedPrefixes []string // of commands; for the mode allowlist
	Timeout         time.Duration
	MaxOutputChars  int
	AllowAnyCwd     bool
	Line            int
}

const (
	shellTimeout    = 15 * time.Second
	shellTimeoutCap = 120 * time.Second
	shellOutput     = 20_000
	shellOutputCap  = 200_000
)

// DefaultToolAccess applies where nothing is set: every tool, and
// of the shell only a few commands that look and do not touch.
func DefaultToolAccess() ToolAccess {
	return ToolAccess{Enabled: true, Mode: AccessFull, Tools: map[string]Tool{"shell": defaultTool("shell")}}
}

func defaultTool(name string) Tool {
	t := Tool{Enabled: true, Mode: AccessFull, Timeout: shellTimeout, MaxOutputChars: shellOutput}
	if name == "shell" {
		t.Mode, t.AllowedPrefixes = AccessAllowlist, []string{"echo", "pwd", "ls", "date", "uname", "whoami"}
	}
	return t
}

// Tool returns the entry of a tool by any of its names, or the default.
func (a ToolAccess) Tool(name string) Tool {
	if t, ok := a.Tools[plainName(name)]; ok {
		return t
	}
	return defaultTool(plainName(name))
}

// Limit returns the time and the output that a call may have: what it asks for,
// where that is less than the tool's own limit and the cap. Zero asks for
// nothing in particular.
func (t Tool) Limit(timeout time.Duration, chars int) (time.Duration, int) {
	most := min(t.Timeout, shellTimeoutCap)
	if timeout > 0 {
		most = min(most, timeout)
	}
	out := min(t.MaxOutputChars, shellOutputCap)
	if chars > 0 {
		out = min(out, chars)
	}
	return most, out
}

// ParseToolAccess reads tool-access.json. Anything that is unknown, of the
// wrong type, empty or given twice is an error with its line, and then nothing
// is enabled.
func ParseToolAccess(name string, data []byte) (ToolAccess, error) {
	root, err := readJSON(data)
	if err != nil {
		return ToolAccess{}, refusal("read tool access", name, err)
	}
	a, err := toolAccess(root)
	if err != nil {
		return ToolAccess{}, refusal("read tool access", name, err)
	}
	a.Name = name
	return a, nil
}

func toolAccess(root *yamldoc.Map) (ToolAccess, error) {
	a := DefaultToolAccess()
	r := yamldoc.NewReader(root)
	if err := nothingEmpty(root, ""); err != nil {
		return ToolAccess{}, err
	}
	g := r.Map("global")
	if b, ok := g.Bool("enabled"); ok {
		a.Enabled = b
	}
	a.Mode = readWord(g, "mode", accessNames[:], a.Mode)
	if f, ok := g.Field("allowedTools"); ok {
		a.Allowed = normalized(g.Strings(f.Key))
	}
	g.RefuseRest()
	if f, ok := r.Field("tools"); ok {
		m, isMap := f.Value.Any.(*yamldoc.Map)
		if !isMap {
			return ToolAccess{}, &yamldoc.Error{Line: f.Line, Message: "tools is " + f.Value.Kind() + ", want a map", Fix: `write {"tools": {"shell": {"enabled": true}}}`}
		}
		for _, t := range m.Fields {
			one, err := toolEntry(r, t)
			if err != nil {
				return ToolAccess{}, err
			}
			name := plainName(norm.NFC.String(t.Key))
			if old, twice := a.Tools[name]; twice && old.Line > 0 {
				return ToolAccess{}, &yamldoc.Error{Line: t.Line, Message: fmt.Sprintf("tool %s is another name of %s on line %d", t.Key, name, old.Line), Fix: "keep one of them"}
			}
			a.Tools[name] = one
		}
	}
	r.RefuseRest()
	return a, joined(r.Issues())
}

func toolEntry(root *yamldoc.Reader, f yamldoc.Field) (Tool, error) {
	m, ok := f.Value.Any.(*yamldoc.Map)
	if !ok {
		return Tool{}, &yamldoc.Error{Line: f.Line, Message: fmt.Sprintf("tools.%s is %s, want a map", f.Key, f.Value.Kind()), Fix: `write {"enabled": true}`}
	}
	t := defaultTool(plainName(f.Key))
	t.Line = f.Line
	r := yamldoc.NewReader(m)
	if b, ok := r.Bool("enabled"); ok {
		t.Enabled = b
	}
	t.Mode = readWord(r, "mode", accessNames[:], t.Mode)
	if p, ok := r.Field("allowedPrefixes"); ok {
		t.AllowedPrefixes = r.Strings(p.Key)
		for _, s := range t.AllowedPrefixes {
			if _, err := parsePattern(s); err != nil {
				r.Issue(p.Line, "tools."+f.Key+".allowedPrefixes: "+err.Error(), "")
			}
		}
	}
	if n, ok := r.Int("timeoutMs"); ok {
		if n <= 0 {
			r.Issue(r.Line("timeoutMs"), fmt.Sprintf("tools.%s.timeoutMs is %d", f.Key, n), "write a number above zero")
		}
		t.Timeout = time.Duration(min(n, int(shellTimeoutCap/time.Millisecond))) * time.Millisecond
	}
	if n, ok := r.Int("maxOutputChars"); ok {
		if n <= 0 {
			r.Issue(r.Line("maxOutputChars"), fmt.Sprintf("tools.%s.maxOutputChars is %d", f.Key, n), "write a number above zero")
		}
		t.MaxOutputChars = min(n, shellOutputCap)
	}
	if b, ok := r.Bool("allowAnyCwd"); ok {
		t.AllowAnyCwd = b
	}
	r.RefuseRest()
	return t, joined(r.Issues())
}
