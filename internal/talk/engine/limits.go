package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/talk/ask"
	"ken/internal/talk/event"
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

// checkLimits asks whether the turn may make one more request, if a limit says
// that a person decides. Without one it ends the turn.
func (t turn) checkLimits(ctx context.Context, p progress) (progress, ending, error) {
	if err := ctx.Err(); err != nil {
		return p, ending{}, err
	}
	why, raised := p.limit(t.terms.Limits)
	if why == "" {
		return p, ending{}, nil
	}
	t.out.notice("limit", why)
	end := ending{event.EndLimit, why}
	if t.ask.Alone() {
		return p, end, nil
	}
	reply, outcome := t.ask.Put(ctx, event.Asked{ID: ask.LimitID(t.log.number, p.steps, why), What: event.GoOn, Text: why})
	switch {
	case outcome == ask.Got && reply.Yes:
		return raised, ending{}, nil
	case outcome == ask.Got:
		return p, end, nil
	case ctx.Err() != nil:
		return p, ending{}, ctx.Err()
	case t.ask.Alone():
		return p, end, nil
	}
	return p, ending{}, errors.New("the reply could not be saved")
}

// limit returns the limit that is reached, and the progress once a person has
// agreed to go on. It is empty if none is reached.
func (p progress) limit(l Limits) (why string, raised progress) {
	a, tokens := p.allowed, p.usage.Input+p.usage.Output
	raised = p
	switch {
	case l.Steps > 0 && p.steps >= a.Steps:
		raised.allowed.Steps = p.steps + l.Steps
		return fmt.Sprintf("the turn has made %d requests to the model (chat.steps)", p.steps), raised
	case l.Mistakes > 0 && p.mistakes >= l.Mistakes:
		raised.mistakes = 0
		return fmt.Sprintf("the model has made %d mistakes one after another (chat.mistakes)", p.mistakes), raised
	case p.looping:
		raised.looping, raised.same, raised.repeats = false, "", 0
		return fmt.Sprintf("the model makes the same call again and again (chat.repeats is %d)", l.Repeats), raised
	case l.Requests > 0 && p.steps >= a.Requests:
		raised.allowed.Requests = p.steps + l.Requests
		return fmt.Sprintf("the turn has made %d requests (chat.requests)", p.steps), raised
	case l.Tokens > 0 && tokens >= a.Tokens:
		raised.allowed.Tokens = tokens + l.Tokens
		return fmt.Sprintf("the turn has used %d tokens (chat.tokens)", tokens), raised
	case l.Cost > 0 && p.cost >= a.Cost:
		raised.allowed.Cost = p.cost + l.Cost
		return fmt.Sprintf("the turn has cost $%.2f (chat.cost)", p.cost), raised
	}
	return "", p
}

// checkRepeats refuses a call that was made too often in a row.
func checkRepeats(limits Limits, p progress, j *pendingCall) progress {
	args := j.call.Arguments
	if j.tool != "" {
		args = j.args
	}
	canonical, err := capability.CanonicalJSON(args)
	if err != nil {
		canonical = args
	}
	key := string(j.shown.Target) + "\x00" + j.shown.Action + "\x00" + string(canonical)
	if key != p.same {
		p.same, p.repeats = key, 0
	}
	p.repeats++
	if limits.Repeats > 0 && p.repeats > limits.Repeats {
		p.looping = true
		j.refuse(capability.Denied, string(j.shown.Target), fmt.Errorf("the same call with the same arguments was made %d times in a row (chat.repeats)", p.repeats-1), "use what it gave, do something else, or answer")
	}
	return p
}
