package app

import (
	"cmp"
	"context"
	"encoding/json"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/lazy"
	"ken/internal/procid"
	"ken/internal/run/result"
	"ken/internal/talk/engine"
	"ken/internal/talk/event"
	"ken/internal/talk/layers"
	"ken/internal/talk/model"
	"ken/internal/talk/opener"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/llm"
)

// talking is what conversations are led with. It is made when the first one is.
type talking struct {
	sessions lazy.Value[*session.Store]
	engine   lazy.Value[*engine.Engine]
}

func (a *App) prepareTalking(cfg Config) {
	t := &a.talking
	a.Models = opener.New(opener.Config{
		StateDir: a.Places.State, Settings: a.effective, Secrets: a.Secrets, Hold: a.Redactor.Hold, Log: a.log, Given: cfg.Model,
		Wrap: func(m llm.Model) llm.Model { return a.plugins.Wrap(m) },
	})
	t.sessions.Build = func() (*session.Store, error) {
		db, err := a.store.Get()
		if err != nil {
			return nil, err
		}
		return session.New(db, session.Config{Keep: a.Settings.Chat.Keep, Process: procid.Self(), Dead: procid.Dead}), nil
	}
	t.engine.Build = a.newEngine
}

// UseModel has another model answer than the one that ken.yaml names, from the
// next turn on.
func (a *App) UseModel(ref string) { a.loader.UseModel(ref) }

// Sessions returns what was said.
func (a *App) Sessions() (*session.Store, error) { return a.talking.sessions.Get() }

// Engine returns what leads conversations.
func (a *App) Engine() (*engine.Engine, error) { return a.talking.engine.Get() }

func (a *App) newEngine() (*engine.Engine, error) {
	sessions, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	cfg := a.engineConfig()
	cfg.Sessions = sessions
	cfg.Count, err = tokenizer.Named(string(a.Settings.Discovery.Tokenizer))
	if err != nil {
		return nil, err
	}
	return engine.New(cfg), nil
}

// engineConfig is what conversations are led with.
func (a *App) engineConfig() engine.Config {
	system := &layers.Builder{
		Home: a.Places.Home, Workspace: a.Places.Workspace, Foreign: !a.Settings.Capabilities.AllowWorkspaceCards,
		Door: a.Door, Current: a.loader.Current, Sessions: a.Sessions, Plugins: a.plugins.All(),
	}
	return engine.Config{
		Door: a.Door, Model: a.modelOf, Command: a.Commands.Read, Ended: a.reportTurn, Intents: a.intentsAt, Reads: a.onlyReads,
		Ticket: a.ticket, Wait: a.waitForPerson, Keep: a.keepText, Fate: a.fate, Terms: a.terms, Filters: a.plugins.Filters(),
		Environment: func(in event.Input) string { return layers.Environment(a.Places.Workspace, in.Mode) },
		Layers: func(ctx context.Context, in engine.LayerInput) ([]prompt.Layer, []event.Notice, error) {
			list, notices := system.Build(ctx, layers.Input{
				Head: in.Head, Principal: in.Principal, View: in.View, Rung: in.Rung, Document: in.Document, Map: in.Map, Intents: len(in.Intents.Names) > 0,
			})
			return list, notices, nil
		},
	}
}

// terms are what ken.yaml says about a turn that begins.
func (a *App) terms() engine.Terms {
	now := a.effective()
	chat := now.Chat
	return engine.Terms{
		System: chat.PromptTokens, Closed: chat.ToolFailure == config.FailClosed,
		Limits: engine.Limits{
			Steps: chat.Steps, Mistakes: chat.Mistakes, Repeats: chat.Repeats, Calls: chat.Calls, Rounds: chat.Rounds, Parallel: chat.Parallel,
			AnswerBytes: chat.AnswerBytes, ResultBytes: chat.ResultBytes, InputBytes: chat.InputBytes,
			Requests: chat.Requests, Tokens: chat.Tokens, Cost: chat.Cost, MessageBytes: chat.MessageBytes,
		},
		Delivery: model.Rung(chat.ToolDelivery), Fit: prompt.Numbers{Condense: condenseAt(*now)},
	}
}

// modelOf returns the model that a session talks to.
func (a *App) modelOf(_ context.Context, _ session.Head, retry engine.Retry) (engine.Model, error) {
	m, err := a.Models.ForTurn(retry)
	return engine.Model(m), err
}

// condenseAt is how full the window may be: as the provider says, or else as
// the chat does.
func condenseAt(said config.Config) float64 {
	percent := said.Chat.CondenseAt
	if p, _, err := said.Provider(said.Model); err == nil && p.CondenseAt > 0 {
		percent = p.CondenseAt
	}
	return float64(percent) / 100
}

// intentsAt returns the rules about intents at a surface.
func (a *App) intentsAt(surface string) engine.IntentRules {
	now := a.loader.Current()
	rules, chat := now.Rules, now.Settings.Chat
	if rules == nil || !rules.AsksIntent(policy.Surface(surface)) {
		return engine.IntentRules{}
	}
	out := engine.IntentRules{
		Names: policy.Intents(), Request: chat.IntentScope == config.IntentRequest, Remember: chat.RememberIntents,
		Allows: func(intent string, e *door.Entry) bool {
			return rules.IntentAllows(intent, policy.Of(e.Capability).Class)
		},
	}
	if chat.Escalation == config.EscalationAsk {
		out.Consent = func(from, to string) bool { return rules.Wider(from, to) }
	}
	return out
}

// onlyReads reports whether calls of a capability change nothing, by its class.
func (a *App) onlyReads(e *door.Entry) bool {
	c := policy.Of(e.Capability)
	return (c.Class == policy.Read || c.Class == policy.Meta) && !c.Destructive
}

// ticket returns what a person must know about a question at the desk.
func (a *App) ticket(ctx context.Context, id string) (event.Ticket, error) {
	desk, err := a.Desk()
	if err != nil {
		return event.Ticket{}, err
	}
	t, err := desk.Get(ctx, id)
	if err != nil {
		return event.Ticket{}, err
	}
	out := event.Ticket{Wide: t.Question.Widest == approval.Session}
	for _, o := range t.Offers {
		out.Offers = append(out.Offers, event.Offer{Scope: string(o.Scope), Covers: string(o.Covers), Calls: o.Calls, Text: o.Text, Examples: o.Examples})
	}
	for _, l := range t.ConsentLines() {
		out.Lines = append(out.Lines, event.Line{Name: l.Name, Text: l.Text})
		if l.Name == "why" {
			out.Text = l.Text
		}
	}
	return out, nil
}

// waitForPerson waits until a question has its answer.
func (a *App) waitForPerson(ctx context.Context, id string) (bool, error) {
	desk, err := a.Desk()
	if err != nil {
		return false, err
	}
	t, err := desk.Wait(ctx, id)
	if err != nil {
		return false, err
	}
	return t.State == approval.Granted, t.Err()
}

// fate returns what the runner kept of a call of a session.
func (a *App) fate(ctx context.Context, call capability.Call) (engine.Fate, bool, error) {
	r, err := a.runner.Get()
	if err != nil {
		return engine.Fate{}, false, err
	}
	f, ok, err := r.Fate(ctx, call)
	return engine.Fate(f), ok, err
}

// keepText stores a text that is too long for a message, and returns its beginning
// and its end with the handle by which the rest is read.
func (a *App) keepText(_ context.Context, k engine.Kept) (string, error) {
	kept, err := a.results.Get()
	if err != nil {
		return "", err
	}
	scope := result.ScopeOf(capability.Call{Principal: k.Principal, Session: k.Session})
	e, err := kept.Keep(scope, result.About{Target: capability.ID("chat:" + k.Name), MIME: cmp.Or(k.MIME, "text/plain")}, k.Text, false, nil)
	if err != nil {
		return "", err
	}
	if k.MIME != "" {
		return result.Where(e), nil
	}
	return result.Ends(k.Text, k.Limit, "read them with read_result, handle "+e.Handle), nil
}

// Answer says what a person said to a question of a turn.
type Answer struct {
	Yes    bool
	Scope  approval.Scope // of consent
	Covers approval.Cover // of consent for more than one call
	Text   string

	// Answers are those to an [event.Inquiry], by the question's name.
	Answers map[string]json.RawMessage
}

// Reply answers what a turn asked: consent at the desk, everything else to the
// turn itself.
func (a *App) Reply(ctx context.Context, who capability.Principal, sess string, asked event.Asked, said Answer) error {
	if asked.What == event.Consent && asked.Ticket != "" {
		answer := approval.Answer{By: who, Effect: approval.No, Scope: said.Scope, Covers: said.Covers, Note: said.Text}
		if said.Yes {
			answer.Effect = approval.Yes
		}
		if answer.Scope == "" {
			answer.Scope = approval.Once
		}
		_, err := a.Approvals.Settle(ctx, asked.Ticket, answer)
		return err
	}
	e, err := a.Engine()
	if err != nil {
		return err
	}
	reply := event.Reply{Yes: said.Yes, Text: said.Text, Answers: said.Answers}
	return e.Reply(ctx, who, sess, asked.ID, reply)
}
