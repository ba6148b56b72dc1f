package card

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/testkit"
)

// tokenEconomy is the first seed's example, word for word.
func tokenEconomy() *capability.Capability {
	return &capability.Capability{
		ID: "card:token-economy", Kind: capability.KindCard, Name: "token-economy",
		Description: "Model routing, context bundling, zero-token heartbeat",
		Priority:    10, TokenBudget: 600,
		Triggers: &capability.Triggers{
			Keywords:            []string{"cost", "tokens", "model", "routing", "budget"},
			SessionTypes:        []string{"main", "isolated"},
			ConfidenceThreshold: 0.6,
		},
	}
}

func aCard(id string, keywords ...string) *capability.Capability {
	return &capability.Capability{
		ID: capability.ID(id), Kind: capability.KindCard, Name: id, Priority: 5,
		Triggers: &capability.Triggers{Keywords: keywords, ConfidenceThreshold: 0.6},
	}
}

func set(cards ...*capability.Capability) *Set { return Compile(cards) }

func said(texts ...string) Context {
	var x Context
	for _, s := range texts {
		x.Messages = append(x.Messages, Message{Role: "user", Text: s})
	}
	return x
}

// talk reads "u: text", "a: text" and "t: text".
func talk(lines ...string) Context {
	roles := map[string]string{"u": "user", "a": "assistant", "t": "tool", "s": "system"}
	var x Context
	for _, line := range lines {
		who, text, _ := strings.Cut(line, ": ")
		x.Messages = append(x.Messages, Message{Role: roles[who], Text: text})
	}
	return x
}

func passed(list []Asked) []string {
	ids := []string{}
	for _, a := range list {
		if a.Passed {
			ids = append(ids, string(a.ID))
		}
	}
	return ids
}

func judgeOne(t *testing.T, c *capability.Capability, x Context, cfg Config) Asked {
	t.Helper()
	s := set(c)
	a, ok := s.Judge(0, x, cfg)
	if !ok {
		t.Fatalf("Judge(0) of %v: no such card; problems: %v", c.ID, s.Problems())
	}
	return a
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

// TestK104FalseFriends: testdata/words.txt says what cards make of messages: which
// words are found in them, that everyday words say little, and that a keyword
// matches the inflected forms of its language, by the stemmers of the search index
// (S1.90).
func TestK104FalseFriends(t *testing.T) {
	data := testkit.Must(os.ReadFile("testdata/words.txt"))(t)
	rows := string(data) + "matches | café | le CAFE\u0301 ferme\nmatches | tokens | " + strings.Repeat("x", 200) + " tokens\n"
	judged := 0
	for line := range strings.Lines(rows) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), " | ")
		if line[0] == '#' || len(parts) != 3 {
			continue
		}
		judged++
		a := judgeOne(t, aCard("card:x", strings.Split(parts[1], ", ")...), said(parts[2]), Config{})
		got := map[string]bool{"matches": len(a.Matched) > 0, "misses": len(a.Matched) == 0, "passes": a.Passed, "fails": !a.Passed}
		if !got[parts[0]] {
			t.Errorf("%s: matched %v, passed %v with %.3f", line, a.Matched, a.Passed, a.Score)
		}
	}
	if judged < 70 {
		t.Errorf("%d messages were judged, want all of them", judged)
	}
}

func TestK101NaturalMessagesCallForTheSeedsCard(t *testing.T) {
	list, messages, wanted := labelled(t, "testdata/natural.txt")
	s := set(append(list, tokenEconomy())...)
	for _, blank := range []string{"", "   \n", "\xff\xfe\xfa"} {
		messages, wanted = append(messages, blank), append(wanted, "")
	}
	for i, text := range messages {
		if got := strings.TrimPrefix(strings.Join(passed(s.Select(said(text), Config{})), ", "), "card:"); got != wanted[i] {
			t.Errorf("Select(%q) passed %v, want %q", text, got, wanted[i])
		}
	}
}

func TestK102ScoresOfTheEvidenceScorer(t *testing.T) {
	s := set(tokenEconomy(), aCard("card:other", "telegram"))
	for _, test := range []struct {
		text string
		low  float64
		high float64
	}{
		{"what does it cost", 0.40, 0.45},            // one everyday word
		{"the cost of this model", 0.65, 0.68},       // two
		{"how does routing work", 0.69, 0.72},        // one telling word
		{"the cost of routing", 0.81, 0.86},          // both: the audit example's 0.85
		{"cost cost cost cost", 0.40, 0.45},          // saying it again is not more
		{"cost tokens model routing budget", 0.9, 1}, // everything
	} {
		a, _ := s.Judge(0, said(test.text), Config{})
		if a.Score < test.low || a.Score > test.high {
			t.Errorf("Judge(%q).Score = %.4f, want %.2f to %.2f", test.text, a.Score, test.low, test.high)
		}
	}
}

func TestK101MoreKeywordsNeverLowerTheScore(t *testing.T) {
	few := judgeOne(t, aCard("card:x", "routing", "budget"), said("routing"), Config{})
	many := judgeOne(t, aCard("card:x", "routing", "budget", "spend", "price", "invoice", "gateway", "tariff"), said("routing"), Config{})
	if !few.Passed || !many.Passed || many.Score < few.Score-tieBreak {
		t.Errorf("two keywords: %.3f, seven: %.3f, want both to pass with about the same", few.Score, many.Score)
	}
	if few.Score <= many.Score {
		t.Errorf("two keywords: %v, seven: %v, want the larger share ahead", few.Score, many.Score)
	}
}

func TestK106RolesAndRecency(t *testing.T) {
	for _, test := range []struct {
		name string
		x    Context
		want bool
	}{
		{"user now", talk("u: routing"), true},
		{"no role is a user", Context{Messages: []Message{{Text: "routing"}}}, true},
		{"assistant", talk("u: hello", "a: cost tokens model routing budget"), false},
		{"assistant of the turn before", talk("u: hello", "a: cost tokens model routing budget", "u: go on"), false},
		{"tool", talk("u: hello", "t: cost tokens model routing budget"), false},
		{"system", talk("u: hello", "s: cost tokens model routing budget"), false},
		{"tools do not push the user's words out", talk("u: routing", "t: x", "t: x", "t: x", "t: x", "t: x", "t: x"), true},
		{"turn before, one strong", talk("u: routing", "a: well", "u: and then?"), false},
		{"turn before, everything", talk("u: cost of tokens and model routing", "a: well", "u: and then?"), true},
		{"two turns before", talk("u: cost of tokens", "a: well", "u: and?", "a: so", "u: and then?"), false},
		{"six messages ago", talk("u: cost tokens model routing budget", "a: 1", "u: 2", "a: 3", "u: 4", "a: 5"), false},
		{"assistant supports the user", talk("u: hi", "a: our tokens and routing", "u: what does the model cost"), true},
		{"a phrase is not made of two messages", talk("u: hm", "u: hm"), false},
	} {
		a := judgeOne(t, tokenEconomy(), test.x, Config{})
		if a.Passed != test.want {
			t.Errorf("%s: passed %v with %.3f, want %v", test.name, a.Passed, a.Score, test.want)
		}
	}
	if a := judgeOne(t, aCard("card:x", "feature flag", ".env x"), said("a feature", "flag .env", "x"), Config{}); len(a.Matched) > 0 {
		t.Errorf("matched %v across messages, want nothing", a.Matched)
	}
}

func TestK106Hysteresis(t *testing.T) {
	x := talk("u: how does routing work", "a: so", "u: and then?")
	cold := judgeOne(t, tokenEconomy(), x, Config{})
	x.Shown = []capability.ID{"card:token-economy"}
	warm := judgeOne(t, tokenEconomy(), x, Config{})
	if cold.Passed || !warm.Passed || warm.Threshold != 0.3 || !strings.Contains(warm.Why, "shown on the turn before") {
		t.Errorf("not shown before: %+v; shown before: %+v; want only the second to pass, at half the threshold", cold, warm)
	}
	x = talk("u: how does routing work", "a: so", "u: and then?", "a: so", "u: what is for lunch?")
	x.Shown = []capability.ID{"card:token-economy"}
	if a := judgeOne(t, tokenEconomy(), x, Config{}); a.Passed {
		t.Errorf("two turns later: passed with %.3f, want it to go", a.Score)
	}
	x = said("what does it cost")
	x.Shown = []capability.ID{"card:token-economy"}
	if a := judgeOne(t, tokenEconomy(), x, Config{Scorer: ScorerSeed}); a.Passed {
		t.Errorf("seed scorer: passed with %.3f, want no hysteresis there", a.Score)
	}
}

func TestK103FirstTurn(t *testing.T) {
	s := set(tokenEconomy(), aCard("card:high", "x"))
	s.cards[1].from.Priority = 70
	for _, scorer := range []string{"", ScorerEvidence, ScorerSeed} {
		got := s.Select(Context{}, Config{Scorer: scorer})
		if len(got) != 1 || got[0].ID != "card:high" || !near(got[0].Score, 0.7) {
			t.Errorf("scorer %q: Select(no messages) = %+v, want card:high alone with 0.7", scorer, got)
		}
		a, _ := s.Judge(0, Context{}, Config{Scorer: scorer})
		if !near(a.Score, 0.10) || a.Passed || a.Why != "no message yet, so its priority counts; 0.100 is below confidenceThreshold 0.600" {
			t.Errorf("scorer %q: Judge(token-economy) = %+v, want 0.10 and the reason", scorer, a)
		}
	}
	tenth := 0.1
	if got := passed(s.Select(Context{}, Config{Threshold: &tenth})); len(got) != 2 {
		t.Errorf("threshold 0.1: passed %v, want both", got)
	}
}

func TestS1U05RouterTags(t *testing.T) {
	c := tokenEconomy()
	c.Triggers.RouterTags = []string{"Economy", "billing"}
	s := set(aCard("card:other", "lunch"), c)
	for _, x := range []Context{
		{RouterTags: []string{"x", "ECONOMY "}},
		{RouterTags: []string{"billing", "economy"}, Messages: said("what is for lunch").Messages},
	} {
		for _, scorer := range []string{ScorerSeed, ScorerEvidence} {
			a, _ := s.Judge(1, x, Config{Scorer: scorer})
			if a.Score != 1 || !a.Passed || !strings.HasPrefix(a.Why, "router tag ") {
				t.Errorf("%s, tags %q: %+v, want a score of 1 by the tag", scorer, x.RouterTags, a)
			}
			if got := passed(s.Select(x, Config{Scorer: scorer})); !slices.Contains(got, "card:token-economy") {
				t.Errorf("%s, tags %q: Select passed %v, want the tagged card", scorer, x.RouterTags, got)
			}
		}
	}
	x := said("how does routing work")
	x.RouterTags = []string{"unrelated"}
	if got := passed(s.Select(x, Config{})); !slices.Equal(got, []string{"card:token-economy"}) {
		t.Errorf("no tag fits: passed %v, want keywords to decide", got)
	}
	x = said("thanks")
	x.RouterTags = []string{"unrelated"}
	if got := s.Select(x, Config{}); len(got) != 0 {
		t.Errorf("nothing asks: Select = %v, want nothing at all", got)
	}
}

func TestS183CustomScorer(t *testing.T) {
	isolated := aCard("card:isolated", "x")
	isolated.Triggers.SessionTypes = []string{"isolated"}
	s := set(aCard("card:a", "x"), aCard("card:b", "x"), isolated, aCard("card:none", "x"), aCard("card:nan", "x"))
	asked := map[capability.ID]bool{}
	custom := func(c *capability.Capability, x Context) float64 {
		asked[c.ID] = true
		if len(x.Messages) != 1 || x.Messages[0].Text != "hello" {
			t.Errorf("scorer of %v got %v, want the messages", c.ID, x.Messages)
		}
		switch c.ID {
		case "card:a":
			return 0.5
		case "card:nan":
			return math.NaN()
		case "card:none":
			return -3
		}
		return 7
	}
	got := s.Select(said("hello"), Config{Custom: custom, Scorer: ScorerSeed})
	if len(got) != 2 || got[0].ID != "card:b" || got[0].Score != 1 || !got[0].Passed || got[1].ID != "card:a" || got[1].Passed {
		t.Errorf("Select = %+v, want card:b with 1, then card:a kept out with 0.5", got)
	}
	if asked["card:isolated"] {
		t.Error("the scorer was asked about a card of another session type, want filters first (S1.21)")
	}
}

func TestS128Threshold(t *testing.T) {
	c := tokenEconomy()
	half, none, nan := 0.42, 0.0, math.NaN()
	for _, test := range []struct {
		own  float64
		cfg  *float64
		want bool
	}{{0.6, nil, false}, {0.4, nil, true}, {0.4, &nan, false}, {0.6, &half, true}, {0, nil, true}, {0.9, &none, true}, {nan, nil, false}} {
		c.Triggers.ConfidenceThreshold = test.own
		if a := judgeOne(t, c, said("what does it cost"), Config{Threshold: test.cfg}); a.Passed != test.want {
			t.Errorf("own threshold %v, configured %v: passed %v with %.3f, want %v", test.own, test.cfg, a.Passed, a.Score, test.want)
		}
	}
	c.Triggers.ConfidenceThreshold = 0
	if a := judgeOne(t, c, said("hello"), Config{}); a.Passed || a.Why != "nothing calls for it" {
		t.Errorf("threshold 0 and no match: %+v, want it kept out", a)
	}
	high := 0.9
	a := judgeOne(t, c, said("routing"), Config{Threshold: &high})
	if want := "matched routing; 0.700 is below capabilities.confidenceThreshold 0.900"; a.Why != want {
		t.Errorf("Why = %q, want %q", a.Why, want)
	}
}

func TestC06Order(t *testing.T) {
	card := func(id string, priority int, keywords ...string) *capability.Capability {
		c := aCard(id, keywords...)
		c.Priority = priority
		return c
	}
	s := set(card("card:d", 5, "routing"), card("card:c", 5, "routing"), card("card:low", 1, "routing", "cost"),
		card("card:more", 5, "routing", "tokens"), card("card:high", 9, "cost"), card("card:miss", 99, "cost", "other", "words"))
	got := []string{}
	for _, a := range s.Select(said("routing of tokens, and the cost"), Config{}) {
		got = append(got, string(a.ID))
	}
	want := []string{"card:high", "card:more", "card:c", "card:d", "card:low", "card:miss"}
	if !slices.Equal(got, want) {
		t.Errorf("order = %v, want %v: priority, score, id, and those kept out last", got, want)
	}
}

func TestS184Triggers(t *testing.T) {
	at := func(clock string) time.Time {
		now := testkit.Must(time.Parse("15:04", clock))(t)
		return now.AddDate(2026, 0, 0)
	}
	for _, test := range []struct {
		name     string
		triggers capability.Triggers
		scope    capability.Scope
		now      time.Time
		want     string // empty: passes
	}{
		{"nothing asked", capability.Triggers{}, capability.Scope{}, time.Time{}, ""},
		{"main is meant", capability.Triggers{SessionTypes: []string{"Main"}}, capability.Scope{}, time.Time{}, ""},
		{"another session", capability.Triggers{SessionTypes: []string{"isolated"}}, capability.Scope{}, time.Time{}, "sessionTypes wants isolated, the session is main"},
		{"isolated", capability.Triggers{SessionTypes: []string{"main", "isolated"}}, capability.Scope{SessionType: "isolated"}, time.Time{}, ""},
		{"tier", capability.Triggers{UserTier: []string{"premium", "enterprise"}}, capability.Scope{UserTier: "Enterprise"}, time.Time{}, ""},
		{"lower tier", capability.Triggers{UserTier: []string{"premium"}}, capability.Scope{UserTier: "free"}, time.Time{}, "userTier wants premium, the tier is free"},
		{"no tier", capability.Triggers{UserTier: []string{"premium"}}, capability.Scope{}, time.Time{}, "userTier wants premium, the tier is not known"},
		{"empty tier asked", capability.Triggers{UserTier: []string{""}}, capability.Scope{}, time.Time{}, "userTier wants , the tier is not known"},
		{"environment", capability.Triggers{EnvironmentType: []string{"production"}}, capability.Scope{Environment: "production"}, time.Time{}, ""},
		{"other environment", capability.Triggers{EnvironmentType: []string{"production"}}, capability.Scope{Environment: "staging"}, time.Time{}, "environmentType wants production, the environment is staging"},
		{"hours", capability.Triggers{TimeOfDay: []string{"09:00-17:00"}}, capability.Scope{}, at("09:00"), ""},
		{"hours over", capability.Triggers{TimeOfDay: []string{"09:00-17:00"}}, capability.Scope{}, at("17:00"), "timeOfDay wants 09:00-17:00, it is 17:00"},
		{"over midnight, late", capability.Triggers{TimeOfDay: []string{"22:00-06:00"}}, capability.Scope{}, at("23:59"), ""},
		{"over midnight, early", capability.Triggers{TimeOfDay: []string{"22:00–06:00"}}, capability.Scope{}, at("00:00"), ""},
		{"over midnight, noon", capability.Triggers{TimeOfDay: []string{"22-6"}}, capability.Scope{}, at("12:00"), "timeOfDay wants 22-6, it is 12:00"},
		{"morning", capability.Triggers{TimeOfDay: []string{"Morning"}}, capability.Scope{}, at("06:00"), ""},
		{"afternoon", capability.Triggers{TimeOfDay: []string{"afternoon"}}, capability.Scope{}, at("12:00"), ""},
		{"evening", capability.Triggers{TimeOfDay: []string{"morning", "evening"}}, capability.Scope{}, at("21:59"), ""},
		{"night", capability.Triggers{TimeOfDay: []string{"night"}}, capability.Scope{}, at("05:59"), ""},
		{"until midnight", capability.Triggers{TimeOfDay: []string{"18:00-24:00"}}, capability.Scope{}, at("23:59"), ""},
		{"time unknown", capability.Triggers{TimeOfDay: []string{"night"}}, capability.Scope{}, time.Time{}, "timeOfDay wants night, the time is not known"},
		{"unreadable", capability.Triggers{TimeOfDay: []string{"teatime"}}, capability.Scope{}, at("17:00"), `timeOfDay "teatime" is unreadable; ` + timeOfDayFix},
		{"one of two readable", capability.Triggers{TimeOfDay: []string{"25:00-26:00", "night"}}, capability.Scope{}, at("23:00"), ""},
		{"empty range", capability.Triggers{TimeOfDay: []string{"09:00-09:00"}}, capability.Scope{}, at("09:00"), `timeOfDay "09:00-09:00" is unreadable; ` + timeOfDayFix},
		{"signs", capability.Triggers{TimeOfDay: []string{"+9:00-10:00"}}, capability.Scope{}, at("09:00"), `timeOfDay "+9:00-10:00" is unreadable; ` + timeOfDayFix},
	} {
		c := aCard("card:x", "routing")
		test.triggers.Keywords, test.triggers.ConfidenceThreshold = c.Triggers.Keywords, 0.6
		c.Triggers = &test.triggers
		x := said("how does routing work")
		x.Scope, x.Now = test.scope, test.now
		got := set(c).Select(x, Config{})
		if len(got) != 1 {
			t.Errorf("%s: Select = %v, want one verdict", test.name, got)
			continue
		}
		a := got[0]
		if a.Passed != (test.want == "") || test.want != "" && (a.Why != test.want || a.Score != 0) {
			t.Errorf("%s: passed %v (score %v), why %q, want %q and no score where kept out", test.name, a.Passed, a.Score, a.Why, test.want)
		}
	}
}

func TestProblemsAreReportedOnceAndCostOnlyTheKeyword(t *testing.T) {
	c := aCard("card:x", "routing", "", "regex:(", "regex:a*", "regex:"+strings.Repeat("a", MaxRegex+1), "regex:a{1000}b{900}", strings.Repeat("k", MaxKeyword+1), "prefix: ")
	c.Origin = capability.Origin{Path: "cards/x.md"}
	c.Triggers.TimeOfDay = []string{"teatime", "00:00-24:00"}
	regexes := aCard("card:many")
	for i := range MaxRegexes + 2 {
		regexes.Triggers.Keywords = append(regexes.Triggers.Keywords, "regex:x"+strings.Repeat("y", i))
	}
	crowd := aCard("card:crowd")
	for i := range MaxKeywords + 1 {
		crowd.Triggers.Keywords = append(crowd.Triggers.Keywords, "k"+strings.Repeat("y", i%50)+string(rune('a'+i/50)))
	}
	s := set(c, regexes, crowd)
	got := []string{}
	for _, p := range s.Problems() {
		if p.Code != "card-trigger" || p.Subject == "" || p.Fix == "" || p.Severity != capability.Warning {
			t.Errorf("problem %+v, want a code, a subject, a fix and a warning", p)
		}
		got = append(got, p.String())
	}
	for i, want := range []string{
		`keyword "" is left out: it is empty`, `keyword "regex:(" is left out: the expression does not compile`,
		`keyword "regex:a*" is left out: the expression matches the empty text`, `the expression is longer than 200 bytes`,
		"the expression repeats too much", "it is longer than 100 bytes", `keyword "prefix: " is left out: it is empty`,
		`timeOfDay "teatime" is unreadable and never matches; write a range`,
		"the catalog has 16 regular expressions already", "the catalog has 16 regular expressions already",
		"card:crowd: has 201 keywords; the first 200 count",
	} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Fatalf("problem %d of %q, want %q", i, got, want)
		}
	}
	if len(got) != 11 || !strings.HasPrefix(got[0], "cards/x.md: warning: card:x: ") {
		t.Errorf("problems = %q, want 11, the first with its file", got)
	}
	x := said("how does routing work")
	x.Now = time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	if got := passed(s.Select(x, Config{})); !slices.Equal(got, []string{"card:x"}) {
		t.Errorf("passed %v, want card:x by its good keyword", got)
	}
}

func TestCommonWordsAreWeak(t *testing.T) {
	if a := judgeOne(t, aCard("card:x", "cost", "costs", "Costing", "budget"), said("cost"), Config{}); a.Passed || len(a.Matched) != 3 {
		t.Errorf("one word spelt thrice: %+v, want it to count once", a)
	}
	if a := judgeOne(t, aCard("card:x", "search"), talk("u: hello", "a: search"), Config{}); a.Passed {
		t.Errorf("the assistant's word alone: passed with %.3f, want it kept out", a.Score)
	}
}

// TestLanguages: the description says which language the keywords are in.
func TestLanguages(t *testing.T) {
	described := func(text string, keywords ...string) *capability.Capability {
		c := aCard("card:x", keywords...)
		c.Description = text
		return c
	}
	if a := judgeOne(t, described("Wie wir mit Mahnungen und Rechnungen umgehen", "Mahnung", "Rechnung"), said("Mahnungen"), Config{}); !a.Passed {
		t.Errorf("a German card and a German word: %+v, want it passed", a)
	}
	a := judgeOne(t, described("Wie wir mit den Rechnungen der Kunden umgehen", "Rechnung", "Rechnungen", "budget"), said("die Rechnung"), Config{})
	if b := judgeOne(t, aCard("card:x", "invoice", "invoices", "budget"), said("the invoice"), Config{}); a.Score != b.Score {
		t.Errorf("one German word spelt twice scores %.3f, an English one %.3f; want the same", a.Score, b.Score)
	}
}

// TestStopWordsCallForNothing: a keyword that nearly every message contains is
// left out of the evidence and reported; the seed's formula still uses it.
func TestStopWordsCallForNothing(t *testing.T) {
	german := aCard("card:german", "der", "und")
	german.Description = "Was in der Buchhaltung und bei den Steuern zu tun ist"
	for _, test := range []struct {
		card *capability.Capability
		text string
	}{
		{aCard("card:x", "the"), "what is the weather"},
		{aCard("card:x", "is"), "what is the weather"},
		{aCard("card:x", "substring:is"), "this is it"},
		{aCard("card:x", "prefix:the"), "the weather"},
		{german, "der Wetterbericht und die Lage"},
	} {
		s := set(test.card)
		if got := passed(s.Select(said(test.text), Config{})); len(got) > 0 {
			t.Errorf("%q calls for the card of %q", test.text, test.card.Triggers.Keywords)
		}
		if got := s.Problems(); len(got) == 0 || !strings.Contains(got[0].Message, "is ignored: it is a stop word") || !strings.Contains(got[0].Message, test.card.Triggers.Keywords[0]) {
			t.Errorf("problems of %q are %v, want one that names the keyword", test.card.Triggers.Keywords, got)
		}
	}
	// A card that does not say which language it is in.
	if got := passed(set(aCard("card:x", "der")).Select(said("der Wetterbericht und die Lage für den Tag"), Config{})); len(got) > 0 {
		t.Errorf("a stop word of the message calls for %v", got)
	}
	if a := judgeOne(t, aCard("card:x", "is"), said("what is it"), Config{Scorer: ScorerSeed}); !a.Passed {
		t.Errorf("by the seed's formula: %+v, want it passed", a)
	}
	if a := judgeOne(t, aCard("card:x", "the", "kubernetes"), said("the kubernetes cluster"), Config{}); !a.Passed || len(a.Matched) != 1 {
		t.Errorf("beside a telling word: %+v, want it passed by that word alone", a)
	}
}

func TestSharedKeywordsAreWeaker(t *testing.T) {
	build := func(shared, all int) *Set {
		var list []*capability.Capability
		for i := range all {
			c := aCard("card:" + string(rune('A'+i)))
			c.Triggers.Keywords = []string{"special" + string(rune('a'+i))}
			if i < shared {
				c.Triggers.Keywords = append(c.Triggers.Keywords, "docker")
			}
			list = append(list, c)
		}
		return Compile(list)
	}
	for _, test := range []struct {
		shared, all int
		want        int
	}{{1, 30, 1}, {2, 2, 2}, {2, 30, 2}, {25, 30, 0}} {
		if got := passed(build(test.shared, test.all).Select(said("docker"), Config{})); len(got) != test.want {
			t.Errorf("a keyword of %d in %d cards: %d passed, want %d", test.shared, test.all, len(got), test.want)
		}
	}
}

func TestEmptySets(t *testing.T) {
	var none *Set
	for _, s := range []*Set{none, Compile(nil), Compile([]*capability.Capability{nil, {ID: "tool:x"}})} {
		if got := s.Select(said("routing"), Config{}); got != nil || s.Len() != 0 || s.Problems() != nil {
			t.Errorf("Select of an empty set = %v with %d cards, want none", got, s.Len())
		}
		if a, ok := s.Judge(0, said("routing"), Config{}); ok {
			t.Errorf("Judge of an empty set = %+v, want none", a)
		}
	}
	s := Compile([]*capability.Capability{{ID: "tool:x"}, tokenEconomy(), {ID: "card:bare", Triggers: &capability.Triggers{}}})
	if got := s.Select(said("how does routing work"), Config{}); len(got) != 1 || got[0].Ordinal != 1 || s.Len() != 2 {
		t.Errorf("Select = %+v of %d, want ordinal 1 of 2 cards", got, s.Len())
	}
}

func TestLongMessagesAreBounded(t *testing.T) {
	filler := strings.Repeat("lorem ipsum ", 1<<20/12)
	for _, test := range []struct {
		text string
		want bool
	}{
		{"how does routing work: " + filler, true},
		{filler + " how does routing work", true},
		{filler + " how does routing work " + filler, false},
		{strings.Repeat("x", 1<<20) + " routing", true},
		{"界" + strings.Repeat("界x", 1<<19) + " routing", true},
		// The cut goes through a word whose halves are a keyword.
		{strings.Repeat(" ", MaxMessage/2-7) + "routingtable" + strings.Repeat(" ", MaxMessage), false},
		{strings.Repeat(" ", MaxMessage) + "tablerouting" + strings.Repeat(" ", MaxMessage/2-7), false},
	} {
		if a := judgeOne(t, tokenEconomy(), said(test.text), Config{}); a.Passed != test.want {
			t.Errorf("%d bytes %.20q…: passed %v, want %v", len(test.text), test.text, a.Passed, test.want)
		}
	}
}
