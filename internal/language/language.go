// Package language provides stop words and stemmers for sixteen languages. It
// is the only place that removes inflection from words: the search index and
// the keywords of cards both use it.
package language

import (
	"math/bits"
	"strings"
	"sync"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// English is the language of a text in which no other is recognised.
const English = 0

// Count is the number of languages; they are numbered from 0.
const Count = len(languages)

// Name returns the English name of a language.
func Name(lang int) string { return languages[lang].name }

// A language has a stemmer and stop words.
type language struct {
	name string
	stem func(*snowballstem.Env) bool
	stop string // words
}

// languages are numbered by their index; [English] is the first.
var languages = [...]language{
	{"english", english.Stem, `a about all am an and any are as at be been but by can could did do does for
		from had has have how i if in into is it its just let like may me might my need no not of on or our out
		please shall she he should so some than that the their them then there these they this to too up us use using
		want was we were what when where which who why will with would you your s t ve re ll d m also
		im ive whats dont doesnt didnt cant couldnt wont isnt arent hows lets youre thats theres`},
	{"german", german.Stem, `der die das den dem des ein eine einen einem einer und oder ist sind war ich du er
		sie es wir ihr mich mir dich dir mit von zu zum zur auf für in im an am aus bei nach über wie was wer wo wann
		warum bitte kann kannst könnte nicht auch noch mein meine dein sich als dass wird werden haben hat habe`},
	{"french", french.Stem, `le la les un une des du de et ou est sont était je tu il elle nous vous ils me te se
		mon ma mes ton ta tes son sa ses avec pour par sur dans en au aux que qui quoi comment où quand pourquoi
		peux peut pas ne plus ce cette ces mais si veux voudrais être avoir`},
	{"spanish", spanish.Stem, `el la los las un una unos unas de del y o es son era yo tú él ella nosotros me te
		se mi mis tu tus su sus con para por en al que qué cómo dónde cuándo quién no más este esta estos pero si
		quiero puedes puede necesito favor`},
	{"portuguese", portuguese.Stem, `o os as um uma uns umas de do da dos das e ou é são era eu ele ela nós me
		te se meu minha seu sua com para por em no na nos nas ao que como onde quando quem não mais este esta mas
		quero pode você preciso`},
	{"italian", italian.Stem, `il lo la i gli le un uno una di del della dei delle e o è sono era io tu lui lei
		noi mi ti si mio mia tuo con per su in nel nella al alla che chi come dove quando perché non più questo questa
		ma se voglio puoi può vorrei`},
	{"dutch", dutch.Stem, `de het een en of is zijn was ik jij je hij zij wij we mij me mijn jouw met van voor op
		in aan uit bij naar over hoe wat wie waar wanneer waarom kan kun niet ook nog dit dat deze die maar wil graag`},
	{"swedish", swedish.Stem, `den det de en ett och eller är var jag du han hon vi ni mig dig min din med av för
		på i till från hur vad vem var när varför kan inte också som att men vill`},
	{"danish", danish.Stem, `den det de en et og eller er var jeg du han hun vi mig dig min din med af for på i
		til fra hvordan hvad hvem hvor hvornår hvorfor kan ikke også som at men vil`},
	{"norwegian", norwegian.Stem, `den det de en et og eller er var jeg du han hun vi meg deg min din med av for
		på i til fra hvordan hva hvem hvor når hvorfor kan ikke også som å men vil`},
	{"finnish", finnish.Stem, `ja tai on ovat oli minä sinä hän me te he minun sinun kanssa että mitä miten missä
		milloin miksi kuka voi voit ei myös tämä se mutta jos haluan`},
	{"hungarian", hungarian.Stem, `a az egy és vagy van volt én te ő mi ti ők hogy mit hogyan hol mikor miért ki
		nem is ez ezt azt de ha kérem szeretném`},
	{"romanian", romanian.Stem, `un o și sau este sunt era eu tu el ea noi voi mă te se meu mea cu pentru pe în la
		din că ce cum unde când cine nu mai acest această dar dacă vreau poți`},
	{"turkish", turkish.Stem, `bir ve veya bu şu ben sen biz siz onlar bana sana için ile de da ne nasıl nerede
		zaman neden kim mi mı değil çok ama lütfen`},
	{"russian", russian.Stem, `и или в во на с со к по из за от до для о об не я ты он она мы вы они мне меня мой
		это этот что как где когда почему кто а но если хочу можно пожалуйста есть был`},
	{"arabic", arabic.Stem, `و في من على إلى عن مع هذا هذه ما كيف أين متى لماذا لا أن أو هل أريد`},
}

// stops are the stop words of all languages.
type stops struct {
	in      map[string]uint32 // bit i stands for languages[i]
	lengths [256]uint64       // of the words that begin with a byte: bit n stands for n bytes
}

// stopIn is built on first use, because not every process searches.
var stopIn = sync.OnceValue(func() *stops {
	all := &stops{in: map[string]uint32{}}
	for i, l := range languages {
		for w := range strings.FieldsSeq(l.stop) {
			all.in[w] |= 1 << i
			all.lengths[w[0]] |= 1 << len(w)
		}
	}
	return all
})

// StopWords returns the stop words of a language.
func StopWords(lang int) []string { return strings.Fields(languages[lang].stop) }

// StopIn returns the languages in which a lower-cased word is a stop word, bit i
// for language i.
func StopIn(word string) uint32 {
	all := stopIn()
	if word == "" || all.lengths[word[0]]>>len(word)&1 == 0 { // most words
		return 0
	}
	return all.in[word]
}

// IsStop reports whether a lower-cased word is a stop word of a language.
func IsStop(word string, lang int) bool { return StopIn(word)&(1<<lang) != 0 }

// A Guess counts stop words of a text by language. Its zero value is ready to use.
type Guess struct{ hits [Count]int }

// Add counts a lower-cased word.
func (g *Guess) Add(word string) { g.AddIn(StopIn(word)) }

// AddIn is Add for a word whose [StopIn] is known.
func (g *Guess) AddIn(stop uint32) {
	for ; stop != 0; stop &= stop - 1 {
		g.hits[bits.TrailingZeros32(stop)]++
	}
}

// Language returns the language of the text. A text with few words, or with
// words of several languages, counts as English.
func (g *Guess) Language() int {
	best := English
	for i := range languages {
		if g.hits[i] >= 2 && g.hits[i] > g.hits[best]+1 {
			best = i
		}
	}
	return best
}

// Possible returns the languages other than English that the text may be in:
// those with at least as many stop words in it as English. It returns none if
// the text has no stop word.
func (g *Guess) Possible() (mask uint32) {
	for i, n := range g.hits {
		if i != English && n > 0 && n >= g.hits[English] {
			mask |= 1 << i
		}
	}
	return mask
}

// longestStemmed is longer than any real word, in bytes. Longer words are not
// stemmed, because some stemmers take quadratic time.
const longestStemmed = 128

// Stem returns the stem of a lower-cased word in a language.
func Stem(word string, lang int) string {
	if len(word) < 3 || len(word) > longestStemmed {
		return word
	}
	env := snowballstem.NewEnv(word)
	languages[lang].stem(env)
	return env.Current()
}
