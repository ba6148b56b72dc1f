// Package policyfile reads what people write about policy: the section "policy"
// of ken.yaml and tool-access.json. It returns [policy.Settings] and
// [policy.ToolAccess], or errors with the line and the fix. Package policy
// itself reads no files and no YAML.
package policyfile

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
)

// ParseYAML reads a document that holds what ken.yaml holds below "policy".
func ParseYAML(name string, data []byte) (policy.Settings, error) {
	m, err := yamldoc.Parse(data, yamldoc.Limits{Bytes: 1 << 20, Keys: 40_000})
	if err != nil {
		return policy.Settings{}, refusal("read policy", name, err)
	}
	return ParseSection(name, m)
}

// ParseSection reads the section "policy" of a file. What it does not say is
// the profile's. Everything wrong in it is reported at once, with its line, and
// then there are no settings. Cedar files are named and not read: the caller
// fills their text.
func ParseSection(name string, m *yamldoc.Map) (policy.Settings, error) {
	s, err := section(name, m)
	if err != nil {
		return policy.Settings{}, refusal("read policy", name, err)
	}
	return s, nil
}

func section(name string, m *yamldoc.Map) (policy.Settings, error) {
	if err := nothingEmpty(m, ""); err != nil {
		return policy.Settings{}, err
	}
	r := yamldoc.NewReader(m)
	s := policy.Defaults(readWord(r, "profile", policy.ProfileWords(), policy.Personal))
	s.Deployment = readWord(r, "deployment", policy.DeploymentWords(), s.Deployment)
	s.Intents = readWord(r, "intents", policy.IntentPolicyWords(), s.Intents)
	if f, ok := r.Field("intentSurfaces"); ok {
		s.IntentSurfaces = []policy.Surface{""}
		surfaces := policy.SurfaceWords()
		for _, i := range readWords(r, f, surfaces) {
			s.IntentSurfaces = append(s.IntentSurfaces, policy.Surface(surfaces[i]))
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
				return policy.Settings{}, err
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
		s.Cedar = append(s.Cedar, policy.CedarFile{Name: file})
	}
	r.RefuseRest()
	return s, joined(r.Issues())
}

func readIntentMap(r *yamldoc.Reader, s *policy.Settings) {
	fields, ok := readMap(r, "intentMap", "write ANALYZE: [read]")
	if !ok {
		return
	}
	s.IntentMap = map[policy.Intent][]policy.Class{}
	for _, one := range fields {
		intent, known := policy.ParseIntent(one.Key)
		if !known || intent == policy.NoIntent {
			r.Issue(one.Line, "unknown intent "+one.Key, "known intents: "+strings.Join(policy.Intents(), ", "))
			continue
		}
		classes := []policy.Class{}
		for _, i := range readWords(r, one, policy.ClassWords()) {
			classes = append(classes, policy.Class(i+1))
		}
		s.IntentMap[intent] = classes
	}
}

func readPermissions(r *yamldoc.Reader, s *policy.Settings) {
	fields, ok := readMap(r, "permissions", "write network: ask")
	if !ok {
		return
	}
	s.Permissions = map[policy.Permission]policy.Effect{}
	for _, one := range fields {
		p, known := policy.ParsePermission(one.Key)
		word, _ := one.Value.Any.(string)
		effect := slices.Index(policy.EffectWords(), word)
		if !known {
			r.Issue(one.Line, "unknown permission "+one.Key, "known permissions: "+strings.Join(policy.PermissionWords(), ", "))
			continue
		}
		if effect < 0 {
			r.Issue(one.Line, "permissions."+one.Key+" is not known", "write deny, ask or allow")
			continue
		}
		s.Permissions[p] = policy.Effect(effect)
	}
}

func readSendSecrets(r *yamldoc.Reader, s *policy.Settings) {
	fields, ok := readMap(r, "sendSecrets", "write GITHUB_TOKEN: [mcp:github/*]")
	if !ok {
		return
	}
	s.SendSecrets = map[string][]string{}
	for _, one := range fields {
		items, isList := one.Value.Any.([]yamldoc.Value)
		if !isList || len(items) == 0 {
			r.Issue(one.Line, "sendSecrets."+one.Key+" is not a list of ids", "write "+one.Key+": [mcp:github/*]")
			continue
		}
		for _, item := range items {
			id, isText := item.Any.(string)
			if !isText || !strings.Contains(id, ":") {
				r.Issue(item.Line, "sendSecrets."+one.Key+" contains an invalid id", "write ids of capabilities, as in mcp:github/*; ken catalog list shows them")
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
		if err := policy.CheckGlob(g); err != nil {
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
	if n < 0 || n > policy.MaxRisk {
		r.Issue(r.Line(key), fmt.Sprintf("%s is %d", key, n), "write a number from 0 to 100; no call exceeds 100")
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
	return capability.Origin{Path: name, Line: line}.String()
}
