package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/internal/duration"
)

// A Plan says when a job with a schedule runs.
type Plan struct {
	every time.Duration
	cron  *cron
}

// The least and the most time between two runs.
const (
	shortestEvery = time.Second
	longestEvery  = 10 * 366 * 24 * time.Hour
)

// ParseSchedule reads "every 90m" or "cron 0 3 * * 1-5". The five fields of cron
// are minute, hour, day of the month, month and day of the week (0 or 7 is
// Sunday), in local time; each is *, a number, a range, a list, or one of these
// with a step (*/15). @hourly, @daily, @weekly and @monthly are short for one. As
// usual, a day matches if either day field does where both are restricted.
func ParseSchedule(text string) (Plan, error) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch kind {
	case "every":
		d, err := time.ParseDuration(rest)
		if err != nil || d < shortestEvery {
			return Plan{}, invalid(fmt.Sprintf("the schedule %.100q has no interval of at least %s", text, duration.Text(shortestEvery)), "write how often, as in every 90m")
		}
		if d > longestEvery {
			return Plan{}, invalid(fmt.Sprintf("the schedule %.100q has more than ten years between two runs", text), "write how often, as in every 90m")
		}
		return Plan{every: d}, nil
	case "cron":
		c, err := parseCron(rest)
		if err != nil {
			return Plan{}, invalid(fmt.Sprintf("the schedule %.100q: %v", text, err), "write minute, hour, day, month and weekday, as in cron 0 3 * * 1-5")
		}
		if c.next(time.Now()).IsZero() {
			return Plan{}, invalid(fmt.Sprintf("the schedule %.100q never runs", text), "choose a day that exists")
		}
		return Plan{cron: c}, nil
	}
	return Plan{}, invalid(fmt.Sprintf("invalid schedule %.100q", text), "write every DURATION or cron FIELDS")
}

// Next returns the first time after now; base is when the job was first to run,
// from which every counts.
func (p Plan) Next(base, now time.Time) time.Time {
	if p.cron != nil {
		return p.cron.next(now)
	}
	if now.Before(base) {
		return base
	}
	return base.Add((now.Sub(base)/p.every + 1) * p.every)
}

// A cron is five sets.
type cron struct {
	minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                bool
}

func parseCron(text string) (*cron, error) {
	short := map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}
	if whole, ok := short[text]; ok {
		text = whole
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return nil, fmt.Errorf("found %d fields, want 5", len(fields))
	}
	c := &cron{anyDay: strings.HasPrefix(fields[2], "*"), anyWeekday: strings.HasPrefix(fields[4], "*")}
	for i, f := range []struct {
		name     string
		into     *uint64
		min, max int
		names    []string
	}{
		{"minute", &c.minute, 0, 59, nil}, {"hour", &c.hour, 0, 23, nil}, {"day", &c.day, 1, 31, nil},
		{"month", &c.month, 1, 12, strings.Fields("_ jan feb mar apr may jun jul aug sep oct nov dec")},
		{"weekday", &c.weekday, 0, 7, strings.Fields("sun mon tue wed thu fri sat")},
	} {
		set, err := parseField(strings.ToLower(fields[i]), f.min, f.max, f.names)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		*f.into = set
	}
	if c.weekday&(1<<7) != 0 {
		c.weekday |= 1
	}
	return c, nil
}

func parseField(text string, min, max int, names []string) (uint64, error) {
	var set uint64
	number := func(s string) (int, error) {
		n := slices.Index(names, s)
		if n < 0 {
			var err error
			if n, err = strconv.Atoi(s); err != nil {
				return 0, fmt.Errorf("%.20q is not a number", s)
			}
		}
		if n < min || n > max {
			return 0, fmt.Errorf("%d is not in the range %d to %d", n, min, max)
		}
		return n, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(by)
			if err != nil || n < 1 {
				return 0, fmt.Errorf("the step %.20q is not a positive number", by)
			}
			step = n
			if step > max { // a larger one takes the first alone, and n+step must not overflow
				step = max + 1
			}
		}
		first, last, isRange := strings.Cut(span, "-")
		low, high := min, max
		if span != "*" {
			var err error
			if low, err = number(first); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if high, err = number(last); err != nil {
					return 0, err
				}
			case !stepped:
				high = low
			}
			if high < low {
				return 0, fmt.Errorf("the range %q ends before it begins", span)
			}
		}
		for n := low; n <= high; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// furthest is how many days ahead a time is looked for: 29 February comes at
// least once in eight years.
const furthest = 8*366 + 1

// next returns the first time after now, or the zero time. An hour that the clock
// skips has none.
func (c *cron) next(now time.Time) time.Time {
	at := now.Local()
	const noon = 12 // which no clock skips
	day := time.Date(at.Year(), at.Month(), at.Day(), noon, 0, 0, 0, time.Local)
	for range furthest {
		if c.onDay(day) {
			for hour := range 24 {
				if c.hour&(1<<hour) == 0 {
					continue
				}
				for minute := range 60 {
					if c.minute&(1<<minute) == 0 {
						continue
					}
					t := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, time.Local)
					if t.After(now) && t.Hour() == hour && t.Minute() == minute {
						return t
					}
				}
			}
		}
		day = time.Date(day.Year(), day.Month(), day.Day()+1, noon, 0, 0, 0, time.Local)
	}
	return time.Time{}
}

func (c *cron) onDay(t time.Time) bool {
	if c.month&(1<<int(t.Month())) == 0 {
		return false
	}
	day, weekday := c.day&(1<<t.Day()) != 0, c.weekday&(1<<int(t.Weekday())) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
