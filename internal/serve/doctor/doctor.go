// Package doctor says what is wrong with an installation of Ken and what to do
// about it.
package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
)

// A Grade says how a check came out. The zero value is the worst.
type Grade uint8

const (
	Bad  Grade = iota // something does not work
	Warn              // something could be better
	Good
)

func (g Grade) String() string { return [...]string{"bad", "warn", "good"}[min(g, Good)] }

// MarshalText writes the grade's word.
func (g Grade) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// A Check is one thing that was looked at.
type Check struct {
	Name    string `json:"name"`
	Grade   Grade  `json:"grade"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Facts are what the doctor looks at.
type Facts struct {
	ConfigErr   error    // why the configuration is refused, or nil
	ConfigFiles []string // the files that it was read from
	Home        string   // Ken's directory of this user
	CacheErr    error    // why parsed catalogs are not kept, or nil
	Places      []Place
	Listing     door.Listing
}

// A Place is somewhere capabilities are read from.
type Place struct {
	Name string
	Why  string
}

// Examine makes every check. It looks at files and changes nothing.
func Examine(f Facts) []Check {
	checks := []Check{configuration(f)}
	if f.ConfigErr != nil {
		return checks // nothing else was read
	}
	checks = append(checks, home(f.Home), cache(f.CacheErr), places(f.Places))
	return append(checks, catalog(f.Listing), quarantine(f.Listing), availability(f.Listing))
}

// Worst gives the worst grade of all checks.
func Worst(checks []Check) Grade {
	worst := Good
	for _, c := range checks {
		worst = min(worst, c.Grade)
	}
	return worst
}

func configuration(f Facts) Check {
	c := Check{Name: "configuration", Grade: Good, Message: "no ken.yaml; the defaults are in force"}
	if f.ConfigErr != nil {
		c.Grade, c.Message, c.Fix = Bad, f.ConfigErr.Error(), "mend the file; until then nothing runs with it"
		return c
	}
	if len(f.ConfigFiles) > 0 {
		c.Message = "read from " + strings.Join(f.ConfigFiles, ", ")
	}
	return c
}

func home(dir string) Check {
	c := Check{Name: "home", Grade: Good, Message: dir}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Grade, c.Message, c.Fix = Warn, dir+" does not exist yet", "run ken init to begin with a sample"
	case err != nil:
		c.Grade, c.Message, c.Fix = Bad, err.Error(), "make the directory readable for this user"
	case !info.IsDir():
		c.Grade, c.Message, c.Fix = Bad, dir+" is not a directory", "move the file away"
	case info.Mode().Perm()&0o022 != 0:
		c.Grade, c.Message = Bad, fmt.Sprintf("%s can be written by others (%04o)", dir, info.Mode().Perm())
		c.Fix = "chmod go-w " + dir
	}
	return c
}

func cache(err error) Check {
	if err != nil {
		return Check{Name: "cache", Grade: Warn, Message: err.Error(), Fix: "large catalogs load slower until this is mended"}
	}
	return Check{Name: "cache", Grade: Good, Message: "large catalogs are parsed once and kept"}
}

func places(list []Place) Check {
	var there []string
	for _, p := range list {
		if _, err := os.Stat(p.Name); err == nil {
			there = append(there, p.Name)
		}
	}
	c := Check{Name: "places", Grade: Good, Message: fmt.Sprintf("%d of %d places exist: %s", len(there), len(list), strings.Join(there, ", "))}
	if len(there) == 0 {
		c.Grade, c.Message = Warn, fmt.Sprintf("none of the %d places where capabilities are looked for exists", len(list))
		c.Fix = "run ken init, or name one with --catalog or catalog.sources"
	}
	return c
}

func catalog(l door.Listing) Check {
	grave := 0
	var first capability.Problem
	for _, p := range l.Problems {
		if p.Severity == capability.Grave {
			if grave == 0 {
				first = p
			}
			grave++
		}
	}
	c := Check{Name: "catalog", Grade: Good, Message: fmt.Sprintf("%d capabilities, %d warnings", l.Stats.Capabilities, len(l.Problems)-grave)}
	if l.Stats.Capabilities == 0 {
		c.Grade, c.Message, c.Fix = Warn, "there are no capabilities", "set catalog.starter to on, or run ken init"
	}
	if grave > 0 {
		c.Grade, c.Message = Bad, fmt.Sprintf("%d errors; the first: %s", grave, first)
		c.Fix = "ken catalog lint lists them all"
	}
	return c
}

func quarantine(l door.Listing) Check {
	var ids []string
	for _, e := range l.Capabilities {
		if e.State == "quarantined" {
			ids = append(ids, string(e.ID))
		}
	}
	if len(ids) == 0 {
		return Check{Name: "quarantine", Grade: Good, Message: "nothing is quarantined"}
	}
	return Check{
		Name: "quarantine", Grade: Warn, Message: fmt.Sprintf("%d quarantined: %s", len(ids), some(ids, 5)),
		Fix: "ken catalog why ID says what was noticed and how to release it",
	}
}

// availability gathers what is missing most.
func availability(l door.Listing) Check {
	missing := map[string]int{}
	usable := 0
	for _, e := range l.Capabilities {
		if e.Available {
			usable++
		}
		for _, m := range e.Missing {
			missing[m]++
		}
	}
	c := Check{Name: "availability", Grade: Good, Message: fmt.Sprintf("%d of %d can be used here", usable, len(l.Capabilities))}
	if len(missing) == 0 {
		return c
	}
	what := make([]string, 0, len(missing))
	for m := range missing {
		what = append(what, m)
	}
	slices.SortFunc(what, func(a, b string) int { return cmp.Or(cmp.Compare(missing[b], missing[a]), cmp.Compare(a, b)) })
	for i, m := range what {
		if n := missing[m]; n > 1 {
			what[i] = fmt.Sprintf("%s (%d)", m, n)
		}
	}
	c.Message += "; missing: " + some(what, 3)
	c.Fix = "ken catalog list shows each; ken catalog why ID says what one lacks"
	return c
}

// some joins the first n and counts the rest.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, "; ")
	}
	return strings.Join(list[:n], "; ") + fmt.Sprintf("; and %d more", len(list)-n)
}
