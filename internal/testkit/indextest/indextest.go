// Package indextest makes up capabilities, texts and vectors for tests of the index
// and of ranking.
package indextest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/embed"
)

// Tool makes a capability.
func Tool(name, description string, change ...func(*capability.Capability)) *capability.Capability {
	c := &capability.Capability{
		ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Description: description,
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// Alias sets the other names of a capability.
func Alias(names ...string) func(*capability.Capability) {
	return func(c *capability.Capability) { c.Aliases = names }
}

// Vocabulary has what texts are made of: few words, so that they meet, and all
// that is odd about words.
var Vocabulary = []string{
	"search", "searching", "searches", "flight", "flights", "book", "booking", "weather", "mail", "send", "sender",
	"GitHub", "github", "git", "hub", "gitHub", "getHTTPPage", "http", "page", "areYou", "areyou", "web_search", "web-search", "a.b",
	"Rechnung", "Rechnungen", "Kalender", "suchen", "der", "die", "das", "und", "mit", "für", "ist",
	"facture", "factures", "chercher", "le", "les", "des", "avec", "pour",
	"найти", "письмо", "письма", "и", "в", "на", "с",
	"天気", "天気予報", "メール", "サーバー", "を送る", "날씨", "อากาศ", "1", "2024", "٣", "S3",
	"the", "a", "of", "to", "do", "it", "again", "other", "one",
	"\U0001F600", "\xff\xfe", "e\u0301te\u0301", "été", "ÉTÉ", "…", "zork", "qux",
}

// Text draws a text of at most so many words.
func Text(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, w := range rapid.SliceOfN(rapid.SampledFrom(Vocabulary), 0, most).Draw(t, "words") {
			b.WriteString(w)
			b.WriteString(rapid.SampledFrom([]string{" ", " ", " ", "_", ", ", ". ", "\n", ""}).Draw(t, "between"))
		}
		return b.String()
	})
}

// Capabilities makes up n capabilities with ids of their own.
func Capabilities(n int) *rapid.Generator[[]*capability.Capability] {
	return rapid.Custom(func(t *rapid.T) []*capability.Capability {
		few := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) capability.Capability {
			return capability.Capability{
				Name: Text(3).Draw(t, "name"), Description: Text(12).Draw(t, "description"),
				DisplayName: Text(2).Draw(t, "display name"), Category: Text(1).Draw(t, "category"),
				Tags:       rapid.SliceOfN(Text(2), 0, 2).Draw(t, "tags"),
				Aliases:    rapid.SliceOfN(Text(1), 0, 2).Draw(t, "aliases"),
				Parameters: rapid.SliceOfN(rapid.Custom(parameter), 0, 2).Draw(t, "parameters"),
				Triggers:   &capability.Triggers{Keywords: rapid.SliceOfN(Text(2), 0, 1).Draw(t, "keywords")},
			}
		}), min(n, 1), min(n, 12)).Draw(t, "capabilities")
		out := make([]*capability.Capability, n)
		for i := range out { // many are alike, so that equal scores are common
			c := few[i%max(1, len(few))]
			c.ID = capability.ID(fmt.Sprintf("t:%03d", i))
			out[i] = &c
		}
		return out
	})
}

func parameter(t *rapid.T) capability.Parameter {
	return capability.Parameter{Name: Text(2).Draw(t, "name"), Description: Text(4).Draw(t, "description")}
}

// Dims is the length of drawn vectors: two words of bits, the second one not
// full.
const Dims = 70

// Vector makes up a vector: of one of few directions, so that equal ones are
// common, or one that says nothing.
func Vector(t *rapid.T) []float32 {
	v := make([]float32, Dims)
	switch kind := rapid.IntRange(-2, 20).Draw(t, "direction"); kind {
	case -2:
		v[3] = float32(math.NaN())
	case -1:
	default:
		for i := range v {
			v[i] = float32((i*7919+kind*104729)%1009-504) / 504
		}
	}
	return v
}

// VectorsFor makes up vectors for some of a list, by id.
func VectorsFor(t *rapid.T, list []*capability.Capability) map[capability.ID][]float32 {
	out := map[capability.ID][]float32{}
	if len(list) == 0 || !rapid.Bool().Draw(t, "with vectors") {
		return out
	}
	few := rapid.SliceOfN(rapid.Custom(Vector), 1, 5).Draw(t, "vectors")
	skip := rapid.IntRange(2, 9).Draw(t, "skip")
	for i, c := range list {
		if i%skip != 0 {
			out[c.ID] = few[i%len(few)]
		}
	}
	return out
}

// A stopper is a *testing.T or a *rapid.T.
type stopper interface {
	Helper()
	Fatal(args ...any)
}

// A segment is an *index.Segment. Tests of package index itself cannot import a
// package that imports it.
type segment[S any] interface {
	Len() int
	At(slot int) *capability.Capability
	WithVectors(model string, dims int, of map[int][]float32) (S, error)
}

// Give puts vectors into a segment.
func Give[S segment[S]](t stopper, s S, of map[capability.ID][]float32) S {
	t.Helper()
	bySlot := map[int][]float32{}
	for slot := range s.Len() {
		if c := s.At(slot); c != nil && of[c.ID] != nil {
			bySlot[slot] = of[c.ID]
		}
	}
	if len(bySlot) == 0 {
		return s
	}
	next, err := s.WithVectors("model", Dims, bySlot)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// Size is how large a catalog is: small, beyond the shortlist, and beyond what
// is sorted at once.
func Size(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 1, 2, 5, 9, 60, 250}).Draw(t, "size")
}

// RandomVector returns a vector of random numbers.
func RandomVector(random *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}

// Many makes a list that is worth keeping.
func Many(n int) []*capability.Capability {
	list := Office()
	for i := range n - len(list) {
		list = append(list, Tool(fmt.Sprintf("%sTool_%d", Word(i), i), fmt.Sprintf("reads %s and %s; 天気 %d", Word(i), Word(i/2), i), func(c *capability.Capability) {
			c.Tags, c.Aliases = []string{Word(i / 3)}, []string{Word(i) + "-alias"}
		}))
	}
	return list
}

// Builtin returns the embedding model of the program.
func Builtin(t testing.TB) *embed.Model {
	t.Helper()
	m := embed.Builtin()
	if m == nil {
		t.Fatal("the program has no embedding model inside")
	}
	return m
}

// Desk are capabilities that say what they do in their own words.
func Desk() []*capability.Capability {
	return []*capability.Capability{
		Tool("news_search", "Searches current headlines from newspapers worldwide."),
		Tool("image_generate", "Creates a picture from a text prompt."),
		Tool("currency_convert", "Converts an amount of money between currencies."),
		Tool("calendar_add_event", "Adds an appointment to the calendar."),
		Tool("trash_empty", "Erases all files in the recycle bin for good."),
		Tool("flight_status", "Tells whether a plane is on time."),
		Tool("recipe_lookup", "Gives cooking instructions for a dish."),
		Tool("stock_quote", "Gives the price of a share on the exchange."),
	}
}

// Office is a small catalog of different things.
func Office() []*capability.Capability {
	return []*capability.Capability{
		Tool("search_flights", "Search flights between two cities on a date", func(c *capability.Capability) {
			c.Parameters = []capability.Parameter{{Name: "origin", Description: "city of departure"}, {Name: "destination"}}
			c.Aliases = []string{"flight-finder", "Flüge:suchen"}
			c.Tags = []string{"travel"}
		}),
		Tool("send_email", "Send an email message to a person", Alias("mail/send")),
		Tool("get_weather", "Weather forecast for a city"),
		Tool("create_invoice", "Create an invoice for a customer", func(c *capability.Capability) { c.Category = "accounting" }),
		Tool("translate", "Translate a text into another language"),
		Tool("calendar.list", "List the events of a calendar"),
		Tool("resize-image", "Resize an image to other dimensions", func(c *capability.Capability) {
			c.DisplayName = "Picture scaler"
			c.Triggers = &capability.Triggers{Keywords: []string{"thumbnail"}}
		}),
	}
}

// Word returns a made-up word that no capability has, one for each number.
func Word(i int) string {
	return fmt.Sprintf("q%c%c%cx", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
}
