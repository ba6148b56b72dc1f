package policy

import "time"

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

	// By names the variable of the environment, or the other file, that decided
	// Enabled, Mode and Allowed, as messages name it. It is empty if the file
	// Name did, or the defaults.
	By string
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
	By              string // as in [ToolAccess]
}

const (
	shellTimeout = 15 * time.Second
	shellOutput  = 20_000
)

// The most that a tool's own limits may say.
const (
	MaxToolTimeout = 120 * time.Second
	MaxToolOutput  = 200_000 // characters
)

// DefaultToolAccess applies where nothing is set: every tool, and
// of the shell only a few commands that look and do not touch.
func DefaultToolAccess() ToolAccess {
	return ToolAccess{Enabled: true, Mode: AccessFull, Tools: map[string]Tool{"shell": DefaultTool("shell")}}
}

// DefaultTool returns the entry of a tool about which nothing is set.
func DefaultTool(name string) Tool {
	t := Tool{Enabled: true, Mode: AccessFull, Timeout: shellTimeout, MaxOutputChars: shellOutput}
	if name == "shell" {
		t.Mode, t.AllowedPrefixes = AccessAllowlist, []string{"echo", "pwd", "ls", "date", "uname", "whoami"}
	}
	return t
}

// Tool returns the entry of a tool by any of its names, or the default.
func (a ToolAccess) Tool(name string) Tool {
	if t, ok := a.Tools[ToolName(name)]; ok {
		return t
	}
	return DefaultTool(ToolName(name))
}

// Limit returns the time and the output that a call may have: what it asks for,
// where that is less than the tool's own limit and the cap. Zero asks for
// nothing in particular.
func (t Tool) Limit(timeout time.Duration, chars int) (time.Duration, int) {
	most := min(t.Timeout, MaxToolTimeout)
	if timeout > 0 {
		most = min(most, timeout)
	}
	out := min(t.MaxOutputChars, MaxToolOutput)
	if chars > 0 {
		out = min(out, chars)
	}
	return most, out
}
