// Package model knows the models that Ken can talk to: how much they hold, by
// which rungs they take tools in the middle of a conversation, how their
// provider caches and what it charges. It is a dated table that a person can
// add to; a model that is not in it is taken to have the least.
package model

import "time"

// A Wire is a protocol that a provider speaks.
type Wire string

const (
	Chat      Wire = "openai-chat"      // OpenAI Chat Completions, and all who copy it
	Responses Wire = "openai-responses" // OpenAI Responses
	Messages  Wire = "anthropic"        // Anthropic Messages
	Gemini    Wire = "gemini"           // Google Gemini generateContent
)

// A Rung is a way by which a found tool becomes callable. Lower rungs of the
// ladder work with every model.
type Rung string

const (
	Auto    Rung = "auto"     // the cheapest that the model has
	Whole   Rung = "whole"    // every tool in the prefix, sorted, once
	Inline  Rung = "inline"   // given in the newest message
	Search  Rung = "search"   // given in the result of a search
	Bridge  Rung = "bridge"   // called through invoke_capability
	Extend  Rung = "extend"   // appended to the list of tools, where they stay
	PerTurn Rung = "per_turn" // the list of tools is that of the turn: the seeds' literal behaviour
)

// A Cache says how a provider reuses a prefix.
type Cache struct {
	// Marked means that a prefix is matched only where it was marked; otherwise
	// it is matched implicitly. Marks is the most marks of one request, and
	// Lookback how many blocks before a mark are looked at.
	Marked   bool
	Marks    int
	Lookback int

	Least int // tokens that a prefix must have
	Step  int // a match is cut to a multiple of it; 0 and 1: none

	Life time.Duration // after the last use
}

// A Price is in dollars for a million tokens.
type Price struct {
	Input, Output          float64
	CachedRead, CacheWrite float64 // CacheWrite is Input where writing costs nothing more
}

// A Row is what the table says of a model.
type Row struct {
	Pattern string // of names, with * for any part; the longest match counts
	Wire    Wire   // the usual one
	Since   string // the date of the facts, 2026-11-15
	Source  string // where they are from, in words

	Window    int // tokens in all
	MaxOutput int // tokens of an answer
	Rungs     []Rung
	Cache     Cache
	Price     Price // zero: not known
	Images    bool
	Reasoning bool
}
