package card

import (
	"fmt"
	"strings"
	"testing"

	"ken/capability"
)

// manyCards makes cards with six keywords each, some of them shared.
func manyCards(n int) []*capability.Capability {
	words := strings.Fields("cost tokens model routing budget telegram calendar event deploy docker kubernetes invoice refund postgres backup memory search")
	var list []*capability.Capability
	for i := range n {
		list = append(list, aCard(fmt.Sprintf("card:%05d", i),
			words[i%len(words)], fmt.Sprintf("topic%d", i), fmt.Sprintf("thing%d handling", i), fmt.Sprintf("prefix:area%d", i), fmt.Sprintf("name-%d", i), fmt.Sprintf("c%d++", i)))
	}
	return list
}

func conversation() Context {
	return talk(
		"u: Our nightly import has been failing since Tuesday. Can you look at what happened and tell me whether we lost anything?",
		"a: I looked at the logs of the last three nights. The import stopped at the second step each time because the connection was closed by the other side; nothing was lost, and the rows are still waiting in the queue.",
		"u: Good. Please run it again, and write a short note to the team about it.",
		"a: The import ran and took eleven minutes. I wrote the note and put it where the others are.",
		"u: Thanks! How does the routing decide which one gets the request, and what does topic17 have to do with it?")
}

func BenchmarkSelect(b *testing.B) {
	x := conversation()
	for _, n := range []int{0, 1, 20, 200, 2000, 15000} {
		s := Compile(manyCards(n))
		for _, scorer := range []string{ScorerEvidence, ScorerSeed} {
			b.Run(fmt.Sprintf("cards=%d/%s", n, scorer), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Select(x, Config{Scorer: scorer})
				}
			})
		}
	}
}

func BenchmarkSelectLongText(b *testing.B) {
	s := Compile(manyCards(200))
	x := talk("t: "+strings.Repeat("the quick brown fox ", 1<<20/20), "u: "+strings.Repeat("the cost of routing ", 1<<20/20))
	b.ReportAllocs()
	for b.Loop() {
		s.Select(x, Config{})
	}
}
