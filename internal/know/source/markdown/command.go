package markdown

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/pattern"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Commands as Claude Code keeps them: commands/**/*.md, a prompt that a person
// calls by "/name". Folders below commands part the name with colons:
// commands/frontend/component.md is "frontend:component".

// CommandFormat returns the format of slash commands.
func CommandFormat() format.Format {
	return format.Format{Name: "command", Claims: isCommand, BelongsAt: livesAsCommand, Limit: safefs.BodyLimit, Read: readCommand}
}

func isCommand(p string, head []byte) bool {
	return isPage(p) && format.HasFrontmatterKey(head, "argument-hint")
}

func livesAsCommand(place string) bool {
	_, ok := commandPath(place)
	return ok && isPage(place)
}

// isPage: a Markdown file that is not its folder's index.
func isPage(p string) bool { return safefs.HasExt(p, ".md") && safefs.BaseName(p) != "readme.md" }

// commandPath returns what a path says below the folder for commands.
func commandPath(p string) (string, bool) {
	parts := strings.Split(path.Dir(p), "/")
	for i, part := range parts {
		if strings.EqualFold(part, "commands") {
			return strings.Join(append(parts[i+1:], path.Base(p)), "/"), true
		}
	}
	return path.Base(p), false
}

var (
	typableName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

	// commandArgument is where a template takes what the person typed.
	commandArgument = pattern.Lazy(`\$(ARGUMENTS\b|[1-9]([^0-9]|$))`)

	// commandShell is what another program would run before it asks a model.
	commandShell = pattern.Lazy("(?m)(^|[ \t])!`[^`\n]+`")
)

func readCommand(u *format.Unit) {
	data, ok := u.Text(u.Path, u.Data, true)
	if !ok {
		return
	}
	pg, mends := format.LoosePage(data)
	for _, m := range mends {
		u.Warn("mended-frontmatter", u.Path, m.Line, m.Message, m.Fix)
	}
	body := strings.TrimSpace(pg.Body)
	if body == "" {
		u.Fault("empty-file", u.Path, 0, "the command has no text", "write what the model is to do; $ARGUMENTS stands for what follows the name")
		return
	}
	r := yamldoc.NewReader(pg.Meta)
	c := commandOf(u, pg, r, body)
	warnOfList(u, u.Path, pg, r, "bad-value")
	d := capability.Detail{Body: body}
	if commandArgument().MatchString(body) {
		d.Schema = argumentsSchema(c.Meta["argument-hint"])
	}
	if at := commandShell().FindStringIndex(body); at != nil {
		u.Warn("command-shell", u.Path, pg.BodyLine+strings.Count(pg.Body[:strings.Index(pg.Body, body)+at[0]], "\n"),
			"the program that !`…` names is not run; the model sees the line as it stands", "say in words what to run")
	}
	u.KeepRest(c, u.Path, max(pg.MetaLine, 1), r, true)
	u.WarnIssues("bad-value", u.Path, max(pg.MetaLine, 1), r)
	u.BodyLine = pg.TextLine()
	u.Add(c, d, u.Path, 1)
}

func commandOf(u *format.Unit, pg format.Page, r *yamldoc.Reader, body string) *capability.Capability {
	below, _ := commandPath(u.Root.Place(u.Path))
	c := &capability.Capability{
		Kind:        capability.KindCommand,
		Name:        strings.ReplaceAll(strings.TrimSuffix(below, path.Ext(below)), "/", ":"),
		DisplayName: format.FoldSpace(r.String("displayName", "title")),
		Description: format.FoldSpace(plainField(pg, r, "description")),
		Category:    r.String("category"),
		Tags:        r.Words("tags"),
		Aliases:     r.Words("aliases"),
		Version:     r.String("version"),
	}
	if !typableName().MatchString(c.Name) {
		u.Warn("command-name", u.Path, 0, fmt.Sprintf("/%s cannot be typed as one word", c.Name), "rename the file: letters, digits, dashes and underscores")
	}
	if c.Description == "" {
		c.Description, _ = format.SummaryOf(firstTextLine(body))
		if c.Description == "" {
			c.Description = c.Title()
		}
	}
	if hint := format.FoldSpace(plainField(pg, r, "argument-hint")); hint != "" {
		format.SetMeta(c, "argument-hint", yamldoc.Value{Any: hint})
	}
	if tools := allowedTools(r); tools != "" {
		format.SetMeta(c, "allowed-tools", yamldoc.Value{Any: tools})
	}
	for _, key := range []string{"model", "disable-model-invocation", "agent", "subtask", "name"} {
		if f, ok := r.Field(key); ok {
			format.SetMeta(c, key, f.Value)
		}
	}
	return c
}

// firstTextLine returns the first line that says something, headings included.
func firstTextLine(body string) string {
	for line := range strings.Lines(body) {
		if text := format.FoldSpace(strings.Trim(strings.TrimSpace(line), "#*-=> ")); text != "" {
			return text
		}
	}
	return ""
}

// argumentsSchema describes the one text that a command takes.
func argumentsSchema(hint string) json.RawMessage {
	property := map[string]any{"type": "string", "description": "What follows the command's name"}
	if hint != "" {
		property["description"] = hint
	}
	raw, _ := json.Marshal(map[string]any{ // plain data cannot fail
		"type": "object", "properties": map[string]any{"arguments": property}, "additionalProperties": false,
	})
	return raw
}
