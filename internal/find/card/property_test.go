package card

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/language"
)

var pieces = []string{
	"cost", "tokens", "model", "routing", "budget", "a", "aa", "ab", "b", "c++", ".env", "model routing", "成本", "本", "é", "É",
	"the", "Costs", "route", "  ", "-", "\n", "👍", "İ", "ﬁ", "x",
}

func drawText(t *rapid.T, label string, most int) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, most).Draw(t, label), rapid.SampledFrom([]string{"", " "}).Draw(t, label+" joined by"))
}

func drawSet(t *rapid.T) []*capability.Capability {
	var list []*capability.Capability
	for i := range rapid.IntRange(0, 12).Draw(t, "cards") {
		c := aCard(fmt.Sprintf("card:%d", i%9))
		c.Priority = rapid.IntRange(-3, 103).Draw(t, "priority")
		for range rapid.IntRange(0, 5).Draw(t, "keywords") {
			notation := rapid.SampledFrom([]string{"", "", "", "prefix:", "substring:", "word:"}).Draw(t, "notation")
			if text := strings.TrimSpace(drawText(t, "keyword", 3)); text != "" {
				c.Triggers.Keywords = append(c.Triggers.Keywords, notation+text)
			}
		}
		c.Triggers.ConfidenceThreshold = rapid.SampledFrom([]float64{0, 0.1, 0.6, 0.9, 1}).Draw(t, "threshold")
		c.Triggers.SessionTypes = rapid.SampledFrom([][]string{nil, {"main"}, {"isolated"}}).Draw(t, "session")
		c.Triggers.RouterTags = rapid.SampledFrom([][]string{nil, nil, {"x"}}).Draw(t, "tags")
		list = append(list, c)
	}
	return list
}

func drawContext(t *rapid.T) Context {
	var x Context
	for range rapid.IntRange(0, 8).Draw(t, "messages") {
		text := drawText(t, "text", 12)
		if rapid.IntRange(0, 4).Draw(t, "wild") == 0 {
			text += rapid.String().Draw(t, "any") + string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes"))
		}
		x.Messages = append(x.Messages, Message{rapid.SampledFrom([]string{"user", "assistant", "tool", "", "system"}).Draw(t, "role"), text})
	}
	x.RouterTags = rapid.SampledFrom([][]string{nil, {"x"}}).Draw(t, "routed")
	x.Shown = rapid.SampledFrom([][]capability.ID{nil, {"card:0", "card:3"}}).Draw(t, "shown")
	return x
}

func TestVerdictsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, x := drawSet(t), drawContext(t)
		s := Compile(list)
		cfg := Config{Scorer: rapid.SampledFrom([]string{"", ScorerSeed}).Draw(t, "scorer")}
		got := s.Select(x, cfg)
		if again := Compile(list).Select(x, cfg); !reflect.DeepEqual(got, again) {
			t.Fatalf("Select = %+v, and then %+v, want the same twice", got, again)
		}
		listed := map[int]bool{}
		for i, a := range got {
			if a.Score < 0 || a.Score > 1 || a.SeedScore < 0 || a.SeedScore > 1 || a.Threshold < 0 || a.Threshold > 1 {
				t.Fatalf("%+v, want scores and thresholds within 0–1", a)
			}
			if a.Passed != (a.Score > 0 && a.Score >= a.Threshold) || a.Why == "" {
				t.Fatalf("%+v, want it to pass exactly at its threshold, with a reason", a)
			}
			if i > 0 && before(got[i-1], a) >= 0 {
				t.Fatalf("%+v stands before %+v, want a total order", got[i-1], a)
			}
			if listed[a.Ordinal] || list[a.Ordinal].ID != a.ID {
				t.Fatalf("%+v, want each card once under its ordinal", a)
			}
			listed[a.Ordinal] = true
		}
		for ordinal := range list {
			a, ok := s.Judge(ordinal, x, cfg)
			if !ok {
				t.Fatalf("Judge(%d) finds no card", ordinal)
			}
			i := slices.IndexFunc(got, func(b Asked) bool { return b.Ordinal == ordinal })
			if i >= 0 && !reflect.DeepEqual(a, got[i]) {
				t.Fatalf("Judge(%d) = %+v, want what Select says: %+v", ordinal, a, got[i])
			}
			if i < 0 && (a.Passed || len(a.Matched) > 0) {
				t.Fatalf("Judge(%d) = %+v, which Select leaves out", ordinal, a)
			}
		}
	})
}

// The automaton counts what strings.Count counts.
func TestSeedAgreesWithTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := aCard("card:x")
		for range rapid.IntRange(1, 6).Draw(t, "keywords") {
			text := drawText(t, "keyword", 3)
			if fold(strings.TrimSpace(text)) != "" {
				c.Triggers.Keywords = append(c.Triggers.Keywords, strings.TrimSpace(text))
			}
		}
		var x Context
		var texts []string
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			texts = append(texts, drawText(t, "text", 12))
			x.Messages = append(x.Messages, Message{rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "role"), texts[len(texts)-1]})
		}
		s := Compile([]*capability.Capability{aCard("card:0", "model", "abc", "aab"), c})
		for _, scorer := range []string{ScorerSeed, ScorerEvidence} {
			a, _ := s.Judge(1, x, Config{Scorer: scorer})
			if want := naiveSeed(c.Triggers.Keywords, texts); !near(a.SeedScore, want) {
				t.Fatalf("keywords %q in %q: SeedScore = %v, want %v", c.Triggers.Keywords, texts, a.SeedScore, want)
			}
		}
	})
}

// findWords passes over words that begin as no word of a known stem does.
func TestWordsOfAStemAreLookedAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{2,9}(s|es|ies|ied|ing|ed|tion|ment|ization|ungen|en|er|eux|ción|ções|mente|lar|ok|ssa)?`).Draw(t, "word")
		for lang := range language.Count {
			stem := language.Stem(word, lang)
			if utf8.RuneCountInString(stem) < 2 {
				continue // no stem of a keyword that is a word by itself
			}
			v := vocabulary{}
			v.begin(stem)
			if !v.mayKnow([]byte(word)) {
				t.Fatalf("%s: %q, whose stem is %q, is passed over", language.Name(lang), word, stem)
			}
		}
	})
}

// A call leaves nothing behind for the next one, nor for those beside it.
func TestCallsDoNotMix(t *testing.T) {
	build := func() *Set {
		return set(tokenEconomy(), aCard("card:x", "search"), aCard("card:y", "c++", `regex:a\d`, "prefix:deploy"))
	}
	contexts := []Context{
		said("search c++ a1"), talk("u: hello", "a: search c++ a1"), said("nothing"), {}, said("how does routing work"), said("deploying with docker"), said("成本"),
	}
	want := make([][]Asked, len(contexts))
	for i, x := range contexts {
		want[i] = build().Select(x, Config{})
	}
	s := build()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 200 {
				i := n * (g + 1) % len(contexts)
				if got := s.Select(contexts[i], Config{}); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("Select(%v) = %+v, want %+v", contexts[i].Messages, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

func FuzzSelect(f *testing.F) {
	f.Add("cost", "prefix:deploy", "what does it cost", "user")
	f.Add("regex:a+b", "c++", "aab c++", "assistant")
	f.Add("成本", "word:regex:(", "成本\xff\xfe", "tool")
	f.Add("substring:\x00", ".env", "👍\u200d\u0301", "")
	f.Fuzz(func(t *testing.T, one, two, text, role string) {
		s := set(aCard("card:a", one, two), aCard("card:b", two))
		x := Context{Messages: []Message{{role, text}, {"user", text}}}
		for _, scorer := range []string{ScorerEvidence, ScorerSeed} {
			for _, a := range s.Select(x, Config{Scorer: scorer}) {
				if !(a.Score >= 0 && a.Score <= 1) {
					t.Errorf("%q, %q in %q: score %v, want 0–1", one, two, text, a.Score)
				}
			}
		}
	})
}
