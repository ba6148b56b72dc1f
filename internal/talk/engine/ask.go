package engine

import (
	"errors"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/talk/toolcall"
	"ken/internal/untrusted"
	"ken/llm"
)

// ask makes one request to the model and writes down what it answers, before
// anything of it has an effect.
func (t *turn) ask() (ending, bool, error) {
	if err := t.fit(); err != nil {
		return ending{}, false, err
	}
	req := t.request()
	if why := t.broke(req); why != "" {
		t.notice("prefix", why)
	}
	t.intents.newRequest()
	t.steps++
	got, err := t.generate(req)
	t.sent = req
	if err != nil {
		return t.broken(got, err)
	}
	t.retried, t.overflows = false, 0
	return t.answered(got)
}

// request is what is sent: the session as it stands, in the same bytes as
// before, and nothing else.
func (t *turn) request() llm.Request {
	req := llm.Request{
		Model: t.model.Name, Tools: t.prefix.Tools, System: t.prefix.System, Messages: t.sendable(prompt.Messages(t.live)),
		MaxTokens: t.model.MaxTokens, Allowed: t.allowedNames(), Cache: t.in.Session, Effort: t.model.Effort,
	}
	if t.prefix.Name == string(model.Search) && t.takes(model.Search) {
		req.Search = toolDiscover // from the first request on: later it would break the prefix
	}
	return req
}

// broke says what of the request before is not at the beginning of this one.
func (t *turn) broke(req llm.Request) string {
	if t.sent.Messages == nil {
		return ""
	}
	return prompt.Broke(t.sent, req)
}

// sendable leaves out what the provider would refuse: tools in the middle of a
// conversation that the model does not take. What they are called by is still
// known.
func (t *turn) sendable(messages []llm.Message) []llm.Message {
	inline, search := t.takes(model.Inline), t.takes(model.Search)
	if inline && search {
		return messages
	}
	for i := range messages {
		m := &messages[i]
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if !inline && len(b.Tools) > 0 || !search && b.Result != nil && hasTools(b.Result.Blocks) {
				m.Blocks = withoutTools(m.Blocks, inline, search)
				break
			}
		}
	}
	return messages
}

// takes reports whether the model takes tools by a rung.
func (t *turn) takes(r model.Rung) bool { return deliver.Lower(t.refused, t.model.Row, r) == r }

func hasTools(blocks []llm.Block) bool {
	for i := range blocks {
		if len(blocks[i].Tools) > 0 {
			return true
		}
	}
	return false
}

// withoutTools copies blocks without the tools that are not taken.
func withoutTools(blocks []llm.Block, inline, search bool) []llm.Block {
	out := make([]llm.Block, 0, len(blocks))
	for _, b := range blocks {
		if len(b.Tools) > 0 && !inline {
			continue
		}
		if b.Result != nil && !search {
			r := *b.Result
			r.Blocks = withoutTools(r.Blocks, false, false)
			b.Result = &r
		}
		out = append(out, b)
	}
	return out
}

// allowedNames are the tools that may be called now, for wires that can narrow
// a model to them; nil means all.
func (t *turn) allowedNames() []string {
	allows := t.intents.rules.Allows
	if allows == nil || len(t.intents.rules.Names) == 0 {
		return nil
	}
	intent := t.intents.active
	if t.intents.rules.Request {
		intent = "" // it ends with this request
	}
	var names []string
	narrowed := false
	for _, tool := range t.toolNames() {
		if !own(tool) {
			e, err := t.view.Lookup(string(t.known.Tools[tool].ID))
			// Before an intent is declared the model may declare one and call
			// in the same answer.
			if err != nil || intent != "" && !allows(intent, e) {
				narrowed = true
				continue
			}
		}
		names = append(names, tool)
	}
	if !narrowed {
		return nil
	}
	return names
}

// toolNames are the tools that the request declares, each once, in order.
func (t *turn) toolNames() []string {
	names := make([]string, 0, len(t.prefix.Tools)+len(t.known.Tools))
	seen := make(map[string]bool, cap(names))
	for _, tool := range t.prefix.Tools {
		names = append(names, tool.Name)
		seen[tool.Name] = true
	}
	for i := range t.live {
		if t.live[i].Kind == session.Prefix {
			continue
		}
		for _, o := range t.live[i].Offers {
			if _, sent := t.known.Tools[o.Tool]; sent && !seen[o.Tool] {
				names = append(names, o.Tool)
				seen[o.Tool] = true
			}
		}
	}
	return names
}

// answered writes an answer down and says what comes of it.
func (t *turn) answered(got *received) (ending, bool, error) {
	t.text = textOf(got.blocks)
	calls := callsOf(got.blocks)
	switch {
	case len(got.blocks) == 0 && got.stop == llm.StopRefuse, got.stop == llm.StopRefuse && len(calls) == 0:
		return t.refusedByProvider(got)
	case len(calls) == 0 && strings.TrimSpace(t.text) == "":
		return t.nothing(got)
	}
	if len(calls) > 0 {
		return t.called(got, calls)
	}
	end := ending{reason: event.EndAnswer}
	if got.flood {
		end = ending{event.EndLimit, fmt.Sprintf("the answer has more than %d bytes and was cut (chat.answerBytes)", t.terms.Limits.AnswerBytes)}
	}
	// The answer and that it is the last are one thing to write.
	if err := t.append(got.entry(t), t.endNote(end)); err != nil {
		return ending{}, false, err
	}
	t.closed = true
	t.emit(got.event(t))
	if got.stop == llm.StopLength && !got.flood {
		t.notice("limit", "the answer ran into the most tokens that one may have; say \"go on\" for the rest")
	}
	return end, true, nil
}

// called writes an answer with calls down. Those of one that the provider would
// not finish are not made: nobody knows what it took away.
func (t *turn) called(got *received, calls []*llm.ToolCall) (ending, bool, error) {
	whole := got.stop != llm.StopLength && got.stop != llm.StopRefuse
	declared := map[string]bool{}
	for _, name := range t.toolNames() {
		declared[name] = true
	}
	toolcall.Name(calls, toolcall.Answer{Turn: t.number, Before: t.calls, Whole: whole, Declared: declared})
	e := got.entry(t)
	if !whole {
		e.Name = cutShort
	}
	entries := []session.Entry{e}
	if got.stop == llm.StopRefuse {
		results := session.Entry{Kind: session.Results}
		for _, c := range calls {
			results.Blocks = append(results.Blocks, resultBlock(c, []llm.Block{{Text: "The call was not made: the provider would not let the answer be finished."}}, true))
		}
		entries = append(entries, results)
	}
	if err := t.append(entries...); err != nil {
		return ending{}, false, err
	}
	all := t.log.Entries()
	t.mine = all[len(all)-len(entries)].Seq
	t.emit(got.event(t))
	if got.stop == llm.StopRefuse {
		t.calls += len(calls)
		return notAnswered, true, nil
	}
	return ending{}, false, nil
}

// notAnswered is the end of a turn that the provider would not answer.
var notAnswered = ending{event.EndFailed, "the provider would not answer this; say it otherwise, or rewind"}

// nothing is an answer without a word and without a call.
func (t *turn) nothing(got *received) (ending, bool, error) {
	t.mistakes++
	entries := []session.Entry{unanswered(got.entry(t)), {Kind: session.Added, Blocks: []llm.Block{{Text: "(You answered nothing. Answer the user, or call a tool.)"}}}}
	if err := t.append(entries...); err != nil {
		return ending{}, false, err
	}
	t.emit(got.event(t))
	return ending{}, false, nil
}

// unanswered returns the note of a request without an answer, with what it cost.
func unanswered(e session.Entry) session.Entry {
	note := session.Unanswered{}.Entry()
	note.Usage, note.Cost = e.Usage, e.Cost
	return note
}

func (t *turn) refusedByProvider(got *received) (ending, bool, error) {
	e := got.entry(t)
	if len(e.Blocks) == 0 || t.text == "" {
		e = unanswered(e)
	}
	if err := t.append(e); err != nil {
		return ending{}, false, err
	}
	t.emit(got.event(t))
	return notAnswered, true, nil
}

// broken is a request that did not come to its end.
func (t *turn) broken(got *received, err error) (ending, bool, error) {
	if t.ctx.Err() != nil {
		if partial := t.partial(got, ""); partial != nil {
			if werr := t.append(partial...); werr != nil {
				return ending{}, false, werr
			}
		}
		return ending{}, false, t.ctx.Err()
	}
	switch kind := llm.KindOf(err); {
	case errors.Is(err, errBroke):
		if werr := t.append(t.partial(got, "(Your answer broke off here, and none of its calls was made.)")...); werr != nil {
			return ending{}, false, werr
		}
		return ending{}, false, err
	case kind == llm.TooLong && !got.any:
		return t.overflow(err)
	case kind == llm.Unsupported && !got.any:
		return t.stepDown(err)
	case got.any || kind == llm.Cut || kind == llm.Malformed:
		return t.cut(got, err)
	}
	return ending{}, false, err
}

// cut keeps what came before the stream broke. None of its calls was made, so
// the step may be tried once more.
func (t *turn) cut(got *received, err error) (ending, bool, error) {
	text := "The stream broke off in the middle of the answer; what came of it is kept, and none of its calls was made."
	if !got.any {
		text = "Nothing of the answer could be read."
	}
	if werr := t.append(t.partial(got, "(Your answer broke off here, and none of its calls was made. Go on.)")...); werr != nil {
		return ending{}, false, werr
	}
	if t.retried {
		return ending{}, false, err
	}
	t.retried = true
	t.notice("retry", text+" It is asked again: "+err.Error())
	return ending{}, false, nil
}

// partial is what an answer that broke off leaves behind, and what the model is
// told about it.
func (t *turn) partial(got *received, told string) []session.Entry {
	var out []session.Entry
	text := strings.TrimSpace(got.shown.String())
	if text != "" {
		t.text = text
		e := got.entry(t)
		e.Blocks = []llm.Block{{Text: text}}
		out = append(out, e)
		if told != "" {
			out = append(out, session.Entry{Kind: session.Added, Blocks: []llm.Block{{Text: told}}})
		}
	}
	return out
}

// stepDown takes tools by a lower rung when the provider would not take one.
func (t *turn) stepDown(err error) (ending, bool, error) {
	e, _ := errors.AsType[*llm.Error](err)
	rung := model.Rung(e.Feature)
	if rung != model.Inline && rung != model.Search || t.refused[rung] {
		return ending{}, false, err
	}
	t.refused[rung] = true
	t.known = t.knows()
	was := t.rung
	t.rung = deliver.Lower(t.refused, t.model.Row, t.rung)
	if err := t.append(session.DeliveryRefused{Mode: string(rung), Model: t.model.Name}.Entry()); err != nil {
		return ending{}, false, err
	}
	t.sent = llm.Request{}
	t.notice("rung", fmt.Sprintf("the provider refused %s for %s; tools are given by %s from now on: %s", rung, t.model.Name, t.rung, untrusted.Line(e.Message, 200)))
	if was == t.rung {
		return ending{}, false, nil
	}
	return ending{}, false, t.giveAgain()
}

// giveAgain shows by the rung of now what the last one gave in this turn.
func (t *turn) giveAgain() error {
	var ids []capability.ID
	for i := range t.live {
		if e := &t.live[i]; e.Turn == t.number && e.Kind == session.Added {
			for _, o := range e.Offers {
				ids = append(ids, o.ID)
			}
		}
	}
	e, ok := deliver.Add(deliver.AddInput{Rung: t.rung, Found: t.selection, Offers: t.offers().Found(t.ctx, ids, t.known), Live: t.known, Pressed: t.pressed(), Count: t.e.cfg.Count})
	if !ok {
		return nil
	}
	return t.append(e)
}
