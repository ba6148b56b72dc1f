package discover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"ken/capability"
	"ken/internal/find/card"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/testkit"
	"ken/internal/testkit/findtest"
)

var nouns = []string{"issue", "invoice", "report", "picture", "meeting", "forecast"}

// manyThings makes n capabilities of few words, so that many match and many are
// alike; some need others, some are cards.
func manyThings(n int) []thing {
	verbs := []string{"open", "send", "list", "archive", "translate"}
	out := make([]thing, n)
	for i := range out {
		noun, verb := nouns[i%len(nouns)], verbs[i/2%len(verbs)]
		c := &out[i].Capability
		c.Name = fmt.Sprintf("%s-%s-%c%c", verb, noun, 'a'+i/26%26, 'a'+i%26)
		c.Kind, c.Category, c.Tags = capability.KindTool, noun+"s", []string{verb, noun, "daily"}
		c.Description = fmt.Sprintf("%s the %s of a team", verb, noun)
		switch {
		case i%11 == 3:
			c.RequiredTools = []string{out[i-1].Name}
		case i%17 == 5:
			c.Kind, c.Triggers = capability.KindCard, &capability.Triggers{Keywords: []string{noun, "team"}, ConfidenceThreshold: 0.2}
		}
		out[i].Body = fmt.Sprintf("## How to %s\n\nAsk for the %s first.\n", verb, noun)
	}
	return out
}

// alike makes n capabilities that only their ids tell apart.
func alike(n int) []thing {
	out := make([]thing, n)
	for i := range out {
		out[i].Capability = capability.Capability{ID: capability.ID(fmt.Sprintf("tool:x%03d", i)), Kind: capability.KindTool, Name: "issue", Description: "open the issue of a team"}
	}
	return out
}

// history makes a catalog that ends up with things, on another way each time:
// in another order, with some that came and went, with searches in between.
func history(t failer, things []thing, random *rand.Rand, embedded bool) *world {
	t.Helper()
	ctx := context.Background()
	things = append([]thing{}, things...)
	random.Shuffle(len(things), func(i, j int) { things[i], things[j] = things[j], things[i] })
	m := source.NewMemory("test", capability.TrustUser)
	c := findtest.Catalog(t, catalog.Config{Sources: []capability.Source{m}, Machine: machine()})
	replace := func() {
		batch := testkit.Must(m.Load(ctx))(t)
		ranking.IndexOf(c.Replace("test", batch))
	}
	// Small steps change the index that is there, large ones make it anew.
	step := 1 + random.IntN(1+len(things)/6)
	late := things[len(things)-min(len(things), 8*step):]
	for _, x := range things[:len(things)-len(late)] {
		m.Put(x.Capability, x.Detail)
	}
	for _, x := range late[:len(late)/2] { // what these were before
		x.Description = "something else altogether"
		m.Put(x.Capability, x.Detail)
		x.Name += "-gone"
		m.Put(x.Capability, x.Detail)
	}
	replace()
	for i, x := range late {
		m.Remove(capability.MakeID(x.Kind, x.Name+"-gone"))
		m.Put(x.Capability, x.Detail)
		if i%step == 0 {
			replace()
		}
	}
	replace()
	p := Parts{Source: c}
	if embedded {
		p.Embedder = hashed{}
		testkit.OK(t, ranking.Embed(ctx, c, hashed{}))
	}
	f := NewFinder(p)
	return &world{f, c, f.See(c.Snapshot(), "", nil)}
}

// TestT04SameBytes: the same capabilities and the same message give the same
// bytes, whatever the order and the way in which they came: more than 1,000 runs.
func TestT04SameBytes(t *testing.T) {
	messages := []string{
		"open the issue of the team", "send the invoice and list the reports", "translate a forecast", "archive", "open-issue-aa",
		"team", "nothing like it",
	}
	for _, tt := range []struct {
		name     string
		things   []thing
		embedded bool
	}{
		{"few", manyThings(30), false}, {"many", manyThings(400), false}, {"with vectors", manyThings(400), true}, {"all alike", alike(300), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(4, 4))
			cfg := patient()
			for i, x := range tt.things {
				if i%len(nouns) == 3 && i < 20 { // strong matches for some messages, weak ones for others
					cfg.Exclude = append(cfg.Exclude, capability.MakeID(x.Kind, x.Name))
				}
			}
			worlds := 12
			if testing.Short() {
				worlds = 2
			}
			want := map[string]string{}
			for i := range worlds {
				w := history(t, tt.things, random, tt.embedded)
				for range 4 {
					for _, m := range messages {
						q := Query{Text: m, Before: []card.Message{message("the report of the meeting")}, Used: []capability.ID{"tool:list-report-ac"}}
						sel := w.ask(t, q, cfg)
						got := asJSON(t, sel) + "\n" + sel.Text() + fmt.Sprint(sel.Ranking) + w.call(t, ToolDiscover, `{"query":"`+m+`"}`).Text
						if want[m] == "" {
							want[m] = got
						}
						if got != want[m] {
							t.Fatalf("world %d, %q:\n%s\nwant what the first gave:\n%s", i, m, got, want[m])
						}
					}
				}
			}
		})
	}
}
