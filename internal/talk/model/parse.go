package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

// Parse reads a person's own rows:
//
//	models:
//	  - pattern: my-model-*
//	    wire: openai-chat
//	    window: 32768
//	    maxOutput: 4096
//	    rungs: [bridge]
//	    cache: {least: 1024, step: 128, life: 5m}
//	    price: {input: 0.2, output: 0.8, cachedRead: 0.02, cacheWrite: 0.2}
//	    images: false
//
// Only pattern is needed. What a row leaves out is taken from the row that the
// table has for the model otherwise, and in a cache or price that it gives,
// what is left out is zero; but for cachedRead and cacheWrite, which are then
// the price of input. Keys and words that Parse does not know are errors.
func Parse(yaml []byte) ([]Row, error) {
	doc, err := yamldoc.Parse(bytes.ReplaceAll(yaml, []byte("\r\n"), []byte("\n")), yamldoc.Limits{})
	if err != nil {
		return nil, err
	}
	root := yamldoc.NewReader(doc)
	var rows []Row
	for i, item := range root.Items("models") {
		rows = append(rows, parseRow(i, item))
	}
	root.RefuseRest()
	if issues := root.Issues(); len(issues) > 0 {
		slices.SortStableFunc(issues, func(a, b *yamldoc.Error) int { return a.Line - b.Line })
		return nil, issues[0]
	}
	return rows, nil
}

func parseRow(i int, r *yamldoc.Reader) Row {
	row := Row{
		Pattern: strings.TrimSpace(r.String("pattern")),
		Since:   r.String("since"),
		Source:  r.String("source"),
	}
	if row.Pattern == "" {
		r.Issue(r.Line("pattern"), fmt.Sprintf("models[%d] has no pattern", i), "write pattern: and the name of the model, with * for any part")
	}
	if row.Source == "" {
		row.Source = "a row of your own"
	}
	if row.Since != "" {
		if _, err := time.Parse(time.DateOnly, row.Since); err != nil {
			r.Issue(r.Line("since"), "since "+quote(row.Since)+" is no date", "write it as 2026-11-15")
		}
	}
	row.Wire = word(r, "wire", []Wire{Chat, Responses, Messages, Gemini}, Wire(r.String("wire")))
	row.Window = whole(r, "window", 1<<30)
	row.MaxOutput = whole(r, "maxOutput", 1<<30)
	for _, w := range r.Words("rungs") {
		row.DeliveryModes = append(row.DeliveryModes, word(r, "rungs", []DeliveryMode{Whole, Inline, Search, Bridge, Extend, PerTurn}, DeliveryMode(w)))
	}
	row.Cache = parseCache(r.Map("cache"))
	row.Price = parsePrice(r.Map("price"))
	var said bool
	if row.Images, said = r.Bool("images"); said && !row.Images {
		row.off |= noImages
	}
	if row.Reasoning, said = r.Bool("reasoning"); said && !row.Reasoning {
		row.off |= noReasoning
	}
	r.RefuseRest()
	return row
}

func parseCache(r *yamldoc.Reader) Cache {
	if !r.Has() {
		return Cache{}
	}
	var c Cache
	c.Marked, _ = r.Bool("marked")
	c.Implicit, _ = r.Bool("implicit")
	c.Marks = whole(r, "marks", 1<<10)
	c.Lookback = whole(r, "lookback", 1<<20)
	c.Least = whole(r, "least", 1<<30)
	c.Step = whole(r, "step", 1<<30)
	if s := r.String("life"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			r.Issue(r.Line("life"), "life "+quote(s)+" is no span of time", "write it as 5m or 1h")
		}
		c.Life = d
	}
	r.RefuseRest()
	return c
}

func parsePrice(r *yamldoc.Reader) Price {
	if !r.Has() {
		return Price{}
	}
	var p Price
	p.Input, _ = amount(r, "input")
	p.Output, _ = amount(r, "output")
	p.CachedRead, p.CacheWrite = p.Input, p.Input
	if x, ok := amount(r, "cachedRead"); ok {
		p.CachedRead = x
	}
	if x, ok := amount(r, "cacheWrite"); ok {
		p.CacheWrite = x
	}
	p.LongAfter = whole(r, "longAfter", 1<<30)
	p.LongInput, p.LongOutput = 1, 1
	if x, ok := amount(r, "longInput"); ok {
		p.LongInput = x
	}
	if x, ok := amount(r, "longOutput"); ok {
		p.LongOutput = x
	}
	if p.LongAfter == 0 {
		p.LongInput, p.LongOutput = 0, 0
	}
	r.RefuseRest()
	return p
}

// word reads one of a closed set.
func word[W ~string](r *yamldoc.Reader, key string, known []W, w W) W {
	if w == "" || slices.Contains(known, w) {
		return w
	}
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	fix := "use one of " + strings.Join(names, ", ")
	if near := spelling.Nearest(string(w), names); near != "" {
		fix = "did you mean " + near + "?"
	}
	r.Issue(r.Line(key), key+" "+quote(string(w))+" is not known", fix)
	return ""
}

func whole(r *yamldoc.Reader, key string, most int) int {
	n, ok := r.Int(key)
	if ok && (n < 0 || n > most) {
		r.Issue(r.Line(key), fmt.Sprintf("%s is %d, want 0 to %d", key, n, most), "correct the number")
		return 0
	}
	return n
}

func amount(r *yamldoc.Reader, key string) (float64, bool) {
	x, ok := r.Float(key)
	if ok && !(x >= 0 && x <= 1e6) {
		r.Issue(r.Line(key), fmt.Sprintf("%s is %g, want dollars for a million tokens", key, x), "correct the number")
		return 0, false
	}
	return x, ok
}

func quote(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return fmt.Sprintf("%q", s)
}
