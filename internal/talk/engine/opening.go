package engine

import (
	"context"
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
)

// open writes down what the person said and what Ken puts beside it, in one step.
// If the turn goes on, that was done before.
func (e *Engine) open(ctx context.Context, t turn, p progress) (progress, error) {
	h := t.log.history()
	if t.in.Continue && h.prefix.Seq != 0 {
		p.delivery = deliver.Lower(p.refused, t.model.Row, model.DeliveryMode(h.prefix.Name))
		return p, nil
	}
	user, err := e.message(ctx, t)
	if err != nil {
		return p, err
	}
	found, pending, err := e.find(ctx, t) // 3
	if err != nil {
		return p, err
	}
	rest := e.closeOpenCalls(ctx, t, userWentOn)
	o, err := e.prefix(ctx, t, p, found) // 4
	if err != nil {
		return p, err
	}
	added := e.addedContext(ctx, t, o) // 5
	entries := slices.Concat(rest, o.prefixes, []session.Entry{user})
	if added.Kind != "" {
		entries = append(entries, added)
	}
	t.log.announce(t.setup)
	if err := t.log.append(entries...); err != nil {
		return p, err
	}
	t.log.opened = true
	p.delivery, p.found = o.delivery, o.found
	now := t.log.history()
	if p.delivery == model.PerTurn { // the system text is sent for every message, changed or not
		entries = append([]session.Entry{now.prefix}, entries...)
	}
	sent := deliver.Sent(o.found, entries, h.prefix.Tools, e.tools)
	for _, text := range pending.Sent(o.found, sent, now.prefix.About) {
		t.out.degraded(text)
	}
	t.out.emit(selected(p.delivery, o.found, sent, added, o.plan.Why))
	return p, nil
}

// addedContext returns what stands beside the message. It has no kind if there
// is nothing.
func (e *Engine) addedContext(ctx context.Context, t turn, o opening) session.Entry {
	added, ok := deliver.Add(o.in)
	add := func(block llm.Block, marks map[capability.ID]string) {
		added.Kind, ok = session.Added, true
		added.Blocks = append(added.Blocks, block)
		if added.Shown == nil {
			added.Shown = map[capability.ID]string{}
		}
		maps.Copy(added.Shown, marks)
	}
	if o.text != "" {
		add(llm.Block{Text: o.text}, nil)
	}
	if text, list := e.offers(t).Appeared(ctx, o.delivery, o.history.known); text != "" {
		marks := map[capability.ID]string{}
		for _, tool := range list {
			marks[tool.ID] = "own"
			added.Offers = append(added.Offers, session.Offer{Tool: tool.Tool.Name, ID: tool.ID})
		}
		add(llm.Block{Text: text}, marks)
	}
	if h := o.history; h.prefix.Seq != 0 { // the turn that begins a session gives the tools as they are
		if text, marks := e.offers(t).Changed(ctx, o.delivery, h.live, h.known); text != "" {
			add(llm.Block{Text: text}, marks)
		}
	}
	if text := e.environment(t, o.history); text != "" {
		add(llm.Block{Text: text}, map[capability.ID]string{deliver.EnvironmentID: hashOf(text)})
		last := len(added.Blocks) - 1
		added.Blocks = slices.Insert(added.Blocks[:last:last], 0, added.Blocks[last]) // it stands before the others
	}
	if !ok {
		return session.Entry{}
	}
	added.Tokens = e.tokens(added.Blocks)
	if o.in.News != "" {
		added.Text = hashOf(o.found.Map)
	}
	return added
}

func (e *Engine) tokens(blocks []llm.Block) int { return prompt.Tokens(e.cfg.Count, blocks) }

// environment returns where the model is, if it does not know that yet.
func (e *Engine) environment(t turn, h history) string {
	if e.cfg.Environment == nil {
		return ""
	}
	text := e.cfg.Environment(t.in)
	if text == "" || h.known.Shown[deliver.EnvironmentID] == hashOf(text) {
		return ""
	}
	return text
}

// selected returns the event that tells what was found and what of it was sent.
func selected(delivery model.DeliveryMode, found door.Found, sent []door.Sent, added session.Entry, why string) event.Selected {
	s := event.Selected{Found: found, Delivery: delivery, Why: why, Tokens: added.Tokens, Added: make([]capability.ID, 0, len(added.Shown))}
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
		s.Why = fmt.Sprintf("%d found, %d new to the model, by %s", len(found.Briefs), len(s.Added), delivery)
	}
	return s
}

// message returns what the person said. A text that is too large for a message is
// kept where tools can read it.
func (e *Engine) message(ctx context.Context, t turn) (session.Entry, error) {
	user := session.Entry{Kind: session.User}
	text := t.in.Text
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // what is no text is shown as such
	}
	if limit := t.terms.Limits.MessageBytes; over(len(text), limit) {
		if e.cfg.Keep == nil {
			return user, &capability.Error{
				Kind: capability.Invalid, Op: "take message", Target: t.in.Session, Rule: "chat.messageBytes",
				Err: fmt.Errorf("message has %d bytes, the limit is %d", len(text), limit), Fix: "put it into a file",
			}
		}
		excerpt, err := e.cfg.Keep(ctx, Kept{Principal: t.in.Principal, Session: t.in.Session, Name: "message", Text: []byte(text), Limit: limit / 10})
		if err != nil {
			return user, err
		}
		t.out.notice("limit", fmt.Sprintf("the message has %d bytes; the model sees an excerpt and can read the rest", len(text)))
		text = excerpt
	}
	if text != "" {
		user.Blocks = append(user.Blocks, llm.Block{Text: text})
	}
	for _, i := range t.in.Images {
		if !t.model.Row.Images {
			t.out.notice("degraded", "the model takes no pictures; it is told that there was one")
			user.Blocks = append(user.Blocks, llm.Block{Text: fmt.Sprintf("[a picture, %s, that you cannot see]", i.MIME)})
			continue
		}
		user.Blocks = append(user.Blocks, llm.Block{Image: &i})
	}
	return user, nil
}

// news returns the text that tells the model that the catalog is not what its map
// says any more. The prefix stays as it is.
func (e *Engine) news(t turn, h history, delivery model.DeliveryMode, found door.Found) (text string, marks map[capability.ID]string) {
	told := h.prefix.Text
	for i := range h.live {
		if e := &h.live[i]; e.Kind == session.Added && e.Text != "" {
			told = e.Text
		}
	}
	if found.Map == "" || told == "" || told == hashOf(found.Map) {
		return "", nil
	}
	if delivery == model.Whole {
		return e.newsOfList(t, h)
	}
	return "The capabilities have changed since this conversation began. What there is now:\n" + found.Map, nil
}

// newsOfList describes what was added to or removed from a complete list.
func (e *Engine) newsOfList(t turn, h history) (text string, marks map[capability.ID]string) {
	entries, others, ok := e.offers(t).Everything()
	if !ok {
		return "The capabilities have changed since this conversation began. There are now more than can be listed.", nil
	}
	callable, there, marks := map[capability.ID]bool{}, map[capability.ID]bool{}, deliver.Listed(others)
	for _, o := range h.known.Tools {
		callable[o.ID] = true
	}
	var lines []string
	for _, e := range entries {
		there[e.ID] = true
		line := untrusted.Line("- "+string(e.ID)+": "+e.Description, longestNews)
		if mark := deliver.ListMark(line); !callable[e.ID] && h.known.Shown[e.ID] != mark {
			lines, marks[e.ID] = append(lines, line), mark
		}
	}
	for id, line := range others.Marks {
		there[id] = true
		if h.known.Shown[id] == marks[id] {
			delete(marks, id)
		} else if strings.HasPrefix(line, "- ") {
			lines = append(lines, line)
		} else {
			lines = append(lines, "- "+untrusted.Line(string(id), 120)+": "+line)
		}
	}
	for id := range h.prefix.Shown {
		if gone := deliver.ListMark("gone"); !there[id] && h.known.Shown[id] != gone {
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
