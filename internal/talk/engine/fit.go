package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
)

// condensing is how long a model may take to sum up.
const condensing = 2 * time.Minute

// numbers say how much room the model has.
func (t *turn) numbers() prompt.Numbers {
	n := t.terms.Fit
	if n.Window == 0 {
		n.Window = t.model.Row.Window
	}
	if n.Reserve == 0 {
		n.Reserve = t.model.MaxTokens
	}
	n.NoModel = n.NoModel || t.model.Condenser == nil
	return n
}

// pressed reports whether the window is nearly full: three quarters of what a
// request may have.
func (t *turn) pressed() bool {
	n := t.numbers()
	return n.Window > 0 && 4*prompt.Fit(t.live, t.prefix.Tokens, 0, prompt.Numbers{}).Before >= 3*n.Allowed()
}

// fit makes room for the next request where there is too little.
func (t *turn) fit() error {
	plan := prompt.Fit(t.live, t.prefix.Tokens, 0, t.numbers())
	if plan.Do == prompt.None {
		return nil
	}
	return t.compact(plan)
}

// overflow makes room after the provider found a request too long.
func (t *turn) overflow(err error) (ending, bool, error) {
	t.overflows++
	plan := prompt.Overflow(t.live, t.prefix.Tokens, 0, t.overflows, t.numbers())
	if plan.Do == prompt.None {
		return ending{}, true, fmt.Errorf("%w; %s", err, plan.Why)
	}
	return ending{}, false, t.compact(plan)
}

// compact carries out a plan by one entry. If the model that should sum up
// does not, the rest is cut, which always works. Nothing is lost: what is
// hidden can be brought back.
func (t *turn) compact(plan prompt.Plan) error {
	entries := t.log.Entries()
	e := prompt.Marker(entries, plan)
	if plan.Do == prompt.Condense {
		if sum, err := t.condense(entries, plan); err == nil {
			e = sum
		} else if t.ctx.Err() != nil {
			return t.ctx.Err()
		} else {
			t.notice("degraded", "the earlier conversation could not be summed up and is cut instead: "+err.Error())
		}
	}
	if err := t.append(e); err != nil {
		return err
	}
	t.sent = llm.Request{} // that the prefix is another one is told here
	how := "summed up"
	if e.Kind == session.Marker {
		how = "cut"
	}
	t.notice("compact", fmt.Sprintf("%s; it is %s, from %d to about %d tokens, and can be brought back with a rewind", plan.Why, how, plan.Before, plan.After))
	return nil
}

// condense lets a model sum up what a plan hides.
func (t *turn) condense(entries []session.Entry, plan prompt.Plan) (sum session.Entry, err error) {
	defer t.guard("the model", &err)
	ctx, cancel := context.WithTimeout(t.ctx, condensing)
	defer cancel()
	window := t.model.CondenserRow.Window
	if window == 0 {
		window = 2 * plan.Before
	}
	var text strings.Builder
	var usage llm.Usage
	for c, err := range t.model.Condenser.Generate(ctx, prompt.CondenseRequest(entries, plan, window*9/10)) {
		if err != nil {
			return session.Entry{}, err
		}
		text.WriteString(c.Text)
		if c.Usage != nil {
			usage = *c.Usage
		}
		if over(text.Len(), t.terms.Limits.AnswerBytes) {
			return session.Entry{}, errors.New("the summary would not end")
		}
	}
	e, ok := prompt.Summary(entries, plan, text.String())
	if !ok {
		return session.Entry{}, errors.New("the summary is empty or too long")
	}
	e.Usage, e.Cost = &usage, t.model.CondenserRow.Price.Cost(usage)
	t.spend(usage, e.Cost)
	return e, nil
}

// Compact shortens the history of a session now, in one large step. It needs
// the session for itself, like a turn.
func (e *Engine) Compact(ctx context.Context, who capability.Principal, id string) (event.Compacted, error) {
	c := event.Compacted{}
	t, err := e.begin(ctx, event.Input{Principal: who, Session: id, Text: "/compact"}, func(ev event.Event, _ error) bool {
		if n, ok := ev.(event.Notice); ok {
			c.Why = n.Text
		}
		return true
	})
	if err != nil {
		return c, err
	}
	defer t.release()
	t.number = max(t.number-1, 1) // it is part of the last turn
	if t.model, err = e.cfg.Model(t.ctx, t.head, t.retrying); err != nil {
		return c, err
	}
	n := t.numbers()
	size := prompt.Fit(t.live, t.prefix.Tokens, 0, prompt.Numbers{}).Before
	// As if the window were as full as it can be.
	n.Window, n.Condense = size, 1
	n.Reserve = max(size/100, 1)
	plan := prompt.Fit(t.live, t.prefix.Tokens, 0, n)
	c.Before, c.After, c.Why = plan.Before, plan.After, plan.Why
	if plan.Do == prompt.None {
		return c, nil
	}
	if err := t.compact(plan); err != nil {
		return c, err
	}
	c.How = "cut"
	if last := t.log.Entries(); last[len(last)-1].Kind == session.Summary {
		c.How = "summed up"
	}
	return c, nil
}

// Rewind takes back the turn of a number and all after it, and gives what the
// person had said in it. What was taken back is hidden, not deleted. Effects
// are not undone.
func (e *Engine) Rewind(ctx context.Context, who capability.Principal, id string, turn int) (said string, err error) {
	t, err := e.begin(ctx, event.Input{Principal: who, Session: id, Text: "/rewind"}, func(event.Event, error) bool { return true })
	if err != nil {
		return "", err
	}
	defer t.release()
	from, to := 0, 0
	// What a compaction hides is there, what a rewind hides is not.
	there := map[int]bool{}
	for _, entry := range spoken(t.log.Entries()) {
		there[entry.Seq] = true
	}
	found := false
	for _, entry := range t.log.Entries() {
		to = entry.Seq
		if entry.Turn < turn || entry.Kind == session.Prefix {
			continue
		}
		if from == 0 && entry.Turn == turn {
			from = entry.Seq
		}
		if entry.Turn == turn && entry.Kind == session.User && there[entry.Seq] {
			said, found = textOf(entry.Blocks), true
		}
	}
	if !found {
		return "", &capability.Error{
			Kind: capability.NotFound, Op: "rewind " + id + " to turn", Target: fmt.Sprint(turn), Err: errors.New("there is no such turn, or it was taken back"), Fix: "see ken chat --list",
		}
	}
	t.number--
	t.log.SetHead(func(h *session.Head) { h.Open = false })
	return said, t.append(session.Entry{Kind: session.Rewound, From: from, To: to})
}
