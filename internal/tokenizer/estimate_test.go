package tokenizer

import (
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"ken/internal/testkit"
)

// checkEstimate checks that an estimate lies between what is true of one
// encoding and what is true of all that start from bytes.
func checkEstimate(t failer, text string) {
	t.Helper()
	got := Estimate(text)
	if least := Count(text); got < least {
		t.Errorf("Estimate(%+q) = %d, want at least %d", text, got, least)
	}
	if most := len(mend(text)); got > most {
		t.Errorf("Estimate(%+q) = %d, want at most %d, its bytes", text, got, most)
	}
}

// TestEstimateIsNear: it is not far above the truth where most text is.
func TestEstimateIsNear(t *testing.T) {
	for _, name := range []string{"english", "prose"} {
		if got, most := Estimate(samples[name]), int(1.6*float64(Count(samples[name]))); got > most {
			t.Errorf("Estimate of the sample %s = %d, want at most %d", name, got, most)
		}
	}
}

// TestEstimateOtherVocabulary holds the estimate against a vocabulary that
// Count knows nothing of.
func TestEstimateOtherVocabulary(t *testing.T) {
	c := codec.NewCl100kBase()
	for name, text := range samples {
		switch name {
		case "nonsense", "odd case", "decomposed", "zero", "invalid":
			continue // real text does not look like this
		}
		want := testkit.Must(c.Count(text))(t)
		if got := Estimate(text); got < want {
			t.Errorf("Estimate of the sample %s = %d, want at least the %d of cl100k_base", name, got, want)
		}
	}
}

func TestEstimateProperty(t *testing.T) {
	draw := text()
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		checkEstimate(t, a)
		if got, most := byClasses(a+b), byClasses(a)+byClasses(b); got > most {
			t.Errorf("byClasses(%+q + %+q) = %d, want at most %d", a, b, got, most)
		}
		if got, most := Chars4(a+b), Chars4(a)+Chars4(b); got > most {
			t.Errorf("Chars4(%+q + %+q) = %d, want at most %d", a, b, got, most)
		}
	})
}

func FuzzEstimate(f *testing.F) {
	for _, text := range samples {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkEstimate(t, text) })
}

func TestChars4(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "four": 1, "fives": 2, "日本語だ": 1, "\xff\xff\xff\xff\xff": 2} {
		if got := Chars4(text); got != want {
			t.Errorf("Chars4(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	text := samples["prose"]
	for name, want := range map[string]int{"": Count(text), "o200k": Count(text), "estimate": Estimate(text), "chars4": Chars4(text)} {
		count, err := Named(name)
		if err != nil {
			t.Errorf("Named(%q) = %v", name, err)
		} else if got := count(text); got != want {
			t.Errorf("Named(%q) counts %d, want %d", name, got, want)
		}
	}
	_, err := Named("cl100k")
	if err == nil {
		t.Fatal("Named(cl100k) has no error")
	}
	for _, part := range []string{"cl100k", "o200k", "estimate", "chars4"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Named(cl100k) = %q, want %q in it", err, part)
		}
	}
}
