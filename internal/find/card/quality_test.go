package card

import (
	"os"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
)

// labelled reads cards, and messages with the cards that they call for.
func labelled(t *testing.T, file string) (list []*capability.Capability, messages, wanted []string) {
	t.Helper()
	data := testkit.Must(os.ReadFile(file))(t)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		label, text, ok := strings.Cut(line, ": ")
		switch {
		case line == "" || line[0] == '#':
		case !ok:
			t.Fatalf("line %q, want a label and a text", line)
		case strings.HasPrefix(label, "card "):
			list = append(list, aCard(strings.TrimPrefix(label, "card "), strings.Split(text, ", ")...))
		default:
			messages, wanted = append(messages, text), append(wanted, strings.TrimPrefix(label, "-"))
		}
	}
	return list, messages, wanted
}

// quality counts cards over all messages.
func quality(t *testing.T, cfg Config) (precision, recall float64) {
	list, messages, wanted := labelled(t, "testdata/labelled.txt")
	s := Compile(list)
	right, shown, want := 0, 0, 0
	for i, text := range messages {
		labels := map[string]bool{}
		for label := range strings.SplitSeq(wanted[i], ", ") {
			if label != "" {
				labels[label] = true
			}
		}
		want += len(labels)
		got := passed(s.Select(said(text), cfg))
		for _, id := range got {
			shown++
			if labels[id] {
				right++
			}
		}
		if cfg.Scorer == "" && strings.Join(got, ", ") != wanted[i] {
			t.Logf("%q: %v, labelled %q", text, got, wanted[i])
		}
	}
	return float64(right) / float64(max(shown, 1)), float64(right) / float64(want)
}

func TestT02QualityOnLabelledMessages(t *testing.T) {
	precision, recall := quality(t, Config{})
	seedPrecision, seedRecall := quality(t, Config{Scorer: ScorerSeed})
	t.Logf("evidence: precision %.3f, recall %.3f; seed: precision %.3f, recall %.3f", precision, recall, seedPrecision, seedRecall)
	if precision < 0.95 || recall < 0.85 {
		t.Errorf("evidence: precision %.3f, recall %.3f, want at least 0.95, 0.85", precision, recall)
	}
	if recall <= seedRecall {
		t.Errorf("recall %.3f, want it above the seed's %.3f", recall, seedRecall)
	}
}
