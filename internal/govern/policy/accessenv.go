package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WithEnv puts the seed's environment knobs to what the file says: where there
// is a file they only narrow it, otherwise they replace the defaults. A value
// that makes no sense switches off what it is about, all tools or the shell,
// and is reported.
func (a ToolAccess) WithEnv(get func(string) string) (ToolAccess, error) {
	k := &knobs{get: get, narrow: a.Name != "", off: "all tools are off"}
	mode := a.Mode
	a.Enabled = k.enabled("TOOLS_ENABLED", a.Enabled)
	a.Mode = k.mode("TOOLS_MODE", mode)
	a.Allowed = k.list("TOOLS_ALLOWED", mode, a.Allowed)
	a.By = cmp.Or(k.decided(), a.By)

	k.off = "the shell is off"
	t := a.Tool("shell")
	mode = t.Mode
	t.Enabled = k.enabled("SHELL_TOOL_ENABLED", t.Enabled)
	t.Mode = k.mode("SHELL_TOOL_MODE", mode)
	before := len(k.bad)
	millis := k.number("SHELL_TOOL_TIMEOUT_MS", int(t.Timeout/time.Millisecond))
	t.Timeout = min(time.Duration(millis)*time.Millisecond, MaxToolTimeout)
	t.MaxOutputChars = min(k.number("SHELL_TOOL_MAX_OUTPUT_CHARS", t.MaxOutputChars), MaxToolOutput)
	k.patterns("SHELL_TOOL_ALLOWED_PREFIXES")
	t.AllowedPrefixes = k.list("SHELL_TOOL_ALLOWED_PREFIXES", mode, t.AllowedPrefixes)
	t.By = cmp.Or(k.decided(), t.By)
	if len(k.bad) > before {
		t.Enabled = false
	}
	tools := maps.Clone(a.Tools)
	if tools == nil {
		tools = map[string]Tool{}
	}
	tools["shell"] = t
	a.Tools = tools
	return a, errors.Join(k.bad...)
}

// knobs reads variables of the environment over what there is, and gathers what
// is wrong with them.
type knobs struct {
	get    func(string) string
	narrow bool   // they say no more than there is
	off    string // what becomes of a value that makes no sense
	bad    []error
	said   []string // variables that changed whether and what may be used, since decided
}

// decided returns the variables that changed whether and what may be used, for
// messages. It is empty if none did.
func (k *knobs) decided() string {
	names := k.said
	k.said = nil
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "the environment variable " + names[0]
	}
	return "the environment variables " + strings.Join(names, " and ")
}

// note keeps the name of a variable that changed something.
func (k *knobs) note(key string, changed bool) {
	if changed {
		k.said = append(k.said, key)
	}
}

func (k *knobs) wrong(key, want string) {
	k.bad = append(k.bad, fmt.Errorf("%s=%q: want %s; %s", key, k.get(key), want, k.off))
}

func (k *knobs) enabled(key string, now bool) bool {
	v := k.get(key)
	if v == "" {
		return now
	}
	on, err := strconv.ParseBool(v)
	if err != nil {
		k.wrong(key, "true or false")
	}
	on = on && (now || !k.narrow)
	k.note(key, on != now)
	return on
}

func (k *knobs) mode(key string, now AccessMode) AccessMode {
	v := k.get(key)
	if v == "" {
		return now
	}
	i := indexOf(accessNames[:], v)
	if i < 0 {
		k.wrong(key, "off, allowlist or full")
		i = int(AccessOff)
	}
	if mode := AccessMode(i); !k.narrow || mode < now {
		k.note(key, mode != now)
		return mode
	}
	return now
}

// number reads a number above zero.
func (k *knobs) number(key string, now int) int {
	v := k.get(key)
	if v == "" {
		return now
	}
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		k.wrong(key, "a number above zero")
		return now
	}
	if k.narrow {
		return min(n, now)
	}
	return n
}

// list reads what may be used in the mode allowlist. mode is that of now: a list
// narrows another only if the other one counted.
func (k *knobs) list(key string, mode AccessMode, now []string) []string {
	if k.get(key) == "" {
		return now
	}
	said := k.words(key)
	if k.narrow && mode == AccessAllowlist {
		said = slices.DeleteFunc(said, func(s string) bool { return !slices.Contains(now, s) })
	}
	k.note(key, !slices.Equal(said, now))
	return said
}

// patterns reports the commands of a list that are none.
func (k *knobs) patterns(key string) {
	for _, s := range k.words(key) {
		if _, err := parsePattern(s); err != nil {
			k.bad = append(k.bad, fmt.Errorf("%s: %w; %s", key, err, k.off))
		}
	}
}

// words reads a list with commas between its items.
func (k *knobs) words(key string) []string {
	var out []string
	for s := range strings.SplitSeq(k.get(key), ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
