package wire

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check refuses parameters that the route does not have, and those that are not
// of their type.
func (r *Request) check() error {
	for name, values := range r.query {
		i := slices.IndexFunc(r.route.Query, func(p Param) bool { return p.Name == name })
		if i < 0 {
			return Bad(fmt.Sprintf("there is no parameter %q; there are %s", name, r.names()))
		}
		p := r.route.Query[i]
		if len(values) > 1 && !p.Many {
			return Bad(name + " may be given once")
		}
		for _, text := range values {
			if err := p.check(text, r.now()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Request) names() string {
	var names []string
	for _, p := range r.route.Query {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (p Param) check(text string, now time.Time) error {
	if text == "" {
		return nil
	}
	wrong := func(want string) error { return Bad(fmt.Sprintf("%s is %q; it is %s", p.Name, text, want)) }
	switch p.Type {
	case Whole:
		if n, err := strconv.Atoi(text); err != nil || n < 0 || n > math.MaxInt32 {
			return wrong(fmt.Sprintf("a whole number of 0 to %d", math.MaxInt32))
		}
	case Number:
		if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return wrong("a number")
		}
	case Yes:
		if text != "true" && text != "false" {
			return wrong("true or false")
		}
	case Instant:
		if _, err := instant(text, now); err != nil {
			return wrong("a time, as in 2026-01-31T12:00:00Z, or how long ago, as in 24h or 30d")
		}
	}
	if p.Words != nil && !slices.Contains(p.Words, text) {
		return wrong("one of " + strings.Join(p.Words, ", "))
	}
	return nil
}

func instant(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

// Text returns a parameter; empty where it is missing.
func (r *Request) Text(name string) string { return r.query.Get(name) }

// Texts returns all values of a parameter.
func (r *Request) Texts(name string) []string { return r.query[name] }

// Has reports whether a parameter was given and is not empty.
func (r *Request) Has(name string) bool { return r.query.Get(name) != "" }

// Whole returns a parameter of that type, or another where it is missing.
func (r *Request) Whole(name string, other int) int {
	if n, err := strconv.Atoi(r.query.Get(name)); err == nil {
		return n
	}
	return other
}

// Number returns a parameter of that type, or another where it is missing.
func (r *Request) Number(name string, other float64) float64 {
	if f, err := strconv.ParseFloat(r.query.Get(name), 64); err == nil {
		return f
	}
	return other
}

// Yes reports whether a parameter is true.
func (r *Request) Yes(name string) bool { return r.query.Get(name) == "true" }

// Instant returns a parameter of that type; zero where it is missing.
func (r *Request) Instant(name string) time.Time {
	t, err := instant(r.query.Get(name), r.now())
	if err != nil {
		return time.Time{}
	}
	return t
}
