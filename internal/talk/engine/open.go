package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
	"ken/plugin"
)

// open writes down what the person said and what Ken puts beside it, in one
// step.
func (t *turn) open() error {
	if t.in.Continue && t.prefix.Seq != 0 {
		t.rung = deliver.Lower(t.refused, t.model.Row, model.Rung(t.prefix.Name))
		return nil
	}
	user, err := t.message()
	if err != nil {
		return err
	}
	var o opening
	var pending door.Pending
	if o.found, pending, err = t.find(); err != nil {
		return err
	}
	before := t.prefix.Tools
	o.entries = t.answerRest(userWentOn)
	if err := t.before(&o); err != nil {
		return err
	}
	o.entries = append(o.entries, user)
	added := t.beside(&o)
	t.announce()
	if err := t.append(o.entries...); err != nil {
		return err
	}
	t.opened, t.selection = true, o.found
	entries := o.entries
	if t.rung == model.PerTurn { // the system text is sent for every message, changed or not
		entries = append([]session.Entry{t.prefix}, entries...)
	}
	sent := deliver.Sent(o.found, entries, before, t.e.tools)
	for _, text := range pending.Sent(o.found, sent, t.prefix.About) {
		t.notice("degraded", text)
	}
	t.emit(t.selected(o.found, sent, added, o.plan.Why))
	return nil
}

// An opening is what a turn begins with.
type opening struct {
	found   door.Found
	layers  []prompt.Layer
	about   int          // tokens of the layers about capabilities
	text    string       // what plugins made of what was found, where they changed it
	plan    deliver.Plan // of a session that begins
	in      deliver.AddInput
	entries []session.Entry
}

// before makes what stands before all messages: at the beginning of the
// session, and later only where toolDelivery says so.
func (t *turn) before(o *opening) error {
	first := t.prefix.Seq == 0
	literal := t.prefix.Name == string(model.PerTurn)
	if first {
		o.plan = t.plan()
		literal = o.plan.Rung == model.PerTurn
	}
	if first || literal || len(t.e.cfg.Filters) > 0 {
		var err error
		if o.layers, err = t.layers(o, first); err != nil {
			return err
		}
	}
	if len(t.e.cfg.Filters) > 0 {
		o.layers, o.found, o.text = t.filtered(o.layers, o.found)
	}
	if first {
		begun, err := t.begun(o)
		if err != nil {
			return err
		}
		o.entries = append(o.entries, begun)
		t.prefix, t.known = begun, deliver.LiveOf(append(slices.Clip(t.live), begun))
	}
	t.rung = deliver.Lower(t.refused, t.model.Row, model.Rung(t.prefix.Name))
	o.in = t.adding(o.found)
	p, changed := deliver.Prefix(o.in)
	if literal {
		var err error
		if p, changed, err = t.literally(o, p, changed); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	if p.About == 0 {
		p.About = t.prefix.About
	}
	p.Name, p.Text, p.Tokens = string(t.rung), t.prefix.Text, t.e.cfg.Count(p.System)+prompt.ToolTokens(t.e.tools, p.Tools)
	o.entries = append(o.entries, p)
	o.in.Live = deliver.LiveFor(append(slices.Clip(t.live), p), t.takes(model.Inline), t.takes(model.Search)) // its tools need no text
	if !first {
		t.notice("prefix", "what stands before the messages is another one: toolDelivery is "+string(t.rung))
	}
	return nil
}

// literally puts what was found where the seeds have it: into the system prompt,
// after AGENTS.md. It costs the cache of everything.
func (t *turn) literally(o *opening, p session.Entry, changed bool) (session.Entry, bool, error) {
	text := o.text
	if files, in := prompt.Inject(nil, o.found); len(in.Injected) > 0 {
		text = files[0].Text
	}
	system, err := prompt.Assemble(t.terms.System, t.e.cfg.Count, append(slices.Clip(o.layers), prompt.Layer{Name: prompt.Caps, Text: text}))
	if err != nil {
		return p, false, err
	}
	if !changed {
		p = session.Entry{Kind: session.Prefix, Tools: t.prefix.Tools, Offers: t.prefix.Offers}
	}
	p.System, p.About = system.Text, o.about+t.e.cfg.Count(text)
	o.in.Found.Rollout.Inject, o.text = false, ""
	return p, changed || p.System != t.prefix.System, nil
}

// beside adds what stands beside the message.
func (t *turn) beside(o *opening) session.Entry {
	added, ok := deliver.Add(o.in)
	if o.text != "" {
		added.Kind, ok = session.Added, true
		added.Blocks = append(added.Blocks, llm.Block{Text: o.text})
	}
	if text, list := t.offers().Appeared(t.ctx, t.rung, t.known); text != "" {
		added.Kind, ok = session.Added, true
		added.Blocks = append(added.Blocks, llm.Block{Text: text})
		if added.Shown == nil {
			added.Shown = map[capability.ID]string{}
		}
		for _, o := range list {
			added.Shown[o.ID] = "own"
			added.Offers = append(added.Offers, session.Offer{Tool: o.Tool.Name, ID: o.ID})
		}
	}
	if text, marks := t.changedTools(); text != "" {
		added.Kind, ok = session.Added, true
		added.Blocks = append(added.Blocks, llm.Block{Text: text})
		if added.Shown == nil {
			added.Shown = map[capability.ID]string{}
		}
		maps.Copy(added.Shown, marks)
	}
	if text := t.environment(); text != "" {
		added.Kind, ok = session.Added, true
		added.Blocks = append([]llm.Block{{Text: text}}, added.Blocks...)
		if added.Shown == nil {
			added.Shown = map[capability.ID]string{}
		}
		added.Shown[deliver.EnvironmentID] = hashOf(text)
	}
	if !ok {
		return session.Entry{}
	}
	added.Tokens = t.tokens(added.Blocks)
	if o.in.News != "" {
		added.Text = hashOf(o.found.Map)
	}
	o.entries = append(o.entries, added)
	return added
}

// changedTools returns the text about tools that changed since the model was
// given them, and its marks. In the turn that begins a session there are none.
func (t *turn) changedTools() (text string, marks map[capability.ID]string) {
	if t.prefix.Seq == 0 {
		return "", nil
	}
	return t.offers().Changed(t.ctx, t.rung, t.live, t.known)
}

// environment is where the model is, where it does not know that yet.
func (t *turn) environment() string {
	if t.e.cfg.Environment == nil {
		return ""
	}
	text := t.e.cfg.Environment(t.in)
	if text == "" || t.known.Shown[deliver.EnvironmentID] == hashOf(text) {
		return ""
	}
	return text
}

// announce says in the session's head, with what is written next, that a turn
// is on its way.
func (t *turn) announce() {
	t.log.SetHead(func(h *session.Head) {
		h.Open, h.Mode, h.Agent = true, t.in.Mode, t.in.Agent
		if h.Title == "" {
			h.Title = untrusted.Line(cmp.Or(t.title, t.in.Text), 80)
		}
	})
}

func (t *turn) selected(found door.Found, sent []door.Sent, added session.Entry, why string) event.Selected {
	s := event.Selected{Found: found, Rung: t.rung, Why: why, Tokens: added.Tokens, Added: make([]capability.ID, 0, len(added.Shown))}
	for id := range added.Shown {
		if tool, ok := deliver.Defines(id); ok {
			s.Added = append(s.Added, tool)
		} else if !deliver.IsMark(id) {
			s.Added = append(s.Added, id)
		}
	}
	for _, o := range added.Offers {
		s.Added = append(s.Added, o.ID)
	}
	system := 0
	for _, x := range sent {
		if !slices.Contains(s.Added, x.ID) { // it comes before the messages
			s.Added = append(s.Added, x.ID)
			system += x.Tokens
		}
	}
	s.Tokens += system
	slices.Sort(s.Added)
	s.Added = slices.Compact(s.Added)
	if s.Why == "" {
		s.Why = fmt.Sprintf("%d found, %d new to the model, by %s", len(found.Briefs), len(s.Added), t.rung)
	}
	return s
}

// adding is what the turn found, for delivery.
func (t *turn) adding(found door.Found) deliver.AddInput {
	// read_result is one of the tools that every prefix has under a reserved name.
	declared := func(p door.Piece) bool {
		return p.ID == capability.MakeID(capability.KindTool, toolRead) && t.declared(toolRead)
	}
	found.Fulls = slices.DeleteFunc(slices.Clone(found.Fulls), declared)
	found.Briefs = slices.DeleteFunc(slices.Clone(found.Briefs), declared)
	var ids []capability.ID
	for _, list := range [][]door.Piece{found.Fulls, found.Briefs} {
		for _, p := range list {
			if !slices.Contains(ids, p.ID) {
				ids = append(ids, p.ID)
			}
		}
	}
	in := deliver.AddInput{Rung: t.rung, Found: found, Offers: t.offers().Found(t.ctx, ids, t.known), Live: t.known, Pressed: t.pressed(), Count: t.e.cfg.Count}
	in.News, in.NewsMarks = t.news(found)
	if t.rung == model.PerTurn {
		in.Core, in.Last = t.offers().Core(t.ctx, t.known), ownTools(t.e.cfg.Door, t.view, t.intents.rules)
	}
	return in
}

// message is what the person said. What is too large for a message is kept
// where tools can read it.
func (t *turn) message() (session.Entry, error) {
	e := session.Entry{Kind: session.User}
	text := t.in.Text
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // what is no text is shown as such
	}
	if limit := t.terms.Limits.MessageBytes; over(len(text), limit) {
		if t.e.cfg.Keep == nil {
			return e, &capability.Error{
				Kind: capability.Invalid, Op: "take message", Target: t.in.Session, Rule: "chat.messageBytes",
				Err: fmt.Errorf("it has %d bytes, the limit is %d", len(text), limit), Fix: "put it into a file",
			}
		}
		excerpt, err := t.e.cfg.Keep(t.ctx, Kept{Principal: t.in.Principal, Session: t.in.Session, Name: "message", Text: []byte(text), Limit: limit / 10})
		if err != nil {
			return e, err
		}
		t.notice("limit", fmt.Sprintf("the message has %d bytes; the model sees an excerpt and can read the rest", len(text)))
		text = excerpt
	}
	if text != "" {
		e.Blocks = append(e.Blocks, llm.Block{Text: text})
	}
	for _, i := range t.in.Images {
		if !t.model.Row.Images {
			t.notice("degraded", "the model takes no pictures; it is told that there was one")
			e.Blocks = append(e.Blocks, llm.Block{Text: fmt.Sprintf("[a picture, %s, that you cannot see]", i.MIME)})
			continue
		}
		e.Blocks = append(e.Blocks, llm.Block{Image: &i})
	}
	return e, nil
}

// plan chooses how the tools of the session are delivered.
func (t *turn) plan() deliver.Plan {
	in := deliver.PlanInput{
		Want: t.wanted(), Row: t.model.Row, Core: t.offers().Core(t.ctx, t.known), Last: ownTools(t.e.cfg.Door, t.view, t.intents.rules),
		Refused: t.refused, Count: t.e.tools,
	}
	in.All, in.List = t.offers().All(t.ctx, in.Core)
	return deliver.Begin(in)
}

// layers returns the layers of the system prompt, which are those of the session
// when it begins.
func (t *turn) layers(o *opening, first bool) ([]prompt.Layer, error) {
	if t.e.cfg.Layers == nil {
		return nil, nil
	}
	in := LayerInput{
		Head: t.head, Principal: t.in.Principal, Surface: t.in.Surface, View: t.view, Intents: t.intents.rules,
		Rung: o.plan.Rung, Document: o.found.Document, Map: o.found.Map,
	}
	others := o.plan.List
	if !first {
		in.Rung = model.Rung(t.prefix.Name)
		if in.Rung == model.Whole {
			_, others, _ = t.offers().Everything()
		}
	}
	if in.Rung == model.Whole {
		in.Map = others.Text
	}
	o.about = t.e.cfg.Count(in.Document) + t.e.cfg.Count(in.Map)
	list, notices, err := t.e.cfg.Layers(t.ctx, in)
	for _, n := range notices {
		if first {
			t.emit(n)
		}
	}
	return list, err
}

// declared reports whether a tool is one of the prefix.
func (t *turn) declared(name string) bool {
	return slices.ContainsFunc(t.prefix.Tools, func(x llm.Tool) bool { return x.Name == name })
}

// begun makes what stands before all messages of the session, for good.
func (t *turn) begun(o *opening) (session.Entry, error) {
	system, err := prompt.Assemble(t.terms.System, t.e.cfg.Count, o.layers)
	if err != nil {
		return session.Entry{}, err
	}
	for _, d := range system.Dropped {
		t.notice("dropped", fmt.Sprintf("the layer %s is not in the prompt: %s (%d tokens)", d.Name, d.Reason, d.Tokens))
	}
	tokens := system.Tokens + prompt.ToolTokens(t.e.tools, o.plan.Tools)
	return session.Entry{
		Kind: session.Prefix, System: system.Text, About: o.about, Tools: o.plan.Tools, Offers: o.plan.Offers, Tokens: tokens,
		Shown: deliver.Listed(o.plan.List), Name: string(o.plan.Rung), Text: hashOf(o.found.Map),
	}, nil
}

// wanted is the rung that was asked for.
func (t *turn) wanted() model.Rung {
	if t.in.Delivery != "" {
		return t.in.Delivery
	}
	return t.terms.Delivery
}

// filtered lets those who may leave something of the context out do so, after
// what was found was put into it. It gives the layers and what was found as
// they left them; text replaces what was found where they changed it.
func (t *turn) filtered(layers []prompt.Layer, found door.Found) (left []prompt.Layer, after door.Found, text string) {
	files, in := prompt.Inject(prompt.Files(layers), found)
	at := func(files []plugin.File) int {
		return slices.IndexFunc(files, func(f plugin.File) bool { return f.Name == prompt.CapabilitiesFile })
	}
	before := ""
	if i := at(files); i >= 0 {
		before = files[i].Text
	}
	for _, f := range t.e.cfg.Filters {
		out, err := f.FilterContext(t.ctx, slices.Clone(files))
		if err != nil {
			// What it would have left out is not known, so nothing that it may
			// leave out goes in.
			t.notice("degraded", "the plugin "+f.Name()+" could not filter the context, so only what must be is in it: "+err.Error())
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

// news tells the model that the catalog is not what its map says any more. The
// prefix stays as it is.
func (t *turn) news(found door.Found) (text string, marks map[capability.ID]string) {
	told := t.prefix.Text
	for i := range t.live {
		if e := &t.live[i]; e.Kind == session.Added && e.Text != "" {
			told = e.Text
		}
	}
	if found.Map == "" || told == "" || told == hashOf(found.Map) {
		return "", nil
	}
	if t.rung == model.Whole {
		return t.newsOfList()
	}
	return "The capabilities have changed since this conversation began. What there is now:\n" + found.Map, nil
}

// newsOfList describes what was added to or removed from a complete list.
func (t *turn) newsOfList() (text string, marks map[capability.ID]string) {
	entries, others, ok := t.offers().Everything()
	if !ok {
		return "The capabilities have changed since this conversation began. There are now more than can be listed.", nil
	}
	callable, there, marks := map[capability.ID]bool{}, map[capability.ID]bool{}, deliver.Listed(others)
	for _, o := range t.known.Tools {
		callable[o.ID] = true
	}
	var lines []string
	for _, e := range entries {
		there[e.ID] = true
		line := untrusted.Line("- "+string(e.ID)+": "+e.Description, longestNews)
		if mark := deliver.ListMark(line); !callable[e.ID] && t.known.Shown[e.ID] != mark {
			lines, marks[e.ID] = append(lines, line), mark
		}
	}
	for id, line := range others.Marks {
		there[id] = true
		if t.known.Shown[id] == marks[id] {
			delete(marks, id)
		} else if strings.HasPrefix(line, "- ") {
			lines = append(lines, line)
		} else {
			lines = append(lines, "- "+untrusted.Line(string(id), 120)+": "+line)
		}
	}
	for id := range t.prefix.Shown {
		if gone := deliver.ListMark("gone"); !there[id] && t.known.Shown[id] != gone {
			lines, marks[id] = append(lines, "- "+untrusted.Line(string(id), 120)+": no longer there"), gone
		}
	}
	if len(lines) == 0 {
		return "", nil
	}
	slices.Sort(lines)
	if more := len(lines) - mostNews; more > 0 {
		lines = append(lines[:mostNews], fmt.Sprintf("(+%d more)", more))
	}
	return "The capabilities have changed since this conversation began; describe_capability tells more of each:\n" + strings.Join(lines, "\n"), marks
}

const (
	longestNews = 200 // maximum characters of a line
	mostNews    = 40  // lines
)

func hashOf(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
