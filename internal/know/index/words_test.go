package index

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"ken/internal/language"
	"ken/internal/testkit/indextest"
)

// show writes tokens down: a word with its pieces in brackets, a number with a
// hash, a pair with a plus, and a bar where a clause ends.
func show(tokens []Token) string {
	var b strings.Builder
	clause := 0
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		for ; clause < t.Clause; clause++ {
			b.WriteString("| ")
		}
		switch {
		case t.Digits:
			b.WriteByte('#')
		case t.Pair:
			b.WriteByte('+')
		}
		b.WriteString(t.Text)
		if t.Joined > 0 {
			var pieces []string
			for _, p := range tokens[i+1 : i+1+t.Joined] {
				pieces = append(pieces, p.Text)
			}
			fmt.Fprintf(&b, "%v", pieces)
			i += t.Joined
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"Search the web":              "search the web",
		"search_web":                  "search web",
		"search-web":                  "search web",
		"search.web":                  "search web",
		"searchWeb":                   "searchweb[search web]",
		"SearchWeb":                   "searchweb[search web]",
		"getHTTPPage":                 "gethttppage[get http page]",
		"HTTPServer":                  "httpserver[http server]",
		"parseJSON":                   "parsejson[parse json]",
		"HTTP":                        "http",
		"iPhone":                      "iphone[i phone]",
		"GitHub_listPRs":              "github[git hub] listprs[list p rs]",
		"base64Encode":                "base #64 encode",
		"v2":                          "v2[2]",
		"a1b22":                       "a1b22[1 22]",
		"upload to S3, then k8s":      "upload to s3[3] | then k8s[8]",
		"0x7f":                        "0x7f[0 7]",
		"open PRs of APIs":            "open pr of api",
		"٣ items":                     "#٣ items",
		"don't":                       "don t",
		"user@host.example":           "user host example",
		"one. two, three; 4.5 a.b":    "one | two | three | #4 #5 a b",
		"one\ntwo\n\nthree":           "one | two | | three",
		"one\r\ntwo":                  "one | two",
		"ends.":                       "ends",
		"天気。予報":                       "+天気 | +予報",
		"天":                           "+天",
		"天気予報":                        "+天気 +気予 +予報",
		"サーバーに接続":                     "+サー +ーバ +バー +ーに +に接 +接続",
		"날씨 예보":                       "+날씨 +예보",
		"อากาศ":                       "+อา +าก +กา +าศ",
		"mailを送る":                     "mail +を送 +送る",
		"送るmail2通":                    "+送る mail #2 +通",
		"Straße ÜBER":                 "straße über",
		"naïveÉcole":                  "naïveécole[naïve école]",
		"e\u0301te\u0301":             "e\u0301te\u0301",
		"E\u0301TE\u0301":             "e\u0301te\u0301",
		"Прогноз погоды":              "прогноз погоды",
		"прогнозПогоды":               "прогнозпогоды[прогноз погоды]",
		"हिन्दी में":                  "हिन्दी में",
		"\U0001F600 \U0001F680\uFE0F": "",
		"a\xffb \xc3":                 "a b",
		"\xf0\x9f\x98":                "",
		"x\x00y":                      "x y",
	} {
		if got := show(AppendTokens(nil, text)); got != want {
			t.Errorf("appendTokens(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestLanguageOf(t *testing.T) {
	for text, want := range map[string]string{
		"": "english", "weather": "english", "Wetter": "english",
		"Please show me the weather in Berlin":                  "english",
		"Kannst du mir bitte das Wetter für morgen zeigen?":     "german",
		"Pouvez-vous me dire où est la gare avec les horaires":  "french",
		"¿Puedes decirme cómo está el tiempo para los próximos": "spanish",
		"Você pode me dizer como está o tempo para os próximos": "portuguese",
		"Puoi dirmi come è il tempo per i prossimi giorni e la": "italian",
		"Kun je mij het weer van morgen laten zien, graag":      "dutch",
		"Kan du visa mig vädret för imorgon och hur det är":     "swedish",
		"Покажи мне погоду на завтра и как это можно для меня":  "russian",
		"Bana yarın için hava durumu lütfen, nasıl ve nerede":   "turkish",
		"أريد أن أعرف ما هو الطقس في هذه المدينة":               "arabic",
		"Näytä minun sää että missä se on, mutta miten":         "finnish",
		"die das und print der of the a is in for you":          "english",
	} {
		if got := language.Name(LanguageOf(AppendTokens(nil, text))); got != want {
			t.Errorf("languageOf(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestBackground: every line is a stem, once, with a level.
func TestBackground(t *testing.T) {
	before, lines := "", 0
	for line := range strings.Lines(backgroundText) {
		lines++
		word, level, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseUint(level, 10, 8)
		if !ok || err != nil || n > rarestLevel {
			t.Errorf("background.txt: %q, want a stem and a level up to %d", line, rarestLevel)
		}
		if word <= before {
			t.Errorf("background.txt: %q stands after %q", word, before)
		}
		before = word
	}
	if lines < 1000 || len(background()) != lines {
		t.Errorf("background.txt has %d lines and %d stems", lines, len(background()))
	}
	if x, y := Says("zorkmid"), Says("get"); x != 6.5 || y >= x {
		t.Errorf("saysOf(zorkmid), saysOf(get) = %v, %v, want 6.5 and less", x, y)
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range indextest.Vocabulary {
		f.Add(text)
	}
	f.Add("getHTTPPage, サーバー\xff 天気e\u0301 ǅ İ ſ K 2\u0301x")
	f.Fuzz(func(t *testing.T, text string) {
		tokens := AppendTokens(nil, text)
		if most := 2 * utf8.RuneCountInString(text); len(tokens) > most {
			t.Fatalf("appendTokens(%q) gives %d tokens, want at most %d", text, len(tokens), most)
		}
		clause, size := 0, 0
		for i, w := range tokens {
			size += len(w.Text)
			if w.Text == "" || !utf8.ValidString(w.Text) || w.Text != strings.ToLower(w.Text) {
				t.Fatalf("appendTokens(%q) gives %q, want it lowered and valid", text, w.Text)
			}
			if w.Clause < clause || w.Joined < 0 || i+w.Joined >= len(tokens) {
				t.Fatalf("appendTokens(%q) gives %+v after clause %d, token %d of %d", text, w, clause, i, len(tokens))
			}
			clause = w.Clause
			var pieces strings.Builder
			for _, p := range tokens[i+1 : i+1+w.Joined] {
				pieces.WriteString(p.Text)
			}
			if w.Joined > 0 && pieces.String() != w.Text && !strings.ContainsAny(w.Text, "0123456789") { // of those, single letters are no pieces
				t.Fatalf("appendTokens(%q): the pieces of %q are %q", text, w.Text, pieces.String())
			}
		}
		if size > 4*len(text) {
			t.Fatalf("appendTokens(%q) gives %d bytes, want at most %d", text, size, 4*len(text))
		}
		if lang := LanguageOf(tokens); lang < 0 || lang >= language.Count {
			t.Fatalf("languageOf(%q) = %d", text, lang)
		}
	})
}

// FuzzStem: no word breaks a stemmer, or is made much longer by one.
func FuzzStem(f *testing.F) {
	for i, w := range []string{
		"searching", "Rechnungen", "voyageurs", "habitaciones", "reservações", "viaggiatori", "werkzeugen", "vädret", "hvornår", "når",
		"hyvää", "szeretném", "această", "lütfen", "отправляет", "الطقس",
	} {
		f.Add(w, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text string, number uint8) {
		lang := int(number) % language.Count
		for _, w := range AppendTokens(nil, text) {
			if got := Stem(w.Text, lang); len(got) > 2*len(w.Text)+4 {
				t.Fatalf("stem(%q) in %s = %q", w.Text, language.Name(lang), got)
			}
		}
	})
}

// TestEveryStopWordIsLowered: a stop word that is not lowered stops nothing.
func TestEveryStopWordIsLowered(t *testing.T) {
	for i := range language.Count {
		for _, w := range language.StopWords(i) {
			if tokens := AppendTokens(nil, w); len(tokens) != 1 || tokens[0].Text != w {
				t.Errorf("%s: the stop word %q is read as %s", language.Name(i), w, show(tokens))
			}
		}
	}
	if language.Count > 32 {
		t.Errorf("%d languages, and stopIn has bits for 32", language.Count)
	}
}
