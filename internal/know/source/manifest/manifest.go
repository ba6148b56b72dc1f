package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/spelling"
	"ken/internal/untrusted"
	"ken/internal/yamldoc"
)

// Capability manifests: a folder with CAPABILITY.yaml, and beside it SKILL.md
// for the instructions and schema.json for the input, where there are any.

// Format returns the format of folders with a CAPABILITY.yaml.
func Format() format.Format {
	return format.Format{Name: "manifest", Markers: manifestMarkers(), Limit: safefs.TextLimit, Read: readManifest}
}

// manifestMarkers are the names of a manifest; the first that is there is read.
func manifestMarkers() []string {
	return []string{
		"CAPABILITY.yaml", "CAPABILITY.yml", "capability.yaml", "capability.yml", "Capability.yaml", "Capability.yml",
		"CAPABILITY.YAML", "CAPABILITY.YML",
	}
}

const manifestSchema = "schema.json"

// A manifest is one being read.
type manifest struct {
	*format.Unit
	at  string // CAPABILITY.yaml, of the tree
	has map[string]bool
}

func readManifest(u *format.Unit) {
	m := &manifest{Unit: u, at: path.Join(u.Path, manifestMarkers()[0]), has: map[string]bool{}}
	r, ok := m.open()
	if !ok {
		return
	}
	c, ok := m.describe(r)
	if !ok {
		return
	}
	var d capability.Detail
	if d.Schema, ok = m.schema(r); !ok {
		return
	}
	if d.Body, ok = m.body(r); !ok {
		return
	}
	c.Parameters = seal.Parameters(d.Schema)
	if c.Run, ok = m.run(r, c, d.Schema); !ok {
		return
	}
	if f, given := r.Field("example"); given {
		format.SetMeta(c, "example", f.Value)
	}
	m.KeepRest(c, m.at, 1, r, true)
	m.WarnIssues("bad-value", m.at, 1, r)
	m.Add(c, d, m.at, 1)
}

// open reads the manifest's file.
func (m *manifest) open() (*yamldoc.Reader, bool) {
	entries, err := m.Root.List(m.Path)
	if err != nil {
		m.FaultErr("unreadable", m.Path, 1, err)
		return nil, false
	}
	for _, e := range entries {
		m.has[e.Name()] = true
	}
	name := ""
	for _, marker := range manifestMarkers() {
		switch {
		case !m.has[marker]:
		case name == "":
			name = marker
		default:
			m.Warn("two-files", path.Join(m.Path, marker), 0, name+" stands beside it and is the one that is read", "keep one of them")
		}
	}
	if name == "" {
		name = manifestMarkers()[0] // gone since the walk; reading it says so
	}
	data, p, err := m.File(name, safefs.TextLimit)
	m.at = p
	if err != nil {
		m.FaultErr("unreadable", p, 1, err)
		return nil, false
	}
	doc, err := yamldoc.Parse(data, yamldoc.Limits{})
	if err != nil {
		m.FaultErr("bad-manifest", p, 1, err)
		return nil, false
	}
	return yamldoc.NewReader(doc), true
}

// describe reads all of a manifest but its schema, body and recipe.
func (m *manifest) describe(r *yamldoc.Reader) (*capability.Capability, bool) {
	c := &capability.Capability{
		Name:              strings.TrimSpace(r.String("name")),
		Kind:              m.kind(r),
		ID:                capability.ID(strings.TrimSpace(r.String("id"))),
		DisplayName:       format.FoldSpace(r.String("displayName")),
		Description:       format.FoldSpace(r.String("description")),
		Category:          r.String("category"),
		Tags:              r.Words("tags"),
		Aliases:           r.Words("aliases"),
		RequiredTools:     r.Words("requiredTools", "dependsOn"),
		RequiredSecrets:   r.Words("requiredSecrets"),
		RequiredBins:      r.Words("requiredBins"),
		RequiredPlatforms: r.Words("requiredPlatforms"),
		Permissions:       m.permissions(r),
		Version:           r.String("version"),
		Migrations:        format.Migrations(r),
	}
	if c.Category == "" {
		c.Category = "custom"
	}
	if effects, said := r.Bool("hasSideEffects"); said {
		c.Effects.ReadOnly = capability.HintOf(!effects)
	}
	var missing []string
	for key, value := range map[string]string{"name": c.Name, "kind": string(c.Kind), "description": c.Description} {
		if value == "" {
			missing = append(missing, key)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		is := "is"
		if len(missing) > 1 {
			is = "are"
		}
		fix, line := "a manifest needs name, kind and description", r.Line(missing[0])
		for _, f := range slices.Backward(r.Rest()) {
			if near := spelling.Nearest(f.Key, missing); near != "" {
				fix, line = fmt.Sprintf("did you mean %s instead of %s (line %d)? %s", near, untrusted.Line(f.Key, 40), f.Line, fix), f.Line
			}
		}
		m.Fault("missing-key", m.at, max(1, line), fmt.Sprintf("%s %s missing", strings.Join(missing, ", "), is), fix)
		return nil, false
	}
	for key, value := range map[string]string{"id": string(c.ID), "name": c.Name, "kind": string(c.Kind)} {
		if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) && r != ' ' }) {
			m.Fault("bad-id", m.at, r.Line(key), fmt.Sprintf("%s %q holds a control character or a line end", key, value), "write it in one line of plain text")
			return nil, false
		}
	}
	return c, true
}

// permissions reads what the capability asks for, and places what is wrong
// with it at the key that a manifest uses.
func (m *manifest) permissions(r *yamldoc.Reader) []string {
	before := len(m.Problems)
	asked := m.ReadPermissions(m.at, r)
	for i := range m.Problems[before:] {
		m.Problems[before+i].Origin.Line = format.LineOfAny(r, "permissions", "permissionsRequired")
	}
	return asked
}

// kind takes any word: sources may bring kinds of their own. One that differs
// from a known kind only in case is that kind.
func (m *manifest) kind(r *yamldoc.Reader) capability.Kind {
	given := capability.Kind(strings.TrimSpace(r.String("kind")))
	kinds := capability.Kinds()
	if given == "" || slices.Contains(kinds, given) {
		return given
	}
	var names []string
	for _, k := range kinds {
		if strings.EqualFold(string(k), string(given)) {
			m.Warn("unknown-kind", m.at, r.Line("kind"), fmt.Sprintf("kind %s is read as %s", given, k), "write kind: "+string(k))
			return k
		}
		names = append(names, string(k))
	}
	fix := "the usual kinds are " + strings.Join(names, ", ")
	if near := spelling.Nearest(string(given), names); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	m.Warn("unknown-kind", m.at, r.Line("kind"), fmt.Sprintf("kind %s is none of the usual ones; it is kept", given), fix)
	return given
}

// schema returns the input schema: schema.json, or else inputSchema.
func (m *manifest) schema(r *yamldoc.Reader) (json.RawMessage, bool) {
	inline, given, ok := m.inlineSchema(r)
	if !ok || !m.has[manifestSchema] {
		return inline, ok
	}
	data, p, err := m.File(manifestSchema, safefs.BodyLimit)
	if err != nil {
		m.FaultErr("unreadable", p, 1, err)
		return nil, false
	}
	schema, bad := compactSchema(data)
	if bad != nil {
		m.Fault("bad-schema", p, format.LineOfByte(data, bad.Offset), "schema.json: "+bad.Message, bad.Fix)
		return nil, false
	}
	if given && !bytes.Equal(inline, schema) {
		m.Warn("two-schemas", m.at, r.Line("inputSchema"), "inputSchema is passed over, since schema.json stands beside it and says something else", "keep one of them")
	}
	return schema, true
}

// inlineSchema reads inputSchema, which some write as a text of JSON.
func (m *manifest) inlineSchema(r *yamldoc.Reader) (schema json.RawMessage, given, ok bool) {
	f, given := r.Field("inputSchema", "parameters")
	if !given {
		return nil, false, true
	}
	var bad *jsonscan.Error
	text, isText := f.Value.Any.(string)
	_, isMap := f.Value.Any.(*yamldoc.Map)
	switch {
	case isMap:
		schema, bad = compactSchema(f.Value.JSON())
	case isText && strings.HasPrefix(strings.TrimSpace(text), "{"):
		schema, bad = compactSchema([]byte(text))
	default:
		m.Fault("bad-schema", m.at, f.Line, fmt.Sprintf("%s is %s, want a map such as {type: object, properties: {…}}", f.Key, f.Value.Kind()),
			"write "+f.Key+": {type: object, properties: {name: {type: string}}}")
		return nil, true, false
	}
	if bad != nil {
		m.Fault("bad-schema", m.at, f.Line, "inputSchema: "+bad.Message, bad.Fix)
		return nil, true, false
	}
	return schema, true, true
}

// compactSchema checks that a text is one JSON object that says everything once,
// and returns it without white space.
func compactSchema(data []byte) (json.RawMessage, *jsonscan.Error) {
	trimmed := bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := (&jsonscan.Scanner{Data: trimmed}).Check(); err != nil {
		bad := &jsonscan.Error{Message: err.Error(), Fix: "check quotes, commas and brackets"}
		errors.As(err, &bad)
		bad.Offset += len(data) - len(trimmed)
		return nil, bad
	}
	if bytes.TrimLeft(trimmed, " \t\r\n")[0] != '{' {
		return nil, &jsonscan.Error{Message: "a schema is a JSON object", Fix: `write { "type": "object", "properties": { … } }`}
	}
	var out bytes.Buffer
	if err := json.Compact(&out, trimmed); err != nil {
		return nil, &jsonscan.Error{Message: err.Error(), Fix: "check quotes, commas and brackets"}
	}
	return out.Bytes(), nil
}

// body returns the instructions: the file that skillContent names, or the text
// that it is, or else SKILL.md.
func (m *manifest) body(r *yamldoc.Reader) (string, bool) {
	given := r.String("skillContent")
	if strings.Contains(strings.TrimSpace(given), "\n") {
		return strings.TrimSpace(given), true
	}
	name := strings.TrimSpace(given)
	if name == "" {
		i := slices.IndexFunc(format.SkillMarkers(), func(name string) bool { return m.has[name] })
		if i < 0 {
			return "", true
		}
		name = format.SkillMarkers()[i]
	}
	data, p, err := m.File(name, safefs.BodyLimit)
	if err != nil {
		problem := safefs.Problem(err, capability.Grave, m.Origin(m.at, r.Line("skillContent")))
		refused := problem.Code == "leaves-root"
		if !refused {
			problem.Severity = capability.Warning
			problem.Message = fmt.Sprintf("skillContent %s is not read: %s", name, problem.Message)
		}
		m.Problems = append(m.Problems, problem)
		return "", !refused
	}
	text, ok := m.Text(p, data, true)
	if !ok {
		return "", false
	}
	pg, _ := format.CutPage(text)
	return strings.TrimSpace(pg.Body), true
}
