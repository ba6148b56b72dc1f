package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

const economyCard = "docs/capabilities/token-economy.md"

// tokenEconomy is the seed's example, as it must come out.
func tokenEconomy() capability.Capability {
	return capability.Capability{
		ID: "token-economy", Kind: capability.KindCard, Name: "token-economy", DisplayName: "Token Economy Hooks",
		Description: "Model routing, context bundling, zero-token heartbeat", Category: "general",
		Triggers: &capability.Triggers{
			Keywords:     []string{"cost", "tokens", "model", "routing", "budget"},
			SessionTypes: []string{"main", "isolated"}, ConfidenceThreshold: 0.6,
		},
		Priority: 10, TokenBudget: 600, MaxChars: 2400, Trust: capability.TrustUser,
	}
}

func TestSeedsTokenEconomyVerbatim(t *testing.T) {
	object := seed(t, "token-economy.registry.yaml")
	trimmed := strings.TrimSpace(object)
	for name, text := range map[string]string{
		"capabilities.registry.yaml": object,
		"capabilities.registry.json": object,
		"registry.yaml":              "[\n" + trimmed + ",\n]\n",
		"registry.json":              "[" + trimmed + "]",
		"registry.yml":               "capabilities:\n- " + strings.ReplaceAll(trimmed, "\n", "\n  ") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := loaded(t, map[string]string{name: text, economyCard: cardText})
			p.clean()
			got := *p.one("token-economy")
			want := tokenEconomy()
			want.Origin, want.Hash = got.Origin, got.Hash
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("card (-want +got):\n%s", diff)
			}
			if d := p.detail("token-economy"); d.Body != strings.TrimSpace(cardText) {
				t.Errorf("body = %q", d.Body)
			}
		})
	}
}

func TestRegistryAndCardAreOne(t *testing.T) {
	registry := seed(t, "token-economy.registry.yaml")
	tests := []struct {
		name, card string
		change     func(*capability.Capability)
		problem    string
	}{
		{"the card says nothing", cardText, func(*capability.Capability) {}, ""},
		{"empty frontmatter", "---\n---\n" + cardText, func(*capability.Capability) {}, ""},
		{"the card says the same", "---\ncapability_id: token-economy\ntoken_budget: 600\npriority: 10\n---\n" + cardText, func(*capability.Capability) {}, ""},
		{"the card is whole by itself", "---\ncapability_id: token-economy\nname: Token Economy Hooks\ntriggers: {keywords: [cost, tokens, model, routing, budget]}\n---\n" + cardText, func(*capability.Capability) {}, ""},
		{"the card adds", "---\nversion: \"2\"\ntriggers: {router_tags: [money]}\n---\n" + cardText, func(c *capability.Capability) {
			c.Version, c.Triggers.RouterTags = "2", []string{"money"}
		}, ""},
		{"the card says otherwise", "---\npriority: 20\ntoken_budget: 500\ntriggers: {keywords: [price]}\n---\n" + cardText, func(c *capability.Capability) {
			c.Priority, c.TokenBudget, c.MaxChars, c.Triggers.Keywords = 20, 500, 2000, []string{"price"}
		}, "registry.yaml:2 warning registry-drift: the registry and "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := loaded(t, map[string]string{"registry.yaml": registry, economyCard: tt.card})
			if tt.problem == "" {
				p.clean()
			} else {
				p.wants(tt.problem, "triggers.keywords, priority, estimatedTokens")
				if len(p.Problems) != 1 {
					t.Errorf("problems:\n%swant one", p.list())
				}
			}
			got := *p.one("token-economy")
			want := tokenEconomy()
			tt.change(&want)
			want.Origin, want.Hash = got.Origin, got.Hash
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("card (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegistryProblemsNameTheRightFile(t *testing.T) {
	entry := "- id: x\n  filePath: cards/x.md\n  triggers: {keywords: [a]}\n"
	good := "- id: good\n  filePath: cards/good.md\n  triggers: {keywords: [a]}\n"
	tests := []struct{ name, registry, card, want string }{
		{"fault of the registry", entry + "  priority: 101\n", cardText, "registry.yaml:4 error priority: Priority out of range"},
		{"fault of the card", entry, "---\nversion: 1\npriority: 101\n---\n" + cardText, "cards/x.md:3 error priority: Priority out of range"},
		{"no keywords anywhere", "- id: x\n  filePath: cards/x.md\n", cardText, "registry.yaml:1 error keywords: Invalid triggers.keywords"},
		{"bad frontmatter", entry, "---\na: b: c\n---\n" + cardText, "cards/x.md:2 error bad-frontmatter"},
		{"unknown key", entry + "  colour: red\n", cardText, "registry.yaml:4 warning unknown-key: card has no key colour"},
		{"missing card", "- id: x\n  filePath: cards/gone.md\n", cardText, "registry.yaml:2 error missing-file: cards/gone.md: the file is not there"},
		{"no card", "- id: x\n  triggers: {keywords: [a]}\n", "", "registry.yaml:1 error bad-entry: an entry names no card"},
		{"absolute path", "- id: x\n  filePath: /etc/passwd\n", "", "registry.yaml:2 error leaves-root: /etc/passwd: Path traversal detected: absolute paths are refused"},
		{"not a card", "- id: x\n  filePath: cards/.env\n", "", "registry.yaml:2 error not-a-card: cards/.env: a card is a Markdown file"},
		{"not an entry", "- just text\n", "", "registry.yaml:1 error bad-entry: an entry is not written"},
		{"named twice", entry + entry, cardText, "registry.yaml:5 error duplicate-entry: cards/x.md is already named on line 2"},
		{"card that is not UTF-8", entry, "\xff" + cardText, "cards/x.md:1 error not-utf8"},
		{"short card", entry, "Short.\n", "cards/x.md warning card-size"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"registry.yaml": tt.registry + good, "cards/good.md": cardText, "cards/.env": "SECRET=1"}
			if tt.card != "" && tt.name != "missing card" {
				files["cards/x.md"] = tt.card
			}
			p := loaded(t, files)
			p.find("good")
			p.wants(tt.want)
		})
	}
	for text, want := range map[string]string{
		"filePath: [\n": "registry.yaml:1 error bad-registry",
		"# filePath\n":  "registry.yaml:1 error bad-registry: the registry lists no cards",
		"filePath\n":    "registry.yaml:1 error bad-registry: the registry lists no cards",
	} {
		loaded(t, map[string]string{"registry.yaml": text}).wants(want)
	}
}

// A card that the registry cannot bring still comes by itself.
func TestRegistryThatFailsLeavesTheCard(t *testing.T) {
	card := "---\nid: x\npriority: 7\ntriggers: {keywords: [own]}\n---\n" + cardText
	p := loaded(t, map[string]string{"registry.yaml": "- id: x\n  filePath: ../cards/x.md\n", "cards/x.md": card})
	if got := p.one("x"); got.Priority != 7 {
		t.Errorf("card = %+v, want its own", got)
	}
	p.wants("registry.yaml:2 error leaves-root: ../cards/x.md: Path traversal detected")
}

func TestRegistryBesideItsCards(t *testing.T) {
	p := loaded(t, map[string]string{
		"plugins/registry.yaml": "- id: a\n  filePath: here.md\n  triggers: {keywords: [a]}\n- id: b\n  filePath: top.md\n  triggers: {keywords: [b]}\n",
		"plugins/here.md":       cardText, "top.md": cardText, "plugins/top.md": "the wrong one",
	})
	p.find("a")
	if got := p.detail("b").Body; got != strings.TrimSpace(cardText) {
		t.Errorf("b = %q, want the file at the top of the tree", got)
	}
}

func TestOtherRegistriesAreLeftAlone(t *testing.T) {
	p := loaded(t, map[string]string{"registry.json": `{"$schema": "x", "items": [{"name": "button"}]}`, "registry.yaml": "image: registry:2\n"})
	if len(p.Capabilities) != 0 || len(p.Problems) != 1 || p.Problems[0].Code != "nothing-found" {
		t.Errorf("%d capabilities, want none, and one word that nothing was found; problems:\n%s", len(p.Capabilities), p.list())
	}
}

// A change of the card or of the registry is seen, whichever it is.
func TestRegistryRefresh(t *testing.T) {
	registry := "- id: x\n  filePath: texts/x.md\n  priority: %d\n  triggers: {keywords: [a]}\n"
	for name, own := range map[string]string{"a plain text": "", "a card by itself": "---\nid: x\ntriggers: {keywords: [a]}\n---\n"} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"registry.yaml": fmt.Sprintf(registry, 1), "texts/x.md": own + cardText, "cards/y.md": sourcetest.Card})
			p.load()
			if got := p.find("x").Priority; got != 1 {
				t.Fatalf("priority = %d, want 1", got)
			}
			steps := []struct {
				file, text string
				check      func(*capability.Capability) bool
			}{
				{"texts/x.md", own + cardText + "New words.", func(c *capability.Capability) bool {
					return strings.HasSuffix(p.detail("x").Body, "New words.")
				}},
				{"registry.yaml", fmt.Sprintf(registry, 2), func(c *capability.Capability) bool { return c.Priority == 2 }},
				{"texts/x.md", "---\npriority: 3\n---\n" + cardText, func(c *capability.Capability) bool { return c.Priority == 3 }},
			}
			for _, step := range steps {
				changed := sourcetest.Write(t, p.dir, step.file, step.text)
				var err error
				if p.Batch, err = p.tree.Refresh(t.Context(), []string{changed}); err != nil {
					t.Fatal(err)
				}
				if len(p.Capabilities) != 2 || !step.check(p.find("x")) {
					t.Errorf("after %s: %d capabilities, x = %+v; problems:\n%s", step.file, len(p.Capabilities), p.find("x"), p.list())
				}
			}
		})
	}
}

func TestRegistrySpeaksForCardsOnly(t *testing.T) {
	p := loaded(t, map[string]string{
		"registry.yaml": "- id: x\n  filePath: s/SKILL.md\n  triggers: {keywords: [a]}\n",
		"s/SKILL.md":    "---\nname: s\ndescription: d\n---\n" + cardText,
	})
	var ids []string
	for _, c := range p.Capabilities {
		ids = append(ids, string(c.ID))
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"skill:s", "x"}) {
		t.Errorf("capabilities = %q, want the skill and the card", ids)
	}
}

// TestCorruptLists: an unreadable file with the name of a list is reported,
// although no format recognises it. A file of another program is not.
func TestCorruptLists(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"registry.yaml", "entries: {{{\n", "registry.yaml error bad-list: registry.yaml cannot be read"},
		{"registry.yaml", "\x00\x01garbage", "registry.yaml error bad-list: registry.yaml cannot be read"},
		{"registry.yaml", "not a registry\n", "registry.yaml error bad-list: registry.yaml holds no list"},
		{"registry.json", `{"cards": [`, "registry.json error bad-list: registry.json cannot be read"},
		{"registry.yaml", "cards:\n  - {filePath: [a\n", "registry.yaml:2 error bad-registry"},
		{"capabilities.registry.yaml", "- [a\n", "error bad-registry"},
		{"sub/presets.yaml", "- [a\n", "presets.yaml"},
		{"channels.yml", "x: [\n", "channels.yml:1 error bad-list"},
		{"registry.yaml", "tools: [a, b]\n", ""},
		{"registry.yaml", "", ""},
	} {
		p := loaded(t, map[string]string{tt.name: tt.text, "x/SKILL.md": "---\nname: x\ndescription: d\n---\nx\n"})
		p.one("skill:x")
		got := p.list()
		if tt.want == "" && len(p.Problems) > 0 || !strings.Contains(got, tt.want) {
			t.Errorf("%s with %q: problems %s, want %q", tt.name, tt.text, got, tt.want)
		}
	}
}
