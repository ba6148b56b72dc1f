package app

import (
	"cmp"
	"context"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/govern/approval/preview"
	"ken/internal/govern/policy"
	"ken/internal/govern/reload"
	"ken/internal/lazy"
	"ken/internal/run/result"
	"ken/internal/talk/commands"
	"ken/internal/talk/consent"
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

// chatParts lead conversations. Sessions and engine are made when the first begins.
type chatParts struct {
	Models    *opener.Opener    // opens the model that answers, and knows what it costs
	Commands  *commands.Set     // the slash commands of each caller
	Questions consent.Questions // of turns, and the answers to them

	sessions lazy.Value[*session.Store]
	engine   lazy.Value[*engine.Engine]
}

func (a *App) prepareTalking(cfg Config) {
	t := &a.chatParts
	a.Models = opener.New(opener.Config{
		StateDir: a.Places.State, Settings: a.effective, Secrets: a.Secrets, Hold: a.Redactor.Hold, Log: a.log, Given: cfg.Model,
		Wrap: func(m llm.Model) llm.Model { return a.plugins.Wrap(m) },
	})
	t.sessions.Build = func() (*session.Store, error) {
		db, err := a.store.Get()
		if err != nil {
			return nil, err
		}
		return session.New(db, session.Config{Keep: a.Settings.Chat.Keep, Process: a.Replicas.process(), Dead: a.Replicas.dead}), nil
	}
	t.engine.Build = a.newEngine
	a.Questions = consent.Questions{Approvals: a.Approvals, Turns: func() (consent.Turns, error) { return a.Engine() }, Change: func(folder string, call capability.Call) string {
		return a.Redactor.Redact(preview.Change(folder, call))
	}}
}

// UseModel has another model answer than the one that ken.yaml names, from the
// next turn on.
func (a *App) UseModel(ref string) { a.loader.UseModel(ref) }

// Sessions returns what was said.
func (a *App) Sessions() (*session.Store, error) { return a.chatParts.sessions.Get() }

// Engine returns what leads conversations.
func (a *App) Engine() (*engine.Engine, error) { return a.chatParts.engine.Get() }

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
		Door: a.Door, Command: func(ctx context.Context, in event.Input) (event.Command, bool, error) { return readCommand(ctx, a, in) }, Ended: a.reportTurn, Reads: onlyReads, Ticket: a.Questions.Ticket, Wait: a.Questions.Wait,
		Keep: a.keepText, CallStatus: a.callStatus, Filters: a.plugins.Filters(),
		Terms:   func() engine.Terms { return termsOf(a.effective()) },
		Intents: func(surface string) engine.IntentRules { return intentRules(a.loader.Current(), surface) },
		Model: func(_ context.Context, _ session.Head, retry engine.Retry) (engine.Model, error) {
			m, err := a.Models.ForTurn(retry)
			return engine.Model(m), err
		},
		Environment: func(in event.Input) string { return layers.Environment(a.Places.Workspace, in.Mode) },
		Layers: func(ctx context.Context, in engine.LayerInput) ([]prompt.Layer, []event.Notice, error) {
			list, notices := system.Build(ctx, layers.Input{
				Head: in.Head, Principal: in.Principal, View: in.View, Delivery: in.Delivery, Document: in.Document, Map: in.Map, Intents: len(in.Intents.Names) > 0,
			})
			return list, notices, nil
		},
	}
}

// termsOf returns what ken.yaml says about a turn that begins.
func termsOf(now *config.Config) engine.Terms {
	chat := now.Chat
	return engine.Terms{
		System: chat.PromptTokens, Closed: chat.ToolFailure == config.FailClosed,
		Limits: engine.Limits{
			Steps: chat.Steps, Mistakes: chat.Mistakes, Repeats: chat.Repeats, Calls: chat.Calls, Rounds: chat.Rounds, Parallel: chat.Parallel,
			AnswerBytes: chat.AnswerBytes, ResultBytes: chat.ResultBytes, InputBytes: chat.InputBytes,
			Requests: chat.Requests, Tokens: chat.Tokens, Cost: chat.Cost, MessageBytes: chat.MessageBytes,
		},
		Delivery: model.DeliveryMode(chat.ToolDelivery), Fit: prompt.Numbers{Condense: condenseAt(*now)},
	}
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

// intentRules returns the rules about intents at a surface.
func intentRules(now *reload.Snapshot, surface string) engine.IntentRules {
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
func onlyReads(e *door.Entry) bool {
	c := policy.Of(e.Capability)
	return (c.Class == policy.Read || c.Class == policy.Meta) && !c.Destructive
}

// callStatus returns what the runner kept of a call of a session.
func (a *App) callStatus(ctx context.Context, call capability.Call) (engine.CallStatus, bool, error) {
	r, err := a.runner.Get()
	if err != nil {
		return engine.CallStatus{}, false, err
	}
	f, ok, err := r.CallStatus(ctx, call)
	return engine.CallStatus(f), ok, err
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
