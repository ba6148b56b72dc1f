package chat

import (
	"context"
	"strconv"
	"strings"
	"time"

	"ken/internal/talk/event"
)

// A choice is a key that answers a question.
type choice struct {
	key    string
	words  string
	answer Answer
}

// choices returns the keys of a question; none where it wants words.
func choices(a event.Asked) []choice {
	yes, no := choice{"y", "yes", Answer{Yes: true}}, choice{"n", "no", Answer{}}
	switch a.What {
	case event.Ask:
		return nil
	case event.Inquiry:
		f := formOf(a)
		if len(f.fields) > 0 {
			return nil
		}
		yes.answer, no.answer = f.answer(true), f.answer(false)
	case event.Consent:
		yes = choice{"y", "this once", Answer{Yes: true, Scope: Once}}
		no.answer.Scope = Once
		never := choice{"N", "no, and do not ask again in this session", Answer{Scope: Session}}
		return append(append([]choice{yes}, wider(a)...), no, never)
	}
	return []choice{yes, no}
}

// wider returns the keys that allow more than one call, the narrowest first.
func wider(a event.Asked) []choice {
	if !a.Wide {
		return nil
	}
	var out []choice
	for _, o := range a.Offers {
		key := map[string]string{"always call": "a", "always prefix": "p", "session tool": "s"}[o.Scope+" "+o.Covers]
		if key == "" {
			continue
		}
		words := o.Text
		if len(o.Examples) > 0 {
			words += " (as " + strings.Join(o.Examples, " · ") + ")"
		}
		out = append(out, choice{key, safeLine(words), Answer{Yes: true, Scope: Scope(o.Scope), Covers: o.Covers}})
	}
	if out == nil { // the question does not list what may be granted
		out = []choice{{"s", "with any arguments, for this session", Answer{Yes: true, Scope: Session}}}
	}
	return out
}

// wording is the question itself.
func wording(a event.Asked) string {
	switch a.What {
	case event.Consent:
		return "Allow it?"
	case event.Again:
		return "Run it again?"
	case event.GoOn:
		return "Go on?"
	case event.Escalate:
		return "Allow the intent?"
	}
	if len(choices(a)) > 0 { // what it asks stands above
		return "Yes?"
	}
	return "Your answer (Esc gives none):"
}

// menuOf is the question with its keys.
func menuOf(a event.Asked) string {
	var words []string
	for _, ch := range choices(a) {
		words = append(words, "["+ch.key+"] "+ch.words)
	}
	return strings.TrimSpace(wording(a) + " " + strings.Join(words, "; "))
}

// firstAsk begins with the first question. What it is about is shown only now,
// so that it stands right above the answer.
func (c *chat) firstAsk() {
	c.questions.asked = time.Now()
	c.questions.reply, c.questions.form = editor{}, nil
	if len(c.questions.asks) == 0 {
		return
	}
	if c.questions.asks[0].What == event.Inquiry {
		c.questions.form = formOf(c.questions.asks[0])
	}
	c.final = append(c.final, c.view.event(c.questions.asks[0])...)
}

// ready reports whether an answer counts. What was typed before the question
// could be read is no answer to it: it must have been shown for a moment, in
// which no key was pressed.
func (c *chat) ready() bool { return c.seen() && time.Since(c.lastKey) >= calm }

// seen reports whether the question has been there for a moment, which is
// enough for one that wants words.
func (c *chat) seen() bool { return time.Since(c.questions.asked) >= calm }

// forget takes away a question that has its answer.
func (c *chat) forget(id string) {
	for i, a := range c.questions.asks {
		if a.ID == id {
			c.questions.asks = append(c.questions.asks[:i:i], c.questions.asks[i+1:]...)
			if i == 0 {
				c.firstAsk()
			}
			return
		}
	}
}

// answerKey takes a key for the question.
func (c *chat) answerKey(ctx context.Context, k key) {
	a := c.questions.asks[0]
	list := choices(a)
	if list == nil {
		c.wordKey(ctx, a, k)
		return
	}
	if !c.ready() || k.name == "paste" {
		if k.name == "" || k.name == "paste" { // the draft goes on
			c.editor.key(k)
		}
		return
	}
	pressed := k.text
	if k.name == "enter" || k.name == "escape" {
		pressed = "n"
	}
	for _, ch := range list {
		if ch.key == pressed {
			c.answer(ctx, ch.answer, ch.words)
			return
		}
	}
	if pressed != "" {
		c.hint = strconv.Quote(safeLine(pressed)) + " is none of them"
	}
}

// wordKey takes a key for a question that wants words. The number of a choice
// stands for it.
func (c *chat) wordKey(ctx context.Context, a event.Asked, k key) {
	switch k.name {
	case "escape":
		none := Answer{}
		if c.questions.form != nil {
			none = c.questions.form.answer(false)
		}
		c.answer(ctx, none, "no answer")
	case "enter":
		if c.questions.reply.continued() {
			return
		}
		text := strings.TrimSpace(c.questions.reply.text)
		if c.questions.form != nil {
			c.fill(ctx, text)
			return
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(a.Choice) {
			text = a.Choice[n-1]
		}
		if text != "" && c.seen() {
			c.answer(ctx, Answer{Yes: true, Text: text}, text)
		}
	case "up", "down":
		c.questions.reply.vertical(map[string]int{"up": -1, "down": 1}[k.name])
	default:
		c.questions.reply.key(k)
	}
}

// fill sets the next field of a form, and sends the form after the last.
func (c *chat) fill(ctx context.Context, text string) {
	if !c.seen() {
		return
	}
	prompt := c.questions.form.prompt()
	if problem := c.questions.form.take(text); problem != "" {
		c.hint = problem
		return
	}
	c.questions.reply.take()
	if c.questions.form.over() {
		c.answer(ctx, c.questions.form.answer(true), text)
		return
	}
	c.final = c.view.aside(c.final, dim, safeLine(prompt+" "+text))
}

// answer sends the answer to the first open question and shows it.
func (c *chat) answer(ctx context.Context, given Answer, words string) {
	a := c.questions.asks[0]
	asking := wording(a)
	if c.questions.form != nil && len(c.questions.form.fields) > 0 && given.Yes {
		asking = c.questions.form.fields[len(c.questions.form.fields)-1].name + ":"
	}
	style := red
	if given.Yes {
		style = green
	}
	c.final = c.view.aside(c.final, style, safeLine(asking+" "+words))
	c.questions.mine[a.ID] = true
	c.questions.asks = c.questions.asks[1:]
	c.firstAsk()
	c.questions.replying++
	c.workers.Go(func() {
		err := c.talk.Reply(ctx, a, given)
		select {
		case c.replies <- replied{a, err}:
		case <-c.gone:
		}
	})
}

// replied says where an answer was not taken, and asks again.
func (c *chat) replied(ctx context.Context, r replied) {
	c.questions.replying--
	if r.err != nil {
		c.final = c.view.aside(c.final, red, safeLine("✗ "+r.err.Error()))
		if c.job != nil && c.job.ctrlC == 0 || c.questions.waiting {
			delete(c.questions.mine, r.asked.ID)
			c.questions.asks = append([]event.Asked{r.asked}, c.questions.asks...)
			c.firstAsk()
		}
	}
	c.goOn(ctx)
}
