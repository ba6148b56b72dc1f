package discover

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/find/show"
	"ken/internal/know/source"
)

// from makes a source of tools, "name: description", that is trusted so far.
func from(trust capability.Trust, tools ...string) *source.Memory {
	m := source.NewMemory("source "+string(trust), trust)
	for _, tool := range tools {
		name, text, _ := strings.Cut(tool, ": ")
		m.Put(capability.Capability{Kind: capability.KindTool, Name: name, Description: text}, capability.Detail{})
	}
	return m
}

// TestTrustInRanking: near-duplicates of a project's do not push the user's own
// tool out of the results, however many they are and whatever they repeat.
func TestTrustInRanking(t *testing.T) {
	user := from(capability.TrustUser, "ship: Deploy a service to production with a canary", "mail: Send an email", "resize: Resize a picture",
		"money: Convert a currency", "translate: Translate a text", "plot: Plot a chart", "book: Book a room")
	for _, trust := range []capability.Trust{capability.TrustWorkspace, capability.TrustRemote} {
		for _, many := range []int{1, 5, 100} {
			for text, first := range map[string]bool{
				"Deploy a service to production with a canary":                                                            true,
				"Deploy the billing service to production. Deploy billing, deploy the billing service, production deploy": false,
			} {
				var tools []string
				for i := range many {
					tools = append(tools, fmt.Sprintf("deploy%d: %s", i, text))
				}
				got := idsOf(worldOf(t, Parts{}, user, from(trust, tools...)).find(t, "deploy the billing service to production", Defaults()).Briefs)
				if at := slices.Index(got, "tool:ship"); at < 0 || first && at != 0 {
					t.Errorf("%s, %d of %q: found %v, want tool:ship among them, first: %v", trust, many, text, got, first)
				}
			}
		}
	}
}

// TestTrustLeavesPlaces: a project's tools leave room for the user's own tools that
// fit less well, and the log says which were left out. Where nothing else fits, they
// take all places. What the message names is shown first, whoever brought it.
func TestTrustLeavesPlaces(t *testing.T) {
	const text = "deploy the billing service"
	theirs := from(capability.TrustWorkspace, "deploy0: Deploy the billing service to alpha", "deploy1: Deploy the billing service to beta",
		"deploy2: Deploy the billing service to gamma", "deploy3: Deploy the billing service to delta", "deploy4: Deploy the billing service to epsilon")
	cfg := Defaults()
	cfg.TailRelevance = 0
	sel := worldOf(t, Parts{}, from(capability.TrustUser, "ship0: Deploy something to the cluster", "ship1: Deploy something to the edge"), theirs).find(t, text, cfg)
	if got := idsOf(sel.Briefs); !slices.Contains(got, "tool:ship0") || !slices.Contains(got, "tool:ship1") {
		t.Errorf("found %v, want tool:ship0 and tool:ship1 among them", got)
	}
	if !slices.ContainsFunc(sel.Skipped, func(s show.Skip) bool {
		return strings.Contains(s.Reason, "the project takes at most 3 of discovery.tier1TopK 5 places while others fit")
	}) {
		t.Errorf("nothing says why others were left out: %v", sel.Skipped)
	}
	if got := idsOf(worldOf(t, Parts{}, from(capability.TrustUser, "weather: Tell the weather"), theirs).find(t, text, Defaults()).Briefs); len(got) != 5 || slices.Contains(got, "tool:weather") {
		t.Errorf("found %v, want the five of the project", got)
	}
	w := worldOf(t, Parts{}, from(capability.TrustUser, "ship_it: Deploy the service"), from(capability.TrustWorkspace, "our_deploy: Deploy the service"))
	if got := idsOf(w.find(t, "deploy the service with our_deploy", Defaults()).Briefs); len(got) == 0 || got[0] != "tool:our_deploy" {
		t.Errorf("found %v, want tool:our_deploy first", got)
	}
}
