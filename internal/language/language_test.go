package language

import (
	"strings"
	"testing"
)

func TestStem(t *testing.T) {
	of := func(name string) int {
		for i := range Count {
			if Name(i) == name {
				return i
			}
		}
		t.Fatalf("no language %s", name)
		return 0
	}
	for _, c := range []struct{ lang, a, b string }{
		{"english", "invoice", "invoices"}, {"german", "rechnung", "rechnungen"}, {"french", "facture", "factures"}, {"spanish", "habitación", "habitaciones"},
	} {
		if a, b := Stem(c.a, of(c.lang)), Stem(c.b, of(c.lang)); a != b {
			t.Errorf("%s: the stems of %s and %s are %s and %s, want the same", c.lang, c.a, c.b, a, b)
		}
	}
}

func TestGuess(t *testing.T) {
	for text, want := range map[string]string{
		"please check the invoices": "english", "bitte prüfe die rechnungen für den kunden": "german", "rechnungen": "english",
	} {
		var g Guess
		for w := range strings.FieldsSeq(text) {
			g.Add(w)
		}
		if got := Name(g.Language()); got != want {
			t.Errorf("the language of %q is %s, want %s", text, got, want)
		}
	}
	var g Guess
	g.Add("mir")
	if g.Possible() == 0 || g.Language() != English {
		t.Errorf("one German stop word: possible %b, language %s; want German possible, and English", g.Possible(), Name(g.Language()))
	}
}

func TestStopWords(t *testing.T) {
	for i := range Count {
		for _, w := range StopWords(i) {
			if !IsStop(w, i) {
				t.Errorf("%s is no stop word of the language %s", w, Name(i))
			}
		}
	}
	for _, w := range []string{"", "invoice", "thx", strings.Repeat("a", 100)} {
		if in := StopIn(w); in != 0 {
			t.Errorf("%q is a stop word of the languages %b", w, in)
		}
	}
}
