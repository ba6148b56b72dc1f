package engine

import (
	"context"
	"fmt"

	"ken/internal/talk/compact"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
)

// fit makes room for the next request if there is too little.
func (t turn) fit(ctx context.Context, p progress) (progress, error) {
	h := t.log.history()
	plan := prompt.Fit(h.live, h.prefix.Tokens, 0, t.numbers())
	if plan.Do == prompt.None {
		return p, nil
	}
	return t.compact(ctx, p, plan)
}

// makeRoom makes room after the provider found a request too long.
func (t turn) makeRoom(ctx context.Context, p progress, tooLong error) (progress, error) {
	p.overflows++
	h := t.log.history()
	plan := prompt.Overflow(h.live, h.prefix.Tokens, 0, p.overflows, t.numbers())
	if plan.Do == prompt.None {
		return p, fmt.Errorf("%w; %s", tooLong, plan.Why)
	}
	return t.compact(ctx, p, plan)
}

// compact carries out a plan by one entry. If the model that should sum up does
// not, the rest is cut, which always works. Nothing is lost: what is hidden can
// be brought back.
func (t turn) compact(ctx context.Context, p progress, plan prompt.Plan) (progress, error) {
	entry, failure := compact.Run(ctx, compact.Plan{Plan: plan, Entries: t.log.entries(), MaxBytes: t.terms.Limits.AnswerBytes}, compact.Model{Model: t.model.Condenser, Row: t.model.CondenserRow})
	if failure != nil {
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		t.out.degraded("the earlier conversation could not be summed up and is cut instead: " + failure.Error())
	}
	if entry.Usage != nil {
		p = p.spend(*entry.Usage, entry.Cost)
	}
	if err := t.log.append(entry); err != nil {
		return p, err
	}
	p.sent = llm.Request{} // that the prefix is another one is told here
	how := "summed up"
	if entry.Kind == session.Marker {
		how = "cut"
	}
	t.out.notice("compact", fmt.Sprintf("%s; it is %s, from %d to about %d tokens, and can be brought back with a rewind", plan.Why, how, plan.Before, plan.After))
	return p, nil
}
