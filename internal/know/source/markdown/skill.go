package markdown

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/pattern"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Skills: a folder with SKILL.md, as the Agent Skills ecosystem writes it. Of
// the skills that people really use most break some rule of that format, so
// this reader takes whatever a person could make sense of, and says what is
// wrong with it.

const (
	maxSkillName        = 64
	maxSkillDescription = 1024
)

// SkillFormat returns the format of folders with a SKILL.md.
func SkillFormat() format.Format {
	return format.Format{
		Name: "skill", Markers: format.SkillMarkers(), Limit: safefs.BodyLimit, Read: readSkill,
		Claims: func(p string, _ []byte) bool { return safefs.BaseName(p) == "skill.md" },
	}
}

// skillName is how the ecosystem wants names: what can be typed and is a
// folder's name everywhere.
var skillName = pattern.Lazy(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func readSkill(u *format.Unit) {
	s, ok := openSkill(u)
	if !ok {
		return
	}
	r := yamldoc.NewReader(s.page.Meta)
	c := &capability.Capability{Kind: capability.KindSkill, Version: r.String("version")}
	s.name(c, r)
	s.describe(c, r)
	s.require(c, r)
	c.Category = r.String("category")
	c.Tags = r.Words("tags")
	c.Aliases = r.Words("aliases")
	c.Triggers = skillTriggers(r)
	c.Migrations = format.Migrations(r)
	s.metadata(c, r)
	s.keep(c, r)
	u.WarnIssues("bad-value", s.file, s.page.MetaLine, r)
	s.scanFiles(c)
	u.BodyLine = s.page.TextLine()
	u.Add(c, capability.Detail{Body: s.body}, s.file, 1)
}

// A skill is one being read.
type skill struct {
	u      *format.Unit
	folder string // of the tree
	file   string // SKILL.md, of the tree
	page   format.Page
	body   string
}

// openSkill reads SKILL.md, of a folder or as a unit of its own.
func openSkill(u *format.Unit) (*skill, bool) {
	s := &skill{u: u, folder: u.Path, file: u.Path}
	data := u.Data
	if data != nil {
		s.folder = path.Dir(u.Path)
	} else {
		name, err := s.marker()
		if err == nil {
			data, _, err = u.File(name, safefs.BodyLimit)
		}
		s.file = path.Join(u.Path, name)
		if err != nil {
			u.FaultErr("unreadable", s.file, 1, err)
			return nil, false
		}
	}
	text, ok := u.Text(s.file, data, true)
	if !ok {
		return nil, false
	}
	if strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff")) == "" {
		u.Fault("empty-file", s.file, 0, "the file is empty", "write frontmatter with name and description, then the instructions")
		return nil, false
	}
	var mends []*yamldoc.Error
	s.page, mends = format.LoosePage(text)
	for _, m := range mends {
		u.Warn("mended-frontmatter", s.file, m.Line, m.Message, m.Fix)
	}
	if !s.page.Found {
		u.Warn("no-frontmatter", s.file, 1, "the skill has no frontmatter; its name and description are taken from its folder and text",
			"begin it with a line ---, then name and description, then ---")
	}
	s.body = strings.TrimSpace(s.page.Body)
	if s.body == "" {
		u.Warn("skill-empty", s.file, 0, "the skill has no instructions below its frontmatter", "say what to do and how")
	}
	return s, true
}

// marker returns the name of the skill's file. Where a folder has it in two
// spellings, the first of the usual order stands.
func (s *skill) marker() (string, error) {
	entries, err := s.u.Root.List(s.u.Path)
	if err != nil {
		return "", err
	}
	var found []string
	for _, name := range format.SkillMarkers() {
		for _, e := range entries {
			if e.Name() == name {
				found = append(found, name)
			}
		}
	}
	if len(found) == 0 {
		return format.SkillMarkers()[0], nil // gone since the walk; reading it says so
	}
	if len(found) > 1 {
		s.u.Warn("two-files", path.Join(s.u.Path, found[1]), 0, fmt.Sprintf("%s stands beside it and is the one that is read", found[0]), "keep one of them")
	}
	return found[0], nil
}

// at returns the line of a key in SKILL.md.
func (s *skill) at(r *yamldoc.Reader, key string) int { return s.page.Line(r.Line(key)) }

func (s *skill) name(c *capability.Capability, r *yamldoc.Reader) {
	folder := s.u.Root.FolderName(s.folder)
	c.Name = format.FoldSpace(plainField(s.page, r, "name"))
	warn := func(message, fix string) {
		s.u.Warn("skill-name", s.file, max(s.at(r, "name"), 1), message, fix)
	}
	if strings.ContainsFunc(c.Name, unicode.IsControl) {
		warn(fmt.Sprintf("the name %q holds a control character; the folder's name stands in for it", c.Name), "write it in plain letters")
		c.Name = folder
	}
	switch n := utf8.RuneCountInString(c.Name); {
	case c.Name == "":
		c.Name = folder
		if s.page.Found {
			warn(fmt.Sprintf("the skill has no name; it is called %s after its folder", folder), "add name: "+folder)
		}
	case n > maxSkillName:
		warn(fmt.Sprintf("the name has %d characters, more than %d", n, maxSkillName), "shorten it")
	case !skillName().MatchString(c.Name):
		warn(fmt.Sprintf("the name %q is not lower-case letters, digits and single hyphens", c.Name), "call it "+slug(c.Name)+", and the folder likewise")
	case c.Name != folder:
		warn(fmt.Sprintf("the name is %s but the folder is called %s", c.Name, folder), "give both the same name")
	}
	if c.DisplayName = format.FoldSpace(r.String("displayName", "title")); c.DisplayName == "" {
		c.DisplayName = capability.DisplayName(c.Name)
	}
}

// slug returns the nearest name of the wanted form.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	if len(words) == 0 {
		return "my-skill"
	}
	return strings.Join(words, "-")
}

func (s *skill) describe(c *capability.Capability, r *yamldoc.Reader) {
	c.Description = format.FoldSpace(plainField(s.page, r, "description"))
	warnOfList(s.u, s.file, s.page, r, "skill-description")
	if c.Description != "" {
		if n := utf8.RuneCountInString(c.Description); n > maxSkillDescription {
			s.u.Warn("skill-description", s.file, s.at(r, "description"),
				fmt.Sprintf("the description has %d characters, more than the %d that other programs take", n, maxSkillDescription),
				"say what it does and when to use it, and leave the rest to the text below")
		}
		return
	}
	text, cut := format.SummaryOf(s.body)
	from := "the first paragraph of its text"
	if cut {
		from = "the beginning of its text"
	}
	if text == "" {
		text, from = c.DisplayName, "its name"
	}
	c.Description = text
	if s.page.Found {
		s.u.Warn("skill-description", s.file, max(s.at(r, "description"), 1),
			"the skill has no description; "+from+" stands in for it", "add description: what it does and when to use it")
	}
}

// plainField reads text that people write without a thought for YAML: what
// YAML takes for a list is the text that stands there.
func plainField(pg format.Page, r *yamldoc.Reader, key string) string {
	if f, ok := r.Field(key); ok {
		switch f.Value.Any.(type) {
		case []yamldoc.Value, *yamldoc.Map:
			return looseText(pg, key)
		}
	}
	return r.String(key)
}

// warnOfList warns of a description that YAML takes for a list or a map: it is
// read as the text that stands there, which may not be what was meant.
func warnOfList(u *format.Unit, file string, pg format.Page, r *yamldoc.Reader, code string) {
	f, _ := r.Field("description")
	what := "list"
	switch f.Value.Any.(type) {
	case []yamldoc.Value:
	case *yamldoc.Map:
		what = "map"
	default:
		return
	}
	u.Warn(code, file, pg.Line(f.Line), "the description is a "+what+", and is read as the text "+strconv.Quote(looseText(pg, "description")),
		"write one text, in quotation marks if it begins with a bracket")
}

// looseText returns a value of the frontmatter as it is written.
func looseText(p format.Page, key string) string {
	entries, _ := (&format.Mender{}).Entries(string(p.Head))
	for _, e := range entries {
		if strings.EqualFold(e.Key, key) {
			first, more, _ := strings.Cut(e.Text, "\n")
			_, given, _ := strings.Cut(first, ":")
			return format.PlainValue(strings.TrimSpace(given), more)
		}
	}
	return ""
}

// require reads what the skill cannot do without: requiredTools, else the
// programs under metadata.requires, which are required programs in any case.
// Some programs put "requires" under a key of their own in metadata.
func (s *skill) require(c *capability.Capability, r *yamldoc.Reader) {
	c.RequiredTools = r.Words("requiredTools")
	c.RequiredSecrets = r.Words("requiredSecrets")
	c.RequiredBins = r.Words("requiredBins")
	c.RequiredPlatforms = r.Words("requiredPlatforms", "platforms")
	c.Permissions = r.Words("permissions")
	for _, m := range requirements(r) {
		requires := m.Map("requires")
		bins := requires.Words("bins")
		for _, bin := range bins {
			c.RequiredBins = appendNew(c.RequiredBins, bin)
		}
		for _, name := range requires.Words("env", "secrets") {
			c.RequiredSecrets = appendNew(c.RequiredSecrets, name)
		}
		if c.RequiredPlatforms == nil {
			c.RequiredPlatforms = m.Words("os")
		}
		if c.RequiredTools == nil {
			c.RequiredTools = bins
		}
	}
}

// requirements returns the places at which a skill may say what it requires.
func requirements(r *yamldoc.Reader) []*yamldoc.Reader {
	list := []*yamldoc.Reader{}
	if _, ok := mapField(r, "requires"); ok {
		list = append(list, r)
	}
	meta, ok := mapField(r, "metadata")
	if !ok {
		return list
	}
	list = append(list, yamldoc.NewReader(meta))
	for _, f := range meta.Fields {
		if m, ok := f.Value.Any.(*yamldoc.Map); ok && !strings.EqualFold(f.Key, "requires") {
			list = append(list, yamldoc.NewReader(m))
		}
	}
	return list
}

func mapField(r *yamldoc.Reader, key string) (*yamldoc.Map, bool) {
	f, ok := r.Field(key)
	if !ok {
		return nil, false
	}
	m, ok := f.Value.Any.(*yamldoc.Map)
	return m, ok
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// skillTriggers reads triggers as cards have them, or a plain list of words.
func skillTriggers(r *yamldoc.Reader) *capability.Triggers {
	f, ok := r.Field("triggers")
	if !ok {
		return nil
	}
	if _, isMap := f.Value.Any.(*yamldoc.Map); isMap {
		return format.Triggers(r.Map("triggers"))
	}
	return &capability.Triggers{Keywords: r.Words("triggers"), ConfidenceThreshold: format.DefaultThreshold}
}

// metadata keeps the free map of that name, field by field, and takes from it
// what the frontmatter does not say itself.
func (s *skill) metadata(c *capability.Capability, r *yamldoc.Reader) {
	meta, ok := mapField(r, "metadata")
	if !ok {
		if f, given := r.Field("metadata"); given {
			format.SetMeta(c, "metadata", f.Value)
		}
		return
	}
	m := yamldoc.NewReader(meta)
	if c.Category == "" {
		c.Category = m.String("category")
	}
	if c.Tags == nil {
		c.Tags = m.Words("tags")
	}
	if c.Version == "" {
		c.Version = m.String("version")
	}
	for _, f := range meta.Fields {
		format.SetMeta(c, "metadata."+f.Key, f.Value)
	}
}

// keep stores keys that only other programs use, and unknown keys, in Meta.
func (s *skill) keep(c *capability.Capability, r *yamldoc.Reader) {
	if tools := allowedTools(r); tools != "" {
		format.SetMeta(c, "allowed-tools", yamldoc.Value{Any: tools})
	}
	for _, key := range []string{
		"license", "compatibility", "author", "homepage", "model", "context", "agent", "hooks",
		"argument-hint", "disable-model-invocation", "user-invocable", "when-to-use", "requires",
	} {
		if f, ok := r.Field(key); ok {
			format.SetMeta(c, key, f.Value)
		}
	}
	if always, said := r.Bool("always"); said { // the text is in every prompt, if it is the user's own
		format.SetMeta(c, "always", yamldoc.Value{Any: always})
	}
	s.u.KeepRest(c, s.file, max(s.page.MetaLine, 1), r, true)
}

// allowedTools returns a list of allowed tools with commas between them. It may
// be written as a list, or as text with spaces or commas, either of which may
// also stand inside a tool's brackets: "Bash(git add:*) Read".
func allowedTools(r *yamldoc.Reader) string {
	f, ok := r.Field("allowedTools", "tools")
	if !ok {
		return ""
	}
	var list []string
	if text, isText := f.Value.Any.(string); isText {
		depth := 0
		list = strings.FieldsFunc(text, func(c rune) bool {
			switch c {
			case '(':
				depth++
			case ')':
				depth = max(0, depth-1)
			}
			return depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\t')
		})
	} else {
		list = r.Strings("allowedTools", "tools")
	}
	return strings.Join(list, ", ")
}
