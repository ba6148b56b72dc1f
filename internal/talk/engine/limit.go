package engine

import (
	"time"

	"ken/internal/talk/model"
	"ken/internal/tokenizer"
	"ken/llm"
)

// filled gives the limits with their numbers in place of zeros.
func (l Limits) filled() Limits {
	for _, f := range []struct {
		at *int
		is int
	}{
		{&l.Steps, 50}, {&l.Mistakes, 3}, {&l.Repeats, 3}, {&l.Calls, 64}, {&l.Parallel, 8}, {&l.Rounds, 10},
		{&l.MessageBytes, 200_000}, {&l.ResultBytes, 100_000}, {&l.AnswerBytes, 4 << 20}, {&l.InputBytes, 64 << 20},
	} {
		if *f.at == 0 {
			*f.at = f.is
		}
	}
	return l
}

// over reports whether n is more than a limit allows; a limit below zero is
// none.
func over(n, limit int) bool { return limit >= 0 && n > limit }

func (c *Config) defaults() {
	if c.Count == nil {
		c.Count = tokenizer.Count
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.System == 0 {
		c.System = 8000
	}
	if c.Delivery == "" {
		c.Delivery = model.Auto
	}
}

// cost gives what usage costs in dollars, zero where the price is not known.
func cost(p model.Price, u llm.Usage) float64 {
	plain := plainInput(u)
	write := p.CacheWrite
	if write == 0 {
		write = p.Input
	}
	const million = 1e6
	return (float64(plain)*p.Input + float64(u.CachedRead)*p.CachedRead + float64(u.CachedWrite)*write + float64(u.Output)*p.Output) / million
}

// plainInput is what was neither read from the cache nor written to it.
func plainInput(u llm.Usage) int { return max(u.Input-u.CachedRead-u.CachedWrite, 0) }
