package ranking

import (
	"reflect"
	"slices"
	"testing"

	"ken/internal/know/index"
	"ken/internal/language"
	"ken/internal/testkit/indextest"
)

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
			v := viewOf(indextest.Tool("x1", name), indextest.Tool("x2", "something else entirely"))
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
	v := viewOf(indextest.Tool("forge", "works with GitHub"), indextest.Tool("wheel", "the hub of a wheel"))
	if got := names(v, "GitHub"); !slices.Equal(got, []string{"forge"}) {
		t.Errorf("Search(GitHub) = %v, want forge alone", got)
	}
	if got := names(viewOf(indextest.Tool("wheel", "the hub of a wheel")), "GitHub"); !slices.Equal(got, []string{"wheel"}) {
		t.Errorf("Search(GitHub) where nobody has it whole = %v, want what has a piece", got)
	}
	v = viewOf(indextest.Tool("wheel", "the hub of a wheel"), indextest.Tool("vcs", "git"), indextest.Tool("mail", "sends mail"))
	whole, pieces := v.Search(Query{Text: "spin the GitHub"}, 5, nil), v.Search(Query{Text: "spin the git hub"}, 5, nil)
	if !reflect.DeepEqual(whole, pieces) {
		t.Errorf("Search(GitHub) where nobody has it whole = %+v, want %+v as for its pieces", whole, pieces)
	}
}

func TestScripts(t *testing.T) {
	v := viewOf(
		indextest.Tool("tenki", "東京の天気予報を調べる"), indextest.Tool("okuru", "サーバーにメールを送る"), indextest.Tool("nalssi", "오늘의 날씨를 알려줍니다"),
		indextest.Tool("akat", "พยากรณ์อากาศประจำวัน"), indextest.Tool("tianqi", "查询城市的空气质量"), indextest.Tool("taqs", "تعرض حالة الطقس اليوم"),
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
	v := viewOf(indextest.Tool("what", "what you can do with the things of a user"), indextest.Tool("mail", "sends mail"))
	for _, message := range []string{"the", "what can you do for me", "How is it?", "I would like to", "und die der das mit ist ein bitte"} {
		if a := v.Search(Query{Text: message}, 5, nil); len(a.Hits) != 0 || a.Fit != 0 {
			t.Errorf("Search(%q) = %+v, want nothing", message, a)
		}
	}
	// A stop word of one language is a word of another.
	if got := names(viewOf(indextest.Tool("dieRoll", "roll a die")), "roll a die for me"); !slices.Equal(got, []string{"dieRoll"}) {
		t.Errorf("Search(roll a die) = %v, want dieRoll", got)
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
		v := viewOf(indextest.Tool("x1", c.description), indextest.Tool("x2", "unrelated zebra"), indextest.Tool("x3", "another quagga"))
		if got := language.Name(index.LanguageOf(index.AppendTokens(nil, c.message))); got != c.language {
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
	v := viewOf(indextest.Tool("x1", "translates into Kalender formats"), indextest.Tool("x2", "zeigt die Termine und das Wetter für den Kunden mit der Karte"))
	for message, want := range map[string]string{
		"bitte zeig mir den Kalender für das Jahr und die Woche": "x1",
		"Termine": "x2", "show Wetter please": "x2",
	} {
		if got := names(v, message); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s", message, got, want)
		}
	}
}
