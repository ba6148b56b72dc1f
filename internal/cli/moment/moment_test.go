package moment

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"": {}, "2h": now.Add(-2 * time.Hour), "0s": now, "2026-11-17": now.AddDate(0, 0, -1).Add(-12 * time.Hour),
		"2026-11-17 08:00:00": now.Add(-28 * time.Hour), "2026-11-18T11:00:00Z": time.Date(2026, 11, 18, 11, 0, 0, 0, time.UTC),
	} {
		if got, err := Parse("--since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("Parse(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"1d", "-1h", "yesterday", "2026-13-01"} {
		if got, err := Parse("--since", text, now); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, got)
		}
	}
}
