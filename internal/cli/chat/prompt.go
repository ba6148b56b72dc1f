package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/internal/coldsort"
	"ken/internal/talk/slash"
)

// A menu is a choice among completions: each press of Tab puts the next into
// the line.
type menu struct {
	base  editor // the line before
	items []slash.Completion
	at    int
}

// A finding is a search in the history.
type finding struct {
	text string
	at   int // the entry that was found; -1: none
}

// keys takes what was pressed.
func (c *chat) keys(ctx context.Context, keys []key) {
	for _, k := range keys {
		if c.exit.quit {
			return
		}
		c.key(ctx, k)
	}
}

func (c *chat) key(ctx context.Context, k key) {
	armed := c.exit.armed
	c.hint, c.exit.armed = "", false
	if k.lost > 0 {
		line := fmt.Sprintf("the paste has more than %d MB; the last %d bytes of it were left out: put it into a file and name that", mostPaste>>20, k.lost)
		c.final = c.view.aside(c.final, red, line)
	}
	switch {
	case k.name == "ctrl-c":
		c.interrupt(armed)
	case k.name == "ctrl-z":
		c.suspend()
	case k.name == "ctrl-l":
		c.screen.clear()
	case k.name == "ctrl-o":
		c.unfold()
	case len(c.questions.asks) > 0:
		c.answerKey(ctx, k)
	case c.find != nil:
		c.findKey(k)
	default:
		c.promptKey(ctx, k)
	}
	c.lastKey = time.Now()
}

// interrupt is Ctrl-C: it ends what runs, else it empties the line, else it
// leaves when pressed twice.
func (c *chat) interrupt(armed bool) {
	switch {
	case c.job != nil:
		c.job.ctrlC++
		c.job.cancel()
		c.questions.asks = nil
		switch c.job.ctrlC {
		case 1:
			c.hint = "ending it"
		case 2:
			c.hint = "it takes a while to end; Ctrl-C once more leaves without waiting"
		default:
			c.exit.quit, c.exit.left = true, true
		}
	case len(c.questions.asks) > 0:
		c.questions.asks, c.questions.waiting = nil, false
		c.hint = "left unanswered; the turn waits"
	case c.find != nil:
		c.find = nil
	case c.editor.text != "":
		c.editor.take()
		c.relist()
	case armed:
		c.exit.quit = true
	default:
		c.exit.armed = true
		c.hint = "Ctrl-C once more leaves, as Ctrl-D does"
	}
}

// promptKey takes a key for the line.
func (c *chat) promptKey(ctx context.Context, k key) {
	e := &c.editor
	chosen := c.menu
	c.menu = nil
	switch {
	case k.name == "enter":
		c.enter(ctx)
	case k.name == "tab":
		c.complete(chosen, 1)
		return
	case k.name == "shift-tab":
		c.complete(chosen, -1)
		return
	case k.name == "escape":
		if chosen != nil {
			*e = chosen.base
		}
		c.list = nil
		return
	case k.name == "up" || k.name == "ctrl-p":
		if !e.vertical(-1) {
			c.recall(-1)
		}
	case k.name == "down" || k.name == "ctrl-n":
		if !e.vertical(1) {
			c.recall(1)
		}
	case k.name == "ctrl-r":
		c.find = &finding{at: -1}
	case k.name == "ctrl-d" && e.text == "":
		if c.exit.quit = c.job == nil; !c.exit.quit {
			c.hint = "Ctrl-C ends what runs"
		}
	default:
		e.key(k)
	}
	c.relist()
}

// enter sends the line.
func (c *chat) enter(ctx context.Context) {
	switch {
	case c.editor.continued() || strings.TrimSpace(c.editor.text) == "":
		return
	case c.job != nil:
		c.hint = "something runs; Ctrl-C ends it"
		return
	}
	text := c.editor.take()
	if err := c.past.add(text); err != nil {
		c.hint = safeLine(err.Error())
	}
	c.say(ctx, message(text))
}

func (c *chat) recall(by int) {
	if text, ok := c.past.move(by, c.editor.text); ok {
		c.editor.set(text)
	}
}

// completions returns what may stand at the cursor, the view's own words too.
func (c *chat) completions() []slash.Completion {
	e := &c.editor
	if !strings.HasPrefix(e.text, "/") {
		return nil
	}
	items := c.talk.Complete(e.text, e.at)
	if head := e.text[:e.at]; !strings.ContainsAny(head, " \n") {
		for _, w := range Words() {
			if w.End = e.at; strings.HasPrefix(w.Text, head) {
				items = append(items, w)
			}
		}
	}
	// What was typed to its end needs no offer, and what does not fit the text
	// is none.
	items = slices.DeleteFunc(items, func(i slash.Completion) bool {
		return i.Start < 0 || i.End < i.Start || i.End > len(e.text) || i.Text == e.text[i.Start:i.End]
	})
	coldsort.Stable(items, func(a, b slash.Completion) int { return strings.Compare(a.Text, b.Text) })
	return slices.CompactFunc(items, func(a, b slash.Completion) bool { return a.Text == b.Text })
}

// relist shows what may stand at the cursor.
func (c *chat) relist() {
	c.list = nil
	for _, i := range c.completions() {
		c.list = append(c.list, offer(i))
	}
}

func offer(i slash.Completion) string {
	return safeLine(fmt.Sprintf("%-18s  %s", i.Text, i.Description))
}

// complete is Tab: the one completion, or what all have in common, or the next
// of them.
func (c *chat) complete(chosen *menu, by int) {
	if chosen != nil {
		chosen.at = (chosen.at + by + len(chosen.items)) % len(chosen.items)
		c.menu = chosen
		c.put(chosen.base, chosen.items[chosen.at], "")
		return
	}
	items := c.completions()
	switch len(items) {
	case 0:
		return
	case 1:
		space := " "
		if strings.HasSuffix(items[0].Text, "=") {
			space = ""
		}
		c.put(c.editor, items[0], space)
		c.relist()
		return
	}
	first := items[0]
	for _, i := range items[1:] {
		for !strings.HasPrefix(i.Text, first.Text) {
			first.Text = first.Text[:len(first.Text)-1]
		}
	}
	first.Text = strings.ToValidUTF8(first.Text, "")
	if len(first.Text) > first.End-first.Start {
		c.put(c.editor, first, "")
		c.relist()
		return
	}
	c.menu = &menu{base: c.editor, items: items}
	if by < 0 {
		c.menu.at = len(items) - 1
	}
	c.put(c.editor, items[c.menu.at], "")
}

// put replaces the text that a completion covers. What it inserts is cleaned and
// put on one line, wherever the completion came from.
func (c *chat) put(base editor, i slash.Completion, space string) {
	text := strings.ReplaceAll(pasted(i.Text), "\n", " ") + space
	c.editor.text = base.text[:i.Start] + text + base.text[i.End:]
	c.editor.at = i.Start + len(text)
}

// findKey takes a key for the search in the history.
func (c *chat) findKey(k key) {
	f := c.find
	switch k.name {
	case "":
		f.text += k.text
		f.at = c.past.search(f.text, len(c.past.entries))
	case "backspace":
		e := editor{text: f.text, at: len(f.text)}
		e.key(k)
		f.text = e.text
		f.at = c.past.search(f.text, len(c.past.entries))
	case "ctrl-r", "up":
		if next := c.past.search(f.text, f.at); next >= 0 {
			f.at = next
		}
	case "escape", "ctrl-g":
		c.find = nil
	default: // what was found is edited
		if f.at >= 0 {
			c.editor.set(c.past.entries[f.at])
		}
		c.find = nil
		c.relist()
	}
}
