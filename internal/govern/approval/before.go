package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ken/internal/govern/policy"
	"ken/internal/store"
)

// Before is an earlier ticket of the same capability, action and session, the
// one that is most like the new question, and in what they differ. It answers
// "why am I asked again?".
type Before struct {
	Ticket string    `json:"ticket"`
	Effect Effect    `json:"effect"`
	Scope  Scope     `json:"scope"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`

	// Differences are empty when it was the very same call. More counts those
	// that are not listed.
	Differences []Difference `json:"differences,omitempty"`
	More        int          `json:"more,omitempty"`
}

// A Difference is one place in which two calls differ. Old and New are
// redacted, and shortened with a mark that says so: the whole of what will run
// is in the question itself.
type Difference struct {
	Place string `json:"place"` // "argument 4", "program", "command", a JSON pointer such as "/files/0", "intent", …
	Old   string `json:"old"`   // empty: it was not there
	New   string `json:"new"`   // empty: it is no longer there
}

const (
	mostKin         = 8
	mostDifferences = 20
	longestValue    = 200 // characters
)

// before looks for the nearest earlier ticket: granted before denied, then the
// fewest differences, then the newest.
func (d *Desk) before(t *Ticket, relatives []store.Item) (*Before, error) {
	var best *Before
	rank := func(b *Before) int {
		n := 2 * (len(b.Differences) + b.More)
		if b.Effect != Yes {
			n += 1 << 30
		}
		return n
	}
	for _, item := range relatives {
		old, err := decodeTicket(strings.TrimPrefix(item.Key, ticketPrefix), item)
		if err != nil {
			return nil, err
		}
		if old.Answer == nil {
			continue
		}
		a := old.Answer
		b := &Before{Ticket: old.ID, Effect: a.Effect, Scope: a.Scope, By: a.By.ID, At: a.At}
		b.Differences = d.differences(&old.Question, &t.Question)
		if n := len(b.Differences); n > mostDifferences {
			b.Differences, b.More = b.Differences[:mostDifferences:mostDifferences], n-mostDifferences
		}
		if best == nil || rank(b) < rank(best) {
			best = b
		}
	}
	return best, nil
}

// Reason says in one line why the question is put although something like it
// was answered before.
func (b *Before) Reason() string {
	was := "granted"
	if b.Effect != Yes {
		was = "denied"
	}
	who := fmt.Sprintf("the call that %s %s at %s (ticket %s)", b.By, was, stamp(b.At), b.Ticket)
	if len(b.Differences) == 0 {
		return "asked again because the earlier answer was for one call only; this is the same as " + who
	}
	var places []string
	for _, one := range b.Differences {
		places = append(places, one.Place)
	}
	if b.More > 0 {
		places = append(places, fmt.Sprintf("%d more", b.More))
	}
	verb := " differ"
	if len(places) == 1 {
		verb = " differs"
	}
	return "asked again because " + strings.Join(places, ", ") + verb + " from " + who
}

// differences compares what will run where both start something, and the
// arguments otherwise; then what else a digest covers.
func (d *Desk) differences(old, new *Question) []Difference {
	c := comparison{redact: d.conf.Redact}
	switch {
	case len(old.Argv) > 0 && len(new.Argv) > 0:
		c.argv(old.Argv, new.Argv)
	case old.Command != "" && new.Command != "":
		c.text("command", old.Command, new.Command)
	}
	if len(c.found) == 0 {
		c.json("", value(old.Call.Arguments), value(new.Call.Arguments))
	}
	for _, f := range new.Files {
		if was := policy.ChangedFile(old.Files, []policy.File{f}); was != nil {
			i := slices.IndexFunc(old.Files, func(o policy.File) bool { return o.Name == f.Name })
			c.found = append(c.found, Difference{"the file " + f.Path, fmt.Sprintf("%.12s", old.Files[i].SHA256), fmt.Sprintf("%.12s", f.SHA256)})
		}
	}
	c.text("folder", old.Folder, new.Folder)
	c.text("intent", old.Call.Intent, new.Call.Intent)
	c.text("mode", old.Call.Mode, new.Call.Mode)
	if old.Call.CapabilityHash != new.Call.CapabilityHash {
		c.found = append(c.found, Difference{"the capability's own text", fmt.Sprintf("%.12s", old.Call.CapabilityHash), fmt.Sprintf("%.12s", new.Call.CapabilityHash)})
	}
	return c.found
}

// value decodes arguments, whose form the digest has already checked.
func value(raw json.RawMessage) any {
	if len(raw) == 0 {
		return map[string]any{}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	return v
}

type comparison struct {
	redact func(name, value string) string
	found  []Difference
}

func (c *comparison) text(place, old, new string) {
	if old != new {
		c.add(place, c.show("", old), c.show("", new))
	}
}

// show returns a value as it may be shown; what it is called can make it a secret.
func (c *comparison) show(name, value string) string {
	if c.redact == nil {
		return "(not shown)"
	}
	return c.redact(name, value)
}

// add takes a difference of two values that were made fit to be shown before
// they are cut; empty stands for what is not there.
func (c *comparison) add(place, old, new string) {
	from := 0
	if old != "" && new != "" {
		from = common(old, new)
	}
	c.found = append(c.found, Difference{place, excerpt(old, from), excerpt(new, from)})
}

// common is the length of what two texts begin with alike, in whole characters.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}

// excerpt shortens a text to the part around a place, and says so.
func excerpt(s string, at int) string {
	if utf8.RuneCountInString(s) <= longestValue {
		return s
	}
	before, runes := "", []rune(s)
	if lead := utf8.RuneCountInString(s[:min(at, len(s))]) - longestValue/4; lead > 0 {
		before, runes = fmt.Sprintf("(%d characters) …", lead), runes[lead:]
	}
	if rest := len(runes) - longestValue; rest > 0 {
		return before + string(runes[:longestValue]) + fmt.Sprintf("… (%d characters)", rest)
	}
	return before + string(runes)
}

// argv compares arguments between the beginning and the end that both share.
func (c *comparison) argv(old, new []string) {
	from := 0
	for from < min(len(old), len(new)) && old[from] == new[from] {
		from++
	}
	tail := 0
	for tail < min(len(old), len(new))-from && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	show := func(argv []string, i int) string {
		switch {
		case i >= len(argv)-tail:
			return ""
		case i == 0:
			return c.show("", argv[i])
		}
		return c.show(argv[i-1], argv[i])
	}
	for i := from; i < max(len(old), len(new))-tail; i++ {
		place := "program"
		if i > 0 {
			place = "argument " + strconv.Itoa(i)
		}
		c.add(place, show(old, i), show(new, i))
	}
}

// json compares values and everything in them.
func (c *comparison) json(place string, old, new any) {
	if a, ok := old.(map[string]any); ok {
		if b, ok := new.(map[string]any); ok {
			c.members(place, a, b)
			return
		}
	}
	if a, ok := old.([]any); ok {
		if b, ok := new.([]any); ok {
			for i := range max(len(a), len(b)) {
				at := place + "/" + strconv.Itoa(i)
				switch {
				case i >= len(a):
					c.add(at, "", c.show(lastName(place), compact(b[i])))
				case i >= len(b):
					c.add(at, c.show(lastName(place), compact(a[i])), "")
				default:
					c.json(at, a[i], b[i])
				}
			}
			return
		}
	}
	if a, b := compact(old), compact(new); a != b {
		name := lastName(place)
		if place == "" {
			place = "arguments"
		}
		c.add(place, c.show(name, a), c.show(name, b))
	}
}

func (c *comparison) members(place string, old, new map[string]any) {
	names := slices.Collect(maps.Keys(old))
	for name := range new {
		if _, both := old[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := place + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		a, was := old[name]
		b, is := new[name]
		switch {
		case !was:
			c.add(at, "", c.show(name, compact(b)))
		case !is:
			c.add(at, c.show(name, compact(a)), "")
		default:
			c.json(at, a, b)
		}
	}
}

// lastName is the nearest name in a JSON pointer that is not an index.
func lastName(place string) string {
	parts := strings.Split(place, "/")
	for _, p := range slices.Backward(parts) {
		if _, err := strconv.Atoi(p); err != nil {
			return strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
		}
	}
	return ""
}

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was decoded from JSON
	return strings.TrimSuffix(b.String(), "\n")
}
