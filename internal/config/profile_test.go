package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/yamledit"
)

// explained fails where a key has another value or origin than wanted.
func explained(t *testing.T, c Config, want map[string][2]string) {
	t.Helper()
	for key, w := range want {
		if value, origin, err := c.Explain(key); err != nil || value != w[0] || origin != w[1] {
			t.Errorf("Explain(%s) = %s, %s, %v, want %q", key, value, origin, err, w)
		}
	}
}

// TestProfileKeysAreMarked: what a profile changes is marked byProfile, and
// nothing else is.
func TestProfileKeysAreMarked(t *testing.T) {
	standard := Default()
	for _, s := range settings() {
		changes := false
		for _, p := range []Profile{ProfileStandard, ProfileLean, ProfileMinimal, ProfileFull, ProfileSeed} {
			base := p.base()
			changes = changes || yamledit.Flow(s.show(&base)) != yamledit.Flow(s.show(&standard))
		}
		if changes != s.profiled {
			t.Errorf("%s: a profile changes it: %v; marked byProfile: %v", s.name, changes, s.profiled)
		}
	}
}

// TestProfilePrecedence: a key that a file says wins over a profile of any
// file, wherever it stands.
func TestProfilePrecedence(t *testing.T) {
	places, _, _ := at(t)
	user, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	tests := []struct {
		user, project string
		want          map[string][2]string
	}{
		{"capabilities: {maxTokens: 1500}\ndiscovery: {tier1TopK: 4, profile: minimal}", "", map[string][2]string{
			"capabilities.maxTokens": {"1500", user + ":1"}, "discovery.tier1TopK": {"4", user + ":2"},
			"discovery.tier2TopK": {"0", "profile minimal"}, "discovery.totalTokenBudget": {"700", "profile minimal"},
		}},
		{"", "discovery: {profile: lean}", map[string][2]string{
			"discovery.profile": {"lean", project + ":1"}, "discovery.totalTokenBudget": {"1850", "profile lean"},
		}},
		{"discovery: {profile: full, totalTokenBudget: 5000}", "discovery: {profile: lean}", map[string][2]string{
			"discovery.totalTokenBudget": {"5000", user + ":1"}, "discovery.tier1TopK": {"5", "default"}, "discovery.tier2TokenBudget": {"2000", "default"},
		}},
		{"discovery: {profile: full}", "discovery: {profile: lean, totalTokenBudget: 5000}", map[string][2]string{
			"discovery.totalTokenBudget": {"5000", project + ":1"}, "discovery.tier1TopK": {"5", "default"},
		}},
		// No wider than the default, but than what the user has: the user's
		// profile stands, in all of its keys or in one.
		{"discovery: {profile: minimal}", "discovery: {profile: standard}", map[string][2]string{
			"discovery.profile": {"minimal", user + ":1"}, "discovery.totalTokenBudget": {"700", "profile minimal"},
		}},
		{"discovery: {profile: seed}", "discovery: {profile: minimal}", map[string][2]string{
			"discovery.profile": {"seed", user + ":1"}, "discovery.totalTokenBudget": {"3000", "default"}, "capabilities.scorer": {"seed", "profile seed"},
		}},
		{"discovery: {profile: lean}", "discovery: {profile: minimal, totalTokenBudget: 3000}", map[string][2]string{
			"discovery.profile": {"minimal", project + ":1"}, "discovery.totalTokenBudget": {"1850", "profile lean"}, "discovery.tier1TopK": {"3", "profile minimal"},
		}},
	}
	for _, tt := range tests {
		write(t, user, tt.user+"\n")
		write(t, project, tt.project+"\n")
		c, err := Load(places, "")
		if err != nil {
			t.Errorf("%s over %s: Load = %v", tt.project, tt.user, err)
			continue
		}
		explained(t, c, tt.want)
	}
}

// TestS186ForAgent: an agent has its own profile, and more in the lists.
func TestS186ForAgent(t *testing.T) {
	places, _, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	write(t, file, `capabilities:
  forceInclude: [a]
  exclude: [b]
  maxTokens: 1000
discovery:
  profile: full
  agents:
    small: {profile: minimal, forceInclude: [a, c], exclude: [d]}
    lists: {exclude: [b]}
`)
	c, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	before := c.Settings()
	small := c.ForAgent("small")
	explained(t, small, map[string][2]string{
		"capabilities.forceInclude":  {"[a, c]", file + ":2, " + file + ":7"},
		"capabilities.exclude":       {"[b, d]", file + ":3, " + file + ":7"},
		"capabilities.maxTokens":     {"1000", file + ":4"},
		"discovery.profile":          {"minimal", file + ":7"},
		"discovery.totalTokenBudget": {"700", "profile minimal"},
		"discovery.tier2TokenBudget": {"2000", "default"},
	})
	if d := small.Discovery; small.Capabilities.MaxTokens != 1000 || d.TotalTokenBudget != 700 || d.Tier1TopK != 3 || d.Tier2TopK != 0 {
		t.Errorf("ForAgent(small) = %+v, want the profile minimal but for what the file says", d)
	}
	if got := c.ForAgent("lists"); !reflect.DeepEqual(bare(got), bare(c)) {
		t.Errorf("ForAgent(lists) = %+v, want what holds for all", got)
	}
	for _, name := range []string{"", "nobody", "Small"} {
		if got := c.ForAgent(name); !reflect.DeepEqual(got, c) {
			t.Errorf("ForAgent(%q) = %+v, want what holds for all", name, got)
		}
	}
	if !reflect.DeepEqual(c.Settings(), before) {
		t.Errorf("ForAgent changed its Config to %v, want %v", c.Settings(), before)
	}
	// A Config that no file made works as well.
	byHand := Default()
	byHand.Discovery.Agents = map[string]Agent{"x": {Profile: ProfileLean, Exclude: []string{"y"}}}
	if got := byHand.ForAgent("x"); got.Discovery.TotalTokenBudget != 1850 || !slices.Equal(got.Capabilities.Exclude, []string{"y"}) {
		t.Errorf("ForAgent(x) = %+v, want its profile and its list", got)
	}
}

// TestForAgentInProject: what a project says about an agent is joined to what
// the user says.
func TestForAgentInProject(t *testing.T) {
	places, _, _ := at(t)
	user, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	write(t, user, `discovery:
  agents:
    a: {profile: minimal, forceInclude: [f, g], exclude: [x]}
    b: {profile: full}
`)
	write(t, project, `discovery:
  totalTokenBudget: 2900
  agents:
    a: {profile: lean, forceInclude: [g], exclude: [y]}
    b: {profile: standard}
    c: {profile: minimal}
`)
	c, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Agent{
		"a": {ProfileMinimal, []string{"g"}, []string{"x", "y"}}, "b": {Profile: ProfileStandard}, "c": {Profile: ProfileMinimal},
	}
	if !reflect.DeepEqual(c.Discovery.Agents, want) {
		t.Errorf("agents = %+v, want %+v", c.Discovery.Agents, want)
	}
	explained(t, c, map[string][2]string{
		"discovery.agents": {"{a: {profile: minimal, forceInclude: [g], exclude: [x, y]}, b: {profile: standard}, c: {profile: minimal}}", user + ":2, " + project + ":3"},
	})
	// The project's 2900 narrows b, and does not widen a.
	explained(t, c.ForAgent("a"), map[string][2]string{"discovery.totalTokenBudget": {"700", "profile minimal"}})
	explained(t, c.ForAgent("b"), map[string][2]string{"discovery.totalTokenBudget": {"2900", project + ":2"}, "discovery.tier1TopK": {"5", "default"}})
}

// file draws a ken.yaml of keys that profiles and agents have to do with.
func file(t *rapid.T, label string) string {
	profile := rapid.SampledFrom([]string{"standard", "lean", "minimal", "full", "seed"})
	ids := rapid.Custom(func(t *rapid.T) string {
		return "[" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2).Draw(t, "ids"), ", ") + "]"
	})
	whole := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprint(rapid.SampledFrom([]int{0, 1, 3, 4, 5, 8, 500, 700, 1850, 2900, 3000, 6000}).Draw(t, "n"))
	})
	words := func(w ...string) *rapid.Generator[string] { return rapid.SampledFrom(w) }
	about := rapid.Custom(func(t *rapid.T) string {
		return some(t, [][2]any{{"profile", profile}, {"forceInclude", ids}, {"exclude", ids}}, ", ")
	})
	agent := rapid.Custom(func(t *rapid.T) string { return "{" + about.Draw(t, "about") + "}" })
	agents := rapid.Custom(func(t *rapid.T) string { return "{" + some(t, [][2]any{{"a", agent}, {"b", agent}}, ", ") + "}" })
	count := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "k")) })
	part := words("0", "0.01", "0.02", "0.3", "0.5")
	return "capabilities: {" + some(t, [][2]any{
		{"forceInclude", ids}, {"exclude", ids}, {"maxTokens", whole}, {"scorer", words("evidence", "seed")}, {"budgetPolicy", words("skip", "stop")},
		{"rollout", words("full", "soft", "monitor")}, {"rolloutSessionTypes", ids},
	}, ", ") + "}\ndiscovery: {" + some(t, [][2]any{
		{"profile", profile}, {"agents", agents}, {"totalTokenBudget", whole}, {"tier2TokenBudget", whole}, {"tier1TopK", count}, {"tier2TopK", count},
		{"tier1TailRelevance", part}, {"graphLiteral", words("true", "false")},
	}, ", ") + "} # " + label + "\n"
}

// some draws values for some of the keys.
func some(t *rapid.T, keys [][2]any, between string) string {
	var out []string
	for _, k := range keys {
		if rapid.Bool().Draw(t, fmt.Sprint(k[0])) {
			out = append(out, fmt.Sprintf("%v: %s", k[0], k[1].(*rapid.Generator[string]).Draw(t, "value")))
		}
	}
	return strings.Join(out, between)
}

// TestProjectNeverWidensProperty: whatever the two files say, nobody, no agent
// either, has more with the project's file than without it.
func TestProjectNeverWidensProperty(t *testing.T) {
	taken := 0
	rapid.Check(t, func(rt *rapid.T) {
		parse := func(text string, workspace bool) (layer, *reading) {
			r := &reading{file: "/f/ken.yaml", dir: "/f", workspace: workspace, project: "/f", ownFile: "/h/ken.yaml"}
			return r.decode([]byte(text)), r
		}
		user, project := file(rt, "user"), file(rt, "project")
		load := func() Config {
			c := Default()
			c.origins = map[string]saying{}
			l, r := parse(user, false)
			if c.over(l, r); len(r.problems) > 0 {
				rt.Fatalf("%s: %v", user, r.problems)
			}
			return c
		}
		without, with := load(), load()
		l, r := parse(project, true)
		with.narrow(l, r) // what is refused is not taken
		if len(r.problems) == 0 {
			taken++
		}
		for _, name := range []string{"", "a", "b"} {
			a, b := with.ForAgent(name), without.ForAgent(name)
			for _, s := range settings() {
				// What an agent may have is judged by the profile of all.
				if !s.noWider(&a, &b) && (name == "" || s.name != agentsKey) {
					rt.Fatalf("agent %q: %s is %s, wider than %s\n%s%s", name, s.name, yamledit.Flow(s.show(&a)), yamledit.Flow(s.show(&b)), user, project)
				}
				profiles := []Profile{a.Discovery.Profile, with.Discovery.Profile, without.Discovery.Profile}
				if from, ok := strings.CutPrefix(a.origin(s), "profile "); ok && !s.governed && !slices.Contains(profiles, Profile(from)) {
					rt.Fatalf("agent %q: %s comes from the profile %s, want one of %s\n%s%s", name, s.name, from, profiles, user, project)
				}
			}
			if !subset(b.Capabilities.Exclude, a.Capabilities.Exclude) || !subset(with.Capabilities.Exclude, a.Capabilities.Exclude) {
				rt.Fatalf("agent %q: exclude is %v, want all of %v\n%s%s", name, a.Capabilities.Exclude, b.Capabilities.Exclude, user, project)
			}
		}
	})
	if taken == 0 && !testing.Short() { // a fifth of the tries may miss what one in fifty files is
		t.Error("no project's file was taken whole")
	}
}

// TestExperiment: B is the other file, with what the project narrows, and on
// this process's catalog and address.
func TestExperiment(t *testing.T) {
	places, _, _ := at(t)
	user, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	other := filepath.Join(places.Home, "try", "b.yaml")
	write(t, user, "experiment: {name: lean or not, config: try/b.yaml}\ndiscovery: {tier1TopK: 9}\nserve: {addr: 'localhost:1'}\n")
	write(t, other, "discovery: {profile: lean}\nserve: {addr: 'localhost:2'}\nexperiment: {name: x, config: b.yaml}\ncatalog: {watch: false}\n")
	write(t, project, "capabilities: {exclude: [x]}\ndiscovery: {tier1TopK: 7}\n")
	a, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	want := Experiment{Name: "lean or not", Config: other}
	if a.Experiment != want || a.Discovery.TotalTokenBudget != 3000 || a.Discovery.Tier1TopK != 7 {
		t.Errorf("A = %+v, want the user's file and the project's", a)
	}
	b, ok := a.VariantB()
	if !ok || b.Discovery.TotalTokenBudget != 1850 || b.Experiment != want || !reflect.DeepEqual(b.Serve, a.Serve) || !reflect.DeepEqual(b.Catalog, a.Catalog) {
		t.Errorf("B = %+v, %v, want the profile lean and A's catalog, address and experiment", b, ok)
	}
	// The 7 is wider than B's 5: B stands. Exclude is added to both.
	if b.Discovery.Tier1TopK != 5 || !slices.Equal(b.Capabilities.Exclude, []string{"x"}) {
		t.Errorf("B = %+v, want 5 briefs and x excluded", b)
	}
	if _, again := b.VariantB(); again {
		t.Error("B has an experiment of its own")
	}
	// By --config neither half has the project's file.
	a, err = Load(places, user)
	if b, ok = a.VariantB(); err != nil || !ok || len(b.Capabilities.Exclude) > 0 || !slices.Equal(b.Files(), []string{other}) {
		t.Errorf("Load(%s) has B %+v, %v, %v, want the other file alone", user, b, ok, err)
	}
}

func TestExperimentNeedsBoth(t *testing.T) {
	places, _, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	for _, text := range []string{"experiment: {name: x}", "experiment: {config: gone.yaml}", "experiment:", ""} {
		write(t, file, text+"\n")
		c, err := Load(places, "")
		if _, ok := c.VariantB(); ok || err != nil {
			t.Errorf("%s: VariantB = %v, Load = %v, want no experiment", text, ok, err)
		}
	}
}

// TestExperimentRefused: what is wrong with B is said before any session has
// it.
func TestExperimentRefused(t *testing.T) {
	places, _, _ := at(t)
	user, other := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Home, "b.yaml")
	write(t, user, "experiment:\n  name: x\n  config: b.yaml\n")
	refused := func(want string) {
		t.Helper()
		c, err := Load(places, "")
		if err == nil || err.Error() != want || !reflect.DeepEqual(c, Config{}) {
			t.Errorf("Load = %+v, %v, want %s", c, err, want)
		}
	}
	refused(other + ": the file is not there, and experiment.config names it (" + user + ":3); create it, or name another")
	write(t, other, "discovery:\n  profil: lean\n")
	refused(other + ":2: unknown key discovery.profil; did you mean discovery.profile?")
}

func BenchmarkForAgent(b *testing.B) {
	c := Default()
	c.Discovery.Agents = map[string]Agent{"a": {Profile: ProfileLean, Exclude: []string{"x"}}}
	c.origins = map[string]saying{"capabilities.maxTokens": {capability.Origin{Path: "ken.yaml", Line: 1}.String(), true}}
	b.ReportAllocs()
	for b.Loop() {
		c.ForAgent("a")
	}
}
