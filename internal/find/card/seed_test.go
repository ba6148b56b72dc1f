package card

import (
	"strings"
	"testing"

	"ken/capability"
)

// The golden table of the seed's formula, computed by hand:
// matched/total*0.7 + min(occurrences/100, 1)*0.3.
func TestT02SeedGolden(t *testing.T) {
	five := []string{"cost", "tokens", "model", "routing", "budget"}
	six := append([]string{"cheap"}, five...)
	for _, test := range []struct {
		name     string
		keywords []string
		messages []string
		want     float64
		passes   bool
	}{
		{"K1.01, five keywords", five, []string{"Explain model routing, the budget and the cost in tokens"}, 0.7 + 0.05*0.3, true},
		{"K1.01, six keywords", six, []string{"Explain model routing, the budget and the cost in tokens"}, 5.0/6*0.7 + 0.05*0.3, false},
		{"S1.24 none", five, []string{"hello"}, 0, false},
		{"S1.24 empty message", five, []string{""}, 0, false},
		{"one of five", five, []string{"what does it cost"}, 0.14 + 0.003, false},
		{"four of five", five, []string{"cost tokens model routing"}, 0.56 + 0.012, false},
		{"S1.23 case", five, []string{"COST Tokens mOdEl ROUTING budget"}, 0.7 + 0.015, true},
		{"S1.23 joined", five, []string{"cost tokens", "model", "routing budget"}, 0.7 + 0.015, true},
		{"case of the keyword", []string{"Cost"}, []string{"cost"}, 0.7 + 0.003, true},
		{"substring", five, []string{"Costco remodels"}, 0.28 + 0.006, false},
		{"keyword over the join", []string{"model routing"}, []string{"a model", "routing it"}, 0.7 + 0.003, true},
		{"S1.26 density", five, []string{strings.Repeat("cost ", 50)}, 0.14 + 0.15, false},
		{"S1.26 density is capped", five, []string{strings.Repeat("cost ", 500)}, 0.14 + 0.3, false},
		{"K1.02 the audit example", five, []string{strings.Repeat("cost tokens model routing budget ", 10)}, 0.85, true},
		{"occurrences do not overlap", []string{"aa"}, []string{"aaaaa"}, 0.7 + 0.006, true},
		{"keywords may overlap each other", []string{"token", "tokens"}, []string{"tokens"}, 0.7 + 0.006, true},
		{"a keyword twice counts twice", []string{"cost", "cost", "x"}, []string{"cost"}, 2.0/3*0.7 + 0.006, false},
		{"literal c++", []string{"c++"}, []string{"C++ and c+++"}, 0.7 + 0.006, true},
		{"literal .env", []string{".env"}, []string{"xenv .env"}, 0.7 + 0.003, true},
		{"last five only", []string{"cost", "tokens"}, []string{"tokens", "1", "2", "3", "4", "cost"}, 0.35 + 0.003, false},
		{"the fifth back counts", []string{"cost", "tokens"}, []string{"0", "tokens", "2", "3", "4", "cost"}, 0.7 + 0.006, true},
		{"other scripts", []string{"成本", "預算"}, []string{"成本和成本"}, 0.35 + 0.006, false},
	} {
		c := aCard("card:x", test.keywords...)
		a := judgeOne(t, c, said(test.messages...), Config{Scorer: ScorerSeed})
		if !near(a.Score, test.want) || a.Passed != test.passes {
			t.Errorf("%s: score %v, passed %v, want %v, %v", test.name, a.Score, a.Passed, test.want, test.passes)
		}
		if a.SeedScore != a.Score {
			t.Errorf("%s: SeedScore = %v, want the score %v", test.name, a.SeedScore, a.Score)
		}
		if b := judgeOne(t, c, said(test.messages...), Config{}); !near(b.SeedScore, test.want) {
			t.Errorf("%s: beside evidence SeedScore = %v, want %v", test.name, b.SeedScore, test.want)
		}
	}
}

func TestS122SeedNoMessages(t *testing.T) {
	for _, test := range []struct {
		priority int
		want     float64
	}{{10, 0.1}, {7, 0.07}, {100, 1}, {0, 0}, {250, 1}, {-5, 0}} {
		c := tokenEconomy()
		c.Priority = test.priority
		if a := judgeOne(t, c, Context{}, Config{Scorer: ScorerSeed}); !near(a.Score, test.want) {
			t.Errorf("priority %d: score %v, want %v", test.priority, a.Score, test.want)
		}
	}
}

func TestSeedIgnoresRoles(t *testing.T) {
	x := talk("t: cost tokens", "a: model routing", "s: budget")
	if a := judgeOne(t, tokenEconomy(), x, Config{Scorer: ScorerSeed}); !near(a.Score, 0.715) || !a.Passed {
		t.Errorf("score %v, passed %v, want 0.715, true", a.Score, a.Passed)
	}
}

func TestS121SeedFiltersFirst(t *testing.T) {
	c := tokenEconomy()
	x := said("cost tokens model routing budget")
	x.Scope = capability.Scope{SessionType: "cron"}
	if a := judgeOne(t, c, x, Config{Scorer: ScorerSeed}); a.Passed || a.Score != 0 || a.Why != "sessionTypes wants main, isolated, the session is cron" {
		t.Errorf("%+v, want it kept out by its session type, without a score", a)
	}
}

// naiveSeed is the formula as it is written in the seed.
func naiveSeed(keywords, messages []string) float64 {
	text := fold(strings.Join(messages[max(0, len(messages)-5):], " "))
	matched, count := 0, 0
	for _, k := range keywords {
		if n := strings.Count(text, fold(k)); n > 0 {
			matched++
			count += n
		}
	}
	if matched == 0 {
		return 0
	}
	return float64(matched)/float64(len(keywords))*0.7 + min(float64(count)/100, 1)*0.3
}
