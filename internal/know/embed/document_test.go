package embed

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

func TestAppendWords(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"getUserById", "get User By Id"},
		{"get_user-by.id", "get user by id"},
		{"GET /user/{id}", "GET user id"},
		{"HTTPServer2Go", "HTTP Server2 Go"},
		{"__init__", "init"},
		{"naïveÉtat", "naïveÉtat"},
		{"a  b\tc", "a b c"},
		{"", ""},
		{"::", ""},
	} {
		if got := string(appendWords([]byte("x:"), tt.name)); got != "x:"+tt.want {
			t.Errorf("appendWords(%q) = %q, want %q", tt.name, got, "x:"+tt.want)
		}
	}
}

// A document without weights is the text that training/texts.py makes of it.
func TestDocumentIsItsText(t *testing.T) {
	m := full(t)
	for _, tt := range []struct {
		d    Document
		text string
	}{
		{Document{Name: "getUser"}, "get User."},
		{Document{Name: "getUser", Description: "Find a person."}, "get User. Find a person."},
		{
			Document{Name: "get_user", Description: "Find a person.", Category: "People", Parameters: []string{"userId", "with_mail"}},
			"get user. Find a person. Category: People. Parameters: user Id, with mail.",
		},
	} {
		got, want := m.AppendDocument(nil, tt.d), m.Append(nil, tt.text)
		if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) {
			t.Errorf("AppendDocument(%+v) differs from Append(%q)", tt.d, tt.text)
		}
	}
}

func TestFieldsCountByTheirWeight(t *testing.T) {
	numbers := make([]float32, 2*16) // two pieces at right angles
	numbers[0], numbers[17] = 1, 1
	var file bytes.Buffer
	if _, err := Pack(&file, "m", []string{"a", "b"}, numbers, map[Field]float64{Prose: 1, Name: 3, Category: 1, Parameters: 0.5}); err != nil {
		t.Fatal(err)
	}
	m, err := Load(file.String())
	must(t, err)
	for _, tt := range []struct {
		d    Document
		want float64 // how much more a counts than b
	}{
		{Document{Name: "a", Description: "b"}, 3},
		{Document{Name: "b", Description: "a"}, 1. / 3},
		{Document{Name: "a", Parameters: []string{"b"}}, 6},
		{Document{Category: "a", Description: "b"}, 1},
	} {
		v := m.AppendDocument(nil, tt.d)
		if got := float64(v[0] / v[1]); math.Abs(got-tt.want) > 0.01 {
			t.Errorf("in %+v a counts %v times as much as b, want %v", tt.d, got, tt.want)
		}
	}
}

func TestFieldWeightsAreChecked(t *testing.T) {
	for _, bad := range []map[Field]float64{{Prose: 0}, {Name: -1}, {fieldCount: 1}, {Prose: math.NaN()}, {Prose: math.Inf(1)}} {
		if _, err := Pack(new(bytes.Buffer), "m", []string{"a"}, make([]float32, 16), bad); err == nil {
			t.Errorf("Pack with fields %v succeeded", bad)
		}
	}
}

// TestSigns: a word that is one row, one of several pieces and a text all have
// the signs of their vectors.
func TestSigns(t *testing.T) {
	m := full(t)
	for _, text := range append([]string{"find", "unaffable", "weather", "find recent articles"}, golden...) {
		var want []uint64
		for i, x := range m.AppendMessage(nil, text) {
			if i%64 == 0 {
				want = append(want, 0)
			}
			if x > 0 {
				want[i/64] |= 1 << (i % 64)
			}
		}
		if got := m.AppendSigns([]uint64{7}, text); !slices.Equal(got, append([]uint64{7}, want...)) {
			t.Errorf("AppendSigns(%q) = %x, want %x", text, got[1:], want)
		}
	}
}

// TestMarksDrownNothing: what a message is wrapped in does not change what it
// means.
func TestMarksDrownNothing(t *testing.T) {
	m := Builtin()
	want := m.AppendMessage(nil, "draw me a cat")
	for _, text := range []string{"draw me a cat!!!!!!", "**draw me a cat**", "draw me a cat\n==========", "--- draw me a cat ---", "<<draw me a cat>>", "(draw) [me] {a} | cat"} {
		got := m.AppendMessage(nil, text)
		if c := dot(got, want); c < 0.9 {
			t.Errorf("AppendMessage(%q) is %.2f like that without marks, want at least 0.9", text, c)
		}
	}
	if plain, message := m.Append(nil, "Is it a cat, or a dog?"), m.AppendMessage(nil, "Is it a cat, or a dog?"); dot(plain, message) < 0.999 {
		t.Error("a plain sentence is changed")
	}
}
