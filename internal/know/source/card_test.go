package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
)

var cardText = strings.Repeat("Saves tokens by routing. ", 12) // within 200 to 800 characters

func TestCardReadsEveryFieldInBothSpellings(t *testing.T) {
	snake := `---
capability_id: token-economy
name: Token Economy Hooks
description: Model routing, context bundling
version: 1.10
category: cost
tags: [money, tokens]
triggers:
  keywords: [cost, tokens]
  session_types: [main]
  confidence_threshold: 0.7
  router_tags: [budget]
  time_of_day: [morning, evening]
  user_tier: [premium]
  environment_type: [production]
priority: 10
token_budget: 600
max_chars: 1000
migrations:
  - from: "1.0"
    note: keywords were renamed
---
`
	camel := strings.NewReplacer("capability_id", "capabilityId", "session_types", "sessionTypes", "confidence_threshold", "confidenceThreshold",
		"router_tags", "routerTags", "time_of_day", "timeOfDay", "user_tier", "userTier", "environment_type", "environmentType",
		"token_budget", "estimatedTokens", "max_chars", "maxChars").Replace(snake)
	for name, head := range map[string]string{"snake": snake, "camel": camel} {
		t.Run(name, func(t *testing.T) {
			p := loaded(t, map[string]string{"cards/x.md": head + cardText})
			p.clean()
			got := *p.one("token-economy")
			want := capability.Capability{
				ID: "token-economy", Kind: capability.KindCard, Name: "token-economy", DisplayName: "Token Economy Hooks",
				Description: "Model routing, context bundling", Category: "cost", Tags: []string{"money", "tokens"},
				Triggers: &capability.Triggers{
					Keywords: []string{"cost", "tokens"}, SessionTypes: []string{"main"}, RouterTags: []string{"budget"},
					TimeOfDay: []string{"morning", "evening"}, UserTier: []string{"premium"}, EnvironmentType: []string{"production"},
					ConfidenceThreshold: 0.7,
				},
				Priority: 10, TokenBudget: 600, MaxChars: 1000, Version: "1.10",
				Migrations: []capability.Migration{{From: "1.0", To: "1.10", Note: "keywords were renamed"}},
				Origin:     got.Origin, Trust: capability.TrustUser, Hash: got.Hash,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("card (-want +got):\n%s", diff)
			}
			if d := p.detail("token-economy"); d.Body != strings.TrimSpace(cardText) {
				t.Errorf("body = %q, want it without frontmatter", d.Body)
			}
		})
	}
}

func TestCardDefaults(t *testing.T) {
	p := loaded(t, map[string]string{
		"cards/bare.md":   "---\ncapability_id: bare\ntriggers: {keywords: [x]}\n---\n" + cardText,
		"cards/budget.md": "---\ncapability_id: budget\ntriggers: {keywords: [x]}\ntoken_budget: 600\n---\n" + cardText,
	})
	p.clean()
	c := p.find("bare")
	if tr := c.Triggers; !slices.Equal(tr.SessionTypes, []string{"main", "isolated"}) || tr.ConfidenceThreshold != 0.6 {
		t.Errorf("triggers = %+v, want main, isolated and 0.6", tr)
	}
	if c.Priority != 5 || c.MaxChars != 3200 {
		t.Errorf("priority %d, max_chars %d, want 5 and 3200", c.Priority, c.MaxChars)
	}
	if c.Description == "" {
		t.Error("no description, want the first paragraph of the text")
	}
	if got := p.find("budget").MaxChars; got != 2400 {
		t.Errorf("max_chars for a budget of 600 = %d, want 2400", got)
	}
}

// seedWords returns the messages that a seed's example throws.
func seedWords(t *testing.T, name string) []string {
	t.Helper()
	var words []string
	for _, m := range regexp.MustCompile(`throw new Error\("([^"]+)"\)`).FindAllStringSubmatch(seed(t, name), -1) {
		words = append(words, m[1])
	}
	return words
}

func TestCardRefusesInTheSeedsWords(t *testing.T) {
	words := seedWords(t, "validate-frontmatter.ts")
	if len(words) != 3 {
		t.Fatalf("the seed throws %q, want three messages", words)
	}
	budget, keywords, priority := words[0], words[1], words[2]
	tests := []struct {
		name, head string
		line       int
		code, want string
	}{
		{"budget", "id: x\ntriggers: {keywords: [a]}\ntoken_budget: 2001\n", 4, "token-budget", budget},
		{"budget in the other spelling", "id: x\nestimatedTokens: 99999999999\ntriggers: {keywords: [a]}\n", 3, "token-budget", budget},
		{"budget by characters", "id: x\nmax_chars: 8001\ntriggers: {keywords: [a]}\n", 3, "token-budget", budget},
		{"negative budget", "id: x\ntoken_budget: -1\ntriggers: {keywords: [a]}\n", 3, "token-budget", "negative"},
		{"keywords as text", "id: x\ntriggers:\n  keywords: cost\n", 4, "keywords", keywords},
		{"keywords as map", "id: x\ntriggers:\n  sessionTypes: [main]\n  keywords: {a: b}\n", 5, "keywords", keywords},
		{"no keywords", "id: x\ntriggers:\n  sessionTypes: [main]\n", 4, "keywords", keywords},
		{"triggers as text", "id: x\ntriggers: cost\n", 3, "keywords", keywords},
		{"no triggers", "id: x\nname: y\n", 2, "keywords", keywords},
		{"priority above", "id: x\ntriggers: {keywords: [a]}\npriority: 101\n", 4, "priority", priority},
		{"priority below", "id: x\npriority: -1\ntriggers: {keywords: [a]}\n", 3, "priority", priority},
		{"threshold", "id: x\ntriggers:\n  keywords: [a]\n  confidence_threshold: 1.5\n", 5, "threshold", "not within 0 to 1"},
		{"id of two lines", "triggers: {keywords: [a]}\nid: \"a\\nb\"\n", 3, "bad-id", "control character"},
		{"bad YAML", "id: x\ntriggers: {keywords: [a}\n", 3, "bad-frontmatter", ""},
		{"key given twice", "id: x\nid: y\ntriggers: {keywords: [a]}\n", 3, "bad-frontmatter", "already"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := loaded(t, map[string]string{
				"cards/bad.md":  "---\n" + tt.head + "---\n" + cardText,
				"cards/good.md": "---\nid: good\ntriggers: {keywords: [a]}\n---\n" + cardText,
			})
			p.one("good")
			p.wants(fmt.Sprintf("cards/bad.md:%d error %s: %s", tt.line, tt.code, ""), tt.want)
			if n := len(p.Problems); n != 1 {
				t.Errorf("%d problems, want one:\n%s", n, p.list())
			}
		})
	}
}

func TestCardSaysAllThatIsWrongAtOnce(t *testing.T) {
	p := loaded(t, map[string]string{
		"cards/x.md": "---\nid: x\ntoken_budget: 2001\npriority: 101\nversion: [1]\ndescripton: y\ntriggers:\n  keywords: cost\n  confidence_threshold: 2\n---\n" + cardText,
	})
	for _, want := range []string{
		"cards/x.md:3 error token-budget", "cards/x.md:4 error priority", "cards/x.md:8 error keywords", "cards/x.md:9 error threshold",
		"cards/x.md:5 warning bad-value: version is a list, want text; write version: and one text",
		"cards/x.md:6 warning unknown-key: card has no key descripton; it is kept as metadata; did you mean description?",
	} {
		p.wants(want)
	}
	if len(p.Capabilities) != 0 || len(p.Problems) != 6 {
		t.Errorf("%d capabilities, want none; problems, want six:\n%s", len(p.Capabilities), p.list())
	}
}

func TestLinesInMessagesAreTheFilesLines(t *testing.T) {
	p := loaded(t, map[string]string{
		"cards/x.md": "---\nid: x\nid: y\ntriggers: {keywords: [a]}\n---\n" + cardText,
		"cards/y.md": "---\nid: y\nmax_chars: 900\nmaxChars: 901\ntriggers: {keywords: [a]}\n---\n" + cardText,
	})
	p.wants("cards/x.md:3 error bad-frontmatter: key id is already given on line 2; keep one of them")
	p.wants("cards/y.md:4 warning bad-value: maxChars repeats max_chars of line 3; keep one of them")
}

func TestCardAtTheLimitsIsTaken(t *testing.T) {
	p := loaded(t, map[string]string{
		"cards/a.md": "---\nid: a\ntriggers: {keywords: []}\ntoken_budget: 2000\npriority: 100\n---\n" + cardText,
		"cards/b.md": "---\nid: b\ntriggers: {keywords: [x], confidence_threshold: 0}\npriority: 0\n---\n" + cardText,
	})
	if got := p.find("a"); got.TokenBudget != 2000 || got.Priority != 100 || got.MaxChars != 8000 {
		t.Errorf("card a = %+v, want 2000 tokens, 8000 characters, priority 100", got)
	}
	if got := p.find("b"); got.Priority != 0 || got.Triggers.ConfidenceThreshold != 0 {
		t.Errorf("card b = %+v, want priority and threshold 0 as written", got)
	}
	p.wants("cards/a.md warning card-no-keywords")
}

func TestCardWarnings(t *testing.T) {
	head := "---\nid: x\ntriggers: {keywords: [a]}\n"
	tests := []struct{ name, text, want string }{
		{"short", head + "---\nShort.\n", "cards/x.md warning card-size: the card has 6 characters; cards read best with 200 to 800; lengthen the text below the frontmatter to 200–800 characters"},
		{"long", head + "---\n" + strings.Repeat("word ", 200), "cards/x.md warning card-size: the card has 999 characters; cards read best with 200 to 800; shorten the text below"},
		{"empty", head + "---\n", "cards/x.md warning card-empty"},
		{"over its budget", head + "token_budget: 10\n---\n" + cardText, "cards/x.md warning card-over-budget"},
		{"unknown key", head + "colour: red\n---\n" + cardText, "cards/x.md:4 warning unknown-key: card has no key colour"},
		{"unknown trigger", "---\nid: x\ntriggers:\n  keywords: [a]\n  moon: full\n---\n" + cardText, "cards/x.md:5 warning unknown-key: card has no key triggers.moon"},
		{"priority as text", head + "priority: high\n---\n" + cardText, "cards/x.md:4 warning bad-value: priority is text"},
		{"keyword of no use", "---\nid: x\ntriggers:\n  keywords: [a, '']\n---\n" + cardText, "cards/x.md:4 warning bad-value: an empty keyword"},
		{"two spellings", head + "max_chars: 900\nmaxChars: 800\n---\n" + cardText, "cards/x.md:5 warning bad-value: maxChars repeats max_chars"},
		{"no id", "---\ntriggers: {keywords: [a]}\n---\n" + cardText, "cards/x.md:2 warning card-id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := loaded(t, map[string]string{"cards/x.md": tt.text})
			p.one("x")
			p.wants(tt.want)
			if n := len(p.Problems); n != 1 {
				t.Errorf("%d problems, want one:\n%s", n, p.list())
			}
		})
	}
	p := loaded(t, map[string]string{"cards/x.md": head + "colour: red\nextra: {a: 1}\n---\n" + cardText})
	if got := p.one("x").Meta; got["colour"] != "red" || got["extra"] != `{"a":1}` {
		t.Errorf("Meta = %v, want what the card said", got)
	}
}

func TestWhichFilesAreCards(t *testing.T) {
	card := "---\nid: %s\ntriggers: {keywords: [a]}\n---\n" + cardText
	p := loaded(t, map[string]string{
		"cards/a.md":                  fmt.Sprintf(card, "a"),
		"docs/capabilities/b.md":      fmt.Sprintf(card, "b"),
		"anywhere/c.md":               fmt.Sprintf(card, "c"),
		"cards/README.md":             "# The cards\n",
		"docs/capabilities/readme.md": "---\ntriggers: {keywords: [a]}\n---\n",
		"notes/prose.md":              "# Notes\n\ntriggers: none\n",
		"notes/about.md":              "---\ntitle: about cards\n---\nA card says\ntriggers: so\n",
		"cards/lost.md":               "# No frontmatter\n",
	})
	var ids []string
	for _, c := range p.Capabilities {
		ids = append(ids, string(c.ID))
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("cards = %q, want a, b, c", ids)
	}
	p.wants("cards/lost.md:1 error bad-frontmatter: the card has no frontmatter")
	if len(p.Problems) != 1 {
		t.Errorf("problems:\n%swant one", p.list())
	}
}

func TestSeedsAdditionalTriggersAreRead(t *testing.T) {
	for _, m := range regexp.MustCompile(`(\w+)\?: string\[\];\s+// e\.g\., (\[[^\]]+\])`).FindAllStringSubmatch(seed(t, "additional-triggers.ts"), -1) {
		p := loaded(t, map[string]string{"cards/x.md": "---\nid: x\ntriggers:\n  keywords: [a]\n  " + m[1] + ": " + m[2] + "\n---\n" + cardText})
		p.clean()
		tr := p.one("x").Triggers
		if got := len(tr.TimeOfDay) + len(tr.UserTier) + len(tr.EnvironmentType); got != 2 {
			t.Errorf("%s: %s gives %+v, want its two words", m[1], m[2], tr)
		}
	}
}
