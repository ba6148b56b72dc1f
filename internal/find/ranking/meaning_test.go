package ranking

import (
	"slices"
	"strings"
	"testing"

	"ken/internal/know/index"
	"ken/internal/testkit/indextest"
)

// TestMeaningFindsWithoutWords: what shares no word with a message is found by
// what it means, offline. One of two wishes counts as much as if it stood alone. A
// message that says by itself what it wants is not taken for a part of the one
// before, and the language of that one has no say.
func TestMeaningFindsWithoutWords(t *testing.T) {
	v := NewView(Part{Segment: index.BuildWith(indextest.Builtin(t), indextest.Desk())})
	for _, tt := range []struct {
		before, ask, want string
		among             int
	}{
		{"", "find recent articles", "news_search", 1},
		{"", "draw me a cat", "image_generate", 1},
		{"", "schedule a meeting tomorrow", "calendar_add_event", 1},
		{"", "how do I bake lasagna", "recipe_lookup", 1},
		{"", "is my flight delayed", "flight_status", 1},
		{"", "draw me a cat, and after that schedule a meeting with the whole marketing team next week", "image_generate", 2},
		{"what does a share of that bank cost on the exchange", "draw me a cat", "image_generate", 1},
		{"bitte sag mir wie das wetter in berlin wird und was ich dann anziehen soll", "draw me a cat", "image_generate", 1},
	} {
		q := Query{Text: tt.ask}
		if tt.before != "" {
			q.Before = []Before{{Text: tt.before, Weight: 0.35}}
		}
		if got := ids(v, q, 5); !slices.Contains(got[:min(tt.among, len(got))], "tool:"+tt.want) {
			t.Errorf("after %q, Search(%q) = %v, want %s among the first %d", tt.before, tt.ask, got, tt.want, tt.among)
		}
	}
	if got := names(viewOf(indextest.Desk()...), "draw me a cat"); len(got) != 0 {
		t.Errorf("by words alone Search(draw me a cat) = %v: this shows nothing", got)
	}
}

// TestForeignTextIsRankedByWords: what the model cannot read has no part in it,
// neither as a message nor as a capability.
func TestForeignTextIsRankedByWords(t *testing.T) {
	list := append(indextest.Desk(), indextest.Tool("wetter", "Sagt das Wetter für einen Ort voraus, auch für die nächsten Tage."), indextest.Tool("погода", "Показывает прогноз погоды на завтра"), indextest.Tool("天気", "明日の天気を調べる"))
	with, without := NewView(Part{Segment: index.BuildWith(indextest.Builtin(t), list)}), NewView(Part{Segment: index.Build(list)})
	for _, ask := range []string{"wie wird das wetter in berlin und was kostet das", "какая погода завтра", "明日の天気", "прогноз погоды и новости"} {
		got, want := with.Search(Query{Text: ask}, 10, nil), without.Search(Query{Text: ask}, 10, nil)
		if len(got.Hits) == 0 || len(got.Hits) != len(want.Hits) || got.Fit != want.Fit {
			t.Fatalf("Search(%q) = %+v, want what words alone find: %+v", ask, got, want)
		}
		for i := range got.Hits {
			if got.Hits[i].Slot != want.Hits[i].Slot || got.Hits[i].Score != want.Hits[i].Score || got.Hits[i].Near != 0 {
				t.Errorf("Search(%q): hit %d is %+v, want %+v", ask, i, got.Hits[i], want.Hits[i])
			}
		}
	}
	for _, h := range with.Search(Query{Text: "weather forecast"}, 10, nil).Hits {
		if c := list[h.Slot]; c.Name == "погода" && h.Near != 0 {
			t.Errorf("%s is %v near an English message, want no vector", c.Name, h.Near)
		}
	}
}

// ranked returns a searcher as it stands once it has ranked the last of texts.
func ranked(v *View, texts ...string) *searcher {
	s := new(searcher)
	for _, text := range texts {
		q := Query{Text: text}
		s.asked.read(v, q)
		s.collect(v, q, nil)
		s.rank(v)
	}
	return s
}

func TestClausesOf(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"book a flight", "book a flight"},
		{"book a flight\n\nDear Sir or Madam", "book a flight|Dear Sir or Madam"},
		{"book a flight, then mail it to Ann", "book a flight,|then mail it to Ann"},
		{"Find the file. Delete it and then tell me!", "Find the file.|Delete it|and then tell me!"},
		{"salt and pepper", "salt and pepper"},
		{"find salt and buy pepper", "find salt|and buy pepper"},
		{"ok, do it now", "ok, do it now"},
		{"", ""},
		{"  ", "  "},
		{"3.5 of 4.0, or v1.2", "3.5 of 4.0,|or v1.2"},
	} {
		var got []string
		for clause := range clausesOf(tt.text) {
			got = append(got, strings.TrimSpace(clause))
		}
		want := strings.Split(strings.TrimSpace(tt.want), "|")
		if !slices.Equal(got, want) {
			t.Errorf("clausesOf(%q) = %q, want %q", tt.text, got, want)
		}
	}
}

// TestBothEndsAreMeant: a wish before or behind a long paste has a part in the
// vector of the message, and a clause of its own.
func TestBothEndsAreMeant(t *testing.T) {
	if got := ends("draw me a cat"); got != "draw me a cat" {
		t.Errorf("ends of a short text = %q", got)
	}
	v := NewView(Part{Segment: index.BuildWith(indextest.Builtin(t), indextest.Desk())})
	paste := strings.Repeat("The committee met on Tuesday. Attendance was lower than in spring, and the chair thanked everybody for coming. ", 30)
	picture := func(text string) float32 {
		s := ranked(v, text)
		for i := range s.candidates {
			if c := &s.candidates[i]; indextest.Desk()[c.slot].Name == "image_generate" {
				return c.features[featureNearClause]
			}
		}
		return 0
	}
	without := picture(paste)
	for _, text := range []string{"draw me a cat\n" + paste, paste + "\nnow draw me a cat"} {
		if got := picture(text); got < without+1 {
			t.Errorf("with a wish %.20q…%q a picture is %v near a clause, without %v; want more by a deviation", text, text[len(text)-20:], got, without)
		}
	}
}

// TestUnreadableWordsAreNotAlike: two words that the model cannot read have
// nothing in common.
func TestUnreadableWordsAreNotAlike(t *testing.T) {
	list := append(indextest.Desk(), indextest.Tool("点検", "Computes the checksum of a disk block."))
	v := NewView(Part{Segment: index.BuildWith(indextest.Builtin(t), list)})
	s := ranked(v, "who is 田中")
	for i := range s.candidates {
		if c := &s.candidates[i]; list[c.slot].Name == "点検" && c.features[featureNearName] != 0 {
			t.Errorf("the name 点検 is %v near the word 田中, want 0", c.features[featureNearName])
		}
	}
}

// TestThin: what a short message is near to by chance costs trust, and nothing
// that a word or a real nearness speaks for does.
func TestThin(t *testing.T) {
	with, without := NewView(Part{Segment: index.BuildWith(indextest.Builtin(t), indextest.Desk())}), NewView(Part{Segment: index.Build(indextest.Desk())})
	for _, tt := range []struct {
		ask  string
		view *View
		want float64
	}{
		{"hello", with, oneWordPrice},
		{"how are you", with, noWordPrice},
		{"what is 25 of 54 and 788", with, 0}, // values say that something is to be done with them
		{"headlines", with, 0},                // a word of it
		{"schedule a meeting tomorrow", with, 0},
		{"headlines", without, 0},
	} {
		s := ranked(tt.view, tt.ask, tt.ask) // what was counted of one message is not counted for the next
		if got := s.thin(tt.view); got != tt.want {
			t.Errorf("thin of %q = %v, want %v; the best is %v near, chance %v", tt.ask, got, tt.want, s.at(0).near, tt.view.byChance())
		}
	}
}
