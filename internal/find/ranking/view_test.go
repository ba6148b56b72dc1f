package ranking

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit/indextest"
)

// TestHiddenHasNoInfluence: a view that leaves some out answers as one of a
// segment that never had them: the same capabilities in the same order, with
// the same scores, and the same doubt whether anything fits.
func TestHiddenHasNoInfluence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := indextest.Capabilities(indextest.Size(t)).Draw(t, "list")
		of := indextest.VectorsFor(t, list)
		s := indextest.Give(t, index.Build(list), of)
		visible := index.NewBits(len(list))
		var shown []*capability.Capability
		every := rapid.IntRange(1, 4).Draw(t, "every")
		from := rapid.IntRange(0, 3).Draw(t, "from")
		for i, c := range list {
			if i >= from && i%every == 0 {
				visible.Set(i)
				shown = append(shown, c)
			}
		}
		same(t, NewView(Part{s, visible}), NewView(Part{Segment: indextest.Give(t, index.Build(shown), of)}))
	})
}

// TestPartsAreAsOne: how capabilities are spread over segments does not matter.
func TestPartsAreAsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := indextest.Capabilities(indextest.Size(t)).Draw(t, "list")
		of := indextest.VectorsFor(t, list)
		n := rapid.IntRange(2, 3).Draw(t, "parts")
		narrow := rapid.Bool().Draw(t, "narrowed")
		split := make([][]*capability.Capability, n)
		var shown []*capability.Capability
		for i, c := range list {
			at := (i*7 + i/5) % n
			split[at] = append(split[at], c)
		}
		parts := make([]Part, n)
		for i := range parts {
			parts[i].Segment = indextest.Give(t, index.Build(split[i]), of)
			if narrow {
				parts[i].Visible = index.NewBits(len(split[i]))
			}
			for slot, c := range split[i] {
				switch {
				case !narrow:
					shown = append(shown, c)
				case slot%3 != i:
					parts[i].Visible.Set(slot)
					shown = append(shown, c)
				}
			}
		}
		same(t, NewView(parts...), NewView(Part{Segment: indextest.Give(t, index.Build(shown), of)}))
	})
}

// TestHiddenWordOfAnotherLanguage: the German stem of a word that only a
// hidden capability has does not keep a word from being found as it stands.
func TestHiddenWordOfAnotherLanguage(t *testing.T) {
	list := []*capability.Capability{
		indextest.Tool("rechnungen", ""),
		indextest.Tool("buchhaltung", "die Rechnung für das Amt und der Beleg für die Ablage ist mit dabei"),
	}
	const message = "kannst du mir bitte die Rechnungen für das Amt zeigen"
	if got := names(viewOf(list...), message); !slices.Contains(got, "buchhaltung") {
		t.Fatalf("Search(%q) = %v, want buchhaltung by its stem", message, got)
	}
	visible := index.NewBits(2)
	visible.Set(0)
	if got := names(NewView(Part{index.Build(list), visible}), message); !slices.Equal(got, []string{"rechnungen"}) {
		t.Errorf("Search(%q) with buchhaltung hidden = %v, want rechnungen", message, got)
	}
}

func TestViewOfNothing(t *testing.T) {
	list := []*capability.Capability{indextest.Tool("weather", "the weather of today"), indextest.Tool("mail", "sends mail")}
	s := index.Build(list)
	for name, v := range map[string]*View{
		"no parts":         NewView(),
		"an empty segment": NewView(Part{Segment: index.Build(nil)}),
		"two empty ones":   NewView(Part{Segment: index.Build(nil)}, Part{Segment: index.Build(nil)}),
		"no bits":          NewView(Part{s, index.Bits{}}),
		"bits beyond it":   NewView(Part{s, index.Bits{0, 1}}),
	} {
		if v.Len() != 0 {
			t.Errorf("%s: Len() = %d, want 0", name, v.Len())
		}
		for _, text := range []string{"weather", "tool:mail", "", "the"} {
			if a := v.Search(Query{Text: text, Vector: []float32{1, 2}}, 5, nil); a.Fit != 0 || len(a.Hits) != 0 {
				t.Errorf("%s: Search(%q) = %+v, want nothing", name, text, a)
			}
		}
	}
	if got := NewView(Part{s, index.Bits{^uint64(0), ^uint64(0)}}).Len(); got != 2 {
		t.Errorf("Len() with more bits than capabilities = %d, want 2", got)
	}
}
