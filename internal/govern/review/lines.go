package review

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/untrusted"
)

// A Line is one fact of a review. Both are fit for a terminal: each on one
// line, with nothing in it that does not show.
type Line struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// noCap is longer than anything that a reader of packages lets in.
const noCap = 16 << 20

// clean makes foreign text fit for a line of its own, so that no description
// can write what looks like another fact. Nothing is cut.
func clean(s string) string { return untrusted.Line(s, noCap) }

func cleanList(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = clean(s)
	}
	return strings.Join(out, ", ")
}

// Lines give all that a person needs to decide, in the order in which it is to
// be shown: what the package may do, then what each action runs, then what it
// says of itself. Nothing is shortened.
func (m *Manifest) Lines() []Line {
	var lines []Line
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, Line{name, text})
		}
	}
	p := m.Package
	add("extension", clean(m.ID))
	add("version", clean(p.Version))
	add("place", clean(m.Place)+" ("+p.Trust.String()+")")
	add("permissions", orNone(cleanList(p.Permissions)))
	add("programs", orNone(cleanList(m.Bins())))
	add("secrets", orNone(cleanList(m.Secrets())))
	add("variables", orNone(cleanList(m.Env())))
	add("workspace", orNone(cleanList(m.recipes(func(r *capability.Recipe) []string { return []string{r.Workspace} }))))
	add("hosts", orNone(cleanList(m.recipes(func(r *capability.Recipe) []string { return r.Hosts }))))
	add("platforms", cleanList(p.RequiredPlatforms))
	for _, key := range slices.Sorted(maps.Keys(p.Meta)) {
		add("also says", clean(key)+": "+clean(p.Meta[key]))
	}
	for _, c := range m.Actions {
		m.action(c, add)
	}
	add("name", clean(p.DisplayName))
	add("description", clean(p.Description))
	for _, c := range append([]*capability.Capability{p}, m.Actions...) {
		for _, f := range c.Findings {
			add("finding", clean(actionName(c.ID))+": "+f.Severity.String()+": "+clean(f.String()))
		}
	}
	if len(m.Actions) == 0 {
		add("actions", "none")
	}
	add("digest", m.Digest)
	return lines
}

func (m *Manifest) action(c *capability.Capability, add func(name, text string)) {
	add("action", clean(actionName(c.ID))+" runs "+clean(orNone(runs(c))))
	name := clean(actionName(c.ID))
	also := func(what, text string) {
		if text != "" {
			add("  "+what, name+": "+text)
		}
	}
	if !slices.Equal(c.Permissions, m.Package.Permissions) {
		also("permissions", orNone(cleanList(c.Permissions)))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		also("also says", clean(key)+": "+clean(c.Meta[key]))
	}
	e := c.Said()
	for _, h := range []struct {
		name string
		hint capability.Hint
	}{{"read only", e.ReadOnly}, {"destructive", e.Destructive}, {"idempotent", e.Idempotent}, {"open world", e.OpenWorld}} {
		if h.hint != capability.Unsaid {
			also("claims", h.name+" "+map[capability.Hint]string{capability.Yes: "yes", capability.No: "no"}[h.hint])
		}
	}
	for _, p := range c.Parameters {
		also("takes", strings.TrimSpace(clean(p.Name)+" "+clean(p.Type)+" "+clean(p.Description)))
	}
	if t, ok := m.Texts[c.ID]; ok {
		also("schema", clean(string(t.Schema)))
	}
	also("unavailable", clean(c.Unavailable))
	also("description", clean(c.Description))
}

// Bins are the programs that the package or an action of it names.
func (m *Manifest) Bins() []string {
	return m.gather(func(c *capability.Capability) []string { return c.RequiredBins })
}

// Secrets are the names of secrets that programs of the package are given.
func (m *Manifest) Secrets() []string {
	return m.gather(func(c *capability.Capability) []string { return c.RequiredSecrets })
}

// Env are the names of variables that are passed on to programs of the package.
func (m *Manifest) Env() []string {
	return m.recipes(func(r *capability.Recipe) []string { return r.Env })
}

func (m *Manifest) recipes(of func(*capability.Recipe) []string) []string {
	return m.gather(func(c *capability.Capability) []string {
		if c.Run == nil {
			return nil
		}
		return of(c.Run)
	})
}

func (m *Manifest) gather(of func(*capability.Capability) []string) []string {
	all := slices.Clone(of(m.Package))
	for _, c := range m.Actions {
		all = append(all, of(c)...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}

// runs says in one line what an action runs; empty for one that runs nothing.
func runs(c *capability.Capability) string {
	if c.Run == nil {
		return ""
	}
	return recipe(c.Run)
}

// recipe shows every field that is set, also one that it does not know.
func recipe(r *capability.Recipe) string {
	var what []string
	if r.URL != "" || r.Method != "" {
		what = append(what, tick(strings.TrimSpace(r.Method+" "+r.URL)))
	}
	if len(r.Argv) > 0 {
		what = append(what, tick(commandLine(r.Argv)))
	}
	switch {
	case len(what) > 0:
	case r.Ask != nil:
		what = append(what, "a question to a model")
	case r.Input != "":
		what = append(what, tick(r.Program)+" of the package, with the call as "+strings.ToUpper(r.Input))
	case r.Action != "":
		what = append(what, tick(commandLine([]string{r.Action}))+" and the call's arguments")
	default:
		what = append(what, "the call's arguments")
	}
	facts := []string{strings.Join(what, " and ") + " by " + r.Runner}
	v := reflect.ValueOf(*r)
	for i := range v.NumField() {
		f := v.Field(i)
		if unset(f) {
			continue
		}
		switch name := v.Type().Field(i).Name; name {
		case "Runner", "Argv", "Action", "Method", "URL", "Input": // said already
		case "Ask":
			facts = append(facts, "asks "+plain(f))
		case "Program":
			if r.Input == "" {
				facts = append(facts, "which is "+tick(r.Program)+" of the package")
			}
		case "PackageSHA256":
			facts = append(facts, "files "+r.PackageSHA256)
		case "TimeoutSec":
			facts = append(facts, fmt.Sprintf("at most %d s", r.TimeoutSec))
		case "MaxOutputSize":
			facts = append(facts, fmt.Sprintf("at most %d bytes of output", r.MaxOutputSize))
		case "Env":
			facts = append(facts, "receives "+strings.Join(r.Env, " and "))
		case "Workspace":
			facts = append(facts, "may "+r.Workspace+" the workspace")
		case "Hosts":
			facts = append(facts, "reaches "+strings.Join(r.Hosts, " and "))
		case "Passthrough":
			facts = append(facts, "accepts any option from the caller")
		case "EndOfOptions":
			facts = append(facts, "arguments after --")
		default:
			facts = append(facts, wordFor("run."+fieldName(v.Type().Field(i)))+" "+plain(f))
		}
	}
	return strings.Join(facts, ", ")
}

// commandLine writes arguments so that one sees where each begins and ends.
func commandLine(argv []string) string {
	out := make([]string, len(argv))
	for i, s := range argv {
		out[i] = s
		if s == "" || strings.ContainsFunc(s, func(r rune) bool {
			return r == ' ' || r == '"' || r == '\\' || r == '`' || r == '\'' || r == '\uFFFD' || !strconv.IsPrint(r)
		}) {
			// Every blank but a single one is written out, since a line folds them.
			out[i] = strings.ReplaceAll(strconv.Quote(s), "  ", ` \x20`)
		}
	}
	return strings.Join(out, " ")
}

// argument writes an id into a command that people copy: no package's name can
// make it another command.
func argument(id string) string {
	if id != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:@-", r)
	}) {
		return id
	}
	return "'" + strings.ReplaceAll(clean(id), "'", `'\''`) + "'"
}
