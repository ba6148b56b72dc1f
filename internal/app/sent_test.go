package app

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestTheLogIsWhatWasSent: the log for people, the events and the statistics
// name exactly the cards and capabilities whose texts are in the request, in
// every delivery and over a conversation in which some are there already
// (S1.55, S1.57, S1.58).
func TestTheLogIsWhatWasSent(t *testing.T) {
	testkit.CI(t, "holds four conversations")
	card := func(name, keyword, body string) string {
		return fmt.Sprintf("---\ncapability_id: %s\ndescription: About %s\ntriggers:\n  keywords: [%s]\n---\n%s\n", name, name, keyword, body)
	}
	const ferry, bread = "The-ferry-lies-at-pier-nine.", "The-bread-costs-two-coins."
	for _, delivery := range []string{"auto", "bridge", "extend", "per_turn"} {
		t.Run(delivery, func(t *testing.T) {
			dir, getenv := home(t, map[string]string{
				".ken/ken.yaml":       "chat: {toolDelivery: " + delivery + "}\ncapabilities: {logLevel: detailed, maxTokens: 120}\n",
				".ken/cards/ferry.md": card("ferry", "ferry", ferry),
				".ken/cards/bread.md": card("bread", "bread", bread),
				".ken/cards/book.md":  strings.Replace(card("book", "ferry", strings.Repeat("This book is far too long for its budget. ", 60)), "capability_id", "priority: 1\ncapability_id", 1),
			})
			fake := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "OK."})}
			a := open(t, Config{Getenv: getenv, Model: fake})
			requests, _, all := converse(t, a, fake, []string{"when does the ferry leave?", "and is the ferry late?", "what does bread cost?", "count the words of a file"})
			if len(all) != len(requests) {
				t.Fatalf("%d selections are recorded of %d requests", len(all), len(requests))
			}
			injected := 0
			for i, e := range all {
				now := newest(requests, i, delivery == "per_turn")
				for _, it := range e.Items {
					text := map[string]string{"card:ferry": ferry, "card:bread": bread, "ferry": ferry, "bread": bread}[string(it.ID)]
					if text == "" {
						continue
					}
					if claimed := e.Injected && !it.Held && !it.There; claimed != strings.Contains(now, text) {
						t.Errorf("request %d: the log says that %s was sent: %v; the request says %v", i+1, it.ID, claimed, !claimed)
					} else if claimed {
						injected++
					}
				}
				for _, s := range e.Skipped {
					if s.ID == "book" && strings.Contains(s.Reason, "capabilities.maxTokens") && (s.Tokens == 0 || s.Score == 0 || strings.Contains(now, "This book")) {
						t.Errorf("request %d: skipped %+v, want its score, what it needed, and that it was not sent", i+1, s)
					}
				}
			}
			want := 2 // each card once: a card in the prompt is not sent again
			if delivery == "per_turn" {
				want = 0
				for i := range requests {
					now := newest(requests, i, true)
					want += strings.Count(now, ferry) + strings.Count(now, bread)
				}
			}
			if injected != want {
				t.Errorf("%d cards are recorded as sent, want %d", injected, want)
			}
			checkText(t, filepath.Join(dir, ".ken", "logs", "capabilities.log"), injected)
		})
	}
}

// newest returns what a request has in addition to the one before.
func newest(requests []llm.Request, i int, system bool) string {
	text := ""
	if system {
		text = requests[i].System + "\n"
	}
	last := requests[i].Messages[len(requests[i].Messages)-1]
	for _, b := range last.Blocks {
		text += b.Text + "\n"
	}
	return text
}

// checkText checks the log for people: the number of cards, named budgets, and
// no unknown score.
func checkText(t *testing.T, file string, cards int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^  (card:)?(ferry|bread) \(relevance: `).FindAllString(string(b), -1)); n != cards {
		t.Errorf("the log names %d cards, want %d:\n%s", n, cards, b)
	}
	if strings.Contains(string(b), "skipped") && strings.Contains(string(b), "relevance: 0.00") {
		t.Errorf("the log has a relevance of 0.00:\n%s", b)
	}
	if !regexp.MustCompile(`skipped (card:)?book \(.*tokens: \d+\): capabilities.maxTokens 120 has \d+ left`).Match(b) {
		t.Errorf("the log does not name the budget that kept the book out:\n%s", b)
	}
}
