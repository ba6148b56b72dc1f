package outcome

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/jsonappend"
)

// A selection is written on every turn, and a day of them is read when a
// process starts. Both are done by hand, several times faster than by
// reflection; the tests hold them to what encoding/json writes and reads.

// object writes the fields of a JSON object in order.
type object struct{ b []byte }

func (o *object) key(k string) { o.b = jsonappend.Key(o.b, k) }

func (o *object) str(k, v string) {
	if v != "" {
		o.key(k)
		o.b = jsonappend.String(o.b, v)
	}
}

func (o *object) num(k string, v int64) {
	if v != 0 {
		o.must(k, v)
	}
}

func (o *object) must(k string, v int64) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) score(k string, v float64) {
	o.key(k)
	o.b = strconv.AppendFloat(o.b, v, 'f', -1, 64)
}

func (o *object) yes(k string, v bool) {
	if v {
		o.key(k)
		o.b = append(o.b, "true"...)
	}
}

func (o *object) list(k string, list []string) {
	if len(list) == 0 {
		return
	}
	o.key(k)
	for i, s := range list {
		o.b = jsonappend.String(append(o.b, "[,"[min(i, 1)]), s)
	}
	o.b = append(o.b, ']')
}

// appendJSON appends e as json.Marshal would write it. Its scores have gone
// through round.
func (e *Event) appendJSON(b []byte) []byte {
	o := object{b: append(b, '{')}
	o.key("time")
	o.b = append(o.b, '"')
	o.b = e.Time.AppendFormat(o.b, time.RFC3339Nano)
	o.b = append(o.b, '"')
	o.key("kind")
	o.b = jsonappend.String(o.b, string(e.Kind))
	o.str("session", e.Session)
	o.str("turn", e.Turn)
	o.str("id", string(e.ID))
	o.str("detail", e.Detail)
	o.num("triggered", int64(e.Triggered))
	o.str("sessionType", e.SessionType)
	o.list("tags", e.Tags)
	o.str("mode", string(e.Mode))
	o.str("experiment", e.Experiment)
	o.str("variant", e.Variant)
	o.str("queryHash", e.QueryHash)
	o.key("injected")
	o.b = strconv.AppendBool(o.b, e.Injected)
	if len(e.Items) > 0 {
		o.key("items")
		for i := range e.Items {
			o.b = e.Items[i].appendJSON(append(o.b, "[,"[min(i, 1)]))
		}
		o.b = append(o.b, ']')
	}
	if len(e.Skipped) > 0 {
		o.key("skipped")
		for i := range e.Skipped {
			o.b = e.Skipped[i].appendJSON(append(o.b, "[,"[min(i, 1)]))
		}
		o.b = append(o.b, ']')
	}
	if e.Tokens != (Tokens{}) {
		o.key("tokens")
		o.b = e.Tokens.appendJSON(o.b)
	}
	o.num("dump", int64(e.AllToolTokens))
	o.num("took_us", e.TookUS)
	o.num("embed_us", e.EmbedUS)
	o.num("graph_us", e.GraphUS)
	o.num("candidates", int64(e.Candidates))
	o.num("retrieved", int64(e.Retrieved))
	o.list("degraded", e.Degraded)
	o.str("error", e.Error)
	o.str("tenant", e.Tenant)
	o.str("rule", e.Rule)
	o.str("model", e.Model)
	o.str("end", e.End)
	o.num("requests", int64(e.Requests))
	o.num("shown", int64(e.Shown))
	o.num("added", int64(e.Added))
	if e.Usage != (Usage{}) {
		o.key("usage")
		o.b = e.Usage.appendJSON(o.b)
	}
	if e.Cost != 0 {
		o.score("cost", e.Cost)
	}
	o.num("cut", int64(e.Cut))
	return append(o.b, '}')
}

func (it *Item) appendJSON(b []byte) []byte {
	o := object{b: append(b, '{')}
	o.key("id")
	o.b = jsonappend.String(o.b, string(it.ID))
	o.key("tier")
	o.b = jsonappend.String(o.b, string(it.Tier))
	o.score("score", it.Score)
	if it.Seed != 0 {
		o.score("seed", it.Seed)
	}
	o.must("tokens", int64(it.Tokens))
	o.yes("forced", it.Forced)
	o.yes("held", it.Held)
	o.yes("there", it.There)
	o.yes("text", it.Text)
	if len(it.Names) > 0 {
		o.key("names")
		for i, id := range it.Names {
			o.b = jsonappend.String(append(o.b, "[,"[min(i, 1)]), string(id))
		}
		o.b = append(o.b, ']')
	}
	return append(o.b, '}')
}

func (s *Skip) appendJSON(b []byte) []byte {
	o := object{b: append(b, '{')}
	o.key("id")
	o.b = jsonappend.String(o.b, string(s.ID))
	o.key("reason")
	o.b = jsonappend.String(o.b, s.Reason)
	o.score("score", s.Score)
	if s.Seed != 0 {
		o.score("seed", s.Seed)
	}
	o.num("tokens", int64(s.Tokens))
	return append(o.b, '}')
}

func (t *Tokens) appendJSON(b []byte) []byte {
	o := object{b: append(b, '{')}
	o.must("map", int64(t.Map))
	o.must("briefs", int64(t.Briefs))
	o.must("cards", int64(t.Cards))
	o.must("fulls", int64(t.Fulls))
	o.must("total", int64(t.Total))
	return append(o.b, '}')
}

func (u *Usage) appendJSON(b []byte) []byte {
	o := object{b: append(b, '{')}
	o.must("input", int64(u.Input))
	o.must("output", int64(u.Output))
	o.must("cachedRead", int64(u.CachedRead))
	o.must("cachedWrite", int64(u.CachedWrite))
	return append(o.b, '}')
}

func decode(line []byte, e *Event) error {
	if e.read(line) {
		return e.check()
	}
	*e = Event{}
	if err := json.Unmarshal(line, e); err != nil {
		return fmt.Errorf("%w: %w", errLine, err)
	}
	return e.check()
}

func (e *Event) check() error {
	if e.Time.IsZero() || e.Kind == "" {
		return fmt.Errorf("%w: it has no time or no kind", errLine)
	}
	return nil
}

// decodeHead reads what the kill switch needs: time, kind, session, turn and
// triggered. They stand first in a line that appendJSON wrote; any other line is
// read as JSON. A line that is damaged behind them counts: its turn took place.
func decodeHead(line []byte, e *Event) error {
	if e.readHead(line) {
		return nil
	}
	return decode(line, e)
}

// readHead reads the fields before sessionType, and reports whether the line
// begins and ends as appendJSON would have it.
func (e *Event) readHead(line []byte) bool {
	*e = Event{}
	rest, ok := bytes.CutPrefix(line, []byte(`{"time":"`))
	if !ok || line[len(line)-1] != '}' {
		return false
	}
	text, rest, ok := cutText(rest)
	if !ok || e.Time.UnmarshalText(text) != nil {
		return false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"kind":"`)); !ok {
		return false
	}
	if text, rest, ok = cutText(rest); !ok {
		return false
	}
	e.Kind = Kind(text)
	for _, f := range [...]struct {
		key string
		set func(string)
	}{
		{`,"session":"`, func(s string) { e.Session = s }},
		{`,"turn":"`, func(s string) { e.Turn = s }},
		{`,"id":"`, func(s string) { e.ID = capability.ID(s) }},
		{`,"detail":"`, func(s string) { e.Detail = s }},
	} {
		after, there := bytes.CutPrefix(rest, []byte(f.key))
		if !there {
			continue
		}
		if text, rest, ok = cutText(after); !ok {
			return false
		}
		f.set(string(text))
	}
	if after, there := bytes.CutPrefix(rest, []byte(`,"triggered":`)); there {
		digits := bytes.IndexByte(after, ',')
		n, err := strconv.Atoi(string(after[:max(digits, 0)]))
		if err != nil {
			return false
		}
		e.Triggered, rest = n, after[digits:]
	}
	return bytes.HasPrefix(rest, []byte(`,"`)) && e.check() == nil
}

// cutText cuts s behind a string's closing quote; strings with anything that
// needs a second look are not ok.
func cutText(s []byte) (text, rest []byte, ok bool) {
	for i, c := range s {
		if c == '"' {
			return s[:i], s[i+1:], true
		}
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return nil, nil, false
		}
	}
	return nil, nil, false
}
