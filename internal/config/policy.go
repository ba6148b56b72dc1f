package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/govern/policyfile"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// policyText is what files say of policy in their own words, where settings
// cannot be written back from what was made of them.
type policyText struct {
	modes []yamldoc.Field
	rules []yamldoc.Value
}

// policySetting makes the setting for a key of the section policy. Package
// policy reads it; take copies what it read.
func policySetting(key, doc string, take func(into, from *policy.Settings), show func(*Config) any, noWider func(a, b *Config) bool) setting[Config] {
	copied := func(into, from *Config) { take(&into.Policy, &from.Policy) }
	return setting[Config]{
		name: "policy." + key, doc: doc, show: show, noWider: noWider, take: copied, join: copied,
		read: func(r *reading, at spot, v yamldoc.Value, into *Config) {
			if s, ok := r.policy(at, key, v); ok {
				take(&into.Policy, &s)
			}
		},
	}
}

// policy has package policy read one key of its section, and reports what that
// finds as problems of this file.
func (r *reading) policy(at spot, key string, v yamldoc.Value) (policy.Settings, bool) {
	before := len(r.problems)
	r.visible(at, v)
	s, err := policyfile.ParseSection(r.file, &yamldoc.Map{Line: at.line, Fields: []yamldoc.Field{{Key: key, Line: at.line, Value: v}}})
	for _, e := range issuesOf(err) {
		message := "policy." + key + ": " + e.Message
		if strings.HasPrefix(e.Message, key) {
			message = "policy." + e.Message
		}
		r.fault(spot{at.key, cmp.Or(e.Line, at.line)}, "bad-policy", visible(e.Fix), "%s", visible(message))
	}
	return s, len(r.problems) == before
}

// visible refuses what cannot be seen anywhere in a value.
func (r *reading) visible(at spot, v yamldoc.Value) {
	switch x := v.Any.(type) {
	case string:
		r.printable(at, v)
	case []yamldoc.Value:
		for i, item := range x {
			r.visible(spot{fmt.Sprintf("%s[%d]", at.key, i), item.Line}, item)
		}
	case *yamldoc.Map:
		for _, f := range x.Fields {
			where := spot{at.key + "." + plain(f.Key), f.Line}
			if f.Key == "" || strings.ContainsFunc(f.Key, unseen) {
				r.fault(where, "bad-value", "write a name of printable characters", "%s is not a name", where.key)
				continue
			}
			r.visible(where, f.Value)
		}
	}
}

// issuesOf takes an error of package policy apart.
func issuesOf(err error) []*yamldoc.Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *yamldoc.Error:
		return []*yamldoc.Error{e}
	case interface{ Unwrap() []error }:
		var out []*yamldoc.Error
		for _, one := range e.Unwrap() {
			out = append(out, issuesOf(one)...)
		}
		return out
	case interface{ Unwrap() error }:
		return issuesOf(e.Unwrap())
	}
	return []*yamldoc.Error{{Message: err.Error()}}
}

// byPolicy marks a key whose value policy.profile gives.
func (s setting[S]) byPolicy() setting[S] {
	s.governed = true
	return s
}

// typed marks a key whose value ken config set takes as it is typed.
func (s setting[S]) typed() setting[S] {
	s.text = true
	return s
}

// joined sets a key's own way to put a project's words to the user's.
func (s setting[S]) joined(join func(into, from *S)) setting[S] {
	s.joins, s.join = true, join
	return s
}

// same makes it a key of which a project may only repeat what there is.
func same(show func(*Config) any) func(a, b *Config) bool {
	return func(a, b *Config) bool { return yamledit.Flow(show(a)) == yamledit.Flow(show(b)) }
}

// fillPolicy sets the keys of policy that no file sets to the values of the
// profile.
func (c *Config) fillPolicy() {
	base := Config{Policy: policy.Defaults(c.Policy.Profile)}
	for _, s := range policySettings() {
		if _, said := c.origins[s.name]; s.governed && !said {
			s.take(c, &base)
		}
	}
	// A threshold that cannot be reached is no error when another file, or
	// the profile, gave the other one.
	c.Policy.AskAbove = min(c.Policy.AskAbove, c.Policy.DenyAbove)
}

func policySettings() []setting[Config] {
	return slices.Concat(policyWordSettings(), policyMapSettings(), policyFileSettings(), gradeSettings(),
		[]setting[Config]{toolAccessSetting(), rules(), cedarSetting()})
}

func policyWordSettings() []setting[Config] {
	return []setting[Config]{
		policySetting("profile", "What is allowed unless something else is set: personal, team, locked or seed. ken policy show prints the rules.",
			func(into, from *policy.Settings) { into.Profile = from.Profile },
			func(c *Config) any { return c.Policy.Profile.String() },
			func(a, b *Config) bool {
				return a.Policy.Profile == b.Policy.Profile || a.Policy.Profile == policy.Locked
			}).typed(),
		policySetting("deployment", "Who can reach this Ken: local_open, local_locked or remote_exposed, the strictest.",
			func(into, from *policy.Settings) { into.Deployment = from.Deployment },
			func(c *Config) any { return c.Policy.Deployment.String() },
			func(a, b *Config) bool { return a.Policy.Deployment <= b.Policy.Deployment }).typed().byPolicy(),
		policySetting("intents", "Whether a model must declare an intent: strict, relaxed (not for reads) or off.",
			func(into, from *policy.Settings) { into.Intents = from.Intents },
			func(c *Config) any { return c.Policy.Intents.String() },
			func(a, b *Config) bool { return a.Policy.Intents <= b.Policy.Intents }).typed().byPolicy(),
		policySetting("intentSurfaces", "Where a model must declare an intent: any of chat, run, api, mcp and library.",
			takeSurfaces, showSurfaces, noFewerSurfaces).byPolicy(),
	}
}

func gradeSettings() []setting[Config] {
	return []setting[Config]{
		policySetting("askAbove", "Ask for approval of calls whose risk, 0 to 100, is above this.",
			func(into, from *policy.Settings) { into.AskAbove = from.AskAbove },
			func(c *Config) any { return int64(c.Policy.AskAbove) },
			func(a, b *Config) bool { return a.Policy.AskAbove <= b.Policy.AskAbove }).byPolicy(),
		policySetting("denyAbove", "Deny calls whose risk is above this; 100 denies none.",
			func(into, from *policy.Settings) { into.DenyAbove = from.DenyAbove },
			func(c *Config) any { return int64(c.Policy.DenyAbove) },
			func(a, b *Config) bool { return a.Policy.DenyAbove <= b.Policy.DenyAbove }).byPolicy(),
	}
}

// surfaces are all that there are, for package policy means everywhere by nil.
func surfaces() []policy.Surface {
	return []policy.Surface{
		policy.SurfaceChat, policy.SurfaceRun, policy.SurfaceAPI, policy.SurfaceMCP, policy.SurfaceLibrary,
	}
}

func takeSurfaces(into, from *policy.Settings) {
	into.IntentSurfaces = from.IntentSurfaces
	if !slices.ContainsFunc(surfaces(), func(s policy.Surface) bool { return !slices.Contains(from.IntentSurfaces, s) }) {
		into.IntentSurfaces = nil
	}
}

func showSurfaces(c *Config) any {
	list := c.Policy.IntentSurfaces
	if list == nil {
		list = surfaces()
	}
	out := []yamldoc.Value{}
	for _, s := range list {
		if s != "" {
			out = append(out, yamldoc.Value{Any: string(s)})
		}
	}
	return out
}

func noFewerSurfaces(a, b *Config) bool {
	now, was := a.Policy.IntentSurfaces, b.Policy.IntentSurfaces
	return now == nil || was != nil && !slices.ContainsFunc(was, func(s policy.Surface) bool { return !slices.Contains(now, s) })
}

func policyFileSettings() []setting[Config] {
	reads := func(c *Config) any { return listOf(c.Policy.ReadRoots) }
	writes := func(c *Config) any { return listOf(c.Policy.WriteRoots) }
	return []setting[Config]{
		fromHome(policySetting("readRoots", "Folders outside the workspace that calls may read; absolute, or starting with ~/.",
			func(into, from *policy.Settings) { into.ReadRoots = from.ReadRoots }, reads, same(reads))),
		fromHome(policySetting("writeRoots", "Folders outside the workspace that calls may write; absolute, or starting with ~/.",
			func(into, from *policy.Settings) { into.WriteRoots = from.WriteRoots }, writes, same(writes))),
		added("protect", "Additional patterns of files that may be written only with approval, by programs too, as in [deploy/**].",
			func(s *policy.Settings) *[]string { return &s.Protect }),
		added("secrets", "Additional patterns of files that may be read only with approval, by programs too, as in ['*.pfx'].",
			func(s *policy.Settings) *[]string { return &s.Secrets }),
	}
}

func listOf(list []string) any { return texts("", nil, nil).show(list) }

// added is a list to which a project may add.
func added(key, doc string, at func(*policy.Settings) *[]string) setting[Config] {
	return policySetting(key, doc,
		func(into, from *policy.Settings) { *at(into) = *at(from) },
		func(c *Config) any { return listOf(*at(&c.Policy)) },
		anything[*Config],
	).joined(func(into, from *Config) { *at(&into.Policy) = union(*at(&into.Policy), *at(&from.Policy)) })
}

// fromHome lets folders begin with ~.
func fromHome(s setting[Config]) setting[Config] {
	read := s.read
	s.read = func(r *reading, at spot, v yamldoc.Value, into *Config) {
		if items, ok := v.Any.([]yamldoc.Value); ok {
			items = slices.Clone(items)
			for i := range items {
				if p, isText := items[i].Any.(string); isText && (p == "~" || strings.HasPrefix(p, "~/")) {
					items[i].Any = filepath.ToSlash(r.absolute(p))
				}
			}
			v.Any = items
		}
		read(r, at, v, into)
	}
	return s
}

// cedarSetting has the names of Cedar files absolute. [Load] reads them.
func cedarSetting() setting[Config] {
	show := func(c *Config) any {
		var names []string
		for _, f := range c.Policy.Cedar {
			names = append(names, f.Name)
		}
		return listOf(names)
	}
	s := policySetting("cedar", "Cedar files of your organisation; paths are relative to this file.",
		func(into, from *policy.Settings) { into.Cedar = from.Cedar }, show, same(show))
	read := s.read
	s.read = func(r *reading, at spot, v yamldoc.Value, into *Config) {
		into.Policy.Cedar = nil
		read(r, at, v, into)
		for i, f := range into.Policy.Cedar {
			into.Policy.Cedar[i].Name = r.absolute(f.Name)
		}
	}
	return s
}

// readCedar reads the Cedar files that the settings name.
func (c *Config) readCedar() []capability.Problem {
	var problems []capability.Problem
	files := slices.Clone(c.Policy.Cedar)
	for i := range files {
		data, _, err := readFile(files[i].Name)
		if err != nil {
			p := unreadable(files[i].Name, err)
			p.Message += ", and policy.cedar names it (" + c.said("policy.cedar") + ")"
			problems = append(problems, p)
		}
		files[i].Text = data
	}
	c.Policy.Cedar = files
	return problems
}

func policyMapSettings() []setting[Config] {
	intentMap := func(c *Config) any { return showIntentMap(c.Policy.IntentMap) }
	sendSecrets := func(c *Config) any { return showSendSecrets(c.Policy.SendSecrets) }
	return []setting[Config]{
		policySetting("intentMap", "Effects that an intent allows, replacing the built-in ones, as in {ANALYZE: [read]}.",
			func(into, from *policy.Settings) { into.IntentMap = orNil(from.IntentMap) }, intentMap, same(intentMap)),
		modes(),
		policySetting("permissions", "What happens to calls that need a permission (exec, network, filesystem.read, filesystem.write, browser or llm): deny, ask or allow, as in {network: ask}.",
			func(into, from *policy.Settings) { into.Permissions = orNil(from.Permissions) }, showPermissions, stricterPermissions,
		).byPolicy().joined(joinPermissions),
		policySetting("sendSecrets", "Which capabilities may be given a secret as an argument although they do not declare it, as in {GITHUB_TOKEN: ['mcp:github/*']}.",
			func(into, from *policy.Settings) { into.SendSecrets = orNil(from.SendSecrets) }, sendSecrets, same(sendSecrets)),
	}
}

func orNil[K comparable, V any](m map[K]V) map[K]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

func showIntentMap(m map[policy.Intent][]policy.Class) any {
	out := &yamldoc.Map{}
	for _, intent := range slices.Sorted(maps.Keys(m)) {
		list := []yamldoc.Value{}
		for _, class := range m[intent] {
			list = append(list, yamldoc.Value{Any: class.String()})
		}
		out.Fields = append(out.Fields, yamldoc.Field{Key: intent.String(), Value: yamldoc.Value{Any: list}})
	}
	return out
}

func showSendSecrets(m map[string][]string) any {
	out := &yamldoc.Map{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out.Fields = append(out.Fields, yamldoc.Field{Key: name, Value: yamldoc.Value{Any: listOf(m[name])}})
	}
	return out
}

func showPermissions(c *Config) any {
	out := &yamldoc.Map{}
	for _, p := range slices.Sorted(maps.Keys(c.Policy.Permissions)) {
		out.Fields = append(out.Fields, yamldoc.Field{Key: policy.Permit(p).String(), Value: yamldoc.Value{Any: c.Policy.Permissions[p].String()}})
	}
	return out
}

// inForce returns what becomes of a permission; what no setting names is allowed
// as far as this key goes.
func inForce(s *policy.Settings, p policy.Permission) policy.Effect {
	if e, said := s.Permissions[p]; said {
		return e
	}
	return policy.Allow
}

func stricterPermissions(a, b *Config) bool {
	for p, e := range a.Policy.Permissions {
		if e > inForce(&b.Policy, p) {
			return false
		}
	}
	return true
}

func joinPermissions(into, from *Config) {
	out := maps.Clone(from.Policy.Permissions)
	for p, e := range into.Policy.Permissions {
		if out == nil {
			out = map[policy.Permission]policy.Effect{}
		}
		out[p] = min(e, inForce(&from.Policy, p))
	}
	into.Policy.Permissions = out
}
