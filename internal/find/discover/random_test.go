package discover

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"ken/capability"
)

// words are of many scripts; few enough that messages and capabilities meet.
var words = []string{
	"search", "web", "news", "file", "issue", "github", "send", "message", "weather", "calendar", "translate", "summarize",
	"Wetter", "Größe", "recherche", "été", "поиск", "погода", "αναζήτηση", "検索", "天気予報", "搜索网页", "날씨", "بحث", "חיפוש",
	"खोज", "ค้นหา", "tìm", "web_search", "getWeather", "🎉", "👩‍👩‍👧", "a1b2c3d4", "the", "and", "://", "\u202e", "\x00", "\xff",
}

func randomWords(most int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(words), 0, most), func(w []string) string { return strings.Join(w, " ") })
}

func randomMessage() *rapid.Generator[string] {
	return rapid.OneOf(randomWords(12), rapid.String(), rapid.Just(""), rapid.Map(randomWords(12), func(s string) string { return strings.Repeat(s+". ", 40) }))
}

func randomKind() *rapid.Generator[capability.Kind] {
	return rapid.SampledFrom([]capability.Kind{
		capability.KindTool, capability.KindTool, capability.KindSkill, capability.KindChannel, capability.KindCard, capability.KindCommand, "röhre",
	})
}

// randomThings makes capabilities that need each other, ask to be shown, hide
// characters, and are long.
func randomThings(most int) *rapid.Generator[[]thing] {
	return rapid.Custom(func(t *rapid.T) []thing {
		n := rapid.IntRange(0, most).Draw(t, "capabilities")
		out := make([]thing, n)
		for i := range out {
			c := &out[i].Capability
			c.Kind = randomKind().Draw(t, "kind")
			c.Name = fmt.Sprintf("%s-%d", rapid.SampledFrom(words).Draw(t, "name"), i)
			c.Description = randomWords(20).Draw(t, "description")
			c.Category = rapid.SampledFrom([]string{"", "information", "files", "Ünïcode", "system", "天気"}).Draw(t, "category")
			c.Tags = rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "tags")
			c.Priority = rapid.IntRange(0, 100).Draw(t, "priority")
			for range rapid.IntRange(0, 3).Draw(t, "parameters") {
				c.Parameters = append(c.Parameters, capability.Parameter{Name: rapid.SampledFrom(words).Draw(t, "parameter"), Type: "string"})
			}
			if i > 0 && rapid.Bool().Draw(t, "needs") {
				c.RequiredTools = []string{out[rapid.IntRange(0, i-1).Draw(t, "need")].Name}
			}
			if rapid.IntRange(0, 3).Draw(t, "secret") == 0 {
				c.RequiredSecrets = []string{"KEY"}
			}
			if c.Kind == capability.KindCard {
				c.Triggers = &capability.Triggers{Keywords: rapid.SliceOfN(rapid.SampledFrom(words), 1, 4).Draw(t, "keywords"), ConfidenceThreshold: 0.3}
			}
			out[i].Body = rapid.OneOf(rapid.Just(""), randomWords(60), rapid.Map(randomWords(40), func(s string) string { return strings.Repeat("## "+s+"\n\n"+s+"\n", 12) })).Draw(t, "body")
			if rapid.Bool().Draw(t, "schema") {
				out[i].Schema = json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"検索する言葉"}},"required":["query"]}`)
			}
		}
		return out
	})
}

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

// randomIDs picks from the things, and now and then something that is nowhere.
func randomIDs(things []thing, most int) *rapid.Generator[[]capability.ID] {
	all := []capability.ID{"tool:nowhere"}
	for _, x := range things {
		all = append(all, capability.MakeID(x.Kind, x.Name))
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, most)
}

func randomQuery(things []thing) *rapid.Generator[Query] {
	return rapid.Custom(func(t *rapid.T) Query {
		q := Query{Text: randomMessage().Draw(t, "message")}
		for range rapid.IntRange(0, 2).Draw(t, "before") {
			q.Before = append(q.Before, message(randomMessage().Draw(t, "earlier")))
		}
		q.Used = randomIDs(things, 3).Draw(t, "used")
		q.Pinned = randomIDs(things, 3).Draw(t, "pinned")
		q.Shown = randomIDs(things, 3).Draw(t, "shown")
		return q
	})
}
