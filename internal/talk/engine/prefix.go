package engine

import (
	"context"
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/plugin"
)

// An opening is what a turn begins with, before it is written.
type opening struct {
	found    door.Found // what filters left of it
	text     string     // what filters made of what was found, if they changed it
	plan     deliver.Plan
	delivery model.DeliveryMode
	in       deliver.AddInput
	prefixes []session.Entry // new ones
	history  history         // with the prefix of a session that begins
}

// prefix makes what stands before all messages: when the session begins, and
// later only if the delivery mode says so.
func (e *Engine) prefix(ctx context.Context, t turn, p progress, found door.Found) (opening, error) {
	o := opening{found: found, history: t.log.history()}
	before := o.history.prefix
	first := before.Seq == 0
	perTurn := before.Name == string(model.PerTurn)
	if first {
		o.plan = e.plan(ctx, t, p, o.history)
		perTurn = o.plan.Delivery == model.PerTurn
	}
	var layers []prompt.Layer
	var about int // tokens of the layers about capabilities
	var err error
	if first || perTurn || len(e.cfg.Filters) > 0 {
		if layers, about, err = e.layers(ctx, t, o, first); err != nil {
			return o, err
		}
	}
	if len(e.cfg.Filters) > 0 {
		layers, o.found, o.text = e.filtered(ctx, t, layers, o.found)
	}
	if first {
		begun, err := e.firstPrefix(t, o, layers, about)
		if err != nil {
			return o, err
		}
		o.prefixes = append(o.prefixes, begun)
		o.history.prefix, o.history.known = begun, deliver.LiveOf(append(slices.Clip(o.history.live), begun))
	}
	now := o.history.prefix
	o.delivery = deliver.Lower(p.refused, t.model.Row, model.DeliveryMode(now.Name))
	o.in = e.addInput(ctx, t, o)
	next, changed := deliver.Prefix(o.in)
	if perTurn {
		text, system, err := e.perTurnPrefix(t, o, layers)
		if err != nil {
			return o, err
		}
		if !changed {
			next = session.Entry{Kind: session.Prefix, Tools: now.Tools, Offers: now.Offers}
		}
		next.System, next.About = system.Text, about+e.cfg.Count(text)
		o.in.Found.Rollout.Inject, o.text = false, ""
		changed = changed || next.System != now.System
	}
	if !changed {
		return o, nil
	}
	if next.About == 0 {
		next.About = now.About
	}
	next.Name, next.Text, next.Tokens = string(o.delivery), now.Text, e.cfg.Count(next.System)+prompt.ToolTokens(e.tools, next.Tools)
	o.prefixes = append(o.prefixes, next)
	o.in.Live = deliver.LiveFor(append(slices.Clip(o.history.live), next), t.takes(p, model.Inline), t.takes(p, model.Search)) // its tools need no text
	if !first {
		t.out.notice("prefix", "what stands before the messages is another one: toolDelivery is "+string(o.delivery))
	}
	return o, nil
}

// perTurnPrefix returns the system prompt with what was found after AGENTS.md, as
// the seeds have it. It costs the cache of everything.
func (e *Engine) perTurnPrefix(t turn, o opening, layers []prompt.Layer) (text string, system prompt.System, err error) {
	text = o.text
	if files, in := prompt.Inject(nil, o.found); len(in.Injected) > 0 {
		text = files[0].Text
	}
	system, err = prompt.Assemble(t.terms.System, e.cfg.Count, append(slices.Clip(layers), prompt.Layer{Name: prompt.Caps, Text: text}))
	return text, system, err
}

// addInput returns what was found, for delivery.
func (e *Engine) addInput(ctx context.Context, t turn, o opening) deliver.AddInput {
	found, h := o.found, o.history
	// read_result is one of the tools that every prefix has under a reserved name.
	isDeclared := func(p door.Piece) bool {
		return p.ID == capability.MakeID(capability.KindTool, toolRead) && declared(h.prefix, toolRead)
	}
	found.Fulls = slices.DeleteFunc(slices.Clone(found.Fulls), isDeclared)
	found.Briefs = slices.DeleteFunc(slices.Clone(found.Briefs), isDeclared)
	var ids []capability.ID
	for _, list := range [][]door.Piece{found.Fulls, found.Briefs} {
		for _, p := range list {
			if !slices.Contains(ids, p.ID) {
				ids = append(ids, p.ID)
			}
		}
	}
	in := deliver.AddInput{Delivery: o.delivery, Found: found, Offers: e.offers(t).Found(ctx, ids, h.known), Live: h.known, NearlyFull: t.nearlyFull(h), Count: e.cfg.Count}
	in.News, in.NewsMarks = e.news(t, h, o.delivery, found)
	if o.delivery == model.PerTurn {
		in.Core, in.Last = e.offers(t).Core(ctx, h.known), ownTools(e.cfg.Door, t.view, t.rules)
	}
	return in
}

// declared reports whether a tool is one of a prefix.
func declared(prefix session.Entry, name string) bool {
	return slices.ContainsFunc(prefix.Tools, func(x llm.Tool) bool { return x.Name == name })
}

// plan chooses how the tools of the session are delivered.
func (e *Engine) plan(ctx context.Context, t turn, p progress, h history) deliver.Plan {
	in := deliver.PlanInput{
		Want: t.wanted(), Row: t.model.Row, Core: e.offers(t).Core(ctx, h.known), Last: ownTools(e.cfg.Door, t.view, t.rules),
		Refused: p.refused, Count: e.tools,
	}
	in.All, in.List = e.offers(t).All(ctx, in.Core)
	return deliver.Begin(in)
}

// layers returns the layers of the system prompt, which are those of the session
// when it begins, and how many tokens of them are about capabilities.
func (e *Engine) layers(ctx context.Context, t turn, o opening, first bool) (list []prompt.Layer, about int, err error) {
	if e.cfg.Layers == nil {
		return nil, 0, nil
	}
	in := LayerInput{
		Head: t.log.head(), Principal: t.in.Principal, Surface: t.in.Surface, View: t.view, Intents: t.rules,
		Delivery: o.plan.Delivery, Document: o.found.Document, Map: o.found.Map,
	}
	others := o.plan.List
	if !first {
		in.Delivery = model.DeliveryMode(o.history.prefix.Name)
		if in.Delivery == model.Whole {
			_, others, _ = e.offers(t).Everything()
		}
	}
	if in.Delivery == model.Whole {
		in.Map = others.Text
	}
	list, notices, err := e.cfg.Layers(ctx, in)
	for _, n := range notices {
		if first {
			t.out.emit(n)
		}
	}
	return list, e.cfg.Count(in.Document) + e.cfg.Count(in.Map), err
}

// firstPrefix returns what stands before all messages of the session, for good.
func (e *Engine) firstPrefix(t turn, o opening, layers []prompt.Layer, about int) (session.Entry, error) {
	system, err := prompt.Assemble(t.terms.System, e.cfg.Count, layers)
	if err != nil {
		return session.Entry{}, err
	}
	for _, d := range system.Dropped {
		t.out.notice("dropped", fmt.Sprintf("the layer %s is not in the prompt: %s (%d tokens)", d.Name, d.Reason, d.Tokens))
	}
	tokens := system.Tokens + prompt.ToolTokens(e.tools, o.plan.Tools)
	return session.Entry{
		Kind: session.Prefix, System: system.Text, About: about, Tools: o.plan.Tools, Offers: o.plan.Offers, Tokens: tokens,
		Shown: deliver.Listed(o.plan.List), Name: string(o.plan.Delivery), Text: hashOf(o.found.Map),
	}, nil
}

// filtered lets the filters leave out parts of the context, after what was found
// was put into it. It returns the layers and what was found as they left them;
// text replaces what was found if they changed it.
func (e *Engine) filtered(ctx context.Context, t turn, layers []prompt.Layer, found door.Found) (left []prompt.Layer, after door.Found, text string) {
	files, in := prompt.Inject(prompt.Files(layers), found)
	at := func(files []plugin.File) int {
		return slices.IndexFunc(files, func(f plugin.File) bool { return f.Name == prompt.CapabilitiesFile })
	}
	before := ""
	if i := at(files); i >= 0 {
		before = files[i].Text
	}
	for _, f := range e.cfg.Filters {
		out, err := f.FilterContext(ctx, slices.Clone(files))
		if err != nil {
			// What it would have left out is not known, so nothing that it may
			// leave out goes in.
			t.out.degraded("the plugin " + f.Name() + " could not filter the context, so only what must be is in it: " + err.Error())
			out = nil
		}
		files = out
	}
	now := ""
	if i := at(files); i >= 0 {
		now = files[i].Text
		files = slices.Delete(slices.Clone(files), i, i+1)
	}
	if len(in.Injected) > 0 && now != before {
		found.Rollout.Inject, found.Rollout.Reason = false, "a plugin changed "+prompt.CapabilitiesFile
		text = now
	}
	return prompt.Layers(files, layers), found, text
}
