package outcome

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"ken/capability"
)

// A scan reads a line exactly as appendJSON writes it: the same keys in the
// same order, nothing between them, and no string with an escape. It is several
// times faster than encoding/json, which reads every other line.
type scan struct {
	b   []byte
	bad bool
}

// read reads a line, and reports whether it could.
func (e *Event) read(line []byte) bool {
	s := scan{b: line}
	s.must(`{"time":"`)
	if s.bad || e.Time.UnmarshalText(s.text()) != nil {
		return false
	}
	s.must(`,"kind":"`)
	e.Kind = Kind(s.text())
	s.str(`,"session":"`, &e.Session)
	s.str(`,"turn":"`, &e.Turn)
	s.str(`,"id":"`, (*string)(&e.ID))
	s.str(`,"detail":"`, &e.Detail)
	s.num(`,"triggered":`, &e.Triggered)
	s.str(`,"sessionType":"`, &e.SessionType)
	s.list(`,"tags":`, &e.Tags)
	s.str(`,"mode":"`, (*string)(&e.Mode))
	s.str(`,"experiment":"`, &e.Experiment)
	s.str(`,"variant":"`, &e.Variant)
	s.str(`,"queryHash":"`, &e.QueryHash)
	s.must(`,"injected":`)
	e.Injected = s.has("true")
	if !e.Injected {
		s.must("false")
	}
	if s.has(`,"items":[`) {
		e.Items = s.items()
	}
	if s.has(`,"skipped":[`) {
		e.Skipped = s.skipped()
	}
	if s.has(`,"tokens":`) {
		t := &e.Tokens
		s.numbers([]string{`{"map":`, `,"briefs":`, `,"cards":`, `,"fulls":`, `,"total":`}, &t.Map, &t.Briefs, &t.Cards, &t.Fulls, &t.Total)
	}
	s.num(`,"dump":`, &e.AllToolTokens)
	s.num64(`,"took_us":`, &e.TookUS)
	s.num64(`,"embed_us":`, &e.EmbedUS)
	s.num64(`,"graph_us":`, &e.GraphUS)
	s.num(`,"candidates":`, &e.Candidates)
	s.num(`,"retrieved":`, &e.Retrieved)
	s.list(`,"degraded":`, &e.Degraded)
	s.str(`,"error":"`, &e.Error)
	s.str(`,"tenant":"`, &e.Tenant)
	s.str(`,"rule":"`, &e.Rule)
	s.str(`,"model":"`, &e.Model)
	s.str(`,"end":"`, &e.End)
	s.num(`,"requests":`, &e.Requests)
	s.num(`,"shown":`, &e.Shown)
	s.num(`,"added":`, &e.Added)
	if s.has(`,"usage":`) {
		u := &e.Usage
		s.numbers([]string{`{"input":`, `,"output":`, `,"cachedRead":`, `,"cachedWrite":`}, &u.Input, &u.Output, &u.CachedRead, &u.CachedWrite)
	}
	if s.has(`,"cost":`) {
		e.Cost = s.score()
	}
	s.num(`,"cut":`, &e.Cut)
	s.must("}")
	return !s.bad && len(s.b) == 0
}

func (s *scan) items() (out []Item) {
	out = make([]Item, 0, 8)
	for first := true; !s.bad && !s.has("]"); first = false {
		if !first {
			s.must(",")
		}
		var it Item
		s.must(`{"id":"`)
		it.ID = capability.ID(s.text())
		s.must(`,"tier":"`)
		it.Tier = Tier(s.text())
		s.must(`,"score":`)
		it.Score = s.score()
		if s.has(`,"seed":`) {
			it.Seed = s.score()
		}
		s.must(`,"tokens":`)
		it.Tokens = int(s.integer())
		it.Forced = s.has(`,"forced":true`)
		it.Held = s.has(`,"held":true`)
		it.There = s.has(`,"there":true`)
		it.Text = s.has(`,"text":true`)
		var names []string
		s.list(`,"names":`, &names)
		for _, name := range names {
			it.Names = append(it.Names, capability.ID(name))
		}
		s.must("}")
		out = append(out, it)
	}
	return out
}

func (s *scan) skipped() (out []Skip) {
	out = make([]Skip, 0, 8)
	for first := true; !s.bad && !s.has("]"); first = false {
		if !first {
			s.must(",")
		}
		var k Skip
		s.must(`{"id":"`)
		k.ID = capability.ID(s.text())
		s.must(`,"reason":"`)
		k.Reason = string(s.text())
		s.must(`,"score":`)
		k.Score = s.score()
		if s.has(`,"seed":`) {
			k.Seed = s.score()
		}
		s.num(`,"tokens":`, &k.Tokens)
		s.must("}")
		out = append(out, k)
	}
	return out
}

// has takes what must come next, where it comes.
func (s *scan) has(part string) bool {
	if s.bad || len(s.b) < len(part) || string(s.b[:len(part)]) != part {
		return false
	}
	s.b = s.b[len(part):]
	return true
}

func (s *scan) must(part string) { s.bad = !s.has(part) } // has says no once something was bad

// text takes a string whose opening quote was taken.
func (s *scan) text() []byte {
	end := bytes.IndexByte(s.b, '"')
	if s.bad || end < 0 {
		s.bad = true
		return nil
	}
	text := s.b[:end]
	plain := true
	for _, c := range text {
		if c == '\\' || c < ' ' {
			s.bad = true
			return nil
		}
		plain = plain && c < utf8.RuneSelf
	}
	if !plain && !utf8.Valid(text) {
		s.bad = true
		return nil
	}
	s.b = s.b[end+1:]
	return text
}

func (s *scan) str(key string, into *string) {
	if s.has(key) {
		*into = string(s.text())
	}
}

func (s *scan) list(key string, into *[]string) {
	if !s.has(key) {
		return
	}
	for sep := `["`; !s.bad && s.has(sep); sep = `,"` {
		*into = append(*into, string(s.text()))
	}
	s.must("]")
}

// digits returns the bytes of a number. Except for what JSON forbids, checking
// them is left to the caller.
func (s *scan) digits(more string) string {
	n := 0
	for n < len(s.b) && (s.b[n] >= '0' && s.b[n] <= '9' || bytes.IndexByte([]byte(more), s.b[n]) >= 0) {
		n++
	}
	text := s.b[:n]
	s.b = s.b[n:]
	whole := bytes.TrimPrefix(text, []byte("-"))
	if len(whole) == 0 || whole[0] < '0' || whole[0] > '9' || len(whole) > 1 && whole[0] == '0' && whole[1] != '.' || whole[len(whole)-1] == '.' {
		s.bad = true
	}
	return string(text)
}

func (s *scan) integer() int64 {
	n, err := strconv.ParseInt(s.digits("-"), 10, 64)
	s.bad = s.bad || err != nil
	return n
}

func (s *scan) score() float64 {
	x, err := strconv.ParseFloat(s.digits("-."), 64)
	s.bad = s.bad || err != nil
	return x
}

func (s *scan) num(key string, into *int) {
	if s.has(key) {
		*into = int(s.integer())
	}
}

func (s *scan) num64(key string, into *int64) {
	if s.has(key) {
		*into = s.integer()
	}
}

// numbers takes an object that has all of its keys.
func (s *scan) numbers(keys []string, into ...*int) {
	for i, key := range keys {
		s.must(key)
		if s.bad {
			return
		}
		*into[i] = int(s.integer())
	}
	s.must("}")
}
