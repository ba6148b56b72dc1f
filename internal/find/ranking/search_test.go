package ranking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit"
	"ken/internal/testkit/indextest"
)

func TestSearchReadsEveryField(t *testing.T) {
	v := viewOf(indextest.Office()...)
	for message, want := range map[string]string{
		"flights": "search_flights", "departure": "search_flights", "destination": "search_flights", "travelling": "search_flights",
		"finder": "search_flights", "invoices": "create_invoice", "accounting": "create_invoice", "scaler": "resize-image",
		"thumbnails": "resize-image", "what will the weather be in Oslo": "get_weather",
	} {
		if got := names(v, message); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", message, got, want)
		}
	}
	if got := names(v, "xylophone"); got != nil {
		t.Errorf("Search(xylophone) = %v, want nothing", got)
	}
}

func TestSearchSaysWhichWords(t *testing.T) {
	v := viewOf(indextest.Office()...)
	a := v.Search(Query{Text: "Please SEARCH some cheap flight to the city of Oslo"}, 1, nil)
	if len(a.Hits) != 1 || !slices.Equal(a.Hits[0].Words, []string{"search", "flight", "city"}) {
		t.Errorf("Search = %+v, want the words search, flight, city", a.Hits)
	}
}

// TestExactNames: what a message calls by its name, id or alias is in, before
// all else, whatever the case and whatever is around it.
func TestExactNames(t *testing.T) {
	v := viewOf(append(indextest.Office(), indextest.Tool("__", ""), indextest.Tool("的", "x"))...)
	for message, want := range map[string]string{
		"search_flights": "search_flights", "SEARCH_FLIGHTS": "search_flights", "Search_Flights": "search_flights",
		"tool:search_flights": "search_flights", "TOOL:search_flights": "search_flights",
		"flight-finder": "search_flights", "Flight-Finder": "search_flights", "flüge:SUCHEN": "search_flights",
		"mail/send": "send_email", "translate": "translate", "  Translate\n": "translate", "tool:translate": "translate",
		"calendar.list": "calendar.list", "__": "__", "的": "的",
		"use `resize-image` on it": "resize-image", "use `resize-image`.": "resize-image", "run calendar.list.": "calendar.list",
		"what about \"mail/send\"?": "send_email", "(mail/send)": "send_email", "mail/send, then stop": "send_email",
		"is it resize-image?!": "resize-image", "resize-image: the big one": "resize-image", "ask tool:translate; thanks": "translate",
		"translate the weather forecast for a city with tool:send_email": "send_email",
	} {
		a := v.Search(Query{Text: message}, 3, nil)
		if len(a.Hits) == 0 || v.parts[0].At(a.Hits[0].Slot).Name != want || !a.Hits[0].Exact || a.Hits[0].Score != 1 || a.Fit != 1 {
			t.Errorf("Search(%q) = %+v, want %s as exact", message, a, want)
		}
	}
	for _, message := range []string{"please translate this", "search flights", "send-email", "search_flights_now", "tool:", "_", "."} {
		if a := v.Search(Query{Text: message}, 3, nil); slices.ContainsFunc(a.Hits, func(h Hit) bool { return h.Exact }) {
			t.Errorf("Search(%q) = %+v, want nothing exact", message, a.Hits)
		}
	}
}

// TestExactNameBeyondTheShortlist: a name is in even when hundreds have more of the
// message's words, when it has none of them, and after others that are said often.
func TestExactNameBeyondTheShortlist(t *testing.T) {
	var list []*capability.Capability
	for i := range 300 {
		list = append(list, indextest.Tool(fmt.Sprintf("lookup_%d", i), "looks up the exchange rate of a currency"))
	}
	v := viewOf(append(append(list, indextest.Office()...), indextest.Tool("@/#", "unrelated"))...)
	for message, want := range map[string][]string{
		"looks up the exchange rate of a currency with lookup_7":                                {"lookup_7"},
		"looks up the exchange rate of a currency with @/#":                                     {"@/#"},
		strings.Repeat("run calendar.list and mail/send\n", 100) + "then look_up, and then @/#": {"@/#", "calendar.list", "send_email"},
	} {
		got := names(v, message)
		got = got[:min(len(got), len(want))]
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("Search(%.60q) = %v first, want %s", message, got, want)
		}
	}
}

// TestNamesOfTooMany: a name that hundreds share tells none of them apart, and
// costs no more than one that few have.
func TestNamesOfTooMany(t *testing.T) {
	var list []*capability.Capability
	for i := range 400 {
		list = append(list, indextest.Tool(indextest.Word(i), "reads "+indextest.Word(i+1), indextest.Alias("every-one", "of-few"[:3+3*min(1, i/397)])))
	}
	v := viewOf(list...)
	if a := v.Search(Query{Text: "use every-one"}, 500, nil); len(a.Hits) > shortlist+mostCalled {
		t.Errorf("Search(every-one) = %d hits, want no more than are looked at", len(a.Hits))
	}
	a := v.Search(Query{Text: "use every-one that reads " + indextest.Word(8)}, 5, nil)
	if len(a.Hits) == 0 || !slices.ContainsFunc(a.Hits, func(h Hit) bool { return h.Slot == 7 || h.Slot == 8 }) {
		t.Errorf("Search(every-one with a word) = %+v, want those with the word", a.Hits)
	}
	if got := names(v, "use of-few"); len(got) < 3 || !slices.Contains(got[:3], indextest.Word(397)) || !slices.Contains(got[:3], indextest.Word(399)) {
		t.Errorf("Search(of-few) = %v, want the three that are called so", got)
	}
}

func TestExactNamesTwice(t *testing.T) {
	one, two := indextest.Tool("web_search", "finds pages"), indextest.Tool("web_search", "searches the web")
	two.ID = "skill:web_search"
	three := indextest.Tool("finder", "", indextest.Alias("web_search", "WEB_SEARCH"))
	s := index.Build([]*capability.Capability{three, two, one})
	v := NewView(Part{Segment: s})
	a := v.Search(Query{Text: "web_search and web_search"}, 9, nil)
	if len(a.Hits) != 3 {
		t.Fatalf("Search(web_search) = %+v, want all three", a.Hits)
	}
	for _, h := range a.Hits {
		if !h.Exact {
			t.Errorf("%s is not exact", s.At(h.Slot).ID)
		}
	}
	s, _ = s.Change(nil, []int{1})
	if got := ids(NewView(Part{Segment: s}), Query{Text: "web_search"}, 9); len(got) != 2 || slices.Contains(got, "skill:web_search") {
		t.Errorf("Search(web_search) without one of them = %v, want the other two", got)
	}
	got := ids(NewView(Part{Segment: s}), Query{Text: "skill:web_search"}, 9)
	if len(got) != 2 || !slices.Contains(got, "tool:web_search") { // by words
		t.Errorf("Search(skill:web_search) = %v, want those with its words", got)
	}
}

// TestEqualOnesByID: the order of equals does not tell of slots.
func TestEqualOnesByID(t *testing.T) {
	var list []*capability.Capability
	for _, name := range []string{"d", "b", "e", "a", "c"} {
		list = append(list, indextest.Tool("x"+name, "reads the gauge"))
	}
	if got, want := names(viewOf(list...), "gauge"), []string{"xa", "xb", "xc", "xd", "xe"}; !slices.Equal(got, want) {
		t.Errorf("Search(gauge) = %v, want %v", got, want)
	}
}

// TestKeep: what is filtered out makes room for what is not.
func TestKeep(t *testing.T) {
	var list []*capability.Capability
	of := map[int][]float32{}
	random := rand.New(rand.NewPCG(1, 2))
	asked := indextest.RandomVector(random, indextest.Dims)
	towards := func(part float32) []float32 { // the query's vector, and noise
		vec := indextest.RandomVector(random, indextest.Dims)
		for i := range vec {
			vec[i] += part * asked[i]
		}
		return vec
	}
	for i := range 400 {
		list = append(list, indextest.Tool(fmt.Sprintf("gauge_%03d", i), "reads the gauge gauge"))
		of[i] = towards(3)
	}
	list = append(list, indextest.Tool("other_one", "reads some gauge once a day and other things besides"), indextest.Tool("near", "nothing in common"))
	of[401] = towards(0.2)
	s := testkit.Must(index.Build(list).WithVectors("model", indextest.Dims, of))(t)
	v := NewView(Part{Segment: s})
	last := func(_, slot int, _ float32) bool { return slot >= 400 }
	q := Query{Text: "gauge", Vector: asked}
	got := v.Search(q, 10, last)
	if len(got.Hits) != 2 || got.Hits[0].Slot != 400 || got.Hits[1].Slot != 401 {
		t.Errorf("Search(gauge) = %+v, want 400 by its word and 401 by its vector", got.Hits)
	}
	if a := v.Search(Query{Text: "use gauge_003", Vector: asked}, 10, last); slices.ContainsFunc(a.Hits, func(h Hit) bool { return h.Slot < 400 }) {
		t.Errorf("Search(use gauge_003) = %+v, want nothing that the filter refuses", a.Hits)
	}
	if a := v.Search(q, 10, func(int, int, float32) bool { return false }); len(a.Hits) != 0 || a.Fit != 0 {
		t.Errorf("Search with nothing kept = %+v, want nothing", a)
	}
	scores := map[int]float32{}
	v.Search(Query{Text: "gauge besides"}, 10, func(_, slot int, score float32) bool {
		scores[slot] = max(scores[slot], score)
		return true
	})
	if len(scores) != 401 || scores[400] <= scores[0] || scores[0] <= 0 {
		t.Errorf("keep was told %v for slot 0 and %v for 400, of %d; want more for 400, of 401", scores[0], scores[400], len(scores))
	}
}

func TestLimit(t *testing.T) {
	v := viewOf(indextest.Tool("ga", "gauge"), indextest.Tool("gb", "gauge"), indextest.Tool("gc", "gauge"))
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 3: 3, 1000: 3} {
		if a := v.Search(Query{Text: "gauge"}, limit, nil); len(a.Hits) != want || !(a.Fit > 0) {
			t.Errorf("Search(gauge), at most %d = %d hits, fit %v, want %d", limit, len(a.Hits), a.Fit, want)
		}
	}
}

// TestLargeMessage: of a message of a megabyte, and of one capability with far too
// much text, the ends are read and found by.
func TestLargeMessage(t *testing.T) {
	testkit.CI(t, "texts of megabytes")
	v := viewOf(indextest.Office()...)
	middle := strings.Repeat("lorem ipsum dolor sit amet. ", 40_000)
	for message, want := range map[string]string{
		"resize-image for me " + middle: "resize-image", middle + " now run calendar.list": "calendar.list",
		"what is the weather forecast? " + middle: "get_weather", middle + " what is the weather forecast?": "get_weather",
	} {
		if got := names(v, message); len(got) == 0 || got[0] != want {
			t.Errorf("Search(a megabyte with %s) = %v, want it first", want, got)
		}
	}
	for _, text := range []string{
		strings.Repeat("\x80", 1<<20), strings.Repeat("天", 1<<18), strings.Repeat("a", 1<<20), strings.Repeat("y", 1<<20), strings.Repeat("aB", 1<<19),
		strings.Repeat("a.b ", 1<<18), strings.Repeat("\U0001F600", 1<<18), manyWords(1 << 16),
	} {
		if err := sound(v, v.Search(Query{Text: text, Before: []Before{{text, 1}, {text, 0.5}}}, 5, nil), 5); err != nil {
			t.Errorf("Search(%q…): %v", text[:8], err)
		}
		text = text[:1<<17]
		if got := names(viewOf(indextest.Tool(text, text), indextest.Tool("gauge", "reads")), "gauge reads a"); len(got) == 0 || got[0] != "gauge" {
			t.Errorf("beside a capability called %q…, Search(gauge reads a) = %v, want gauge first", text[:8], got)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, text := range []string{
		"", "short", strings.Repeat("a", LongestText), strings.Repeat("a", LongestText+1), strings.Repeat("é", LongestText), strings.Repeat("天気", LongestText),
		"x" + strings.Repeat("\U0001F600", LongestText), strings.Repeat("\xbf", 2*LongestText),
	} {
		head, tail := shorten(text, LongestText)
		switch {
		case len(text) <= LongestText && (head != text || tail != ""):
			t.Errorf("shorten(%d bytes) = %d and %d bytes, want it whole", len(text), len(head), len(tail))
		case len(head)+len(tail) > LongestText || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail):
			t.Errorf("shorten(%d bytes) = %d and %d bytes", len(text), len(head), len(tail))
		case strings.ToValidUTF8(text, "") == text && strings.ToValidUTF8(head+tail, "") != head+tail:
			t.Errorf("shorten(%.8q…) cuts a character", text)
		}
	}
}

// manyWords makes a text of so many words.
func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s ", indextest.Word(i))
	}
	return b.String()
}

// TestManyWords: of more words than count, those that capabilities have are
// taken, wherever they stand.
func TestManyWords(t *testing.T) {
	v := viewOf(indextest.Office()...)
	for _, n := range []int{mostTerms - 2, mostTerms, mostTerms + 1, 128, 129, 200, 700} {
		words := manyWords(n)
		for _, message := range []string{"weather forecast " + words, words + "weather forecast", words[:len(words)/2] + " weather forecast " + words[len(words)/2:]} {
			a := v.Search(Query{Text: message}, 3, nil)
			testkit.OK(t, sound(v, a, 3))
			if len(a.Hits) == 0 || a.Hits[0].Slot != 2 || !slices.Equal(a.Hits[0].Words, []string{"weather", "forecast"}) {
				t.Errorf("Search(weather forecast among %d words) = %+v", n, a.Hits)
			}
		}
	}
	// Of more known words than count, the rarest.
	list := []*capability.Capability{indextest.Tool("rare", indextest.Word(699))}
	all := manyWords(699)
	for i := range 3 {
		list = append(list, indextest.Tool(fmt.Sprint("common", i), all))
	}
	v = viewOf(list...)
	a := v.Search(Query{Text: all + indextest.Word(699)}, 4, nil)
	testkit.OK(t, sound(v, a, 4))
	if !slices.ContainsFunc(a.Hits, func(h Hit) bool { return h.Slot == 0 }) {
		t.Errorf("Search(700 words) = %+v, want the one that has the rarest", a.Hits)
	}
	for _, h := range a.Hits {
		if len(h.Words) > mostTerms {
			t.Errorf("%d words are said to be found, want at most %d", len(h.Words), mostTerms)
		}
	}
}

// TestJoinedWordsTakenBack: words in pieces that nobody has leave nothing
// behind, even after more words than count.
func TestJoinedWordsTakenBack(t *testing.T) {
	v := viewOf(indextest.Office()...)
	words := manyWords(mostTerms + 5)
	for _, end := range []string{"areyou areYou", "areYou areyou areYou", "foo bar foobar fooBar", "areYou", "foobar. fooBar"} {
		for _, message := range []string{end, words + end, words + "weather " + end} {
			if err := sound(v, v.Search(Query{Text: message, Before: []Before{{message, 0.4}}}, 5, nil), 5); err != nil {
				t.Errorf("Search(… %s): %v", end, err)
			}
		}
	}
}

// TestBadMessages: what cannot be searched for gives nothing, and no harm.
func TestBadMessages(t *testing.T) {
	big := indextest.Office()
	for name, list := range map[string][]*capability.Capability{"of none": nil, "of one": big[:1], "of seven": big} {
		v := viewOf(list...)
		for _, text := range []string{
			"", " ", "\n\t", "the of and to", "\U0001F600\U0001F680", "\xff\xfe\xfd", "\x00", "...", "?!", "42", "42 43 44", "\u0301\u0301",
			"\u202e\u2066", "_", "-", "``",
		} {
			if a := v.Search(Query{Text: text}, 5, nil); a.Fit != 0 || len(a.Hits) != 0 {
				t.Errorf("a catalog %s: Search(%q) = %+v, want nothing", name, text, a)
			}
		}
		for _, text := range []string{"search flights", "tool:search_flights", "search \xff flights \U0001F600"} {
			a := v.Search(Query{Text: text}, 5, nil)
			if err := sound(v, a, 5); err != nil {
				t.Errorf("a catalog %s: Search(%q): %v", name, text, err)
			}
			if len(list) > 0 && (len(a.Hits) == 0 || a.Hits[0].Slot != 0) {
				t.Errorf("a catalog %s: Search(%q) = %+v, want search_flights", name, text, a)
			}
		}
	}
	v := viewOf(indextest.Tool("", ""), indextest.Tool("\xff", "\xfe"), indextest.Tool("\U0001F600", "\U0001F680"))
	for _, text := range []string{"", "\xff", "\U0001F600", "x"} {
		if err := sound(v, v.Search(Query{Text: text}, 5, nil), 5); err != nil {
			t.Errorf("Search(%q): %v", text, err)
		}
	}
	if got := ids(v, Query{Text: "\U0001F680"}, 5); got != nil {
		t.Errorf("Search(\U0001F680) = %v, want nothing: it is no name", got)
	}
	if got := ids(v, Query{Text: "\U0001F600"}, 5); !slices.Equal(got, []string{"tool:\U0001F600"}) {
		t.Errorf("Search(\U0001F600) = %v, want what is called so", got)
	}
}

// TestAnswersAreSound: for any catalog and message, scores and fit are
// probabilities and hits are in order.
func TestAnswersAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := indextest.Capabilities(rapid.SampledFrom([]int{0, 1, 2, 7, 70}).Draw(t, "size")).Draw(t, "list")
		v := NewView(Part{Segment: indextest.Give(t, index.Build(list), indextest.VectorsFor(t, list))})
		for range 5 {
			q := query(t)
			if rapid.IntRange(0, 3).Draw(t, "any text") == 0 {
				q.Text = rapid.String().Draw(t, "text")
			}
			limit := rapid.IntRange(-1, 60).Draw(t, "limit")
			a := v.Search(q, limit, nil)
			if err := sound(v, a, limit); err != nil {
				t.Fatalf("Search(%+v): %v", q, err)
			}
			if b := v.Search(q, limit, nil); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("Search(%+v) = %+v, and then %+v", q, a, b)
			}
		}
	})
}

// TestFollowUp: a message that says little by itself goes with the one before
// it.
func TestFollowUp(t *testing.T) {
	v := viewOf(indextest.Office()...)
	before := []Before{{"search flights to Oslo", 0.35}}
	if got := names(v, "do it again for the other one"); slices.Contains(got, "search_flights") {
		t.Fatalf("Search of the follow-up alone = %v", got)
	}
	for _, text := range []string{"do it again for the other one", "and now?", "yes please", "\U0001F44D", ""} {
		a := v.Search(Query{Text: text, Before: before}, 3, nil)
		if len(a.Hits) == 0 || a.Hits[0].Slot != 0 {
			t.Errorf("Search(%q after flights) = %+v, want search_flights first", text, a.Hits)
		}
	}
	// Words that only point at something say nothing, whoever has them.
	busy := viewOf(append(indextest.Office(), indextest.Tool("repeat_one", "runs a job again, for one or the other"), indextest.Tool("other_one", "the other one"))...)
	if got := ids(busy, Query{Text: "do it again for the other one", Before: before}, 3); !slices.Contains(got, "tool:search_flights") {
		t.Errorf("Search(follow-up after flights) = %v, want search_flights among them", got)
	}
	var asked asked
	asked.read(busy, Query{Text: "do it again for the other one", Before: before})
	if i := slices.IndexFunc(asked.terms, func(t term) bool { return t.word == "flights" }); i < 0 || !asked.terms[i].current {
		t.Errorf("the message before is not part of a message that only points at it: %+v", asked.terms)
	}
	// One that says something is not drowned by what came before it.
	for text, want := range map[string]int{
		"send an email to Anna": 1, "what is the weather forecast": 2, "create an invoice": 3,
		"what is the weather": 2, "weather?": 2, "email": 1, "now translate that": 4,
	} {
		q := Query{Text: text, Before: []Before{{"search flights to Oslo", 0.35}, {"flights between two cities on a date", 0.2}, {"flights", 0.1}}}
		a := v.Search(q, 3, nil)
		if len(a.Hits) == 0 || a.Hits[0].Slot != want {
			t.Errorf("Search(%q after flights) = %+v, want slot %d first", text, a.Hits, want)
		}
		alone := v.Search(Query{Text: text}, 3, nil)
		if len(alone.Hits) == 0 || math.Abs(alone.Hits[0].Score-a.Hits[0].Score) > 0.3 {
			t.Errorf("Search(%q after flights) scores %v, and %v without", text, a.Hits[0].Score, alone.Hits[0].Score)
		}
	}
	// A name that was said before is no wish of now.
	if a := v.Search(Query{Text: "what is the weather", Before: []Before{{"use calendar.list", 0.35}}}, 3, nil); a.Hits[0].Exact || a.Hits[0].Slot != 2 {
		t.Errorf("Search(weather, after calendar.list) = %+v, want get_weather", a.Hits)
	}
}

// TestBadWeights: an earlier message that weighs nothing, or nothing sensible,
// is as none.
func TestBadWeights(t *testing.T) {
	v := viewOf(indextest.Office()...)
	want := tell(v, v.Search(Query{Text: "weather city"}, 5, nil))
	for _, w := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		got := tell(v, v.Search(Query{Text: "weather city", Before: []Before{{"send email", w}}}, 5, nil))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("Search after a message of weight %v = %v, want %v", w, got, want)
		}
	}
}

// TestSearchFromManyGoroutines: searches do not share what they work with.
func TestSearchFromManyGoroutines(t *testing.T) {
	large := indextest.Office()
	for i := range 300 {
		large = append(large, indextest.Tool(fmt.Sprintf("gauge_%d", i), "reads "+indextest.Word(i)))
	}
	views := []*View{viewOf(indextest.Office()...), viewOf(large...), NewView(Part{Segment: index.Build(indextest.Office())}, Part{Segment: index.Build(large[100:])})}
	messages := []string{"weather forecast", "search_flights", "reads " + indextest.Word(50), "", "email invoice calendar " + indextest.Word(200)}
	want := map[string]string{}
	ask := func(i, j int) (string, string) {
		return fmt.Sprint(i, j), fmt.Sprint(views[i].Search(Query{Text: messages[j]}, 9, nil))
	}
	for i := range views {
		for j := range messages {
			key, answer := ask(i, j)
			want[key] = answer
		}
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 60 {
				if key, got := ask((g+n)%len(views), (g*3+n)%len(messages)); got != want[key] {
					t.Errorf("search %s = %s, want %s", key, got, want[key])
					return
				}
			}
		})
	}
	wg.Wait()
}
