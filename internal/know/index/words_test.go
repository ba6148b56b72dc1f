package index

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"ken/internal/language"
)

// show writes tokens down: a word with its pieces in brackets, a number with a
// hash, a pair with a plus, and a bar where a clause ends.
func show(tokens []token) string {
	var b strings.Builder
	clause := 0
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		for ; clause < t.clause; clause++ {
			b.WriteString("| ")
		}
		switch {
		case t.digits:
			b.WriteByte('#')
		case t.pair:
			b.WriteByte('+')
		}
		b.WriteString(t.text)
		if t.joined > 0 {
			var pieces []string
			for _, p := range tokens[i+1 : i+1+t.joined] {
				pieces = append(pieces, p.text)
			}
			fmt.Fprintf(&b, "%v", pieces)
			i += t.joined
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
		if got := show(appendTokens(nil, text)); got != want {
			t.Errorf("appendTokens(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestIdentifiersMeet: each way of writing one name finds every other.
func TestIdentifiersMeet(t *testing.T) {
	for _, group := range [][]string{
		{"github", "GitHub", "gitHub", "GITHUB"},
		{"GitHub", "git hub", "git_hub", "git-hub", "git.hub"},
		{"getHTTPPage", "get_http_page", "get-http-page", "get http page", "GetHttpPage", "get.http.page"},
		{"parseJSON", "parse_json", "ParseJson", "parse JSON"},
		{"s3Upload", "S3 upload", "s3_upload"},
	} {
		for _, name := range group {
			v := viewOf(tool("x1", name), tool("x2", "something else entirely"))
			for _, message := range group {
				if got := names(v, "open "+message+" now"); !slices.Equal(got, []string{"x1"}) {
					t.Errorf("Search(%q) for %q = %v, want it", message, name, got)
				}
			}
		}
	}
}

// TestJoinedWordsCountOnce: a word that is known whole does not bring what its
// pieces bring.
func TestJoinedWordsCountOnce(t *testing.T) {
	v := viewOf(tool("forge", "works with GitHub"), tool("wheel", "the hub of a wheel"))
	if got := names(v, "GitHub"); !slices.Equal(got, []string{"forge"}) {
		t.Errorf("Search(GitHub) = %v, want forge alone", got)
	}
	if got := names(viewOf(tool("wheel", "the hub of a wheel")), "GitHub"); !slices.Equal(got, []string{"wheel"}) {
		t.Errorf("Search(GitHub) where nobody has it whole = %v, want what has a piece", got)
	}
	v = viewOf(tool("wheel", "the hub of a wheel"), tool("vcs", "git"), tool("mail", "sends mail"))
	whole, pieces := v.Search(Query{Text: "spin the GitHub"}, 5, nil), v.Search(Query{Text: "spin the git hub"}, 5, nil)
	if !reflect.DeepEqual(whole, pieces) {
		t.Errorf("Search(GitHub) where nobody has it whole = %+v, want %+v as for its pieces", whole, pieces)
	}
}

func TestScripts(t *testing.T) {
	v := viewOf(
		tool("tenki", "東京の天気予報を調べる"), tool("okuru", "サーバーにメールを送る"), tool("nalssi", "오늘의 날씨를 알려줍니다"),
		tool("akat", "พยากรณ์อากาศประจำวัน"), tool("tianqi", "查询城市的空气质量"), tool("taqs", "تعرض حالة الطقس اليوم"),
	)
	for message, want := range map[string]string{
		"明日の天気は？": "tenki", "メールしたい": "okuru", "サーバー": "okuru", "날씨 어때": "nalssi", "อากาศเป็นอย่างไร": "akat",
		"空气怎么样": "tianqi", "ما هو الطقس": "taqs", "please show 天気 in Tokyo": "tenki",
	} {
		if got := names(v, message); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", message, got, want)
		}
	}
}

func TestStopWords(t *testing.T) {
	v := viewOf(tool("what", "what you can do with the things of a user"), tool("mail", "sends mail"))
	for _, message := range []string{"the", "what can you do for me", "How is it?", "I would like to", "und die der das mit ist ein bitte"} {
		if a := v.Search(Query{Text: message}, 5, nil); len(a.Hits) != 0 || a.Fit != 0 {
			t.Errorf("Search(%q) = %+v, want nothing", message, a)
		}
	}
	// A stop word of one language is a word of another.
	if got := names(viewOf(tool("dieRoll", "roll a die")), "roll a die for me"); !slices.Equal(got, []string{"dieRoll"}) {
		t.Errorf("Search(roll a die) = %v, want dieRoll", got)
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
		if got := language.Name(languageOf(appendTokens(nil, text))); got != want {
			t.Errorf("languageOf(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestInflections: a message finds what says the same in another form.
func TestInflections(t *testing.T) {
	for _, c := range []struct{ language, description, message string }{
		{"english", "search the web", "searching"},
		{"english", "books flights and hotels", "I want to book a flight"},
		{"english", "summarizes documents", "summarize this document"},
		{"german", "Sucht die Rechnungen und Verträge der Kunden mit einem Filter für das Jahr", "Kannst du mir bitte die Rechnung von dem Kunden suchen?"},
		{"french", "Chercher des vols et des hôtels pour les voyageurs avec un filtre sur la date", "je cherche un vol pour la semaine, est-ce que vous avez"},
		{"spanish", "Busca los vuelos y las habitaciones para el viajero con un filtro de fecha", "necesito un vuelo y una habitación para los niños, por favor"},
		{"russian", "Отправляет письма и сообщения на почту для клиентов и от них", "можно написать письмо клиенту и как это сделать на мой адрес"},
		{"portuguese", "Procura os voos e as reservas para os viajantes com uma data", "você pode procurar um voo e uma reserva para os meus"},
		{"italian", "Cerca i voli e gli alberghi per i viaggiatori con una data di partenza", "puoi cercare un volo e un albergo per il mio viaggio"},
	} {
		v := viewOf(tool("x1", c.description), tool("x2", "unrelated zebra"), tool("x3", "another quagga"))
		if got := language.Name(languageOf(appendTokens(nil, c.message))); got != c.language {
			t.Errorf("languageOf(%q) = %s, want %s", c.message, got, c.language)
		}
		a := v.Search(Query{Text: c.message}, 5, nil)
		if len(a.Hits) != 1 || a.Hits[0].Slot != 0 {
			t.Errorf("%s: Search(%q) = %+v, want %q", c.language, c.message, a.Hits, c.description)
			continue
		}
		if c.language != "english" && len(a.Hits[0].Words) < 2 {
			t.Errorf("%s: Search(%q) shares %q with %q, want two words", c.language, c.message, a.Hits[0].Words, c.description)
		}
	}
}

// TestWordsOfOtherLanguages: a message finds the words it shares with a text of
// another language.
func TestWordsOfOtherLanguages(t *testing.T) {
	v := viewOf(tool("x1", "translates into Kalender formats"), tool("x2", "zeigt die Termine und das Wetter für den Kunden mit der Karte"))
	for message, want := range map[string]string{
		"bitte zeig mir den Kalender für das Jahr und die Woche": "x1",
		"Termine": "x2", "show Wetter please": "x2",
	} {
		if got := names(v, message); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s", message, got, want)
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
	if x, y := saysOf("zorkmid"), saysOf("get"); x != 6.5 || y >= x {
		t.Errorf("saysOf(zorkmid), saysOf(get) = %v, %v, want 6.5 and less", x, y)
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range vocabulary {
		f.Add(text)
	}
	f.Add("getHTTPPage, サーバー\xff 天気e\u0301 ǅ İ ſ K 2\u0301x")
	f.Fuzz(func(t *testing.T, text string) {
		tokens := appendTokens(nil, text)
		if most := 2 * utf8.RuneCountInString(text); len(tokens) > most {
			t.Fatalf("appendTokens(%q) gives %d tokens, want at most %d", text, len(tokens), most)
		}
		clause, size := 0, 0
		for i, w := range tokens {
			size += len(w.text)
			if w.text == "" || !utf8.ValidString(w.text) || w.text != strings.ToLower(w.text) {
				t.Fatalf("appendTokens(%q) gives %q, want it lowered and valid", text, w.text)
			}
			if w.clause < clause || w.joined < 0 || i+w.joined >= len(tokens) {
				t.Fatalf("appendTokens(%q) gives %+v after clause %d, token %d of %d", text, w, clause, i, len(tokens))
			}
			clause = w.clause
			var pieces strings.Builder
			for _, p := range tokens[i+1 : i+1+w.joined] {
				pieces.WriteString(p.text)
			}
			if w.joined > 0 && pieces.String() != w.text && !strings.ContainsAny(w.text, "0123456789") { // of those, single letters are no pieces
				t.Fatalf("appendTokens(%q): the pieces of %q are %q", text, w.text, pieces.String())
			}
		}
		if size > 4*len(text) {
			t.Fatalf("appendTokens(%q) gives %d bytes, want at most %d", text, size, 4*len(text))
		}
		if lang := languageOf(tokens); lang < 0 || lang >= language.Count {
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
		for _, w := range appendTokens(nil, text) {
			if got := stem(w.text, lang); len(got) > 2*len(w.text)+4 {
				t.Fatalf("stem(%q) in %s = %q", w.text, language.Name(lang), got)
			}
		}
	})
}

// TestEveryStopWordIsLowered: a stop word that is not lowered stops nothing.
func TestEveryStopWordIsLowered(t *testing.T) {
	for i := range language.Count {
		for _, w := range language.StopWords(i) {
			if tokens := appendTokens(nil, w); len(tokens) != 1 || tokens[0].text != w {
				t.Errorf("%s: the stop word %q is read as %s", language.Name(i), w, show(tokens))
			}
		}
	}
	if language.Count > 32 {
		t.Errorf("%d languages, and stopIn has bits for 32", language.Count)
	}
}
