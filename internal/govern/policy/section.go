package policy

import (
	"errors"
	"fmt"
	"path"
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
	readSendSecrets(r, &s)
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

func readSendSecrets(r *yamldoc.Reader, s *Settings) {
	f, ok := r.Field("sendSecrets")
	if !ok {
		return
	}
	m, isMap := f.Value.Any.(*yamldoc.Map)
	if !isMap {
		r.Issue(f.Line, "sendSecrets is "+f.Value.Kind()+", want a map", "write GITHUB_TOKEN: [mcp:github/*]")
		return
	}
	s.SendSecrets = map[string][]string{}
	for _, one := range m.Fields {
		items, isList := one.Value.Any.([]yamldoc.Value)
		if !isList || len(items) == 0 {
			r.Issue(one.Line, "sendSecrets."+one.Key+" is not a list of ids", "write "+one.Key+": [mcp:github/*]")
			continue
		}
		for _, item := range items {
			id, isText := item.Any.(string)
			if !isText || !strings.Contains(id, ":") {
				r.Issue(item.Line, "sendSecrets."+one.Key+" names what is not an id", "write ids of capabilities, as in mcp:github/*; ken catalog list shows them")
				continue
			}
			s.SendSecrets[one.Key] = append(s.SendSecrets[one.Key], id)
		}
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
