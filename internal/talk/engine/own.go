package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
)

// lookUp runs one of the tools by which a model looks further. It may run
// beside others and touches nothing but its job.
func (t *turn) lookUp(j *job) {
	began := t.e.cfg.Now()
	scope := t.in.Scope
	scope.Session, scope.User = t.in.Session, t.in.Principal.ID
	args := j.args
	if j.tool == toolDescribe {
		args, j.whole = t.readable(args)
	}
	a, err := t.e.cfg.Door.Call(t.ctx, t.view, scope, j.tool, args)
	j.took = t.e.cfg.Now().Sub(began)
	j.over, j.err = true, err
	if err != nil {
		j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: err.Error()}}}
		return
	}
	j.res = capability.Result{Failed: a.Failed, Parts: []capability.Part{{Text: a.Text}}}
	j.mistake = a.Failed
	if t.searches() {
		j.hits = hits(a.Data)
	}
}

// searches reports whether what a search finds becomes tools.
func (t *turn) searches() bool { return t.rung == model.Search || t.rung == model.Inline }

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
	return ids[:min(len(ids), mostFound)]
}

// ownTool runs one of the tools that speak with the person or the turn itself.
func (t *turn) ownTool(j *job) {
	switch j.tool {
	case toolIntent:
		t.selectIntent(j)
	case toolAsk:
		t.askUser(j)
	case toolFinish:
		var in struct {
			Answer string `json:"answer"`
		}
		_ = json.Unmarshal(j.args, &in) // without an answer the text counts
		if strings.TrimSpace(in.Answer) != "" {
			t.text = in.Answer
			t.emit(event.Delta{Text: in.Answer})
		}
		j.say("The turn is over.", false)
		j.ends = true
	}
}

// say gives a job its result.
func (j *job) say(text string, failed bool) {
	j.over = true
	j.res = capability.Result{Failed: failed, Parts: []capability.Part{{Text: text}}}
}

// selectIntent takes an intent for the calls that come after it, and does
// nothing else.
func (t *turn) selectIntent(j *job) {
	if len(t.intents.rules.Names) == 0 {
		j.say("No intent is needed here.", false)
		return
	}
	s, refusal := t.intents.read(j.args)
	if refusal != "" {
		j.mistake = true
		j.say(refusal, true)
		return
	}
	if t.intents.needsConsent(s) {
		j.rounds = 1
		reply, ok := t.put(event.Asked{
			ID: t.askID(j, event.Escalate, t.intents.active+" "+s.intent), What: event.Escalate, Call: &j.shown,
			Text:  fmt.Sprintf("The model wants to go from %s to %s.", t.intents.active, s.intent),
			Lines: []event.Line{{Name: "from", Text: t.intents.active}, {Name: "to", Text: s.intent}, {Name: "justification", Text: s.justification}},
		}, j)
		if !ok {
			return
		}
		if !reply.Yes {
			j.say(fmt.Sprintf("A person did not agree to %s; the intent is still %s.", s.intent, t.intents.active), true)
			return
		}
	}
	said := t.intents.take(s)
	t.emit(said)
	j.notes = append(j.notes, session.Intended{Intent: said.Intent, Justification: said.Justification}.Entry())
	scope := "this turn"
	if t.intents.rules.Request {
		scope = "the calls of this answer"
	}
	j.say(fmt.Sprintf("The intent is %s for %s.", said.Intent, scope), false)
}

// askUser lets the model ask the person.
func (t *turn) askUser(j *job) {
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
	reply, ok := t.put(event.Asked{ID: t.askID(j, event.Ask, ""), What: event.Ask, Call: &j.shown, Text: in.Question, Choice: in.Choices}, j)
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

// searched makes callable what the model's own search found, where the rung
// does that. What is live by then is t.known and what calls beside this one
// gave.
func (t *turn) searched(j *job, live deliver.Live) {
	if len(j.hits) == 0 || j.res.Failed {
		return
	}
	blocks, offers := deliver.Searched(t.rung, t.offers().Found(t.ctx, j.hits, t.known), live)
	j.offers = offers
	if t.rung == model.Search {
		j.within = blocks
	} else {
		j.beside = blocks
	}
	for _, o := range offers {
		live.Tools[o.Tool] = o
	}
	if j.tool != toolDescribe || !j.whole {
		return
	}
	if text, ok := deliver.Instead(j.hits[0], offers); ok {
		j.res.Parts = []capability.Part{{Text: text}}
	}
}

// mostFound is how many of what a search found become tools.
const mostFound = 8
