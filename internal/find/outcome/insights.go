package outcome

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
)

// What an answer holds at most.
const (
	mostDays         = 400
	mostCapabilities = 500
	mostRefusals     = 100
)

// Insights sums up what happened. It reads the events once, in their order.
// Those before Since are passed over, but for what they tell of a provider's
// cache: give it those of an hour before too.
//
// Money is compared so that Ken is not flattered. What capabilities cost: what
// a turn added to the prompt is priced once as if written to the cache, the
// rest at the mean price of that turn's input; a request for each search is
// charged whole. What a prompt without Ken that tells as much would have cost
// ("all", see docs/decisions/2026-11-16-naive-baseline.md): the same requests without
// those for searches, as far as the model's window has room, with a cache that
// never misses and that all sessions of a tenant share; only the first request,
// and the first after the cache's life, writes.
func Insights(events iter.Seq2[Event, error], cfg InsightsConfig) Overview {
	s := newSums(cfg)
	for e, err := range events {
		switch {
		case err != nil:
			s.unreadable++
		case !cfg.Until.IsZero() && !e.Time.Before(cfg.Until):
		case e.Time.Before(cfg.Since):
			if e.Kind == Ended {
				s.warmed(&e)
			}
		default:
			s.add(&e)
		}
	}
	return s.overview()
}

// sums are what Insights has come to.
type sums struct {
	cfg  InsightsConfig
	days map[int]*Bill // by number, of the calendar
	last time.Time
	book ledger
	pricing

	latency      Latency
	refusals     map[string]int
	capabilities map[capability.ID]*CapabilityUse

	unreadable, unsized, unpriced, unknown, overfull, unjudged int

	day     *Bill // of the event before
	dayFrom time.Time
	dayTo   time.Time
}

func newSums(cfg InsightsConfig) *sums {
	if cfg.Zone == nil {
		cfg.Zone = time.UTC
	}
	s := &sums{
		cfg: cfg, days: map[int]*Bill{}, refusals: map[string]int{}, capabilities: map[capability.ID]*CapabilityUse{},
		pricing: newPricing(cfg.Price),
		latency: Latency{
			Bounds: []int64{20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000},
			Call:   Histogram{BoundsMS: []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000}},
			Turn:   Histogram{BoundsMS: []int64{100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000}},
		},
	}
	l := &s.latency
	l.Find, l.Embed = make([]int, len(l.Bounds)+1), make([]int, len(l.Bounds)+1)
	l.Call.Counts, l.Turn.Counts = make([]int, len(l.Call.BoundsMS)+1), make([]int, len(l.Turn.BoundsMS)+1)
	s.book.settled = s.settled
	return s
}

func (s *sums) add(e *Event) {
	s.book.add(*e)
	switch e.Kind {
	case Selected:
		s.bill(e.Time)
		bucket(s.latency.Find, s.latency.Bounds, e.TookUS)
		if e.EmbedUS > 0 {
			bucket(s.latency.Embed, s.latency.Bounds, e.EmbedUS)
		}
	case Used, Failed:
		s.called(e)
	case Refused:
		s.bill(e.Time).Refused++
		s.refusals[cmp.Or(e.Rule, "without a rule")]++
		if e.ID != "" {
			s.of(e.ID).Refused++
		}
	case Searched, Described:
		if s.looked(e); e.ID != "" && e.Kind == Searched {
			s.of(e.ID).Searched++
		}
	case Ended:
		s.ended(e)
	case Alerted, Lifted:
	default:
		s.unknown++
	}
}

func (s *sums) called(e *Event) {
	b := s.bill(e.Time)
	b.Calls++
	c := s.of(e.ID)
	if e.Kind == Used {
		c.Used++
	} else {
		c.Failed++
		b.Failed++
	}
	if e.TookUS > 0 { // older logs do not have it
		c.took = append(c.took, e.TookUS)
		bucket(s.latency.Call.Counts, s.latency.Call.BoundsMS, (e.TookUS+999)/1000)
	}
}

func (s *sums) ended(e *Event) {
	if e.Requests <= 0 {
		return // no model was asked
	}
	b := s.bill(e.Time)
	if e.End != "waiting" { // the turn goes on, and ends again
		b.Turns++
	}
	b.Requests += e.Requests
	b.CachedRead += e.Usage.CachedRead
	b.CachedWrite += e.Usage.CachedWrite
	b.Plain += e.Usage.plain()
	b.Output += e.Usage.Output
	if e.TookUS > 0 {
		bucket(s.latency.Turn.Counts, s.latency.Turn.BoundsMS, (e.TookUS+999)/1000)
	}
	looks := s.looks(e)
	if e.AllToolTokens <= 0 {
		s.unsized++
		return
	}
	fits := s.fits(e)
	count(&s.overfull, fits < e.AllToolTokens)
	b.ShownTokens += e.Shown * e.Requests
	b.AllTokens += fits * (e.Requests - looks)
	paid, all, ok := s.price(e, fits, looks)
	if !ok {
		s.unpriced++
		return
	}
	plus(&b.Paid, paid)
	plus(&b.AllPaid, all)
}

func (s *sums) settled(p pair, sh showing) {
	if sh.sent {
		s.of(p.id).Tokens += sh.tokens
	}
	if !sh.judged() {
		count(&s.unjudged, sh.sent)
		return
	}
	b := s.bill(sh.at)
	b.Selections++
	count(&b.Used, sh.used)
	if sh.sent {
		c := s.of(p.id)
		c.Shown++
		if sh.text {
			count(&c.Used, sh.worked) // a text is not called itself
		}
	}
}

func (s *sums) of(id capability.ID) *CapabilityUse {
	c := s.capabilities[id]
	if c == nil {
		c = &CapabilityUse{ID: id}
		s.capabilities[id] = c
	}
	return c
}

// bill returns the bill of a time's day.
func (s *sums) bill(at time.Time) *Bill {
	if at.After(s.last) {
		s.last = at
	}
	if s.day == nil || at.Before(s.dayFrom) || !at.Before(s.dayTo) {
		n := dayNumber(at.In(s.cfg.Zone))
		s.dayFrom = dayTime(n, s.cfg.Zone)
		s.dayTo = dayTime(n+1, s.cfg.Zone)
		if s.day = s.days[n]; s.day == nil {
			s.day = &Bill{}
			s.days[n] = s.day
		}
	}
	return s.day
}

// dayNumber counts the days of the calendar.
func dayNumber(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

func dayTime(n int, zone *time.Location) time.Time {
	y, m, d := time.Unix(int64(n)*24*60*60, 0).UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone)
}

func (s *sums) overview() Overview {
	s.book.close()
	o := Overview{
		Since: s.cfg.Since, Until: s.cfg.Until, Tokenizer: s.cfg.Tokenizer, Latency: s.latency,
		Prices: s.used(), Days: []Day{}, Refusals: []Refusal{}, Capabilities: []CapabilityUse{},
	}
	if o.Until.IsZero() {
		o.Until = s.last
	}
	for _, n := range slices.Sorted(maps.Keys(s.days)) {
		o.Totals.plus(s.days[n])
	}
	o.Totals.settle()
	cutDays := s.listDays(&o)
	for rule, n := range s.refusals {
		o.Refusals = append(o.Refusals, Refusal{rule, n})
	}
	coldsort.By(o.Refusals, func(a, b Refusal) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Rule, b.Rule)) })
	for _, c := range s.capabilities {
		c.settle()
		o.Capabilities = append(o.Capabilities, *c)
	}
	coldsort.By(o.Capabilities, func(a, b CapabilityUse) int {
		return cmp.Or(b.Used+b.Failed-a.Used-a.Failed, b.Shown-a.Shown, b.Refused-a.Refused, cmp.Compare(a.ID, b.ID))
	})
	o.Notes = s.notes(o, cutDays)
	o.Refusals = o.Refusals[:min(len(o.Refusals), mostRefusals)]
	o.Capabilities = o.Capabilities[:min(len(o.Capabilities), mostCapabilities)]
	return o
}

// listDays returns the latest days, and how many were left out.
func (s *sums) listDays(o *Overview) (cut int) {
	all := slices.Sorted(maps.Keys(s.days))
	cut = max(0, len(all)-mostDays)
	for _, n := range all[cut:] {
		d := Day{Day: dayTime(n, time.UTC).Format(time.DateOnly), Bill: *s.days[n]}
		d.settle()
		o.Days = append(o.Days, d)
	}
	return cut
}

func (c *CapabilityUse) settle() {
	if len(c.took) == 0 {
		return
	}
	slices.Sort(c.took)
	ms := float64(quantile(c.took, 0.5)) / 1000
	c.P50MS = &ms
}

// settle works out the differences. It rounds only now, to a millionth.
func (b *Bill) settle() {
	b.SavedTokens = b.AllTokens - b.ShownTokens
	if b.Paid == nil {
		return
	}
	paid, all := micro(*b.Paid), micro(*b.AllPaid)
	saved := micro(all - paid)
	b.Paid, b.AllPaid, b.Saved = &paid, &all, &saved
}

func (b *Bill) plus(o *Bill) {
	for _, each := range [...]struct {
		into *int
		n    int
	}{
		{&b.Turns, o.Turns}, {&b.Requests, o.Requests}, {&b.ShownTokens, o.ShownTokens}, {&b.AllTokens, o.AllTokens},
		{&b.CachedRead, o.CachedRead}, {&b.CachedWrite, o.CachedWrite}, {&b.Plain, o.Plain}, {&b.Output, o.Output},
		{&b.Selections, o.Selections}, {&b.Used, o.Used}, {&b.Calls, o.Calls}, {&b.Failed, o.Failed}, {&b.Refused, o.Refused},
	} {
		*each.into += each.n
	}
	if o.Paid != nil {
		plus(&b.Paid, *o.Paid)
		plus(&b.AllPaid, *o.AllPaid)
	}
}

func plus(into **float64, x float64) {
	if *into == nil {
		*into = new(float64)
	}
	**into += x
}

func micro(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// bucket counts a value below the first bound that it does not exceed.
func bucket(counts []int, bounds []int64, v int64) {
	i, _ := slices.BinarySearch(bounds, v)
	counts[i]++
}

func (s *sums) notes(o Overview, cutDays int) []string {
	notes := []string{
		"tokens are summed over requests: what stands in a prompt is sent with each of them",
		"all schemas means a prompt without Ken that tells as much: every tool with its schema, every card, one line for everything else, and a tool to read texts with",
		"all schemas are priced with a cache that never misses, shared by all sessions of a tenant; what conversations would have lost when the list changes is left out, as is a price that rises with long requests",
		"what Ken added is priced as written to the cache once, what it kept at the mean price of the turn's input; a request for each search is charged to Ken whole",
		"a card or another text counts as used when a tool that it names was called in the turn for which it was chosen, or when it was read with describe_capability",
		"only conversations that Ken itself leads are compared; what other clients pay is not known here",
	}
	told := func(n int, format string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf(format, n))
		}
	}
	told(s.unsized, "of %d turns the size of all schemas is not known; they are not compared")
	told(s.overfull, "in %d turns all schemas would not have fit into the model's window; only what fits beside the conversation is counted")
	told(s.unpriced, "of %d turns the model has no price; their tokens are compared and their money is not: put a price into the table")
	told(s.unjudged, "%d cards and other texts that were sent name no tool: whether they helped is not known, and only their tokens are counted")
	told(s.unreadable, "%d lines or files of the log could not be read and are missing")
	told(s.unknown, "%d lines are of kinds that this Ken does not know and were passed over")
	told(cutDays, "%d days before these are in the totals and not listed")
	told(max(0, len(o.Refusals)-mostRefusals), "%d more rules refused something and are not listed")
	told(max(0, len(o.Capabilities)-mostCapabilities), "%d more capabilities are not listed")
	return notes
}
