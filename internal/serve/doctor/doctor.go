// Package doctor says what is wrong with an installation of Ken and what to do
// about it.
package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

	// Note means that nothing is wrong, but not all is there: some would want
	// it.
	Note bool `json:"note,omitempty"`
}

// Facts are what the doctor looks at.
type Facts struct {
	ConfigErr   error    // why the configuration is refused, or nil
	ConfigFiles []string // the files that it was read from
	Home        string   // Ken's directory of this user
	CacheErr    error    // why parsed catalogs are not kept, or nil
	Meaning     string   // what finds by meaning
	MeaningErr  error    // why nothing does, or nil
	Model       string   // the model that answers in a chat; empty: none
	ModelErr    error    // why it will not, or nil
	Places      []Place
	Listing     door.Listing
	Running     Running
	Servers     Servers
	Databases   []Database
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
	checks = append(checks, home(f.Home), cache(f.CacheErr), meaning(f), model(f), places(f.Places))
	checks = append(checks, running(f.Running)...)
	checks = append(checks, servers(f.Servers)...)
	checks = append(checks, databases(f.Databases)...)
	checks = append(checks, catalog(f.Listing), quarantine(f.Listing))
	return append(checks, availability(f.Listing)...)
}

// Worst returns the worst grade of all checks.
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
		c.Grade, c.Message, c.Fix = Bad, f.ConfigErr.Error(), "fix the file; until then nothing runs with it"
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

func meaning(f Facts) Check {
	if f.MeaningErr != nil {
		return Check{Name: "meaning", Grade: Warn, Message: f.MeaningErr.Error(), Fix: "until this is fixed words alone find capabilities"}
	}
	return Check{Name: "meaning", Grade: Good, Message: f.Meaning}
}

func model(f Facts) Check {
	switch {
	case f.ModelErr != nil:
		return Check{Name: "model", Grade: Warn, Message: f.ModelErr.Error(), Fix: "until this is fixed ken chat runs commands only; `ken model set PROVIDER/NAME` names another model"}
	case f.Model == "":
		return Check{Name: "model", Grade: Good, Note: true, Message: "no model is chosen, so ken chat runs commands only", Fix: "run ken model to choose one"}
	}
	return Check{Name: "model", Grade: Good, Message: f.Model}
}

func cache(err error) Check {
	if err != nil {
		return Check{Name: "cache", Grade: Warn, Message: err.Error(), Fix: "large catalogs load slower until this is fixed"}
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
	c := Check{Name: "places", Grade: Good, Message: fmt.Sprintf("%d of %s with capabilities exist: %s", len(there), count(len(list), "possible place"), strings.Join(there, ", "))}
	if len(there) == 0 {
		c.Grade, c.Message = Warn, "no place where Ken looks for capabilities exists: "+strings.Join(names(list), ", ")
		c.Fix = "run ken init, or name one with --catalog or catalog.sources"
	}
	return c
}

func names(list []Place) (out []string) {
	for _, p := range list {
		out = append(out, p.Name)
	}
	return out
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
	c := Check{Name: "catalog", Grade: Good, Message: count(l.Stats.Capabilities, "capability") + ", " + count(len(l.Problems)-grave, "warning")}
	if l.Stats.Capabilities == 0 {
		c.Grade, c.Message, c.Fix = Warn, "there are no capabilities", "set catalog.starter to on, or run ken init"
	}
	if grave > 0 {
		c.Grade, c.Message = Bad, fmt.Sprintf("%s; the first: %s", count(grave, "error"), first)
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
		Fix: "see what was noticed in one, and how to release it: ken catalog why " + ids[0],
	}
}

// mostMissing is how many reasons are told one by one.
const mostMissing = 5

// availability says what can be used, and what is missing most, one check for
// each reason.
func availability(l door.Listing) []Check {
	missing := map[string]int{}
	usable := 0
	for _, e := range l.Capabilities {
		switch {
		case e.Ready():
			usable++
		case e.State != "active": // another check tells of these
		case len(e.Missing) > 0:
			missing[e.Missing[0].String()]++
		default:
			missing[e.Off]++
		}
	}
	out := []Check{{Name: "availability", Grade: Good, Message: fmt.Sprintf("%d of %s can be used here", usable, count(l.Stats.Capabilities, "capability"))}}
	what := slices.SortedFunc(maps.Keys(missing), func(a, b string) int {
		return cmp.Or(cmp.Compare(missing[b], missing[a]), cmp.Compare(a, b))
	})
	for _, reason := range what[:min(len(what), mostMissing)] {
		out = append(out, Check{Name: "missing", Grade: Good, Note: true, Message: count(missing[reason], "capability") + ": " + reason})
	}
	if more := len(what) - mostMissing; more > 0 {
		out = append(out, Check{Name: "missing", Grade: Good, Note: true, Message: count(more, "further reason"), Fix: "ken catalog why ID says what one lacks"})
	}
	return out
}

// some joins the first n and counts the rest.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, "; ")
	}
	return strings.Join(list[:n], "; ") + fmt.Sprintf("; and %d more", len(list)-n)
}

// count returns "1 error", "2 errors".
func count(n int, word string) string {
	switch {
	case n == 1:
		return "1 " + word
	case strings.HasSuffix(word, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(word, "y"))
	}
	return fmt.Sprintf("%d %ss", n, word)
}
