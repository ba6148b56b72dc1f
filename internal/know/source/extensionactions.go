package source

import (
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

// A packageCommand is one "/name" of a package, with what its actions share.
type packageCommand struct {
	name, path           string
	summary, description string
	examples             []string
	tags                 []string
	aliases              []string
	how                  packageHow
	standard             string // the action when none is named
	meta                 map[string]string
}

// command reads one command and adds a capability for each of its actions. It
// gives the command's name, or "" when it has none.
func (x *extension) command(p string, e listEntry, standard string) string {
	if text, ok := e.value.Any.(string); ok {
		name := commandName(e.key)
		if e.key == "" {
			x.fault("bad-entry", p, e.line, "this command is only a text", "write it with name: and actions:")
		} else if x.validName(name, p, e.line) {
			x.action(packageCommand{name: name, path: p}, "", "", &packageSpec{path: p, line: e.line, template: text, at: e.value.Line})
		}
		return name
	}
	r, ok := e.reader()
	if !ok {
		x.fault("bad-entry", p, e.line, "this command is not written as keys and values", "write it with name: and actions:")
		return commandName(e.key)
	}
	given := r.String("name")
	if given == "" {
		given = e.key
	}
	cmd := packageCommand{
		name: commandName(given), path: p, summary: r.String("summary"), description: r.String("description"),
		examples: r.Strings("examples"), tags: r.Words("tags"), standard: r.String("defaultAction"),
		how: x.readHow(p, r),
	}
	for _, alias := range r.Words("aliases") {
		cmd.aliases = append(cmd.aliases, "/"+commandName(alias))
	}
	if cmd.standard == "" {
		cmd.standard = standard
	}
	if !x.validName(cmd.name, p, e.line) {
		return cmd.name
	}
	if d, ok := x.declared[cmd.name]; ok {
		cmd.how = cmd.how.or(d.how)
		if cmd.description == "" {
			cmd.description = d.description
		}
		if tags := d.fields.Words("tags"); cmd.tags == nil {
			cmd.tags = tags
		}
		cmd.meta = x.rest("/"+cmd.name, x.manifest, d.fields)
	}
	x.actions(cmd, r, e)
	return cmd.name
}

// actions reads the actions of a command; a command without any is one action.
func (x *extension) actions(cmd packageCommand, r *yamldoc.Reader, e listEntry) {
	f, ok := r.Field("actions")
	if !ok {
		to := r.Map("mapsTo")
		f, ok = to.Field("actions")
		cmd.how = x.readHow(cmd.path, to).or(cmd.how)
		for _, rest := range to.Rest() {
			cmd.meta = mergeMeta(cmd.meta, map[string]string{"maps_to." + rest.Key: fieldText(rest)})
			x.mentionKept("/"+cmd.name, cmd.path, rest.Line, "maps_to."+rest.Key, to.Suggest(rest.Key))
		}
	}
	if !ok {
		s := packageSpec{path: cmd.path, line: e.line, how: cmd.how, fields: r}
		s.readTemplate(r)
		x.action(cmd, "", "", &s)
		return
	}
	entries, isList := entriesOf(f.Value)
	if !isList {
		x.fault("bad-entry", cmd.path, f.Line, fmt.Sprintf("the actions of /%s are not a list", cmd.name), "write one action per entry, each with an id")
		return
	}
	cmd.meta = mergeMeta(x.rest("/"+cmd.name, cmd.path, r), cmd.meta)
	ids := make([]string, len(entries))
	for i, a := range entries {
		ids[i] = actionID(a)
		if standard, _ := actionDefault(a); standard && cmd.standard == "" {
			cmd.standard = ids[i]
		}
	}
	x.checkStandard(&cmd, ids, r)
	for i, a := range entries {
		x.listedAction(cmd, ids[i], a)
	}
}

// actionID returns the id of an action: of its own, or its key in a map.
func actionID(e listEntry) string {
	if r, ok := e.reader(); ok {
		if id := r.String("id"); id != "" {
			return id
		}
		if name := r.String("name"); name != "" {
			return name
		}
	}
	if id, ok := e.value.Any.(string); ok && e.key == "" {
		return id
	}
	return e.key
}

func actionDefault(e listEntry) (standard, said bool) {
	r, ok := e.reader()
	if !ok {
		return false, false
	}
	return r.Bool("default")
}

// checkStandard drops a default action that is not there, and says so.
func (x *extension) checkStandard(cmd *packageCommand, ids []string, r *yamldoc.Reader) {
	if cmd.standard == "" {
		return
	}
	for _, id := range ids {
		if id == cmd.standard {
			return
		}
	}
	fix := "name one of its actions"
	if near := spelling.Nearest(cmd.standard, ids); near != "" {
		fix = "did you mean " + near + "?"
	}
	x.warn("unknown-action", cmd.path, r.Line("defaultAction"), fmt.Sprintf("the default action %q of /%s is not one of its actions", cmd.standard, cmd.name), fix)
	cmd.standard = ""
}

func (x *extension) listedAction(cmd packageCommand, id string, e listEntry) {
	if !actionName().MatchString(id) {
		x.fault("bad-action", cmd.path, e.line, fmt.Sprintf("%q cannot be an action of /%s", id, cmd.name), "begin an action's id with a letter, then letters, digits, _ and -")
		return
	}
	s := packageSpec{path: cmd.path, line: e.line, how: cmd.how}
	switch v := e.value.Any.(type) {
	case nil:
	case string:
		if e.key != "" { // "get: curl {url}"; in a list a text is only the id
			s.template, s.at = v, e.value.Line
		}
	case *yamldoc.Map:
		s.fields = yamldoc.NewReader(v)
		s.fields.String("id")
		s.fields.Bool("default")
		s.how = x.readHow(cmd.path, s.fields).or(cmd.how)
		s.readTemplate(s.fields)
	default:
		x.fault("bad-action", cmd.path, e.line, fmt.Sprintf("the action %s of /%s is not written as keys and values", id, cmd.name), "write its description and runner as \"key: value\" lines")
		return
	}
	x.action(cmd, id, "", &s)
}

// readTemplate takes the command line: a list, or a text under any of the
// names it goes by.
func (s *packageSpec) readTemplate(r *yamldoc.Reader) {
	for _, key := range []string{"template", "command", "cmd"} {
		if f, ok := r.Field(key); ok {
			if text := r.String(key); text != "" && s.template == "" {
				s.template, s.at = text, f.Line
			}
		}
	}
	if f, ok := r.Field("argv"); ok {
		s.argv, s.at = &f.Value, f.Line
	}
}

// action adds the capability of one action, or of a command that has none.
func (x *extension) action(cmd packageCommand, id, description string, s *packageSpec) {
	c := &capability.Capability{
		Kind: capability.KindCommand, Name: cmd.name, Description: description,
		Tags: cmd.tags, Aliases: append([]string{"/" + cmd.name}, cmd.aliases...),
	}
	if id != "" {
		c.Name += " " + id
		c.ID = capability.MakeID(capability.KindCommand, cmd.name+"/"+id)
	}
	if s.fields != nil {
		for _, key := range []string{"description", "summary"} {
			if text := s.fields.String(key); c.Description == "" {
				c.Description = text
			}
		}
		if tags := s.fields.Words("tags"); tags != nil {
			c.Tags = tags
		}
	}
	for _, text := range []string{cmd.summary, cmd.description} {
		if c.Description == "" {
			c.Description = text
		}
	}
	if c.Description == "" {
		x.warn("no-description", s.path, s.line, fmt.Sprintf("%s has no description, so hardly anything finds it", c.Name), "say in one sentence what it does")
	}
	if !x.settle(c, s) {
		return
	}
	if c.Run != nil {
		c.Run.Action = id
	}
	if s.fields != nil {
		c.Meta = mergeMeta(c.Meta, x.rest("/"+c.Name, s.path, s.fields))
	}
	c.Meta = mergeMeta(c.Meta, cmd.meta)
	if cmd.standard != "" {
		c.Meta = mergeMeta(c.Meta, map[string]string{"default_action": cmd.standard})
	}
	x.add(c, capability.Detail{Schema: s.schema, Body: cmd.body(c.Description), Usage: x.usage}, s.path, s.line)
}

// body puts together what a command says beyond one line.
func (cmd packageCommand) body(shown string) string {
	var parts []string
	for _, text := range []string{cmd.summary, cmd.description} {
		if text = strings.TrimSpace(text); text != "" && text != shown {
			parts = append(parts, text)
		}
	}
	if len(cmd.examples) > 0 {
		parts = append(parts, "Examples:\n\n    "+strings.Join(cmd.examples, "\n    "))
	}
	return strings.Join(parts, "\n\n")
}
