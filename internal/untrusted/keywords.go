package untrusted

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A topic is a set of keywords. A rule runs only on a text that has its topics,
// so that ordinary text costs one pass over its bytes.
type topic uint64

const (
	tIgnore    topic = 1 << iota // ignore, forget
	tNewOrder                    // new instructions
	tNotObey                     // do not follow
	tPersona                     // you are now
	tPrompt                      // your system prompt
	tTell                        // tell, inform, mention
	tUntold                      // not be told
	tCovert                      // secretly, without
	tSecret                      // ~/.ssh, .env
	tKey                         // api keys
	tDecode                      // decode and
	tForeign                     // ignore, in other languages with Latin letters
	tForeignIn                   // instructions, in those
	tRole                        // system, assistant
	tToken                       // <|
	tHide                        // display:none
	tComment                     // <!--
	tImage                       // ![
	tRot13                       // ignore, instructions in rot13
	tReversed                    // the same written backwards
	tEscape                      // %20, &#105;, \u0069
	tControl                     // a control character
	tNotASCII                    // a byte that is not ASCII
	tAbove                       // disregard
)

// A keyword is a topic and the words that mean it, separated by blanks.
type keyword struct {
	topic topic
	words string
}

// keywords returns the words of all topics, in lower-case ASCII. Case makes no
// difference, nor do the digits and signs that stand for letters (1gn0r3). An
// underscore stands for whatever is between two words.
func keywords() []keyword {
	return []keyword{
		{tIgnore, "ignore disregard forget overlook neglect discard"},
		{tAbove, "disregard"},
		{tNewOrder, crossed("new updated revised real actual true secret hidden overriding following these", "instruct")},
		{tNotObey, crossed("not don_t never stop cease longer refuse_to", "follow obey comply adher listen heed respect honor honour")},
		{tPersona, "you_are_now from_now_on your_new your_real your_true your_only jailbr god_mode dan_mode do_anything_now"},
		{tPrompt, "system_prompt your_prompt your_instruct your_initial initial_instruct hidden_instruct original_instruct"},
		{tTell, crossed("not don_t never without avoid", "tell inform mention notif reveal disclos alert report show let")},
		{tUntold, "not_be_notif not_be_inform not_be_told not_be_aware not_be_made not_know not_see_this not_notice"},
		{tCovert, "secretly_ silently_ covertly_ quietly_ stealthily_ without_the_user without_the_human without_user without_human hide_this hide_it hide_the conceal_this conceal_it conceal_the keep_this keep_it"},
		{tSecret, ".ssh id_rsa id_ed255 id_ecdsa .env .aws .netrc .npmrc .pypirc .git_cred .kube mcp.json desktop_config etc_passwd etc_shadow private_key seed_phrase"},
		{tKey, "credentials api_key secret_key keychain environment_variable"},
		{tDecode, "decode decrypt deobfusc"},
		{tForeign, "ignor olvid oubli esquec dimentic descart desconsider vergiss vergess missacht negeer vergeet zignoruj pomin yoksay gormezden unutun abaikan lupakan"},
		{tForeignIn, "instruc instruk istruzion anweisung vorgab indicacion consigne directiv polecen talimat perintah huong_dan regeln ordenes"},
		{tRole, "system assistant human developer tool: user: tool_: user_: ai: function: important> critical> tool_result function_result function_call tool_call tool_response tool_output"},
		{tToken, "<| inst] of_turn> prompt] tools] results] <<sys"},
		{tHide, "display:none display:_none visibility:h visibility:_h font_size:o font_size:_o opacity:o opacity:_o color:white color:_white color:#fff color:_#fff color:trans color:_trans"},
		{tComment, "<!-- [//] [comment]"},
		{tImage, "!["},
		{tRot13, "vtaber vafgehpgvba qvfertneq cerivbhf"},
		{tReversed, "erongi noitcurtsni dragersid suoiverp"},
		{tEscape, `% & \u \x`},
	}
}

// crossed returns every word of the first list followed by every word of the
// second.
func crossed(first, second string) string {
	var b strings.Builder
	for _, f := range strings.Fields(first) {
		for _, s := range strings.Fields(second) {
			b.WriteString(f + "_" + s + " ")
		}
	}
	return b.String()
}

// A symbol is what the automaton knows of a byte. Bytes that no keyword
// contains are all symbol 0.
const (
	symOther = iota
	symForeign
	symControl
	symFirst // the first one given to a byte that keywords contain
	symMax   = 64
)

// An automaton finds all keywords in one pass (Aho and Corasick's method, with
// the failure links resolved into the table).
type automaton struct {
	symbol [256]uint8
	next   []uint32 // by state + symbol; a state is its row's place in next
	topics []topic  // by state / width
	width  uint32   // of a row
	noisy  uint32   // states from here on have topics
}

var keywordAutomaton = sync.OnceValue(func() *automaton {
	a := &automaton{}
	t := newTrie(&a.symbol)
	for _, k := range keywords() {
		for _, w := range strings.Fields(k.words) {
			t.add(w, k.topic)
		}
	}
	t.addSymbols([]uint8{symControl}, tControl)
	t.addSymbols([]uint8{symForeign}, tNotASCII)
	t.resolve(a)
	return a
})

// same lists the characters that stand for one another in a keyword.
var same = [...]string{"iIlL1", "oO0", "eE3", "aA4@", "sS5$", "tT7", "bB8"}

// A trie is the automaton while it is built.
type trie struct {
	symbol *[256]uint8
	used   uint8
	next   [][symMax]int32
	topics []topic
	// afterOther tells the states reached by symOther. They stay where they are
	// at another one, so that any number of blanks may stand between two words.
	afterOther []bool
}

func newTrie(symbol *[256]uint8) *trie {
	for c := range symbol {
		switch {
		case c >= 0x80:
			symbol[c] = symForeign
		case c < ' ' && c != '\n' && c != '\t' && c != '\r', c == 0x7F:
			symbol[c] = symControl
		}
	}
	return &trie{symbol: symbol, used: symFirst, next: make([][symMax]int32, 1), topics: make([]topic, 1), afterOther: make([]bool, 1)}
}

func (t *trie) add(word string, topic topic) {
	syms := make([]uint8, len(word))
	for i := range len(word) {
		syms[i] = t.symbolOf(word[i])
	}
	t.addSymbols(syms, topic)
}

// symbolOf returns c, and what stands for c, a symbol of its own.
func (t *trie) symbolOf(c byte) uint8 {
	if c == '_' {
		return symOther
	}
	if t.symbol[c] == symOther {
		group := string([]byte{c, upper(c)})
		for _, g := range same {
			if strings.IndexByte(g, c) >= 0 {
				group = g
			}
		}
		for i := range len(group) {
			t.symbol[group[i]] = t.used
		}
		t.used++
	}
	return t.symbol[c]
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func (t *trie) addSymbols(syms []uint8, topic topic) {
	state := int32(0)
	for _, s := range syms {
		if t.next[state][s] == 0 {
			t.next = append(t.next, [symMax]int32{})
			t.topics = append(t.topics, 0)
			t.afterOther = append(t.afterOther, false)
			t.next[state][s] = int32(len(t.next) - 1)
		}
		state = t.next[state][s]
		t.afterOther[state] = s == symOther
	}
	t.topics[state] |= topic
}

// resolve fills in a, with the states that have topics at the end of the table.
func (t *trie) resolve(a *automaton) {
	fail := make([]int32, len(t.next))
	order := []int32{0}
	for i := 0; i < len(order); i++ {
		state := order[i]
		t.topics[state] |= t.topics[fail[state]]
		for s, child := range t.next[state] {
			viaFail := int32(0)
			if state != 0 {
				viaFail = t.next[fail[state]][s]
			}
			if child == 0 && s == symOther && t.afterOther[state] {
				t.next[state][s] = state
				continue
			}
			if child == 0 {
				t.next[state][s] = viaFail
				continue
			}
			fail[child] = viaFail
			order = append(order, child)
		}
	}
	a.width = uint32(t.used)
	number := make([]uint32, len(t.next))
	n := uint32(0)
	for _, noisy := range []bool{false, true} {
		if noisy {
			a.noisy = n
		}
		for state, topics := range t.topics {
			if (topics != 0) == noisy {
				number[state] = n
				a.topics = append(a.topics, topics)
				n += a.width
			}
		}
	}
	a.next = make([]uint32, n)
	for state, row := range t.next {
		for s, to := range row[:a.width] {
			a.next[int(number[state])+s] = number[to]
		}
	}
}

// A gist is what the automaton found: the topics, and where their keywords
// end. The hits are not in order.
type gist struct {
	topics topic
	hits   []keywordHit
}

type keywordHit struct {
	topics topic
	end    int32 // the last byte of the keyword
}

// quietTopics only say that a text has to be looked at more closely; where they
// occur is of no use, and some occur in every line.
const quietTopics = tEscape | tControl | tNotASCII | tRole | tToken | tComment | tRot13 | tReversed

// spans returns the parts of text within room bytes of the topics' keywords,
// apart from one another and in order.
func (g *gist) spans(text string, topics topic, room int) [][2]int {
	var places []int
	for _, h := range g.hits {
		if h.topics&topics != 0 {
			places = append(places, int(h.end))
		}
	}
	return spansAround(text, places, room)
}

// spansAround returns the parts of text within room bytes of the places, apart
// from one another and in order, cut between characters.
func spansAround(text string, places []int, room int) [][2]int {
	slices.Sort(places)
	var spans [][2]int
	for _, p := range places {
		lo, hi := max(p-room, 0), min(p+room, len(text))
		for lo > 0 && !utf8.RuneStart(text[lo]) {
			lo--
		}
		for hi < len(text) && !utf8.RuneStart(text[hi]) {
			hi++
		}
		if n := len(spans); n > 0 && lo <= spans[n-1][1] {
			spans[n-1][1] = max(spans[n-1][1], hi)
			continue
		}
		spans = append(spans, [2]int{lo, hi})
	}
	return spans
}

// starts returns where words begin that a keyword of the topics, of one word or
// of a few, may have begun at, in order.
func (g *gist) starts(text string, topics topic) []int {
	var out []int
	for _, h := range g.hits {
		if h.topics&topics == 0 {
			continue
		}
		for i := int(h.end); i >= 0 && i > int(h.end)-keywordRoom; i-- {
			if wordByte(text[i]) && (i == 0 || !wordByte(text[i-1])) {
				out = append(out, i)
				if h.topics&oneWord != 0 {
					break
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// oneWord are the topics whose keywords are single words.
const oneWord = tIgnore | tAbove | tDecode | tForeign

// keywordRoom is more than any keyword takes, blanks between its words included.
const keywordRoom = 96

func wordByte(c byte) bool { return alnum(c) || c >= utf8.RuneSelf }

// gistOf reads text once. It goes through the two halves side by side, because
// each step has to wait for the one before it in its half.
func gistOf(text string, g *gist) {
	a := keywordAutomaton()
	next, symbol, noisy := a.next, &a.symbol, a.noisy
	half := len(text) / 2
	left, right := text[:half], text[half:]
	var l, r uint32
	for i := 0; i < len(left) && i < len(right); i++ {
		l = next[int(l)+int(symbol[left[i]])]
		r = next[int(r)+int(symbol[right[i]])]
		if l >= noisy {
			g.note(a.topics[l/a.width], int32(i))
		}
		if r >= noisy {
			g.note(a.topics[r/a.width], int32(half+i))
		}
	}
	if len(right) > len(left) {
		if r = next[int(r)+int(symbol[right[len(right)-1]])]; r >= noisy {
			g.note(a.topics[r/a.width], int32(len(text)-1))
		}
	}
	// A keyword may lie across the middle.
	for i := 0; l != 0 && i < len(right); i++ {
		if l = next[int(l)+int(symbol[right[i]])]; l >= noisy {
			g.note(a.topics[l/a.width], int32(half+i))
		}
	}
}

func (g *gist) note(topics topic, at int32) {
	g.topics |= topics
	if topics &^= quietTopics; topics != 0 {
		g.hits = append(g.hits, keywordHit{topics, at})
	}
}
