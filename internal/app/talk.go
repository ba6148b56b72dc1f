package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	"ken/internal/talk/layerfiles"
	"ken/internal/talk/model"
	"ken/internal/talk/opener"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
	"ken/llm"
	"ken/plugin"
)

// talking is what conversations are led with. It is made when the first one is.
type talking struct {
	sessions lazy.Value[*session.Store]
	engine   lazy.Value[*engine.Engine]
}

func (a *App) prepareTalking(cfg Config) {
	t := &a.talking
	a.Models = opener.New(opener.Config{
		StateDir: a.Places.State, Settings: a.effective, Secrets: a.secrets, Hold: a.redactor.Hold, Log: a.log, Given: cfg.Model,
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
	return engine.Config{
		Door: a.Door, Model: a.modelOf, Command: a.Commands.Read, Environment: a.environment, Ended: a.reportTurn,
		Layers: a.layers, Intents: a.intentsAt, Reads: a.onlyReads,
		Ticket: a.ticket, Wait: a.waitForPerson, Keep: a.keepText, Fate: a.fate, Terms: a.terms, Filters: a.plugins.Filters(),
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

// environment says where a model is. It changes once a day, and with the mode.
func (a *App) environment(in event.Input) string {
	text := fmt.Sprintf("[Today is %s. The workspace is %s.", time.Now().Format("Monday, 2 January 2006"), untrusted.Line(a.Places.Workspace, 200))
	if in.Mode != "" {
		text += " The mode is " + untrusted.Line(in.Mode, 40) + "."
	}
	return text + "]"
}

// layers returns the system prompt of a session that begins.
func (a *App) layers(ctx context.Context, in engine.LayerInput) ([]prompt.Layer, []event.Notice, error) {
	on := prompt.On{Intents: len(in.Intents.Names) > 0, Rung: string(in.Rung), Ask: true, Finish: true, Results: true}
	on.Listed = in.Rung == model.Whole && in.Map != ""
	now := a.loader.Current()
	layers, wrong := layerfiles.Load(on, a.contextFolders(in.Document)...)
	layers = prompt.WithDocument(layers, in.Document)
	var notices []event.Notice
	for _, n := range wrong {
		notices = append(notices, event.Notice{Name: "degraded", Text: n.File + ": " + n.Text})
	}
	if in.Map != "" {
		layers = append(layers, prompt.Layer{Name: prompt.Map, Text: in.Map})
	}
	if text := workText(now.Settings.Work); text != "" {
		layers = append(layers, prompt.Layer{Name: "work", Text: text})
	}
	skills, missing := a.skills(ctx, now, in.View)
	layers = append(layers, prompt.Skills(skills))
	for _, text := range missing {
		notices = append(notices, event.Notice{Name: "degraded", Text: text})
	}
	if now.Settings.Chat.Memory {
		layers = append(layers, a.previous(ctx, in))
	}
	for p := range a.plugins.All() {
		l, ok := p.(plugin.Layerer)
		if !ok {
			continue
		}
		more, err := l.Layers(ctx)
		if err != nil {
			notices = append(notices, event.Notice{Name: "degraded", Text: fmt.Sprintf("the plugin %s gave no layers: %v", p.Name(), err)})
			continue
		}
		for _, layer := range more {
			layers = append(layers, prompt.Layer{Name: "plugin " + p.Name() + ": " + layer.Name, Text: layer.Text})
		}
	}
	return layers, notices, nil
}

// contextFolders are where the files of the prompt are. The user's own AGENTS.md
// is not read again where it is the catalog's; what came with a project counts only
// as far as it may.
func (a *App) contextFolders(document string) []layerfiles.Folder {
	own := layerfiles.Folder{Dir: a.Places.Home}
	if text, err := os.ReadFile(filepath.Join(a.Places.Home, prompt.AgentsFile)); err == nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		own.NoAgents = first != "" && strings.Contains(document, first)
	}
	return []layerfiles.Folder{own, {Dir: a.Places.Workspace, Foreign: !a.Settings.Capabilities.AllowWorkspaceCards}}
}

const longestWork = 300 // characters of one line of it

// workText tells of the work at hand. It came with the project.
func workText(list []config.Work) string {
	var b strings.Builder
	line := func(name string, texts []string) {
		for _, text := range texts {
			fmt.Fprintf(&b, "  %s: %s\n", name, untrusted.Line(text, longestWork))
		}
	}
	for _, w := range list {
		fmt.Fprintf(&b, "- %s %s\n", untrusted.Line(w.ID, 60), untrusted.Line(w.Name, longestWork))
		line("may change", w.Scope)
		line("constraint", w.Constraints)
		line("done when", w.Acceptance)
	}
	if b.Len() == 0 {
		return ""
	}
	return "# Work at hand\n\nAs .orchestration/active_intents.yaml says; changes outside its scope are refused.\n\n" + strings.TrimSuffix(b.String(), "\n")
}

// previous shows how the conversation before ended: the last message of the
// person and the answer to it. What agents began and what people began are apart.
func (a *App) previous(ctx context.Context, in engine.LayerInput) prompt.Layer {
	sessions, err := a.Sessions()
	if err != nil {
		return prompt.Layer{}
	}
	list, err := sessions.ListOnly(ctx, in.Principal, 5, func(h session.Head) bool {
		return (h.BegunBy == "") == (in.Head.BegunBy == "")
	})
	if err != nil {
		return prompt.Layer{}
	}
	for _, head := range list {
		if head.ID == in.Head.ID || head.Folder != in.Head.Folder || head.Turns == 0 {
			continue
		}
		_, entries, err := sessions.Read(ctx, in.Principal, head.ID)
		if err != nil {
			continue
		}
		return prompt.Layer{Name: prompt.Previous, Text: previousText(head, session.Live(entries))}
	}
	return prompt.Layer{}
}

const mostPrevious = 2000 // characters of a message of the conversation before

// previousText is data: what was said may quote anybody.
func previousText(head session.Head, live []session.Entry) string {
	last := map[session.Kind]string{}
	for _, e := range live {
		var text strings.Builder
		for _, b := range e.Blocks {
			text.WriteString(b.Text)
		}
		if text.Len() > 0 && (e.Kind == session.User || e.Kind == session.Assistant) {
			last[e.Kind] = text.String()
		}
	}
	said := fmt.Sprintf("The person: %s\n\nThe answer: %s", last[session.User], last[session.Assistant])
	return "# Previous conversation\n\n" + untrusted.Block(said, untrusted.BlockConfig{Origin: "session " + head.ID, Max: 2 * mostPrevious})
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
	for _, l := range consentLines(t) {
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
