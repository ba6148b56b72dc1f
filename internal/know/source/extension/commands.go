package extension

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/recipe"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// A declaredCommand is what a manifest says of one command or tool of its package.
type declaredCommand struct {
	name, description string
	line              int
	how               packageHow
	fields            *yamldoc.Reader
}

// A packageHow says by which means something runs. What an action leaves unsaid its
// command says, and after that the manifest.
type packageHow struct {
	runner, tool  string
	handler       string // a file of the package
	timeoutSec    int
	maxOutputSize int
	env           []string
	options       recipe.Options
	effects       capability.Effects
	permissions   *packagePermissions
}

func (h packageHow) or(base packageHow) packageHow {
	if h.runner == "" && h.tool == "" && h.handler == "" {
		h.runner, h.tool, h.handler = base.runner, base.tool, base.handler
	}
	if h.timeoutSec == 0 {
		h.timeoutSec = base.timeoutSec
	}
	if h.maxOutputSize == 0 {
		h.maxOutputSize = base.maxOutputSize
	}
	if h.env == nil {
		h.env = base.env
	}
	if h.permissions == nil {
		h.permissions = base.permissions
	}
	h.options = h.options.Or(base.options)
	h.effects = effectsOr(h.effects, base.effects)
	return h
}

func (x *extension) readHow(p string, r *yamldoc.Reader) packageHow {
	h := packageHow{runner: strings.TrimSpace(r.String("runner")), tool: strings.TrimSpace(r.String("tool")), handler: strings.TrimSpace(r.String("handler"))}
	h.timeoutSec = x.positive(p, r, "timeoutSec")
	h.maxOutputSize = x.positive(p, r, "maxOutputSize")
	h.env = x.readEnv(p, r)
	h.options = recipe.ReadOptions(r)
	h.effects = readEffects(r)
	h.permissions = x.ownPermissions(p, r)
	return h
}

func (x *extension) positive(p string, r *yamldoc.Reader, key string) int {
	n, ok := r.Int(key)
	if ok && n <= 0 {
		x.Warn("bad-value", p, r.Line(key), fmt.Sprintf("%s is %d, so it says nothing", key, n), "set it above 0, or remove it")
		return 0
	}
	return n
}

// readEnv reads names of variables that are passed on to a program.
func (x *extension) readEnv(p string, r *yamldoc.Reader) []string {
	f, ok := r.Field("envExtras")
	if !ok {
		return nil
	}
	names := []string{}
	if m, isMap := f.Value.Any.(*yamldoc.Map); isMap {
		x.Warn("bad-value", p, f.Line, "env_extras gives values, and only names are passed on", "list the names, and set the values where Ken runs, or under env_values")
		for _, v := range m.Fields {
			names = append(names, v.Key)
		}
	} else {
		names = append(names, r.Words("envExtras")...)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		if recipe.EnvName().MatchString(name) {
			return false
		}
		x.Warn("bad-value", p, f.Line, fmt.Sprintf("%q cannot name a variable; it is not passed on", name), "use letters, digits and underscores")
		return true
	})
}

// readCapabilities reads the list in the manifest. Commands wait for the file that
// lists their actions; tools are given back.
func (x *extension) readCapabilities(r *yamldoc.Reader) []declaredCommand {
	f, ok := r.Field("capabilities")
	if !ok {
		return nil
	}
	entries, ok := format.EntriesOf(f.Value)
	if !ok {
		x.Fault("bad-entry", x.manifest, f.Line, "capabilities is not a list", "write it as a list of objects with type and name")
		return nil
	}
	var tools []declaredCommand
	for _, e := range entries {
		d, kind, ok := x.declare(e)
		switch {
		case !ok:
		case kind == capability.KindTool:
			tools = append(tools, d)
		default:
			if first, twice := x.declared[d.name]; twice {
				x.Warn("repeated-command", x.manifest, d.line, fmt.Sprintf("/%s is already declared on line %d", d.name, first.line), "keep one of them")
				continue
			}
			x.declared[d.name] = d
		}
	}
	return tools
}

func (x *extension) declare(e format.Entry) (d declaredCommand, kind capability.Kind, ok bool) {
	r, ok := e.Reader()
	if !ok {
		x.Fault("bad-entry", x.manifest, e.Line, "this capability is not an object", "write it as an object with type and name")
		return d, "", false
	}
	switch word := strings.ToLower(r.String("type")); word {
	case "slash_command", "slash-command", "command":
		kind = capability.KindCommand
	case "tool":
		kind = capability.KindTool
	default:
		x.Fault("unknown-type", x.manifest, max(e.Line, r.Line("type")), fmt.Sprintf("a package has no capability of type %q", word), "the types are slash_command and tool")
		return d, "", false
	}
	d = declaredCommand{name: commandName(r.String("name")), description: r.String("description"), line: e.Line, how: x.readHow(x.manifest, r), fields: r}
	if !x.validName(d.name, x.manifest, e.Line) {
		return d, kind, false
	}
	return d, kind, true
}

// rest keeps what a reader has left, and speaks of it and of what was wrong.
func (x *extension) rest(what, p string, r *yamldoc.Reader) map[string]string {
	var meta map[string]string
	if f, ok := r.Field("allowedCommands"); ok {
		meta = map[string]string{f.Key: format.FieldText(f)}
	}
	for _, f := range r.Rest() {
		meta = mergeMeta(meta, map[string]string{f.Key: format.FieldText(f)})
		x.MentionKept(what, p, f.Line, f.Key, r.Suggest(f.Key))
	}
	x.WarnIssues("bad-value", p, 1, r)
	return meta
}

func commandName(given string) string { return strings.TrimPrefix(strings.TrimSpace(given), "/") }

// validName: one word, so that a person can type it after the slash.
func (x *extension) validName(name, p string, line int) bool {
	if name == "" {
		x.Fault("no-name", p, line, "it has no name", "add name:")
		return false
	}
	if strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("_-.:", r)
	}) {
		x.Fault("bad-name", p, line, fmt.Sprintf("%q cannot be the name of a command or tool", name), "use one word of letters, digits, dashes, dots and underscores")
		return false
	}
	return true
}

// tool adds a tool that the manifest declares.
func (x *extension) tool(d declaredCommand) {
	c := &capability.Capability{
		ID:   capability.MakeID(capability.KindTool, d.name),
		Kind: capability.KindTool, Name: d.name, Description: d.description, Tags: d.fields.Words("tags"),
	}
	s := packageSpec{path: x.manifest, line: d.line, how: d.how, fields: d.fields}
	s.readTemplate(d.fields)
	if x.settle(c, &s) {
		c.Meta = mergeMeta(c.Meta, x.rest("tool "+d.name, x.manifest, d.fields))
		x.Add(c, capability.Detail{Schema: s.schema, Usage: x.usage}, x.manifest, d.line)
	}
}

// commands reads the file that lists the commands' actions.
func (x *extension) commands() {
	var p string
	var data []byte
	for _, name := range commandFiles() {
		found, at, err := x.File(name, safefs.TextLimit)
		switch {
		case err != nil && isMissing(err):
		case err != nil:
			x.FaultErr("bad-commands", at, 1, err)
			return
		case p != "":
			x.Warn("second-commands", at, 0, fmt.Sprintf("it is not read, since %s is there", p), "keep one of the two files")
		default:
			data, p = found, at
		}
	}
	listed := map[string]bool{}
	if p != "" {
		doc, err := yamldoc.ParseValue(data, yamldoc.Limits{})
		if err != nil {
			x.FaultErr("bad-commands", p, 1, err)
			return
		}
		listed = x.commandList(p, doc)
	}
	for _, name := range slices.Sorted(maps.Keys(x.declared)) {
		if !listed[name] {
			x.alone(x.declared[name])
		}
	}
}

// commandList reads both forms of the file, slash_commands and the older
// commands, and returns the names that it lists.
func (x *extension) commandList(p string, doc yamldoc.Value) map[string]bool {
	names := map[string]bool{}
	lists := []yamldoc.Value{doc}
	standard := ""
	if m, ok := doc.Any.(*yamldoc.Map); ok {
		r := yamldoc.NewReader(m)
		lists = nil
		for _, key := range []string{"slashCommands", "commands"} {
			if f, ok := r.Field(key); ok {
				lists = append(lists, f.Value)
			}
		}
		standard = r.String("defaultAction")
		r.Field("version")
		for _, f := range r.Rest() {
			x.Warn("unknown-key", p, f.Line, fmt.Sprintf("nothing reads %s beside the commands", f.Key), "list commands under slash_commands:")
		}
		x.WarnIssues("bad-value", p, 1, r)
	}
	for _, list := range lists {
		entries, ok := format.EntriesOf(list)
		if !ok {
			x.Fault("bad-commands", p, list.Line, "the commands are not a list", "write one command per entry, each beginning with a dash")
			continue
		}
		for _, e := range entries {
			if name := x.command(p, e, standard); name != "" {
				names[name] = true
			}
		}
	}
	return names
}

// alone adds a command that only the manifest speaks of.
func (x *extension) alone(d declaredCommand) {
	cmd := packageCommand{name: d.name, description: d.description, path: x.manifest, tags: d.fields.Words("tags")}
	s := packageSpec{path: x.manifest, line: d.line, how: d.how, fields: d.fields}
	s.readTemplate(d.fields)
	x.action(cmd, "", d.description, &s)
}

// mergeMeta adds to a what only b has.
func mergeMeta(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	if a == nil {
		a = make(map[string]string, len(b))
	}
	for k, v := range b {
		if _, have := a[k]; !have {
			a[k] = v
		}
	}
	return a
}
