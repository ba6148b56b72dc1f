package extension

import (
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
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
// returns the command's name, or "" when it has none.
func (x *extension) command(p string, e format.Entry, standard string) string {
	if text, ok := e.Value.Any.(string); ok {
		name := commandName(e.Key)
		if e.Key == "" {
			x.Fault("bad-entry", p, e.Line, "this command is only a text", "write it with name: and actions:")
		} else if x.validName(name, p, e.Line) {
			x.action(packageCommand{name: name, path: p}, "", "", &packageSpec{path: p, line: e.Line, template: text, at: e.Value.Line})
		}
		return name
	}
	r, ok := e.Reader()
	if !ok {
		x.Fault("bad-entry", p, e.Line, "this command is not written as keys and values", "write it with name: and actions:")
		return commandName(e.Key)
	}
	given := r.String("name")
	if given == "" {
		given = e.Key
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
	if !x.validName(cmd.name, p, e.Line) {
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
func (x *extension) actions(cmd packageCommand, r *yamldoc.Reader, e format.Entry) {
	f, ok := r.Field("actions")
	if !ok {
		to := r.Map("mapsTo")
		f, ok = to.Field("actions")
		cmd.how = x.readHow(cmd.path, to).or(cmd.how)
		for _, rest := range to.Rest() {
			cmd.meta = mergeMeta(cmd.meta, map[string]string{"maps_to." + rest.Key: format.FieldText(rest)})
			x.MentionKept("/"+cmd.name, cmd.path, rest.Line, "maps_to."+rest.Key, to.Suggest(rest.Key))
		}
	}
	if !ok {
		s := packageSpec{path: cmd.path, line: e.Line, how: cmd.how, fields: r}
		s.readTemplate(r)
		x.action(cmd, "", "", &s)
		return
	}
	entries, isList := format.EntriesOf(f.Value)
	if !isList {
		x.Fault("bad-entry", cmd.path, f.Line, fmt.Sprintf("the actions of /%s are not a list", cmd.name), "write one action per entry, each with an id")
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
func actionID(e format.Entry) string {
	if r, ok := e.Reader(); ok {
		if id := r.String("id"); id != "" {
			return id
		}
		if name := r.String("name"); name != "" {
			return name
		}
	}
	if id, ok := e.Value.Any.(string); ok && e.Key == "" {
		return id
	}
	return e.Key
}

func actionDefault(e format.Entry) (standard, said bool) {
	r, ok := e.Reader()
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
	x.Warn("unknown-action", cmd.path, r.Line("defaultAction"), fmt.Sprintf("the default action %q of /%s is not one of its actions", cmd.standard, cmd.name), fix)
	cmd.standard = ""
}

func (x *extension) listedAction(cmd packageCommand, id string, e format.Entry) {
	if !actionName().MatchString(id) {
		x.Fault("bad-action", cmd.path, e.Line, fmt.Sprintf("%q cannot be an action of /%s", id, cmd.name), "begin an action's id with a letter, then letters, digits, _ and -")
		return
	}
	s := packageSpec{path: cmd.path, line: e.Line, how: cmd.how}
	switch v := e.Value.Any.(type) {
	case nil:
	case string:
		if e.Key != "" { // "get: curl {url}"; in a list a text is only the id
			s.template, s.at = v, e.Value.Line
		}
	case *yamldoc.Map:
		s.fields = yamldoc.NewReader(v)
		s.fields.String("id")
		s.fields.Bool("default")
		s.how = x.readHow(cmd.path, s.fields).or(cmd.how)
		s.readTemplate(s.fields)
	default:
		x.Fault("bad-action", cmd.path, e.Line, fmt.Sprintf("the action %s of /%s is not written as keys and values", id, cmd.name), "write its description and runner as \"key: value\" lines")
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
		x.Warn("no-description", s.path, s.line, fmt.Sprintf("%s has no description, so hardly anything finds it", c.Name), "say in one sentence what it does")
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
	delete(c.Meta, "default_action") // an unknown key
	if cmd.standard != "" {
		c.Meta = mergeMeta(c.Meta, map[string]string{"default_action": cmd.standard})
	}
	x.Add(c, capability.Detail{Schema: s.schema, Body: cmd.body(c.Description), Usage: x.usage}, s.path, s.line)
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
