package tune

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/find/outcome"
	"ken/internal/find/show"
	"ken/internal/testkit"
)

// load reads a ken.yaml.
func load(t *testing.T, text string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "ken.yaml")
	testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
	c := testkit.Must(config.Load(dirs.Places{Home: dir}, file))(t)
	return &c
}

// TestFor: the settings of a search are those of ken.yaml, with those of the
// agent in their place.
func TestFor(t *testing.T) {
	now := load(t, `
discovery: { tier1TopK: 7, promptMode: names, totalTokenBudget: 900, agents: { scout: { exclude: [tool:c] } } }
capabilities: { forceInclude: [tool:a], exclude: [tool:b], budgetPolicy: stop }
`)
	tuner := Tuner{Current: func() *config.Config { return now }}
	got := tuner.For(capability.Scope{})
	if got.TopK != 7 || got.Budget.Mode != show.Names || got.Budget.Total != 900 || !got.Budget.Stop ||
		len(got.ForceInclude) != 1 || got.ForceInclude[0] != "tool:a" || len(got.Exclude) != 1 || got.Exclude[0] != "tool:b" || got.Variant != "" {
		t.Errorf("For = %+v", got)
	}
	if got := tuner.For(capability.Scope{Agent: "scout"}); got.TopK != 7 || !slices.Contains(got.Exclude, "tool:c") {
		t.Errorf("For(scout) = %d without %q", got.TopK, got.Exclude)
	}
	if got := tuner.For(capability.Scope{Agent: "other"}); got.TopK != 7 || slices.Contains(got.Exclude, "tool:c") {
		t.Errorf("For(other) = %d without %q, want that of everybody", got.TopK, got.Exclude)
	}
	now = load(t, "discovery: { tier1TopK: 3 }")
	if got := tuner.For(capability.Scope{Agent: "scout"}); got.TopK != 3 || got.Budget.Mode != show.Full {
		t.Errorf("For after a change = %d, %q; want the new settings", got.TopK, got.Budget.Mode)
	}
}

// TestExperiment: each session is on one side and stays there; what is in no
// session is not part of the experiment.
func TestExperiment(t *testing.T) {
	other := filepath.Join(t.TempDir(), "b.yaml")
	testkit.OK(t, os.WriteFile(other, []byte("discovery: { tier1TopK: 9 }"), 0o600))
	now := load(t, fmt.Sprintf("discovery: { tier1TopK: 4 }\nexperiment: { name: more, config: %q }", other))
	tuner := Tuner{Current: func() *config.Config { return now }}
	if got := tuner.For(capability.Scope{}); got.TopK != 4 || got.Experiment != "" || got.Variant != "" {
		t.Errorf("without a session: %d, %q %q", got.TopK, got.Experiment, got.Variant)
	}
	sides := map[string]int{}
	for i := range 100 {
		scope := capability.Scope{Session: fmt.Sprint("s", i)}
		got := tuner.For(scope)
		sides[got.Variant]++
		if want := map[string]int{outcome.VariantA: 4, outcome.VariantB: 9}[got.Variant]; got.Experiment != "more" || got.TopK != want || tuner.For(scope).Variant != got.Variant {
			t.Errorf("%s: %d on side %q of %q", scope.Session, got.TopK, got.Variant, got.Experiment)
		}
	}
	if sides[outcome.VariantA] < 20 || sides[outcome.VariantB] < 20 {
		t.Errorf("the sessions are on the sides %v, want about half on each", sides)
	}
}
