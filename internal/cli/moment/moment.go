// Package moment reads times as people write them for commands: so long ago, a day, or an
// instant.
package moment

import (
	"fmt"
	"time"
)

// Parse returns the time that the text of a flag stands for, or the zero time if it is
// empty.
func Parse(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is %q; write a duration, as in 24h, or a time, as in 2026-01-31T12:00:00Z", flag, text)
}

// A Text is the value of a flag that [Parse] reads. Help shows it as a duration.
type Text string

// String returns the text.
func (t *Text) String() string { return string(*t) }

// Set takes any text; Parse judges it.
func (t *Text) Set(text string) error { *t = Text(text); return nil }

// Type returns what help calls the value.
func (t *Text) Type() string { return "duration" }
