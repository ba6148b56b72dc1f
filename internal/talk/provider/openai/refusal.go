package openai

import (
	"errors"
	"strings"
	"sync"

	"ken/llm"
)

// An omit is a set of things that a request can do without.
type omit uint32

const (
	omitStreamOptions omit = 1 << iota
	omitMaxCompletion
	omitMaxTokens
	omitMaxOutput
	omitCacheKey
	omitMark
	omitChoice
	omitInclude
	omitSummary
	omitEffort
	omitThoughts // reasoning of earlier answers

	// Not left out: a refusal of these is the engine's to deal with.
	hasInline
	hasSearch
)

// A parameter is a name on the wire and what it stands for.
type parameter struct {
	name string
	bit  omit
}

// parameters lists what servers are known to refuse. A name comes before those
// that stand in it.
func parameters() []parameter {
	return []parameter{
		{"reasoning.encrypted_content", omitInclude},
		{"encrypted content", omitInclude},
		{"stream_options", omitStreamOptions},
		{"max_completion_tokens", omitMaxCompletion},
		{"max_output_tokens", omitMaxOutput},
		{"max_tokens", omitMaxTokens},
		{"prompt_cache_key", omitCacheKey},
		{"prompt_cache_breakpoint", omitMark},
		{"tool_choice", omitChoice},
		{"allowed_tools", omitChoice},
		{"include", omitInclude},
		{"reasoning_content", omitThoughts},
		{"reasoning_details", omitThoughts},
		{"reasoning_effort", omitEffort},
		{"reasoning.effort", omitEffort},
		{"reasoning.summary", omitSummary},
		{"reasoning summaries", omitSummary},
		{"reasoning", omitSummary | omitEffort | omitThoughts},
		{"additional_tools", hasInline},
		{"tool_search", hasSearch},
		{"tool_search_call", hasSearch},
		{"tool_search_output", hasSearch},
		{"defer_loading", hasSearch},
	}
}

// named reports whether a complaint is about the parameter. In the words of a
// message a name that is also plain English must stand in quotes.
func (p parameter) named(s said) bool {
	if hasWord(s.param, p.name) {
		return true
	}
	text := s.text()
	if p.name != "include" && p.name != "reasoning" {
		return hasWord(text, p.name)
	}
	return has(text, "'"+p.name+"'", `"`+p.name+`"`, "`"+p.name+"`")
}

// spared reports whether any complaint about the parameter means that it is better
// left out. A limit may also be too large, and tools may be wrong in themselves.
func (p parameter) spared() bool {
	const limits = omitMaxCompletion | omitMaxTokens | omitMaxOutput | hasInline | hasSearch
	return p.bit&limits == 0
}

// A Refusals remembers what the servers of some models would not take. The
// zero value remembers nothing. It is safe for concurrent use.
type Refusals struct {
	mu   sync.Mutex
	list map[string]omit
}

func (r *Refusals) of(model string) omit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list[model]
}

func (r *Refusals) add(model string, more omit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list == nil {
		r.list = map[string]omit{}
	}
	r.list[model] |= more
}

// refusedBit returns what an error says the server would not take, if the
// request can do without it.
func refusedBit(err error) omit {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.Unsupported {
		return 0
	}
	for _, p := range parameters() {
		if p.name == e.Feature {
			return p.bit &^ (hasInline | hasSearch)
		}
	}
	return 0
}

// refusedName returns the parameter among those sent that a complaint is about,
// or an empty name. What the complaint itself calls the parameter counts before
// what its words mention.
func refusedName(s said, sent omit) (string, omit) {
	refuses := s.refuses()
	for _, only := range []said{{param: s.param}, s} {
		for _, p := range parameters() {
			if p.bit&sent != 0 && (refuses || p.spared()) && p.named(only) {
				return p.name, p.bit
			}
		}
	}
	return "", 0
}

// refuses reports whether the words are those by which servers turn down a
// parameter as such.
func (s said) refuses() bool {
	switch s.code {
	case "unsupported_parameter", "unknown_parameter", "unsupported_value", "invalid_encrypted_content":
		return true
	}
	text := s.text()
	for _, words := range []string{
		"unsupported", "not supported", "not support", "unrecognized", "unrecognised", "unknown",
		"unexpected", "extra inputs", "extra fields", "extra_forbidden", "not permitted", "not allowed",
		"invalid value", "invalid type", "must be verified", "cannot be used", "no such", "validation error",
		"input should be",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// hasWord reports whether a name stands in a text by itself.
func hasWord(text, name string) bool {
	part := func(c byte) bool {
		return c == '_' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !part(text[start-1])) && (end == len(text) || !part(text[end])) {
			return true
		}
		from = start + 1
	}
}
