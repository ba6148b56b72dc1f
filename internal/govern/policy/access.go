package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

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

// DefaultToolAccess is what holds where nobody says anything: every tool, and
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

// Tool gives the entry of a tool by any of its names, or the default.
func (a ToolAccess) Tool(name string) Tool {
	if t, ok := a.Tools[plainName(name)]; ok {
		return t
	}
	return defaultTool(plainName(name))
}

// Limit gives the time and the output that a call may have: what it asks for,
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
		a.Allowed = g.Strings(f.Key)
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
			name := plainName(t.Key)
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

// withGlobalEnv puts TOOLS_ENABLED, TOOLS_MODE and TOOLS_ALLOWED to what the
// file says of all tools. A value that makes no sense switches all of them off.
func (a ToolAccess) withGlobalEnv(get func(string) string, narrow bool) (ToolAccess, []error) {
	var bad []error
	if v := get("TOOLS_ENABLED"); v != "" {
		on, err := strconv.ParseBool(v)
		if err != nil {
			bad = append(bad, fmt.Errorf("TOOLS_ENABLED=%q: want true or false; all tools are off", v))
		}
		a.Enabled = on && (a.Enabled || !narrow)
	}
	if v := get("TOOLS_MODE"); v != "" {
		i := indexOf(accessNames[:], v)
		if i < 0 {
			bad = append(bad, fmt.Errorf("TOOLS_MODE=%q: want off, allowlist or full; all tools are off", v))
			i = 0
		}
		if mode := AccessMode(i); !narrow || mode < a.Mode {
			a.Mode = mode
		}
	}
	if v := get("TOOLS_ALLOWED"); v != "" {
		var said []string
		for s := range strings.SplitSeq(v, ",") {
			s = strings.TrimSpace(s)
			if s != "" && (!narrow || a.Mode != AccessAllowlist || slices.Contains(a.Allowed, s)) {
				said = append(said, s)
			}
		}
		a.Allowed = said
	}
	return a, bad
}

// WithEnv puts the seed's environment knobs to what the file says: where there
// is a file they only narrow it, otherwise they replace the defaults. A value
// that makes no sense switches the shell off, and is reported.
func (a ToolAccess) WithEnv(get func(string) string) (ToolAccess, error) {
	var bad []error
	narrow := a.Name != ""
	a, bad = a.withGlobalEnv(get, narrow)
	t := a.Tool("shell")
	if v := get("SHELL_TOOL_ENABLED"); v != "" {
		on, err := strconv.ParseBool(v)
		if err != nil {
			bad = append(bad, fmt.Errorf("SHELL_TOOL_ENABLED=%q: want true or false; the shell is off", v))
		}
		t.Enabled = on && (t.Enabled || !narrow)
	}
	if v := get("SHELL_TOOL_MODE"); v != "" {
		i := indexOf(accessNames[:], v)
		if i < 0 {
			bad = append(bad, fmt.Errorf("SHELL_TOOL_MODE=%q: want off, allowlist or full; the shell is off", v))
			i = 0
		}
		if mode := AccessMode(i); !narrow || mode < t.Mode {
			t.Mode = mode
		}
	}
	limit := func(key string, now int) int {
		v := get(key)
		if v == "" {
			return now
		}
		n, err := strconv.Atoi(v)
		if err != nil || n <= 0 {
			bad = append(bad, fmt.Errorf("%s=%q: want a number above zero; the shell is off", key, v))
			t.Enabled = false
			return now
		}
		if narrow {
			return min(n, now)
		}
		return n
	}
	t.Timeout = min(time.Duration(limit("SHELL_TOOL_TIMEOUT_MS", int(t.Timeout/time.Millisecond)))*time.Millisecond, shellTimeoutCap)
	t.MaxOutputChars = min(limit("SHELL_TOOL_MAX_OUTPUT_CHARS", t.MaxOutputChars), shellOutputCap)
	if v := get("SHELL_TOOL_ALLOWED_PREFIXES"); v != "" {
		var said []string
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s != "" {
				said = append(said, s)
			}
		}
		for _, s := range said {
			if _, err := parsePattern(s); err != nil {
				bad = append(bad, fmt.Errorf("SHELL_TOOL_ALLOWED_PREFIXES: %w; the shell is off", err))
				t.Enabled = false
			}
		}
		if narrow && t.Mode == AccessAllowlist {
			said = slices.DeleteFunc(said, func(s string) bool { return !slices.Contains(t.AllowedPrefixes, s) })
		}
		t.AllowedPrefixes = said
	}
	tools := map[string]Tool{}
	for name, one := range a.Tools {
		tools[name] = one
	}
	tools["shell"] = t
	a.Tools = tools
	return a, errors.Join(bad...)
}

// Narrow gives what both allow. An entry of a list stays where the other list
// covers it whole; two that only overlap are both dropped. It never allows what
// a or b refuses, and in either order it allows the same.
//
// Tools of the result name a line only where a single file speaks.
func (a ToolAccess) Narrow(b ToolAccess) ToolAccess {
	out := ToolAccess{
		Name: cmp.Or(a.Name, b.Name), Enabled: a.Enabled && b.Enabled, Mode: min(a.Mode, b.Mode),
		Allowed: narrowList(a.Mode, b.Mode, a.Allowed, b.Allowed, coversTool), Tools: map[string]Tool{},
	}
	two := a.Name != "" && b.Name != "" && a.Name != b.Name
	if two {
		out.Name = a.Name + " and " + b.Name
	}
	for _, names := range []map[string]Tool{a.Tools, b.Tools} {
		for name := range names {
			x, y := a.Tool(name), b.Tool(name)
			t := Tool{
				Enabled: x.Enabled && y.Enabled, Mode: min(x.Mode, y.Mode),
				AllowedPrefixes: narrowList(x.Mode, y.Mode, x.AllowedPrefixes, y.AllowedPrefixes, coversCommand),
				Timeout:         min(x.Timeout, y.Timeout), MaxOutputChars: min(x.MaxOutputChars, y.MaxOutputChars),
				AllowAnyCwd: x.AllowAnyCwd && y.AllowAnyCwd, Line: max(x.Line, y.Line),
			}
			if two {
				t.Line = 0
			}
			out.Tools[name] = t
		}
	}
	return out
}

// narrowList gives what is left of two lists, each of which counts only in the
// mode allowlist.
func narrowList(x, y AccessMode, a, b []string, covers func(wide, narrow string) bool) []string {
	switch {
	case x == AccessOff || y == AccessOff:
		return nil
	case x == AccessFull:
		return b
	case y == AccessFull:
		return a
	}
	var out []string
	keep := func(list, other []string) {
		for _, s := range list {
			if !slices.Contains(out, s) && slices.ContainsFunc(other, func(w string) bool { return covers(w, s) }) {
				out = append(out, s)
			}
		}
	}
	keep(a, b)
	keep(b, a)
	return out
}

// coversTool reports whether every capability that one entry of allowedTools
// means is meant by another.
func coversTool(wide, narrow string) bool {
	return wide == narrow || coversWord(wide, narrow) && coversWord(wide, plainName(narrow))
}

// coversCommand reports whether every command that one prefix allows is
// allowed by another. Beyond its own words a prefix refuses options that run
// something else, which a longer one may name.
func coversCommand(wide, narrow string) bool {
	w, n := strings.Fields(wide), strings.Fields(narrow)
	if len(w) == 0 || len(n) < len(w) {
		return false
	}
	for i, word := range w {
		if word != n[i] && !coversWord(word, n[i]) {
			return false
		}
	}
	more := n[len(w):]
	return len(more) == 0 || !strings.Contains(n[0], "*") &&
		!slices.ContainsFunc(more, func(word string) bool { return strings.Contains(word, "*") || hazardous(n[0], word) })
}

// coversWord reports whether a pattern matches all that another does. A star
// takes a star in; a question mark must not.
func coversWord(wide, narrow string) bool {
	return strings.Contains(wide, "*") && !strings.Contains(wide, "?") && wild(wide, narrow, false)
}

// readJSON reads a JSON object with the line of everything. Unlike YAML it may
// be indented with tabs.
func readJSON(data []byte) (*yamldoc.Map, error) {
	const mostBytes = 64 << 10
	if len(data) > mostBytes {
		return nil, &yamldoc.Error{Message: fmt.Sprintf("the file has %d bytes, more than the %d that are read", len(data), mostBytes), Fix: "make it smaller"}
	}
	d := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	d.dec.UseNumber()
	v, err := d.value(0)
	if err == nil {
		if _, end := d.dec.Token(); !errors.Is(end, io.EOF) {
			err = &yamldoc.Error{Line: d.line(), Message: "text after the JSON value", Fix: "remove it"}
		}
	}
	if err != nil {
		return nil, err
	}
	m, ok := v.Any.(*yamldoc.Map)
	if !ok {
		return nil, &yamldoc.Error{Line: v.Line, Message: "the file is " + v.Kind() + ", want an object", Fix: `write {"global": {…}, "tools": {…}}`}
	}
	return m, nil
}

type jsonReader struct {
	data []byte
	dec  *json.Decoder
}

func (d *jsonReader) line() int {
	return 1 + bytes.Count(d.data[:min(int(d.dec.InputOffset()), len(d.data))], []byte("\n"))
}

func (d *jsonReader) token() (json.Token, error) {
	tok, err := d.dec.Token()
	if err != nil {
		return nil, &yamldoc.Error{Line: d.line(), Message: "this is not JSON: " + err.Error(), Fix: "check quotes, commas and brackets there"}
	}
	return tok, nil
}

func (d *jsonReader) value(depth int) (yamldoc.Value, error) {
	const deepest = 16
	tok, err := d.token()
	if err != nil {
		return yamldoc.Value{}, err
	}
	line := d.line()
	if depth > deepest {
		return yamldoc.Value{}, &yamldoc.Error{Line: line, Message: "nested too deep", Fix: "flatten it"}
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			return d.list(line, depth)
		}
		return d.object(line, depth)
	case json.Number:
		if n, err := tok.Int64(); err == nil {
			return yamldoc.Value{Line: line, Any: n, Text: tok.String()}, nil
		}
		x, err := tok.Float64()
		if err != nil {
			return yamldoc.Value{}, &yamldoc.Error{Line: line, Message: "a number is too large", Fix: "write a smaller one"}
		}
		return yamldoc.Value{Line: line, Any: x, Text: tok.String()}, nil
	case bool:
		return yamldoc.Value{Line: line, Any: tok, Text: strconv.FormatBool(tok)}, nil
	}
	return yamldoc.Value{Line: line, Any: tok}, nil
}

func (d *jsonReader) list(line, depth int) (yamldoc.Value, error) {
	items := []yamldoc.Value{}
	for d.dec.More() {
		v, err := d.value(depth + 1)
		if err != nil {
			return yamldoc.Value{}, err
		}
		items = append(items, v)
	}
	_, err := d.token()
	return yamldoc.Value{Line: line, Any: items}, err
}

func (d *jsonReader) object(line, depth int) (yamldoc.Value, error) {
	m := &yamldoc.Map{Line: line}
	for d.dec.More() {
		tok, err := d.token()
		if err != nil {
			return yamldoc.Value{}, err
		}
		f := yamldoc.Field{Key: tok.(string), Line: d.line()} // the decoder allows nothing else here
		if _, twice := m.Get(f.Key); twice {
			return yamldoc.Value{}, &yamldoc.Error{Line: f.Line, Message: fmt.Sprintf("key %q is given twice", f.Key), Fix: "keep one of them"}
		}
		if f.Value, err = d.value(depth + 1); err != nil {
			return yamldoc.Value{}, err
		}
		m.Fields = append(m.Fields, f)
	}
	_, err := d.token()
	return yamldoc.Value{Line: line, Any: m}, err
}
