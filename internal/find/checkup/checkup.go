// Package checkup examines how well the capabilities of a catalog can be told
// apart, without labelled messages. It asks for each capability in the words of
// its own description, and says which others come first instead, and which
// descriptions to improve. Real messages have other words: what cannot be found
// here is not found in use either, but the reverse is not true.
package checkup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/find/eval"
	"ken/internal/find/outcome"
	"ken/internal/know/index"
)

// A Report is what a check-up showed.
type Report struct {
	Capabilities int `json:"capabilities"` // that were asked for
	Requests     int `json:"requests"`     // that were made of their descriptions

	// Of the requests: how many had the capability as the first hit, and among
	// the first three; and how many are shown nothing.
	First int `json:"first"`
	Three int `json:"three"`
	Empty int `json:"empty"`

	Confusable []Pair   `json:"confusable"` // the most confused first
	Improve    []Advice `json:"improve"`    // the worst first
	BuiltIn    int      `json:"builtIn"`    // parts of Ken with advice, which is left out: only a new version of Ken changes them
}

// A Pair is two capabilities that are taken for each other.
type Pair struct {
	ID    capability.ID `json:"id"`             // what was asked for
	With  capability.ID `json:"with"`           // what came first instead
	Lost  int           `json:"lost"`           // in so many requests,
	Of    int           `json:"of"`             // of so many
	Turns int           `json:"turns"`          // turns of the outcome log in which With was shown first and ID used
	Only  []string      `json:"only,omitempty"` // words that only ID has
}

// Advice says how to improve a description.
type Advice struct {
	ID   capability.ID `json:"id"`
	Lost int           `json:"lost"` // requests that had something else first, or nothing
	Of   int           `json:"of"`
	How  []string      `json:"how"`

	overview int // of the lost: those that are questions about abilities, which the map answers
}

// Run asks for every capability. mistaken is what the outcome log says; it may
// be empty.
func Run(ctx context.Context, find eval.Finder, corpus []*capability.Capability, mistaken []outcome.Mistaken) (Report, error) {
	r := Report{Confusable: []Pair{}, Improve: []Advice{}}
	known := map[string]*capability.Capability{}
	for _, c := range corpus {
		known[string(c.ID)] = c
	}
	pairs := map[[2]capability.ID]*Pair{}
	pair := func(id, with capability.ID) *Pair {
		p := pairs[[2]capability.ID{id, with}]
		if p == nil {
			p = &Pair{ID: id, With: with, Only: onlyWords(known[string(id)], known[string(with)])}
			pairs[[2]capability.ID{id, with}] = p
		}
		return p
	}
	for _, m := range mistaken {
		if known[string(m.Shown)] != nil && known[string(m.Used)] != nil {
			pair(m.Used, m.Shown).Turns += m.Turns
		}
	}
	said := sameTexts(corpus)
	for _, c := range corpus {
		if c.Kind == capability.KindCard { // its triggers decide, not its words
			continue
		}
		r.Capabilities++
		a := Advice{ID: c.ID}
		rivals := map[capability.ID]int{}
		for _, text := range Requests(c) {
			answer, err := find(ctx, eval.Query{Text: text})
			if err != nil {
				return Report{}, fmt.Errorf("find %q: %w", text, err)
			}
			r.Requests++
			a.Of++
			place := slices.IndexFunc(answer.Hits, func(h eval.Ranked) bool { return h.ID == string(c.ID) })
			if place >= 0 && place < 3 {
				r.Three++
			}
			switch {
			case answer.Abstained:
				r.Empty++
				a.Lost++
			case place == 0:
				r.First++
			case len(answer.Hits) == 0:
				a.Lost++
				a.overview++
			default:
				a.Lost++
				if first := capability.ID(answer.Hits[0].ID); known[string(first)] != nil {
					rivals[first]++
				}
			}
		}
		for with, n := range rivals {
			p := pair(c.ID, with)
			p.Lost, p.Of = n, a.Of
		}
		a.How = advise(c, a, rivals, said, known)
		switch {
		case len(a.How) == 0:
		case c.Trust == capability.TrustBuiltin:
			r.BuiltIn++
		default:
			r.Improve = append(r.Improve, a)
		}
	}
	for _, p := range pairs {
		r.Confusable = append(r.Confusable, *p)
	}
	coldsort.By(r.Confusable, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Turns, a.Turns), cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.ID, b.ID), cmp.Compare(a.With, b.With))
	})
	coldsort.Stable(r.Improve, func(a, b Advice) int {
		return cmp.Or(cmp.Compare(b.Lost*max(a.Of, 1), a.Lost*max(b.Of, 1)), cmp.Compare(len(b.How), len(a.How)), cmp.Compare(a.ID, b.ID))
	})
	return r, nil
}

const (
	fewWords      = 3  // that a description must have beyond the name
	longSentence  = 40 // words
	mostOnly      = 6  // words that tell two apart
	mostRequested = 24 // words of a request
)

// advise says how a description could be improved.
func advise(c *capability.Capability, a Advice, rivals map[capability.ID]int, said map[string][]capability.ID, known map[string]*capability.Capability) (how []string) {
	beyond := without(wordsOf(c.Description), wordsOf(c.Name))
	switch {
	case strings.TrimSpace(c.Description) == "":
		how = append(how, "it has no description: say in one sentence what it does, with what, and when to use it")
	case len(beyond) < fewWords:
		how = append(how, "its description says hardly more than its name: add what it works on, and when to use it")
	}
	if _, ok := index.DocumentOf(c); !ok {
		how = append(how, "its description is not in English, so the models inside Ken cannot read it: describe it in English, or set discovery.embeddingModelId and discovery.embeddingUrl to a multilingual model")
	}
	if list := said[textKey(c)]; len(list) > 1 {
		other := list[0]
		if other == c.ID {
			other = list[1]
		}
		how = append(how, fmt.Sprintf("%s has the same description: say what each is for", other))
	} else if with, n := worst(rivals); n > 0 {
		how = append(how, apart(c, known[string(with)], n, a.Of))
	}
	if a.overview > 0 {
		how = append(how, "a request in its own words is a question about what Ken can do, which an overview answers: name the thing it works on")
	}
	if empty := a.Lost - a.overview - total(rivals); empty > 0 && len(beyond) >= fewWords {
		how = append(how, "asked for in its own words, nothing is shown: name the thing it works on in the words that people use")
	}
	if first, _ := sentence(c.Description); len(strings.Fields(first)) > longSentence {
		how = append(how, fmt.Sprintf("its first sentence has %d words: begin with a short one that says what it does", len(strings.Fields(first))))
	}
	return how
}

// apart says how to tell a capability from the one that came first instead.
func apart(c, rival *capability.Capability, n, of int) string {
	text := fmt.Sprintf("in %d of %d requests in its own words, %s comes first: ", n, of, rival.ID)
	if only := onlyWords(c, rival); len(only) > 0 {
		return text + "begin the description with what the other does not do (the other lacks the words " + strings.Join(only, ", ") + ")"
	}
	return text + "nothing in the description is its own; say what it does that the other does not"
}

func worst(rivals map[capability.ID]int) (id capability.ID, most int) {
	for with, n := range rivals {
		if n > most || n == most && with < id {
			id, most = with, n
		}
	}
	return id, most
}

func total(rivals map[capability.ID]int) (n int) {
	for _, k := range rivals {
		n += k
	}
	return n
}

// sameTexts returns the capabilities by their descriptions.
func sameTexts(corpus []*capability.Capability) map[string][]capability.ID {
	out := map[string][]capability.ID{}
	for _, c := range corpus {
		if key := textKey(c); key != "" {
			out[key] = append(out[key], c.ID)
		}
	}
	return out
}

func textKey(c *capability.Capability) string {
	return strings.ToLower(strings.Join(strings.Fields(c.Description), " "))
}

// wordsOf returns the words of a text that say something, as they are indexed.
func wordsOf(text string) (out []string) {
	for _, t := range index.AppendTokens(nil, text) {
		if t.Joined == 0 && !index.IsStop(t.Text, index.EnglishLanguage) {
			out = append(out, index.Stem(t.Text, index.EnglishLanguage))
		}
	}
	return out
}

func without(list, others []string) (out []string) {
	for _, w := range list {
		if !slices.Contains(others, w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// onlyWords returns words that one capability has and another lacks, as they
// stand in its name and description. Scripts without spaces have none: their
// texts are indexed by pairs of characters.
func onlyWords(c, other *capability.Capability) (out []string) {
	theirs := wordsOf(other.Name + ". " + other.Description)
	for _, t := range index.AppendTokens(nil, c.Name+". "+c.Description) {
		stem := index.Stem(t.Text, index.EnglishLanguage)
		if t.Joined == 0 && !t.Digits && !unspaced(t.Text) && !index.IsStop(t.Text, index.EnglishLanguage) && !slices.Contains(theirs, stem) && !slices.Contains(out, t.Text) {
			if out = append(out, t.Text); len(out) == mostOnly {
				break
			}
		}
	}
	return out
}

func unspaced(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) })
}
