package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/talk/toolcall"
	"ken/internal/untrusted"
	"ken/llm"
)

// A verdict is what a request to the model comes to. Its entries are written
// before anything of the answer has an effect.
type verdict struct {
	progress progress
	entries  []session.Entry
	calls    bool          // the first entry is an answer with calls
	last     bool          // the end is written with the entries
	events   []event.Event // told once the entries are written
	lower    bool          // the provider refused a delivery mode
	end      ending
	err      error // why the turn fails, or why the request is made again
	next     remedy
}

// A remedy is what must be done before the request is made again.
type remedy int

const (
	noRemedy     remedy = iota
	makeRoom            // the provider found the request too long
	deliverAgain        // the provider refused a delivery mode; tools are given by a lower one
)

// judge decides what an answer comes to: the end of the turn, calls, or a request
// that is made again.
func judge(ctx context.Context, s setup, h history, number int, p progress, got answer, err error) verdict {
	if err != nil {
		return judgeFailure(ctx, s, p, got, err)
	}
	p.retried, p.overflows = false, 0
	p.text = textOf(got.blocks)
	calls := callsOf(got.blocks)
	switch {
	case got.stop == llm.StopRefuse && len(calls) == 0:
		return judgeRefusal(s, p, got)
	case len(calls) > 0:
		return judgeCalls(s, h, number, p, got, calls)
	case strings.TrimSpace(p.text) == "" && !got.truncated:
		return judgeNothing(s, p, got)
	}
	v := got.verdict(s, p)
	v.end, v.last = ending{reason: event.EndAnswer}, true
	if got.truncated {
		v.end = ending{event.EndLimit, fmt.Sprintf("the answer has more than %d bytes and was cut, and no call in it was made (chat.answerBytes)", s.terms.Limits.AnswerBytes)}
		if len(got.blocks) == 0 {
			v.entries[0] = unanswered(v.entries[0])
		}
	} else if got.stop == llm.StopLength {
		v.events = append(v.events, event.Notice{Name: "limit", Text: "the answer ran into the most tokens that one may have; say \"go on\" for the rest"})
	}
	return v
}

// verdict returns the verdict that writes an answer as it is.
func (a answer) verdict(s setup, p progress) verdict {
	usage, dollars := a.usage, s.model.Row.Price.Cost(a.usage)
	return verdict{
		progress: p.spend(usage, dollars),
		entries:  []session.Entry{{Kind: session.Assistant, Blocks: a.blocks, Usage: &usage, Cost: dollars}},
		events:   []event.Event{event.Step{Number: p.steps, Usage: usage, Plain: plainInput(usage), Cost: dollars, Stop: a.stop}},
	}
}

// judgeCalls decides about an answer with calls. If the provider stopped the
// answer early, they are not made: it is unknown what was left out.
func judgeCalls(s setup, h history, number int, p progress, got answer, calls []*llm.ToolCall) verdict {
	whole := got.stop != llm.StopLength && got.stop != llm.StopRefuse
	declared := map[string]bool{}
	for _, name := range declaredTools(h) {
		declared[name] = true
	}
	toolcall.Name(calls, toolcall.Answer{Turn: number, Before: p.calls, Whole: whole, Declared: declared, Used: usedIDs(h)})
	v := got.verdict(s, p)
	v.calls = true
	if !whole {
		v.entries[0].Name = cutShort
	}
	if got.stop == llm.StopRefuse {
		results := session.Entry{Kind: session.Results}
		for _, c := range calls {
			results.Blocks = append(results.Blocks, resultBlock(c, []llm.Block{{Text: "The call was not made: the provider would not let the answer be finished."}}, true))
		}
		v.entries = append(v.entries, results)
		v.progress.calls += len(calls)
		v.end = notAnswered
	}
	return v
}

// usedIDs returns the ids of the calls in a history.
func usedIDs(h history) map[string]bool {
	used := map[string]bool{}
	for i := range h.live {
		for _, b := range h.live[i].Blocks {
			if b.Call != nil {
				used[b.Call.ID] = true
			}
		}
	}
	return used
}

// notAnswered is the end of a turn that the provider would not answer.
var notAnswered = ending{event.EndFailed, "the provider would not answer this; say it otherwise, or rewind"}

// judgeNothing decides about an answer without a word and without a call.
func judgeNothing(s setup, p progress, got answer) verdict {
	p.mistakes++
	v := got.verdict(s, p)
	v.entries = []session.Entry{
		unanswered(v.entries[0]),
		{Kind: session.Added, Blocks: []llm.Block{{Text: "(You answered nothing. Answer the user, or call a tool.)"}}},
	}
	return v
}

// judgeRefusal decides about an answer that the provider refused.
func judgeRefusal(s setup, p progress, got answer) verdict {
	v := got.verdict(s, p)
	if len(got.blocks) == 0 || p.text == "" {
		v.entries[0] = unanswered(v.entries[0])
	}
	v.end = notAnswered
	return v
}

// unanswered returns the note of a request without an answer, with what it cost.
func unanswered(e session.Entry) session.Entry {
	note := session.Unanswered{}.Entry()
	note.Usage, note.Cost = e.Usage, e.Cost
	return note
}

// judgeFailure decides about a request that did not come to its end.
func judgeFailure(ctx context.Context, s setup, p progress, got answer, err error) verdict {
	if ctx.Err() != nil {
		v := partial(s, p, got, "")
		v.err = ctx.Err()
		return v
	}
	switch kind := llm.KindOf(err); {
	case errors.Is(err, errPanic):
		v := partial(s, p, got, "(Your answer broke off here, and none of its calls was made.)")
		v.err = err
		return v
	case kind == llm.TooLong && !got.any:
		return verdict{progress: p, err: err, next: makeRoom}
	case kind == llm.Unsupported && !got.any:
		return judgeUnsupported(s, p, err)
	case got.any || kind == llm.Cut || kind == llm.Malformed:
		return judgeCut(s, p, got, err)
	}
	return verdict{progress: p, err: err}
}

// judgeCut keeps what came before the stream broke. None of its calls was made,
// so the request may be made once more.
func judgeCut(s setup, p progress, got answer, err error) verdict {
	text := "The stream broke off in the middle of the answer; what came of it is kept, and none of its calls was made."
	if !got.any {
		text = "Nothing of the answer could be read."
	}
	v := partial(s, p, got, "(Your answer broke off here, and none of its calls was made. Go on.)")
	if p.retried {
		v.err = err
		return v
	}
	v.progress.retried = true
	v.events = []event.Event{event.Notice{Name: "retry", Text: text + " It is asked again: " + err.Error()}}
	return v
}

// partial returns the verdict that keeps the text of an answer that broke off,
// and what the model is told about it. Without any text nothing is written.
func partial(s setup, p progress, got answer, told string) verdict {
	text := strings.TrimSpace(got.shown.String())
	if text == "" {
		return verdict{progress: p}
	}
	p.text = text
	v := got.verdict(s, p)
	v.entries[0].Blocks, v.events = []llm.Block{{Text: text}}, nil
	if told != "" {
		v.entries = append(v.entries, session.Entry{Kind: session.Added, Blocks: []llm.Block{{Text: told}}})
	}
	return v
}

// judgeUnsupported takes tools by a lower delivery mode if the provider would not take
// one.
func judgeUnsupported(s setup, p progress, err error) verdict {
	e, _ := errors.AsType[*llm.Error](err)
	delivery := model.DeliveryMode(e.Feature)
	if delivery != model.Inline && delivery != model.Search || p.refused[delivery] {
		return verdict{progress: p, err: err}
	}
	was := p.delivery
	p = p.refuse(delivery)
	p.delivery = deliver.Lower(p.refused, s.model.Row, p.delivery)
	p.sent = llm.Request{} // that the prefix is another one is told here
	v := verdict{
		progress: p, lower: true, next: deliverAgain,
		entries: []session.Entry{session.DeliveryRefused{Mode: string(delivery), Model: s.model.Name}.Entry()},
		events: []event.Event{event.Notice{
			Name: "rung",
			Text: fmt.Sprintf("the provider refused %s for %s; tools are given by %s from now on: %s", delivery, s.model.Name, p.delivery, untrusted.Line(e.Message, 200)),
		}},
	}
	if was == p.delivery {
		v.next = noRemedy
	}
	return v
}

// settle writes what a verdict says, tells it, and does what must be done before
// the next request.
func (e *Engine) settle(ctx context.Context, t turn, v verdict) (progress, ending, error) {
	p := v.progress
	if v.lower {
		t.log.deliversBy(t.takes(p, model.Inline), t.takes(p, model.Search))
	}
	var err error
	switch {
	case v.last:
		err = t.log.end(v.end, v.entries...) // the answer and that it is the last are one thing to write
	case v.calls:
		err = t.log.appendAnswer(v.entries...)
	default:
		err = t.log.append(v.entries...)
	}
	if err != nil {
		return p, ending{}, err
	}
	t.log.closed = v.last
	for _, ev := range v.events {
		t.out.emit(ev)
	}
	switch v.next {
	case makeRoom:
		p, err = t.makeRoom(ctx, p, v.err)
		return p, ending{}, err
	case deliverAgain:
		return p, ending{}, e.deliverAgain(ctx, t, p)
	}
	return p, v.end, v.err
}

// deliverAgain shows by the delivery mode of now what the last one gave in this turn.
func (e *Engine) deliverAgain(ctx context.Context, t turn, p progress) error {
	h := t.log.history()
	var ids []capability.ID
	for i := range h.live {
		if e := &h.live[i]; e.Turn == t.log.number && e.Kind == session.Added {
			for _, o := range e.Offers {
				ids = append(ids, o.ID)
			}
		}
	}
	added, ok := deliver.Add(deliver.AddInput{Delivery: p.delivery, Found: p.found, Offers: e.offers(t).Found(ctx, ids, h.known), Live: h.known, NearlyFull: t.nearlyFull(h), Count: e.cfg.Count})
	if !ok {
		return nil
	}
	return t.log.append(added)
}
