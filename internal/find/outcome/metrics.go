package outcome

import (
	"iter"
	"math"
	"slices"
	"time"
)

// TargetUS is the seed's bound on the time to inject, in microseconds.
const TargetUS = 50_000

// Metrics are counts and rates over a stream of events. Rates lie between 0 and
// 1 and are 0 where there is nothing to divide by.
type Metrics struct {
	Since      time.Time `json:"since,omitzero"`
	Until      time.Time `json:"until,omitzero"` // of the last event
	Requests   int       `json:"requests"`       // selections
	Sessions   int       `json:"sessions"`
	Unreadable int       `json:"unreadable"` // lines and files that were skipped

	Triggered     int     `json:"triggered"`      // requests with triggered cards, injected or not
	TriggerRate   float64 `json:"trigger_rate"`   //
	Injected      int     `json:"injected"`       // requests in which a triggered card entered the prompt
	InjectionRate float64 `json:"injection_rate"` //

	TokensMean     float64 `json:"tokens_mean"`      // selected for the prompt per request, the map included; also where no model was reached
	CardTokensMean float64 `json:"card_tokens_mean"` // of these, cards

	Errors    int     `json:"errors"`
	ErrorRate float64 `json:"error_rate"`
	Degraded  int     `json:"degraded"` // requests that continued without a part

	P50US        int64 `json:"p50_us"`
	P95US        int64 `json:"p95_us"`
	MaxUS        int64 `json:"max_us"`
	TargetUS     int64 `json:"target_us"`
	OverTarget   int   `json:"over_target"`   // requests
	WithinTarget bool  `json:"within_target"` // at p95

	// Selection accuracy: of all showings that can be judged, whether sent or
	// only logged. What used means for a card is said in the package's words.
	Selections   int     `json:"selections"`
	SelectedUsed int     `json:"selected_used"`
	Accuracy     float64 `json:"accuracy"`

	// Waste: of what was sent and can be judged. What was sent a moment ago
	// counts until used.
	Shown        int     `json:"shown"`
	Wasted       int     `json:"wasted"`
	WasteRate    float64 `json:"waste_rate"`
	WastedTokens int     `json:"wasted_tokens"`

	// Texts are the cards, skills and other texts among them.
	Texts Texts `json:"texts"`

	Searched      int `json:"searched"`
	Misses        int `json:"misses"`         // searched for although not selected in that session
	NothingFound  int `json:"nothing_found"`  // searches without an answer
	UsedBySearch  int `json:"used_by_search"` // calls to what was not selected but searched for
	UsedUnshown   int `json:"used_unshown"`   // calls to what was neither
	Described     int `json:"described"`
	Calls         int `json:"calls"` // that ran; those that did not start are in the audit log
	FailedCalls   int `json:"failed_calls"`
	CutFromEvents int `json:"cut_from_events"` // parts that did not fit their line

	Savings Savings `json:"savings"`
}

// Texts are showings of what is to be read: cards, skills.
type Texts struct {
	Sent     int     `json:"sent"`
	Judged   int     `json:"judged"`   // of these: they name a tool, or are a line that can be read up
	Used     int     `json:"used"`     // of the judged: a tool that it names was called in the turn, or it was read
	Rate     float64 `json:"rate"`     // used of judged
	Unjudged int     `json:"unjudged"` // they name no tool, so their use is unknown
}

// Savings compares what was sent with showing every capability every turn, over
// the turns in which something was injected and the cost of the whole is known.
type Savings struct {
	Turns         int     `json:"turns"`
	AllToolTokens int     `json:"dump"` // tokens
	Sent          int     `json:"sent"`
	Saved         int     `json:"saved"` // negative when a dump would have been smaller
	Rate          float64 `json:"rate"`  // saved of dump
}

// Summarise computes the metrics of what happened at since or later. Earlier
// events are passed over, so a use is credited only to a showing in that time.
func Summarise(events iter.Seq2[Event, error], since time.Time) Metrics {
	m := Metrics{Since: since, TargetUS: TargetUS}
	var tokens, cardTokens int
	var took []int64
	sessions := map[string]bool{}
	book := ledger{settled: m.settled, searched: m.searched, called: m.called}
	for e, err := range events {
		if err != nil {
			m.Unreadable++
			continue
		}
		if e.Time.Before(since) {
			continue
		}
		if e.Time.After(m.Until) {
			m.Until = e.Time
		}
		book.add(e)
		m.CutFromEvents += e.Cut
		switch e.Kind {
		case Described:
			m.Described++
		case Selected:
			sessions[e.Session] = true
			took = append(took, e.TookUS)
			tokens += e.sent()
			cardTokens += m.selected(e)
		}
	}
	book.close()
	m.Sessions = len(sessions)
	m.TokensMean = ratio(tokens, m.Requests)
	m.CardTokensMean = ratio(cardTokens, m.Requests)
	m.times(took)
	m.rates()
	return m
}

// selected counts one request and returns the tokens of its cards that were sent.
func (m *Metrics) selected(e Event) (cards int) {
	m.Requests++
	injected := false
	for _, it := range e.Items {
		if it.Tier == TierCard && e.Injected && !it.Held && !it.There {
			cards += it.Tokens
			injected = injected || !it.Forced
		}
	}
	count(&m.Triggered, e.Triggered > 0)
	count(&m.Injected, injected)
	count(&m.Errors, e.Error != "")
	count(&m.Degraded, len(e.Degraded) > 0)
	count(&m.OverTarget, e.TookUS > TargetUS)
	if e.Injected && e.AllToolTokens > 0 {
		m.Savings.Turns++
		m.Savings.AllToolTokens += e.AllToolTokens
		m.Savings.Sent += e.sent()
	}
	return cards
}

func (m *Metrics) settled(_ pair, s showing) {
	if s.text && s.sent {
		m.Texts.Sent++
		count(&m.Texts.Judged, s.judged())
		count(&m.Texts.Used, s.used)
		count(&m.Texts.Unjudged, !s.judged())
	}
	if !s.judged() {
		return
	}
	m.Selections++
	count(&m.SelectedUsed, s.used)
	count(&m.Shown, s.sent)
	if s.sent && !s.used {
		m.Wasted++
		m.WastedTokens += s.tokens
	}
}

func (m *Metrics) searched(p pair, _ time.Time, missed bool) {
	m.Searched++
	count(&m.Misses, missed)
	count(&m.NothingFound, p.id == "")
}

func (m *Metrics) called(_ pair, worked, selected, searched bool) {
	m.Calls++
	count(&m.FailedCalls, !worked)
	count(&m.UsedBySearch, !selected && searched)
	count(&m.UsedUnshown, !selected && !searched)
}

func (m *Metrics) times(took []int64) {
	slices.Sort(took)
	m.P50US, m.P95US = quantile(took, 0.50), quantile(took, 0.95)
	if len(took) > 0 {
		m.MaxUS = took[len(took)-1]
	}
	m.WithinTarget = m.P95US <= TargetUS
}

func (m *Metrics) rates() {
	m.TriggerRate = ratio(m.Triggered, m.Requests)
	m.InjectionRate = ratio(m.Injected, m.Requests)
	m.ErrorRate = ratio(m.Errors, m.Requests)
	m.Accuracy = ratio(m.SelectedUsed, m.Selections)
	m.WasteRate = ratio(m.Wasted, m.Shown)
	m.Texts.Rate = ratio(m.Texts.Used, m.Texts.Judged)
	m.Savings.Saved = m.Savings.AllToolTokens - m.Savings.Sent
	m.Savings.Rate = ratio(m.Savings.Saved, m.Savings.AllToolTokens)
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}

// quantile returns the smallest value that at least a share q does not exceed.
func quantile(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}
