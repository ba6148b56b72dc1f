package engine

import (
	"cmp"
	"time"

	"ken/internal/talk/model"
	"ken/internal/tokenizer"
	"ken/llm"
)

// filled returns the limits with their numbers in place of zeros.
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
	if c.Terms == nil {
		c.Terms = Terms{}.Always
	}
}

// terms returns what holds for a turn that begins now.
func (e *Engine) terms() Terms {
	t := e.cfg.Terms()
	t.Limits = t.Limits.filled()
	t.System = cmp.Or(t.System, 8000)
	t.Delivery = cmp.Or(t.Delivery, model.Auto)
	return t
}

// plainInput is what was neither read from the cache nor written to it.
func plainInput(u llm.Usage) int { return max(u.Input-u.CachedRead-u.CachedWrite, 0) }
