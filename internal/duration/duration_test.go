package duration

import (
	"math"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0 s"},
		{50 * time.Microsecond, "0.1 ms"},
		{2345 * time.Microsecond, "2.3 ms"},
		{4 * time.Millisecond, "4 ms"},
		{140 * time.Millisecond, "140 ms"},
		{1234567 * time.Microsecond, "1.2 s"},
		{30 * time.Second, "30 s"},
		{time.Minute, "1 min"},
		{90 * time.Second, "90 s"},
		{65*time.Second + 400*time.Millisecond, "65.4 s"},
		{125 * time.Second, "2 min 5 s"},
		{10 * time.Minute, "10 min"},
		{90 * time.Minute, "90 min"},
		{time.Hour, "1 h"},
		{2*time.Hour + 30*time.Minute, "2 h 30 min"},
		{24 * time.Hour, "24 h"},
		{48 * time.Hour, "48 h"},
		{720 * time.Hour, "30 days"},
		{100 * time.Hour, "4 days 4 h"},
		{-5 * time.Minute, "-5 min"},
		{math.MinInt64, "-106751 days 23 h"},
	} {
		if got := Text(test.d); got != test.want {
			t.Errorf("Text(%d) = %q, want %q", test.d, got, test.want)
		}
	}
	if got := Text(math.MaxInt64); got != "106751 days 23 h" {
		t.Errorf("the longest duration is %q", got)
	}
}
