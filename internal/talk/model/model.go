// Package model knows the models that Ken can talk to: how much they hold, by
// which delivery modes they take tools in the middle of a conversation, how their
// provider caches and what it charges. It is a dated table that a person can
// add to; a model that is not in it is taken to have the least.
package model

import (
	"slices"
	"time"

	"ken/llm"
)

// A Wire is a protocol that a provider speaks.
type Wire string

const (
	Chat      Wire = "openai-chat"      // OpenAI Chat Completions, and all who copy it
	Responses Wire = "openai-responses" // OpenAI Responses
	Messages  Wire = "anthropic"        // Anthropic Messages
	Gemini    Wire = "gemini"           // Google Gemini generateContent
)

// A DeliveryMode is a way by which a found tool becomes callable. Later ones of the
// ladder work with every model.
type DeliveryMode string

const (
	Auto    DeliveryMode = "auto"     // the cheapest that the model has
	Whole   DeliveryMode = "whole"    // every tool in the prefix, sorted, once
	Inline  DeliveryMode = "inline"   // given in the newest message
	Search  DeliveryMode = "search"   // given in the result of a search
	Bridge  DeliveryMode = "bridge"   // called through invoke_capability
	Extend  DeliveryMode = "extend"   // appended to the list of tools, where they stay
	PerTurn DeliveryMode = "per_turn" // the list of tools is that of the turn: the seeds' literal behaviour
)

// A Cache says how a provider reuses a prefix.
type Cache struct {
	// Marked means that a prefix is matched only where it was marked; otherwise
	// it is matched implicitly. Marks is the most marks of one request, and
	// Lookback how many blocks before a mark are looked at.
	Marked   bool
	Marks    int
	Lookback int // zero: no limit

	// Implicit means that the provider sets one of the marks itself, at the
	// newest message.
	Implicit bool

	Least int // tokens that a prefix must have
	Step  int // a match is cut to a multiple of it; 0 and 1: none

	Life time.Duration // after the last use; zero: nothing is known to be kept
}

// A Price is in dollars for a million tokens. The zero Price is not known.
type Price struct {
	Input, Output          float64
	CachedRead, CacheWrite float64 // CacheWrite is Input where writing costs nothing more

	// A request whose input has more than LongAfter tokens costs, as a whole,
	// LongInput times as much for all of its input and LongOutput times as much
	// for its output. Zero: there is no such step.
	LongAfter             int
	LongInput, LongOutput float64
}

// Cost is what one request costs in dollars. Requests are priced one by one
// and then added up, because a long one may cost more for each token. An
// unknown price costs nothing; ask [Price.Known].
func (p Price) Cost(u llm.Usage) float64 {
	in, out := 1.0, 1.0
	if p.LongAfter > 0 && u.Input > p.LongAfter {
		in, out = p.LongInput, p.LongOutput
	}
	plain := max(0, u.Input-u.CachedRead-u.CachedWrite)
	input := float64(plain)*p.Input + float64(u.CachedRead)*p.CachedRead + float64(u.CachedWrite)*p.CacheWrite
	return (in*input + out*float64(u.Output)*p.Output) / 1e6
}

// Known reports whether there is a price.
func (p Price) Known() bool { return p != Price{} }

// A Row is what the table says of a model.
type Row struct {
	Pattern string // of names, with * for any part and ? for one character; the longest match counts
	Wire    Wire   // the usual one; empty in a row of a person's own: any
	Since   string // the date of the facts, 2026-11-15
	Source  string // where they are from, in words

	Window        int // tokens in all
	MaxOutput     int // tokens of an answer
	DeliveryModes []DeliveryMode
	Cache         Cache
	Price         Price // zero: not known
	Images        bool
	Reasoning     bool

	off off // what a person's own row says no to
}

// off tells a no from nothing said.
type off uint8

const (
	noImages off = 1 << iota
	noReasoning
)

// Has reports whether found tools can be given by a delivery mode. Whole, Bridge,
// Extend and PerTurn need nothing of the model, and Auto chooses among what
// there is.
func (r Row) Has(g DeliveryMode) bool {
	switch g {
	case Auto, Whole, Bridge, Extend, PerTurn:
		return true
	}
	return slices.Contains(r.DeliveryModes, g)
}
