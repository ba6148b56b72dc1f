package config

import (
	"strings"
	"time"

	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

func duration(least, most time.Duration, noWider func(a, b time.Duration) bool) kind[time.Duration] {
	return kind[time.Duration]{
		form: form{"type": "string"},
		text: true,
		parse: func(r *reading, at spot, v yamldoc.Value) (time.Duration, bool) {
			if _, isNumber := number(v); isNumber {
				r.fault(at, "bad-duration", "write it with one, as in 500ms, 2s, 5m or 1h", "%s is %s without a unit", at.key, yamledit.Flow(v.Any))
				return 0, false
			}
			s, ok := v.Any.(string)
			if !ok {
				r.mistyped(at, v, "a duration such as 500ms")
				return 0, false
			}
			d, err := time.ParseDuration(s)
			if err != nil {
				r.fault(at, "bad-duration", "write a number with a unit, as in 500ms, 2s, 5m or 1h", "%s %s is not a duration", at.key, plain(s))
				return 0, false
			}
			if d < least || d > most {
				r.fault(at, "out-of-range", "write a duration in that range", "%s is %s, not within %s to %s", at.key, plain(s), shortDuration(least), shortDuration(most))
				return 0, false
			}
			return d, true
		},
		show:    func(d time.Duration) any { return shortDuration(d) },
		noWider: noWider,
	}
}

// shortDuration writes 24h rather than 24h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
