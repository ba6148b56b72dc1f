package policy

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"ken/capability"
	"ken/internal/yamldoc"
)

// ParseYAML reads a document that holds what ken.yaml holds below "policy".
func ParseYAML(name string, data []byte) (Settings, error) {
	m, err := yamldoc.Parse(data, yamldoc.Limits{Bytes: 1 << 20, Keys: 40_000})
	if err != nil {
		return Settings{}, refusal("read policy", name, err)
	}
	return ParseSection(name, m)
}

// ParseSection reads the section "policy" of a file. What it does not say is
// the profile's. Everything wrong in it is reported at once, with its line, and
// then there are no settings. Cedar files are named and not read: the caller
// fills their text.
func ParseSection(name string, m *yamldoc.Map) (Settings, error) {
	s, err := section(name, m)
	if err != nil {
		return Settings{}, refusal("read policy", name, err)
	}
	return s, nil
}

func section(name string, m *yamldoc.Map) (Settings, error) {
	if err := nothingEmpty(m, ""); err != nil {
		return Settings{}, err
	}
	r := yamldoc.NewReader(m)
	s := Defaults(readWord(r, "profile", profileNames[:], Personal))
	s.Deployment = readWord(r, "deployment", deploymentNames[:], s.Deployment)
	s.Intents = readWord(r, "intents", intentPolicyNames[:], s.Intents)
	if f, ok := r.Field("intentSurfaces"); ok {
		s.IntentSurfaces = []Surface{""}
		for _, w := range readWords(r, f, surfaceNames[:]) {
			s.IntentSurfaces = append(s.IntentSurfaces, Surface(surfaceNames[w]))
		}
	}
	readIntentMap(r, &s)
	readModes(r, name, &s)
	readPermissions(r, &s)
	s.ReadRoots, s.WriteRoots = readRoots(r, "readRoots"), readRoots(r, "writeRoots")
	s.Protect, s.Secrets = readGlobs(r, "protect"), readGlobs(r, "secrets")
	s.AskAbove, s.DenyAbove = readGrade(r, "askAbove", s.AskAbove), readGrade(r, "denyAbove", s.DenyAbove)
	if f, ok := r.Field("toolAccess"); ok {
		if tm, isMap := f.Value.Any.(*yamldoc.Map); isMap {
			a, err := toolAccess(tm)
			if err != nil {
				return Settings{}, err
			}
			s.Access, s.Access.Name = a, name
		} else {
			r.Issue(f.Line, "toolAccess is "+f.Value.Kind()+", want a map", "write global: and tools: below it")
		}
	}
	for i, item := range r.Items("rules") {
		s.Rules = append(s.Rules, readRule(item, name, i))
	}
	for _, file := range r.Strings("cedar") {
		s.Cedar = append(s.Cedar, CedarFile{Name: file})
	}
	r.RefuseRest()
	return s, joined(r.Issues())
}

func readIntentMap(r *yamldoc.Reader, s *Settings) {
	f, ok := r.Field("intentMap")
	if !ok {
		return
	}
	m, isMap := f.Value.Any.(*yamldoc.Map)
	if !isMap {
		r.Issue(f.Line, "intentMap is "+f.Value.Kind()+", want a map", "write ANALYZE: [read]")
		return
	}
	s.IntentMap = map[Intent][]Class{}
	for _, one := range m.Fields {
		intent, known := ParseIntent(one.Key)
		if !known || intent == NoIntent {
			r.Issue(one.Line, "unknown intent "+one.Key, "known intents: "+strings.Join(Intents(), ", "))
			continue
		}
		classes := []Class{}
		for _, i := range readWords(r, one, classNames[1:]) {
			classes = append(classes, Class(i+1))
		}
		s.IntentMap[intent] = classes
	}
}

func readModes(r *yamldoc.Reader, name string, s *Settings) {
	f, ok := r.Field("modes")
	if !ok {
		return
	}
	m, isMap := f.Value.Any.(*yamldoc.Map)
	if !isMap {
		r.Issue(f.Line, "modes is "+f.Value.Kind()+", want a map", "write the mode's name and below it groups: [read]")
		return
	}
	for _, one := range m.Fields {
		body, isMap := one.Value.Any.(*yamldoc.Map)
		if !isMap {
			r.Issue(one.Line, fmt.Sprintf("mode %s is %s, want a map", one.Key, one.Value.Kind()), "write groups: [read]")
			continue
		}
		mr := yamldoc.NewReader(body)
		mode := Mode{Where: place(name, one.Line)}
		if g, ok := mr.Field("groups"); ok {
			readGroups(mr, g, &mode)
		} else {
			mr.Issue(one.Line, "mode "+one.Key+" has no groups", "write groups: [read], or groups: [] for none")
		}
		if re, ok := mr.Field("fileRegex"); ok {
			mode.Files = readRegexp(mr, re)
		}
		mode.Globs = append(mode.Globs, readGlobs(mr, "files")...)
		mr.RefuseRest()
		for _, issue := range mr.Issues() {
			r.Issue(issue.Line, "modes."+one.Key+": "+issue.Message, issue.Fix)
		}
		s.Modes[one.Key] = mode
	}
}

// readGroups reads [read, edit], and what a group has besides its name either
// as {edit: {fileRegex: …}} or as [edit, {fileRegex: …}].
func readGroups(r *yamldoc.Reader, f yamldoc.Field, mode *Mode) {
	items, ok := f.Value.Any.([]yamldoc.Value)
	if !ok {
		r.Issue(f.Line, "groups is "+f.Value.Kind()+", want a list", "write groups: [read, edit]")
		return
	}
	for _, item := range items {
		name, rest, more := item, (*yamldoc.Map)(nil), false
		switch v := item.Any.(type) {
		case []yamldoc.Value:
			if len(v) == 2 {
				name, more = v[0], true
				rest, _ = v[1].Any.(*yamldoc.Map)
			}
		case *yamldoc.Map:
			if len(v.Fields) == 1 {
				name, more = yamldoc.Value{Line: v.Fields[0].Line, Any: v.Fields[0].Key}, true
				rest, _ = v.Fields[0].Value.Any.(*yamldoc.Map)
			}
		}
		word, isText := name.Any.(string)
		if !isText || indexOf(groupNames, word) < 0 || rest == nil && more {
			r.Issue(item.Line, "a group is not known", "known groups: "+strings.Join(groupNames, ", "))
			continue
		}
		mode.Groups = append(mode.Groups, Group(word))
		if rest == nil {
			continue
		}
		if word != string(GroupEdit) {
			r.Issue(item.Line, "only the group edit has file patterns", "remove them from "+word)
		}
		er := yamldoc.NewReader(rest)
		if re, ok := er.Field("fileRegex"); ok {
			mode.Files = readRegexp(r, re)
		}
		er.String("description")
		er.RefuseRest()
		for _, issue := range er.Issues() {
			r.Issue(issue.Line, issue.Message, issue.Fix)
		}
	}
}

func readRegexp(r *yamldoc.Reader, f yamldoc.Field) *regexp.Regexp {
	s, _ := f.Value.Any.(string)
	re, err := regexp.Compile(s)
	if err != nil || s == "" {
		r.Issue(f.Line, fmt.Sprintf("%s is no regular expression: %v", f.Key, err), `write one such as '\.md$'`)
		return nil
	}
	return re
}

func readPermissions(r *yamldoc.Reader, s *Settings) {
	f, ok := r.Field("permissions")
	if !ok {
		return
	}
	m, isMap := f.Value.Any.(*yamldoc.Map)
	if !isMap {
		r.Issue(f.Line, "permissions is "+f.Value.Kind()+", want a map", "write network: ask")
		return
	}
	s.Permissions = map[Permission]Effect{}
	for _, one := range m.Fields {
		p, known := parsePermission(one.Key)
		word, _ := one.Value.Any.(string)
		effect := indexOf(effectNames[:], word)
		if !known {
			r.Issue(one.Line, "unknown permission "+one.Key, "known permissions: "+strings.Join(permissionNames[:], ", "))
			continue
		}
		if effect < 0 {
			r.Issue(one.Line, "permissions."+one.Key+" is not known", "write deny, ask or allow")
			continue
		}
		s.Permissions[p] = Effect(effect)
	}
}

func readRoots(r *yamldoc.Reader, key string) []string {
	roots := r.Strings(key)
	for i, root := range roots {
		clean := path.Clean(root)
		if !strings.HasPrefix(root, "/") && (len(root) < 3 || root[1] != ':') {
			r.Issue(r.Line(key), fmt.Sprintf("%s: %q is not absolute", key, root), "write the whole path, such as /srv/data")
		}
		roots[i] = clean
	}
	return roots
}

func readGlobs(r *yamldoc.Reader, key string) []string {
	globs := r.Strings(key)
	for _, g := range globs {
		if _, err := parseGlob(g); err != nil {
			r.Issue(r.Line(key), key+": "+err.Error(), "")
		}
	}
	return globs
}

func readGrade(r *yamldoc.Reader, key string, now int) int {
	n, ok := r.Int(key)
	if !ok {
		return now
	}
	if n < 0 || n > mostRisk {
		r.Issue(r.Line(key), fmt.Sprintf("%s is %d", key, n), "write a number from 0 to 100; 100 is never exceeded")
	}
	return n
}

func readRule(r *yamldoc.Reader, name string, i int) Rule {
	line := r.Line("id")
	rule := Rule{ID: r.String("id"), Where: place(name, line)}
	if rule.ID == "" {
		rule.ID = fmt.Sprintf("rules[%d]", i)
	}
	if f, ok := r.Field("effect"); ok {
		word, _ := f.Value.Any.(string)
		effect := indexOf(effectNames[:], word)
		if effect < 0 {
			r.Issue(f.Line, "rule "+rule.ID+": the effect is not known", "write effect: deny, ask or allow")
		}
		rule.Effect = Effect(max(effect, 0))
	} else {
		r.Issue(line, "rule "+rule.ID+" has no effect", "write effect: deny, ask or allow")
	}
	rule.Scope = readWord(r, "scope", scopeNames[:], Once)
	rule.Capabilities, rule.Actions = r.Strings("capabilities"), r.Strings("actions")
	rule.Kinds, rule.Sources = r.Strings("kinds"), r.Strings("sources")
	rule.Tenants, rule.Roles, rule.Principals = r.Strings("tenants"), r.Strings("roles"), r.Strings("principals")
	rule.Modes = r.Strings("modes")
	for _, i := range readList(r, "effects", classNames[1:]) {
		rule.Classes = append(rule.Classes, Class(i+1))
	}
	for _, i := range readList(r, "trust", []string{"remote", "workspace", "user", "builtin"}) {
		rule.Trust = append(rule.Trust, capability.Trust(i))
	}
	for _, i := range readList(r, "intents", intentNames[1:]) {
		rule.Intents = append(rule.Intents, Intent(i+1))
	}
	for _, i := range readList(r, "origins", []string{"model", "person"}) {
		rule.Origins = append(rule.Origins, []capability.Caller{capability.ByModel, capability.ByPerson}[i])
	}
	for _, i := range readList(r, "surfaces", surfaceNames[:]) {
		rule.Surfaces = append(rule.Surfaces, Surface(surfaceNames[i]))
	}
	rule.Paths, rule.Hosts = r.Strings("paths"), r.Strings("hosts")
	if f, ok := r.Field("access"); ok {
		rule.Access, _ = f.Value.Any.(string)
		if rule.Access != "read" && rule.Access != "write" {
			r.Issue(f.Line, "rule "+rule.ID+": the access is not known", "write access: read or access: write")
		}
	}
	if f, ok := r.Field("argv"); ok {
		rule.Argv = readArgv(r, f)
	}
	rule.Match, rule.NotMatch = r.Strings("match"), r.Strings("notMatch")
	rule.Destructive, _ = r.Bool("destructive")
	rule.Reason, rule.Instead = r.String("reason"), r.String("instead")
	r.RefuseRest()
	if _, err := rule.check(); err != nil {
		r.Issue(line, "rule "+rule.ID+": "+err.Error(), "")
	}
	return rule
}

// readArgv reads a list of commands, each a text or a list of words, of which
// each may again be a list of those that will do.
func readArgv(r *yamldoc.Reader, f yamldoc.Field) [][][]string {
	items, ok := f.Value.Any.([]yamldoc.Value)
	if !ok {
		r.Issue(f.Line, "argv is "+f.Value.Kind()+", want a list", `write argv: ["git push", [npm, [publish, unpublish]]]`)
		return nil
	}
	var all [][][]string
	for _, item := range items {
		switch v := item.Any.(type) {
		case string:
			p, err := parsePattern(v)
			if err != nil {
				r.Issue(item.Line, err.Error(), "")
				continue
			}
			all = append(all, p)
		case []yamldoc.Value:
			var p [][]string
			for _, w := range v {
				p = append(p, alternatives(r, w))
			}
			all = append(all, p)
		default:
			r.Issue(item.Line, "a command of argv is "+item.Kind(), "write it as text or as a list of words")
		}
	}
	return all
}

func alternatives(r *yamldoc.Reader, v yamldoc.Value) []string {
	items, ok := v.Any.([]yamldoc.Value)
	if !ok {
		items = []yamldoc.Value{v}
	}
	var words []string
	for _, item := range items {
		s, isText := item.Any.(string)
		if !isText {
			s = item.Text
		}
		if s == "" {
			r.Issue(item.Line, "a word of argv is "+item.Kind(), "write it as text")
		}
		words = append(words, s)
	}
	return words
}

func readList(r *yamldoc.Reader, key string, names []string) []int {
	f, ok := r.Field(key)
	if !ok {
		return nil
	}
	return readWords(r, f, names)
}

func readWords(r *yamldoc.Reader, f yamldoc.Field, names []string) []int {
	items, ok := f.Value.Any.([]yamldoc.Value)
	if !ok {
		items = []yamldoc.Value{f.Value}
	}
	var out []int
	for _, item := range items {
		word, _ := item.Any.(string)
		i := indexOf(names, word)
		if i < 0 {
			r.Issue(item.Line, fmt.Sprintf("%s: %q is not known", f.Key, word), "known: "+strings.Join(names, ", "))
			continue
		}
		out = append(out, i)
	}
	return out
}

func readWord[T ~uint8](r *yamldoc.Reader, key string, names []string, now T) T {
	f, ok := r.Field(key)
	if !ok {
		return now
	}
	word, isText := f.Value.Any.(string)
	if b, isBool := f.Value.Any.(bool); isBool && !b {
		word, isText = "off", true // YAML of old reads off as false
	}
	i := indexOf(names, word)
	if !isText || i < 0 {
		fix := "write one of " + strings.Join(names, ", ")
		if near := yamldoc.Nearest(word, names); near != "" {
			fix = "did you mean " + near + "?"
		}
		r.Issue(f.Line, fmt.Sprintf("%s: %q is not known", key, word), fix)
		return now
	}
	return T(i)
}

// nothingEmpty refuses keys without a value: they would otherwise be read as
// not there, and what is not there has a default.
func nothingEmpty(m *yamldoc.Map, at string) error {
	if m == nil {
		return nil
	}
	for _, f := range m.Fields {
		if err := valueNotEmpty(f.Value, f.Line, at+f.Key); err != nil {
			return err
		}
	}
	return nil
}

func valueNotEmpty(v yamldoc.Value, line int, at string) error {
	switch x := v.Any.(type) {
	case nil:
		return &yamldoc.Error{Line: line, Message: at + " has no value", Fix: "write one, or remove the key"}
	case *yamldoc.Map:
		return nothingEmpty(x, at+".")
	case []yamldoc.Value:
		for i, item := range x {
			if err := valueNotEmpty(item, item.Line, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func joined(issues []*yamldoc.Error) error {
	errs := make([]error, len(issues))
	for i, issue := range issues {
		errs[i] = issue
	}
	return errors.Join(errs...)
}

func refusal(op, name string, err error) error {
	return &capability.Error{Kind: capability.Invalid, Op: op, Target: name, Err: err}
}

func place(name string, line int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}
