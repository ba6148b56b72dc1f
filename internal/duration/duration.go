// Package duration writes durations for people: 90 s, 1 min 5 s, 30 days.
//
// A setting keeps the form in which it is written in ken.yaml, as in 24h.
package duration

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Text returns a duration with at most two units, rounded down.
func Text(d time.Duration) string {
	switch {
	case d == math.MinInt64: // it has no opposite
		return Text(d + 1)
	case d < 0:
		return "-" + Text(-d)
	case d == 0:
		return "0 s"
	case d < 10*time.Millisecond:
		return tenths(float64(d)/float64(time.Millisecond)) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute, d < 100*time.Second && d%time.Minute != 0:
		return tenths(d.Seconds()) + " s"
	case d < time.Hour, d < 2*time.Hour && d%time.Hour != 0:
		return units(d, time.Minute, "min", time.Second, "s")
	case d < 3*day:
		return units(d, time.Hour, "h", time.Minute, "min")
	}
	return units(d, day, "days", time.Hour, "h")
}

func tenths(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") }

func units(d, large time.Duration, name string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", int64(d/large), name)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", int64(rest), smallName)
	}
	return text
}
