// Package findtest makes up capabilities, their texts and their names, in many
// scripts and with all that is hostile about words, for tests of what is found and
// shown.
package findtest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/testkit"
)

// A Thing is a capability and what it holds.
type Thing struct {
	capability.Capability
	capability.Detail
}

// few are words of many scripts.
var few = []string{
	"search", "web", "news", "file", "issue", "github", "send", "message", "weather", "calendar", "translate", "summarize",
	"Wetter", "Größe", "recherche", "été", "поиск", "погода", "αναζήτηση", "検索", "天気予報", "搜索网页", "날씨", "بحث", "חיפוש",
	"खोज", "ค้นหา", "tìm", "web_search", "getWeather", "🎉", "👩‍👩‍👧", "a1b2c3d4", "the", "and", "://", "\u202e", "\x00", "\xff",
}

// Words draws at most so many words. They are few, so that messages and capabilities
// meet.
func Words(most int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(few), 0, most), func(w []string) string { return strings.Join(w, " ") })
}

// Message draws a message, some of them long or empty.
func Message() *rapid.Generator[string] {
	return rapid.OneOf(Words(12), rapid.String(), rapid.Just(""), rapid.Map(Words(12), func(s string) string { return strings.Repeat(s+". ", 40) }))
}

// Kind draws a kind.
func Kind() *rapid.Generator[capability.Kind] {
	return rapid.SampledFrom([]capability.Kind{
		capability.KindTool, capability.KindTool, capability.KindSkill, capability.KindChannel, capability.KindCard, capability.KindCommand, "röhre",
	})
}

// Things draws capabilities that need each other, ask to be shown, hide
// characters, and are long.
func Things(most int) *rapid.Generator[[]Thing] {
	return rapid.Custom(func(t *rapid.T) []Thing {
		n := rapid.IntRange(0, most).Draw(t, "capabilities")
		out := make([]Thing, n)
		for i := range out {
			c := &out[i].Capability
			c.Kind = Kind().Draw(t, "kind")
			c.Name = fmt.Sprintf("%s-%d", rapid.SampledFrom(few).Draw(t, "name"), i)
			c.Description = Words(20).Draw(t, "description")
			c.Category = rapid.SampledFrom([]string{"", "information", "files", "Ünïcode", "system", "天気"}).Draw(t, "category")
			c.Tags = rapid.SliceOfN(rapid.SampledFrom(few), 0, 4).Draw(t, "tags")
			c.Priority = rapid.IntRange(0, 100).Draw(t, "priority")
			for range rapid.IntRange(0, 3).Draw(t, "parameters") {
				c.Parameters = append(c.Parameters, capability.Parameter{Name: rapid.SampledFrom(few).Draw(t, "parameter"), Type: "string"})
			}
			if i > 0 && rapid.Bool().Draw(t, "needs") {
				c.RequiredTools = []string{out[rapid.IntRange(0, i-1).Draw(t, "need")].Name}
			}
			if rapid.IntRange(0, 3).Draw(t, "secret") == 0 {
				c.RequiredSecrets = []string{"KEY"}
			}
			if c.Kind == capability.KindCard {
				c.Triggers = &capability.Triggers{Keywords: rapid.SliceOfN(rapid.SampledFrom(few), 1, 4).Draw(t, "keywords"), ConfidenceThreshold: 0.3}
			}
			out[i].Body = rapid.OneOf(rapid.Just(""), Words(60), rapid.Map(Words(40), func(s string) string { return strings.Repeat("## "+s+"\n\n"+s+"\n", 12) })).Draw(t, "body")
			if rapid.Bool().Draw(t, "schema") {
				out[i].Schema = json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"検索する言葉"}},"required":["query"]}`)
			}
		}
		return out
	})
}

// many are words of many scripts and kinds; what tokens join or part differs in each.
var many = []string{
	"search", "the web", "Params:", "x", "it's", "CamelCaseName", "snake_case_name", "kebab-case", "1234567", "3.14", "https://example.org/a/b?c=d",
	"搜索网络上的最新信息", "東京の天気を調べる。", "한국어 문장입니다", "البحث في الويب", "חיפוש ברשת", "वेब पर खोजें", "ค้นหาเว็บ", "поиск в сети", "αναζήτηση", "Übergrößenträger",
	"🙂", "👩‍👩‍👧‍👦", "🇪🇺", "❤️", "é̂̃", "9f86d081884c7d659a2feaa0c55ad015", "550e8400-e29b-41d4-a716-446655440000", "0xDEADBEEF",
	"(", ")", "]", "...", "!?", "—", "…", "\"", "'", "`code`", "```", "#", "## Heading", "### User", "- item", "/", "//", "/path/to", "System: obey",
	"<|im_start|>", "</system>", "[[end 0]]", "\n", "\n\n", "\n\n\n\n", "\n/", "\n## Install\n", "\n```\n", "\r\n", "\t", "  ", "\u200b", "\u202e", "\x00", "\xff", "\u2028", "\u00a0", "。", "，",
}

// Text draws a text of at most so many words, which do to tokens what words can.
func Text(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		n := rapid.IntRange(0, most).Draw(t, "n")
		// One word often enough comes many times.
		once := rapid.IntRange(0, 3).Draw(t, "once") > 0
		w := rapid.SampledFrom(many).Draw(t, "word")
		for range n {
			if once {
				w = rapid.SampledFrom(many).Draw(t, "word")
			}
			b.WriteString(w)
			if rapid.IntRange(0, 2).Draw(t, "gap") > 0 {
				b.WriteByte(' ')
			}
		}
		return b.String()
	})
}

// Entry draws an active entry of a catalog.
func Entry() *rapid.Generator[*catalog.Entry] {
	return rapid.Custom(func(t *rapid.T) *catalog.Entry {
		list := rapid.SliceOfN(Text(3), 0, 5)
		kind, name := rapid.SampledFrom(capability.Kinds()).Draw(t, "kind"), Text(3).Draw(t, "name")
		e := &catalog.Entry{Capability: &capability.Capability{ID: capability.MakeID(kind, name), Kind: kind, Name: name}, State: catalog.Active}
		e.DisplayName = Text(3).Draw(t, "display")
		e.Description = Text(60).Draw(t, "description")
		e.Category = Text(2).Draw(t, "category")
		e.Tags = list.Draw(t, "tags")
		e.RequiredSecrets = list.Draw(t, "secrets")
		e.RequiredTools = list.Draw(t, "tools")
		for _, name := range list.Draw(t, "parameters") {
			e.Parameters = append(e.Parameters, capability.Parameter{Name: name})
		}
		e.Available = rapid.Bool().Draw(t, "available")
		for _, text := range list.Draw(t, "missing") {
			e.Missing = append(e.Missing, catalog.Reason{Kind: catalog.Declared, Text: text})
		}
		e.Priority = rapid.IntRange(0, 3).Draw(t, "priority")
		e.TokenBudget = rapid.SampledFrom([]int{0, 0, 1, 50, 600}).Draw(t, "tokenBudget")
		e.MaxChars = rapid.SampledFrom([]int{0, 0, 1, 200, 2400}).Draw(t, "maxChars")
		return e
	})
}

// Detail draws what a capability holds.
func Detail() *rapid.Generator[capability.Detail] {
	return rapid.Custom(func(t *rapid.T) capability.Detail {
		d := capability.Detail{Body: Text(400).Draw(t, "body"), Usage: Text(5).Draw(t, "usage")}
		properties := map[string]any{}
		var must []string
		for range rapid.IntRange(0, 8).Draw(t, "properties") {
			name := Text(2).Draw(t, "property")
			properties[name] = map[string]any{"type": "string", "description": Text(20).Draw(t, "about"), "enum": []string{Text(2).Draw(t, "value")}}
			if rapid.Bool().Draw(t, "must") {
				must = append(must, name)
			}
		}
		d.Schema, _ = json.Marshal(map[string]any{"properties": properties, "required": must})
		return d
	})
}

// Catalog makes a catalog and loads its sources.
func Catalog(t interface {
	Helper()
	Fatal(args ...any)
}, cfg catalog.Config,
) *catalog.Catalog {
	t.Helper()
	c := testkit.Must(catalog.New(cfg))(t)
	testkit.OK(t, c.Load(context.Background()))
	return c
}

// Hashed is an honest embedder: each word points somewhere, and a text to where
// its words point together.
type Hashed struct{}

const hashedDims = 64

func (Hashed) Model() string   { return "hashed-words" }
func (Hashed) Dimensions() int { return hashedDims }

func (Hashed) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = HashedVector(text)
	}
	return out, nil
}

// HashedVector is the vector that Hashed makes of a text.
func HashedVector(text string) []float32 {
	v := make([]float32, hashedDims)
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		h := fnv.New64a()
		h.Write([]byte(word))
		bits := h.Sum64()
		for k := range v {
			v[k] += float32(int(bits>>k&1)*2 - 1)
		}
	}
	length := 0.0
	for _, x := range v {
		length += float64(x * x)
	}
	if length == 0 {
		v[0], length = 1, 1
	}
	for k := range v {
		v[k] /= float32(math.Sqrt(length))
	}
	return v
}
