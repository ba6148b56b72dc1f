package eval

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/language"
)

// Parameters of plain BM25, as everybody uses them.
const (
	saturation = 1.2  // k1
	lengthPull = 0.75 // b
	mostRepeat = 2    // a word of the query counts at most so often
)

// stopWords say nothing about what is wanted.
const stopWords = "a about after all also am an and any are as at be been but by can could did do does for from " +
	"get had has have he help her him his how i if in into is it its just know let like me my need of on or our " +
	"please she should so some than that the their them then there these they this those to up us want was we " +
	"were what when where which who why will with would you your"

// PlainBM25 is the finder to be beaten: BM25 over one bag of words, in which
// the name counts twice and the description, the names of the parameters and
// the category once. Identifiers are split, words stemmed as the index does, stop words left
// out. Equal scores keep the order of the corpus. Its scores are no
// probabilities, it has no floor, and it abstains only where no word matches.
//
// The finder is safe for any number of goroutines.
func PlainBM25(corpus []*capability.Capability) Finder {
	p := &plain{stop: map[string]bool{}, posts: map[string][]post{}}
	for w := range strings.FieldsSeq(stopWords) {
		p.stop[w] = true
	}
	for _, c := range corpus {
		p.add(c)
	}
	return p.find
}

// A plain is an inverted index.
type plain struct {
	stop    map[string]bool
	posts   map[string][]post // by word
	ids     []string
	lengths []float64
	total   float64 // of all lengths
}

// A post is how often a word stands in a document.
type post struct {
	doc   int
	count float64
}

func (p *plain) add(c *capability.Capability) {
	doc := len(p.ids)
	name := p.words(nil, c.Name)
	words := p.words(append(name, name...), c.Description)
	for _, param := range c.Parameters {
		words = p.words(words, param.Name)
	}
	words = p.words(words, c.Category)
	counts := map[string]float64{}
	for _, w := range words {
		counts[w]++
	}
	for w, n := range counts {
		p.posts[w] = append(p.posts[w], post{doc, n})
	}
	p.ids = append(p.ids, string(c.ID))
	p.lengths = append(p.lengths, float64(len(words)))
	p.total += float64(len(words))
}

func (p *plain) find(ctx context.Context, q Query) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	words := p.words(nil, q.Text)
	slices.Sort(words) // equal words together; sums in one order
	scores := make([]float64, len(p.ids))
	var matched []int
	for len(words) > 0 {
		w, n := words[0], 1
		for n < len(words) && words[n] == w {
			n++
		}
		words = words[n:]
		posts := p.posts[w]
		weight := float64(min(n, mostRepeat)) * p.rarity(len(posts))
		for _, post := range posts {
			if scores[post.doc] == 0 {
				matched = append(matched, post.doc)
			}
			scores[post.doc] += weight * p.presence(post)
		}
	}
	slices.SortFunc(matched, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	a := Answer{Abstained: len(matched) == 0}
	for _, doc := range matched[:min(depth, len(matched))] {
		a.Hits = append(a.Hits, Ranked{p.ids[doc], scores[doc]})
	}
	return a, nil
}

// rarity is how much a word says that this many documents hold.
func (p *plain) rarity(holding int) float64 {
	docs, n := float64(len(p.ids)), float64(holding)
	return math.Log(1 + (docs-n+0.5)/(n+0.5))
}

// presence is how much a document is about a word.
func (p *plain) presence(at post) float64 {
	length := p.lengths[at.doc] * float64(len(p.ids)) / p.total
	return at.count * (saturation + 1) / (at.count + saturation*(1-lengthPull+lengthPull*length))
}

// words appends the words of a text: letters and digits of any script, split
// where lower case turns to upper, lowered, without stop words, and stemmed.
func (p *plain) words(out []string, text string) []string {
	runes := []rune(text)
	for start := 0; start < len(runes); {
		if !wordRune(runes[start]) {
			start++
			continue
		}
		end := start + 1
		for end < len(runes) && wordRune(runes[end]) && !turns(runes, end) {
			end++
		}
		if w := strings.ToLower(string(runes[start:end])); !p.stop[w] {
			out = append(out, language.Stem(w, language.English))
		}
		start = end
	}
	return out
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// turns reports whether a new word begins at i, as in aB and at the B of ABc.
func turns(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) {
		return false
	}
	if !unicode.IsUpper(runes[i-1]) {
		return true
	}
	return i+1 < len(runes) && unicode.IsLower(runes[i+1])
}
