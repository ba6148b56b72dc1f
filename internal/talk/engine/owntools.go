package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/envelope"
	"ken/internal/talk/ask"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm"
)

// The names of Ken's own tools, which no capability can have.
const (
	toolDiscover = capability.ToolDiscover
	toolList     = capability.ToolList
	toolDescribe = capability.ToolDescribe
	toolInvoke   = capability.ToolInvoke
	toolRead     = capability.ToolRead
	toolAsk      = capability.ToolAsk
	toolFinish   = capability.ToolFinish
	toolIntent   = capability.ToolIntent
)

// own reports whether a name is one of Ken's own tools.
func own(name string) bool { return capability.IsOwnTool(name) }

const (
	askSchema    = `{"type":"object","properties":{"question":{"type":"string"},"choices":{"type":"array","items":{"type":"string"}}},"required":["question"]}`
	finishSchema = `{"type":"object","properties":{"answer":{"type":"string"}}}`
	readSchema   = `{"type":"object","properties":{"handle":{"type":"string"},"op":{"enum":["head","tail","lines","chars","search","info"]},"count":{"type":"integer"},"from":{"type":"integer"},"to":{"type":"integer"},"pattern":{"type":"string"}},"required":["handle"]}`
)

// ownTools returns Ken's own tools in the order in which every model sees them.
// They never change within a session. The one for intents is the last.
func ownTools(d *door.Door, v door.View, rules IntentRules) []llm.Tool {
	tools := append([]llm.Tool(nil), d.Tools()...)
	tools = append(tools, llm.Tool{Name: toolInvoke, Description: "Call a capability by its id", Schema: json.RawMessage(envelope.Schema)})
	for e := range v.Own() {
		if e.Name == toolRead {
			tools = append(tools, llm.Tool{Name: toolRead, Description: e.Description, Schema: json.RawMessage(readSchema)})
		}
	}
	tools = append(tools,
		llm.Tool{Name: toolAsk, Description: "Ask the user and wait for the answer", Schema: json.RawMessage(askSchema)},
		llm.Tool{Name: toolFinish, Description: "End the turn; without calls an answer ends it too", Schema: json.RawMessage(finishSchema)},
	)
	if len(rules.Names) > 0 {
		tools = append(tools, intentTool(rules.Names))
	}
	return tools
}

// lookUp runs one of the tools by which a model looks further. It may run beside
// others and changes nothing but its call.
func (e *Engine) lookUp(ctx context.Context, s setup, h history, delivery model.DeliveryMode, j *pendingCall) {
	began := e.cfg.Now()
	scope := s.in.Scope
	scope.Session, scope.User = s.in.Session, s.in.Principal.ID
	args := j.args
	if j.tool == toolDescribe {
		args, j.whole = readable(h.known, args)
	}
	a, err := e.cfg.Door.Call(ctx, s.view, scope, j.tool, args)
	j.took = e.cfg.Now().Sub(began)
	j.over, j.err = true, err
	if err != nil {
		j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: err.Error()}}}
		return
	}
	j.res = capability.Result{Failed: a.Failed, Parts: []capability.Part{{Text: a.Text}}}
	j.mistake = a.Failed
	if delivery == model.Search || delivery == model.Inline { // what a search finds becomes tools
		j.hits = hits(a.Data)
	}
}

// hits returns the capabilities that an answer to a search is about, the best
// first.
func hits(data any) (ids []capability.ID) {
	var in struct {
		ID           capability.ID `json:"id"`
		Capabilities []struct {
			ID capability.ID `json:"id"`
		} `json:"capabilities"`
	}
	raw, err := json.Marshal(data)
	if err != nil || json.Unmarshal(raw, &in) != nil {
		return nil
	}
	if in.ID != "" {
		ids = append(ids, in.ID)
	}
	for _, c := range in.Capabilities {
		ids = append(ids, c.ID)
	}
	return ids[:min(len(ids), maxHits)]
}

// ownTool runs one of the tools that speak with the person or the turn itself.
func (e *Engine) ownTool(ctx context.Context, t turn, p progress, j *pendingCall) progress {
	switch j.tool {
	case toolIntent:
		return t.selectIntent(ctx, p, j)
	case toolAsk:
		t.askUser(ctx, j)
	case toolFinish:
		var in struct {
			Answer string `json:"answer"`
		}
		_ = json.Unmarshal(j.args, &in) // without an answer the text counts
		if strings.TrimSpace(in.Answer) != "" {
			p.text = in.Answer
			t.out.emit(event.Delta{Text: in.Answer})
		}
		j.say("The turn is over.", false)
		j.ends = true
	}
	return p
}

// say sets the result of a call.
func (j *pendingCall) say(text string, failed bool) {
	j.over = true
	j.res = capability.Result{Failed: failed, Parts: []capability.Part{{Text: text}}}
}

// selectIntent takes an intent for the calls that come after it, and does
// nothing else.
func (t turn) selectIntent(ctx context.Context, p progress, j *pendingCall) progress {
	if len(t.rules.Names) == 0 {
		j.say("No intent is needed here.", false)
		return p
	}
	s, refusal := p.intents.read(t.rules, j.args)
	if refusal != "" {
		j.mistake = true
		j.say(refusal, true)
		return p
	}
	active := p.intents.active
	if p.intents.needsConsent(t.rules, s.intent) {
		j.rounds = 1
		reply, ok := t.put(ctx, event.Asked{
			ID: ask.ID(t.log.number, j.number, j.rounds, event.Escalate, active+" "+s.intent), What: event.Escalate, Call: &j.shown,
			Text:  fmt.Sprintf("The model wants to go from %s to %s.", active, s.intent),
			Lines: []event.Line{{Name: "from", Text: active}, {Name: "to", Text: s.intent}, {Name: "justification", Text: s.justification}},
		}, j)
		if !ok {
			return p
		}
		if !reply.Yes {
			j.say(fmt.Sprintf("A person did not agree to %s; the intent is still %s.", s.intent, active), true)
			return p
		}
	}
	p.intents = p.intents.take(s.intent)
	t.out.emit(event.Intended{Intent: s.intent, Justification: s.justification, Chain: slices.Clone(p.intents.chain)})
	j.notes = append(j.notes, session.Intended{Intent: s.intent, Justification: s.justification}.Entry())
	scope := "this turn"
	if t.rules.Request {
		scope = "the calls of this answer"
	}
	j.say(fmt.Sprintf("The intent is %s for %s.", s.intent, scope), false)
	return p
}

// askUser lets the model ask the person.
func (t turn) askUser(ctx context.Context, j *pendingCall) {
	var in struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
	}
	if err := json.Unmarshal(j.args, &in); err != nil || strings.TrimSpace(in.Question) == "" {
		j.mistake = true
		j.say("question is empty; say what you want to know", true)
		return
	}
	j.rounds = 1
	reply, ok := t.put(ctx, event.Asked{ID: ask.ID(t.log.number, j.number, j.rounds, event.Ask, ""), What: event.Ask, Call: &j.shown, Text: in.Question, Choice: in.Choices}, j)
	switch {
	case !ok:
	case strings.TrimSpace(reply.Text) == "" && !reply.Yes:
		j.say("The user did not answer.", false)
	case strings.TrimSpace(reply.Text) == "":
		j.say("The user said yes.", false)
	default:
		j.say("The user answered: "+reply.Text, false)
	}
}

// callableHits are the tools that a search made callable.
type callableHits struct {
	within []llm.Block // in the result
	beside []llm.Block // after the results
	offers []session.Offer
}

// searched makes callable what the model's own search found, if the delivery mode does
// that. What is live by then is in live, to which it adds.
func (e *Engine) searched(ctx context.Context, t turn, p progress, j *pendingCall, live deliver.Live) (g callableHits) {
	if len(j.hits) == 0 || j.res.Failed {
		return g
	}
	blocks, offers := deliver.Searched(p.delivery, e.offers(t).Found(ctx, j.hits, t.log.history().known), live)
	g.offers = offers
	if p.delivery == model.Search {
		g.within = blocks
	} else {
		g.beside = blocks
	}
	for _, o := range offers {
		live.Tools[o.Tool] = o
	}
	if j.tool != toolDescribe || !j.whole {
		return g
	}
	if text, ok := deliver.Instead(j.hits[0], offers); ok {
		j.res.Parts = []capability.Part{{Text: text}}
	}
	return g
}

// maxHits is how many of what a search found become tools.
const maxHits = 8
