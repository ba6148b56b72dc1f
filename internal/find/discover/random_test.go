package discover

import (
	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/testkit/findtest"
)

// randomConfig makes configurations that show nothing, little and much.
func randomConfig() *rapid.Generator[Config] {
	return rapid.Custom(func(t *rapid.T) Config {
		c := Defaults()
		c.TopK = rapid.IntRange(-1, 12).Draw(t, "topK")
		c.FullK = rapid.IntRange(-1, 6).Draw(t, "fullK")
		c.StickyK = rapid.IntRange(-1, 6).Draw(t, "stickyK")
		c.MinRelevance = rapid.SampledFrom([]float64{0, 0, 0.3, 1}).Draw(t, "minRelevance")
		c.TailRelevance = rapid.SampledFrom([]float64{0, 0.02, 0.3}).Draw(t, "tailRelevance")
		c.Cards = rapid.Bool().Draw(t, "cards")
		c.Graph.Use = rapid.Bool().Draw(t, "graph")
		c.Graph.Literal = rapid.Bool().Draw(t, "literal")
		return c
	})
}

func randomQuery(things []thing) *rapid.Generator[Query] {
	return rapid.Custom(func(t *rapid.T) Query {
		q := Query{Text: findtest.Message().Draw(t, "message")}
		for range rapid.IntRange(0, 2).Draw(t, "before") {
			q.Before = append(q.Before, message(findtest.Message().Draw(t, "earlier")))
		}
		q.Used = randomIDs(things, 3).Draw(t, "used")
		q.Pinned = randomIDs(things, 3).Draw(t, "pinned")
		q.Shown = randomIDs(things, 3).Draw(t, "shown")
		return q
	})
}

// randomIDs picks from the things, and now and then something that is nowhere.
func randomIDs(things []thing, most int) *rapid.Generator[[]capability.ID] {
	all := []capability.ID{"tool:nowhere"}
	for _, x := range things {
		all = append(all, capability.MakeID(x.Kind, x.Name))
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, most)
}

func randomThings(most int) *rapid.Generator[[]thing] {
	return rapid.Map(findtest.Things(most), func(list []findtest.Thing) (out []thing) {
		for _, x := range list {
			out = append(out, thing(x))
		}
		return out
	})
}
