package embed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"ken/llm"
)

// query has twelve words.
const query = "find recent articles about renewable energy and send me a short summary"

var _ llm.Embedder = (*Model)(nil)

var update = flag.Bool("update", false, "write testdata/golden.f32 anew")

// golden are texts whose vectors, with noise for weights, are in
// testdata/golden.f32.
var golden = []string{
	"",
	"find",
	query,
	"get_user_by_id (getUserByID). Reads one user. Parameters: id, fields",
	"Où est la bibliothèque d'Hélène à Zürich?",
	"東京の天気を教えてください 한국어 Где аптека",
	"😀 \u2603 \x00 ##",
	strings.Repeat("the ", 300),
	strings.Repeat("supercalifragilisticexpialidocious ", 60),
}

// The bits of vectors are the same wherever and whenever they are made.
func TestGoldenVectors(t *testing.T) {
	m := full(t)
	var got []byte
	for _, text := range golden {
		for _, x := range m.Append(nil, text) {
			got = binary.LittleEndian.AppendUint32(got, math.Float32bits(x))
		}
	}
	const file = "testdata/golden.f32"
	if *update {
		must(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if len(got) != len(want) {
		t.Fatalf("the vectors have %d bytes, want %d", len(got), len(want))
	}
	for i, text := range golden {
		size := 4 * m.Dimensions()
		if !bytes.Equal(got[i*size:(i+1)*size], want[i*size:(i+1)*size]) {
			t.Errorf("Append(nil, %q) has other bits than testdata/golden.f32", text)
		}
	}
}

// The largest rows as often as can be are the hardest case for sums side by
// side.
func TestExtremesDoNotRunOver(t *testing.T) {
	const dims = 512
	weights := make([]float32, 3*dims)
	for i := range dims {
		weights[i], weights[dims+i] = 1, -1
		weights[2*dims+i] = float32(1 - 2*(i/4%2))
	}
	m := load(t, pack(t, "extremes", []string{"plus", "minus", "both"}, weights))
	one := float32(1 / math.Sqrt(dims))
	for _, word := range []string{"plus", "minus", "both"} {
		got := m.Append(nil, strings.Repeat(word+" ", MaxTokens))
		for i, x := range got {
			want := one
			if word == "minus" || word == "both" && i/4%2 == 1 {
				want = -one
			}
			if x != want {
				t.Fatalf("number %d of %d times %q = %v, want %v", i, MaxTokens, word, x, want)
			}
		}
	}
	if got := m.Append(nil, "plus minus"); slices.ContainsFunc(got, func(x float32) bool { return x != 0 }) {
		t.Errorf("Append(nil, %q) = %v, want zeros", "plus minus", got)
	}
}

func TestEmbed(t *testing.T) {
	m := full(t)
	got, err := m.Embed(t.Context(), golden)
	if err != nil || len(got) != len(golden) {
		t.Fatalf("Embed gives %d vectors, %v, want %d", len(got), err, len(golden))
	}
	for i, text := range golden {
		if want := m.Append(nil, text); !slices.Equal(got[i], want) {
			t.Errorf("Embed(%q) = %v, want %v", text, got[i], want)
		}
		var squares float64
		for _, x := range got[i] {
			squares += float64(x) * float64(x)
		}
		if known := slices.ContainsFunc(m.Tokens(nil, text), func(id uint32) bool { return id != Unknown }); known != (math.Abs(squares-1) < 1e-5) || !known && squares != 0 {
			t.Errorf("Embed(%q) has a squared length of %v, want 1, or 0 if no word is known", text, squares)
		}
	}
	grown := append(got[0], 1)
	if grown[0] = 5; got[1][0] == 1 {
		t.Error("a vector of Embed grows into the next one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Embed(ctx, golden); !errors.Is(err, context.Canceled) {
		t.Errorf("Embed after the end of its context = %v, want %v", err, context.Canceled)
	}
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestManyAtOnce(t *testing.T) {
	m := full(t)
	want, err := m.Embed(t.Context(), golden)
	must(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, text := range golden {
				if got := m.Append(nil, text); !slices.Equal(got, want[i]) {
					t.Errorf("Append(nil, %q) among others = %v, want %v", text, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

// What [Builtin] leaves to tests.
func TestBuiltinIsWhole(t *testing.T) {
	if _, err := Load(builtin); err != nil {
		t.Fatal(err)
	}
	if first, second := Builtin(), Builtin(); first != second {
		t.Error("Builtin() gives another model each time")
	}
}

func TestBuiltinKnowsMeaning(t *testing.T) {
	m := Builtin()
	if m == nil {
		t.Skip("cannot here: model.bin is the placeholder, without trained weights")
	}
	if m.Dimensions() != 256 {
		t.Errorf("Dimensions() = %d, want 256", m.Dimensions())
	}
	for _, tt := range []struct{ query, near, far string }{
		{"find recent articles", "news search: get the latest headlines and stories", "resize an image to a given width"},
		{"will I need an umbrella tomorrow", "weather forecast for a city", "create a calendar event"},
		{"how much is 20 euros in dollars", "convert an amount between currencies", "send an email message"},
		{"tell the team we are late", "post a message to a chat channel", "delete a database table"},
	} {
		q := m.Append(nil, tt.query)
		if near, far := dot(q, m.Append(nil, tt.near)), dot(q, m.Append(nil, tt.far)); near <= far {
			t.Errorf("%q is %.3f like %q and %.3f like %q, want more of the first", tt.query, near, tt.near, far, tt.far)
		}
	}
}
