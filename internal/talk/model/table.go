package model

import (
	"slices"
	"strings"
	"time"

	"ken/internal/glob"
)

// A Table finds what is known of a model. It never changes and is safe for
// concurrent use. The zero Table knows the built-in rows.
type Table struct {
	own    []Row
	prices map[string]Price // by the whole name, in small letters
}

// NewTable puts a person's own rows before the built-in ones.
func NewTable(own []Row) *Table {
	return &Table{own: slices.Clone(own)}
}

// Priced returns the table with a person's own prices of single models, by their
// whole names. They count before those of all rows.
func (t *Table) Priced(prices map[string]Price) *Table {
	out := &Table{prices: map[string]Price{}}
	if t != nil {
		out.own = t.own
	}
	for name, p := range prices {
		out.prices[strings.ToLower(name)] = p
	}
	return out
}

// Find returns the row of a model as it is reached over a wire. A name that no
// pattern takes is tried again without what stands before its last slash, as
// gateways put the vendor there.
//
// A person's own row counts before the built-in ones whatever its length, and
// what it leaves out is taken from the row that it stands before. Where no row
// takes the name Find reports false and gives the least: a window of 128,000
// tokens, answers of 8,192, no delivery mode but those that every model has, no price,
// and the most careful cache rule of the wire.
//
// A vendor's model over another vendor's wire is reached through a gateway: its
// window is kept, while its price and cache are treated as unknown. Delivery modes are
// only those that the wire can carry as well.
func (t *Table) Find(wire Wire, name string) (Row, bool) {
	row, known := best(builtin(), name, func(Row) bool { return true })
	if known && vendor(row.Wire) != vendor(wire) {
		row.Price, row.Cache = Price{}, least(wire).Cache
	}
	if !known {
		row = least(wire)
	}
	if t != nil {
		own, ok := best(t.own, name, func(r Row) bool { return r.Wire == "" || r.Wire == wire })
		if ok {
			row, known = over(row, own), true
		}
		if p, ok := t.prices[strings.ToLower(name)]; ok {
			row.Price = p
		}
	}
	row.Wire = wire
	row.DeliveryModes = carried(wire, row.DeliveryModes)
	return row, known
}

// best returns the matching row with the longest pattern, the first of equals.
func best(rows []Row, name string, take func(Row) bool) (Row, bool) {
	name = strings.ToLower(name)
	for {
		found, length := -1, -1
		for i, r := range rows {
			n := weight(r.Pattern)
			if n > length && take(r) && glob.Name(strings.ToLower(r.Pattern), name, false) {
				found, length = i, n
			}
		}
		if found >= 0 {
			return rows[found], true
		}
		slash := strings.LastIndexByte(name, '/')
		if slash < 0 {
			return Row{}, false
		}
		name = name[slash+1:]
	}
}

// weight orders patterns: by what they say literally, then by what they leave
// to one character, and of equals one without a star first.
func weight(pattern string) int {
	stars, ones := strings.Count(pattern, "*"), strings.Count(pattern, "?")
	n := (len(pattern)-stars-ones)<<16 + ones<<1
	if stars == 0 {
		n++
	}
	return n
}

// over lays what a person's own row says over another.
func over(row, own Row) Row {
	row.Pattern, row.Since, row.Source = own.Pattern, own.Since, own.Source
	if own.Window != 0 {
		row.Window = own.Window
		row.MaxOutput = min(row.MaxOutput, own.Window)
	}
	if own.MaxOutput != 0 {
		row.MaxOutput = own.MaxOutput
	}
	if own.DeliveryModes != nil {
		row.DeliveryModes = own.DeliveryModes
	}
	if own.Cache != (Cache{}) {
		row.Cache = own.Cache
	}
	if own.Price != (Price{}) {
		row.Price = own.Price
	}
	row.Images = (row.Images || own.Images) && own.off&noImages == 0
	row.Reasoning = (row.Reasoning || own.Reasoning) && own.off&noReasoning == 0
	return row
}

// vendor names whose wire it is.
func vendor(w Wire) string {
	switch w {
	case Chat, Responses:
		return "openai"
	}
	return string(w)
}

// carried leaves out the delivery modes that a wire has no form for.
func carried(w Wire, modes []DeliveryMode) []DeliveryMode {
	if w == Messages || w == Responses {
		return slices.Clone(modes)
	}
	return slices.DeleteFunc(slices.Clone(modes), func(g DeliveryMode) bool { return g == Inline || g == Search })
}

// least is what a model is taken to have of which nothing is known.
func least(w Wire) Row {
	row := Row{Wire: w, Source: "nothing is known of this model: the least is assumed", Window: 128_000, MaxOutput: 8_192, DeliveryModes: every()}
	switch w {
	case Messages:
		row.Cache = Cache{Marked: true, Marks: 4, Lookback: 20, Least: 4096, Life: 5 * time.Minute}
	case Responses:
		row.Cache = Cache{Least: 1024, Step: 128, Life: 5 * time.Minute}
	case Gemini:
		row.Cache = Cache{Least: 4096, Life: 5 * time.Minute}
	}
	return row
}

// every returns the delivery modes that work with every model, after those given.
func every(more ...DeliveryMode) []DeliveryMode {
	return append(more, Whole, Bridge, Extend, PerTurn)
}
