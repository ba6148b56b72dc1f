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

// TestTrustInRanking: near-duplicates of a project's do not push the user's own
// tool out of the results, however many they are and whatever they repeat.
func TestTrustInRanking(t *testing.T) {
	const message = "deploy the billing service to production"
	user := source.NewMemory("user", capability.TrustUser)
	put := func(m *source.Memory, name, text string) {
		m.Put(capability.Capability{Kind: capability.KindTool, Name: name, Description: text, Category: "ops"}, capability.Detail{})
	}
	put(user, "ship", "Deploy a service to production with a canary")
	for i, text := range []string{"Send an email", "Resize a picture", "Convert a currency", "Translate a text", "Plot a chart", "Book a room"} {
		put(user, fmt.Sprint("other", i), text)
	}
	for _, trust := range []capability.Trust{capability.TrustWorkspace, capability.TrustRemote} {
		for _, many := range []int{1, 5, 100} {
			for _, text := range []string{
				"Deploy a service to production with a canary",
				"Deploy the billing service to production. Deploy billing, deploy the billing service, production deploy",
			} {
				theirs := source.NewMemory("theirs", trust)
				for i := range many {
					put(theirs, fmt.Sprint("deploy", i), text)
				}
				w := worldOf(t, Parts{}, user, theirs)
				sel := w.find(t, message, Defaults())
				got := idsOf(sel.Briefs)
				at := slices.Index(got, "tool:ship")
				if at < 0 {
					t.Errorf("%s, %d of %q: found %v, want tool:ship among them", trust, many, text, got)
					continue
				}
				if strings.HasSuffix(text, "canary") && at != 0 {
					t.Errorf("%s, %d of the same text: tool:ship is at %d of %v, want it first", trust, many, at, got)
				}
			}
		}
	}
}

// TestShareOfASource: a project's tools leave room for the user's own tools
// that fit less well, and the log says which were left out.
func TestShareOfASource(t *testing.T) {
	user, theirs := source.NewMemory("user", capability.TrustUser), source.NewMemory("theirs", capability.TrustWorkspace)
	for i, word := range []string{"cluster", "edge"} {
		user.Put(capability.Capability{Kind: capability.KindTool, Name: fmt.Sprint("ship", i), Description: "Deploy something to the " + word}, capability.Detail{})
	}
	for i, word := range []string{"alpha", "beta", "gamma", "delta", "epsilon"} {
		theirs.Put(capability.Capability{Kind: capability.KindTool, Name: fmt.Sprint("deploy", i), Description: "Deploy the billing service to " + word}, capability.Detail{})
	}
	cfg := Defaults()
	cfg.TailRelevance = 0
	sel := worldOf(t, Parts{}, user, theirs).find(t, "deploy the billing service", cfg)
	got := idsOf(sel.Briefs)
	for _, want := range []capability.ID{"tool:ship0", "tool:ship1"} {
		if !slices.Contains(got, want) {
			t.Errorf("found %v, want %s among them", got, want)
		}
	}
	if !slices.ContainsFunc(sel.Skipped, func(s show.Skip) bool {
		return strings.Contains(s.Reason, "the project takes at most 3 of discovery.tier1TopK 5 places while others fit")
	}) {
		t.Errorf("nothing says why others were left out: %v", sel.Skipped)
	}
}

// TestTrustLeavesNames: what the message names is shown first, whoever brought it.
func TestTrustLeavesNames(t *testing.T) {
	user, theirs := source.NewMemory("user", capability.TrustUser), source.NewMemory("theirs", capability.TrustWorkspace)
	user.Put(capability.Capability{Kind: capability.KindTool, Name: "ship_it", Description: "Deploy the service"}, capability.Detail{})
	theirs.Put(capability.Capability{Kind: capability.KindTool, Name: "our_deploy", Description: "Deploy the service"}, capability.Detail{})
	w := worldOf(t, Parts{}, user, theirs)
	if got := idsOf(w.find(t, "deploy the service with our_deploy", Defaults()).Briefs); len(got) == 0 || got[0] != "tool:our_deploy" {
		t.Errorf("found %v, want tool:our_deploy first", got)
	}
}

// TestTrustFillsPlaces: where nothing else fits, a project's tools take all places.
func TestTrustFillsPlaces(t *testing.T) {
	theirs := source.NewMemory("theirs", capability.TrustWorkspace)
	for i, word := range []string{"alpha", "beta", "gamma", "delta", "epsilon"} {
		theirs.Put(capability.Capability{Kind: capability.KindTool, Name: fmt.Sprint("deploy", i), Description: "Deploy the service to " + word}, capability.Detail{})
	}
	user := source.NewMemory("user", capability.TrustUser)
	user.Put(capability.Capability{Kind: capability.KindTool, Name: "weather", Description: "Tell the weather"}, capability.Detail{})
	w := worldOf(t, Parts{}, user, theirs)
	if got := idsOf(w.find(t, "deploy the service", Defaults()).Briefs); len(got) != 5 || slices.Contains(got, "tool:weather") {
		t.Errorf("found %v, want the five of the project", got)
	}
}
