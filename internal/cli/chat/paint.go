package chat

import (
	"fmt"
	"strings"
	"time"

	"ken/internal/talk/event"
)

const mostListed = 6 // completions at once

// paint brings the screen up to date.
func (c *chat) paint() {
	f := c.frame()
	c.screen.paint(c.final, f)
	c.final = nil
}

// frame is what stands under all that is final: what is not final yet, the
// line or a question, what may be typed, and the status.
func (c *chat) frame() frame {
	width, rows := c.view.width, max(c.screen.height-1, 2)
	var f frame
	var under []string
	if rows > 2 {
		under = append(under, styled(c.view.colour, dim, clip("  "+c.footer(), width)))
		rows--
	}
	input, row, col := c.input(width, max(rows/2, 1))
	rows -= len(input)
	if list := c.offers(width, min(rows, mostListed)); len(list) > 0 {
		under = append(list, under...)
		rows -= len(list)
	}
	if live := c.busy(rows); len(live) > 0 {
		f.lines = append(f.lines, live...)
	}
	f.row, f.col = len(f.lines)+row, min(col, width)
	f.lines = append(append(f.lines, input...), under...)
	return f
}

// busy is what runs, in at most rows lines, with an empty line after it where
// there is room.
func (c *chat) busy(rows int) []string {
	if rows < 1 || c.job == nil {
		if rows > 0 { // apart from what was printed
			return []string{""}
		}
		return nil
	}
	now := c.cfg.Now()
	live := c.view.live(max(rows-1, 1), now)
	if len(live) == 0 && len(c.questions.asks) == 0 {
		seconds := int(time.Since(c.job.began).Seconds())
		frames := []rune(spinner)
		turning := string(frames[int(now.UnixMilli()/spin.Milliseconds())%len(frames)])
		live = []string{styled(c.view.colour, dim, fmt.Sprintf("  %s %d s", turning, seconds))}
	}
	if len(live) < rows {
		live = append(live, "")
	}
	return live
}

// input is the line that is typed, the question, or the search.
func (c *chat) input(width, rows int) (lines []string, row, col int) {
	switch {
	case len(c.questions.asks) > 0:
		return c.question(c.questions.asks[0], width, rows)
	case c.find != nil:
		found := ""
		if c.find.at >= 0 {
			found = c.past.entries[c.find.at]
		}
		line := clip(fmt.Sprintf("search %s: %s", safeLine(c.find.text), safeLine(found)), width)
		return []string{line}, 0, min(columns("search "+safeLine(c.find.text)), width)
	}
	return c.editor.layout("❯ ", width, rows)
}

func (c *chat) question(a event.Asked, width, rows int) (lines []string, row, col int) {
	text := menuOf(a)
	if len(choices(a)) > 0 && !c.ready() {
		text = wording(a)
	}
	if c.questions.form != nil && !c.questions.form.over() {
		text = c.questions.form.prompt()
	}
	for _, part := range wrap(text, width) {
		lines = append(lines, styled(c.view.colour, yellow, part))
	}
	if len(choices(a)) > 0 {
		return lines, len(lines) - 1, min(columns(lines[len(lines)-1])+1, width)
	}
	mark := "? "
	if !c.seen() {
		mark = "· "
	}
	words, row, col := c.questions.reply.layout(mark, width, rows)
	return append(lines, words...), len(lines) + row, col
}

// offers lists completions, those around the one that was chosen.
func (c *chat) offers(width, rows int) []string {
	if len(c.questions.asks) > 0 || c.find != nil || rows < 1 {
		return nil
	}
	list, at := c.list, -1
	if c.menu != nil {
		list, at = nil, c.menu.at
		for _, i := range c.menu.items {
			list = append(list, offer(i))
		}
	}
	from := min(max(at-rows/2, 0), max(len(list)-rows, 0))
	var out []string
	for i := from; i < len(list) && len(out) < rows; i++ {
		line := "  " + list[i]
		switch {
		case i == at:
			line = styled(c.view.colour, bold, clip("› "+list[i], width))
		case len(out) == rows-1 && i < len(list)-1:
			line = styled(c.view.colour, dim, clip(fmt.Sprintf("  … %d more", len(list)-i), width))
		default:
			line = styled(c.view.colour, dim, clip(line, width))
		}
		out = append(out, line)
	}
	return out
}

// footer says where the conversation stands.
func (c *chat) footer() string {
	if c.hint != "" {
		return c.hint
	}
	s := c.talk.Status()
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, safeLine(text))
		}
	}
	if c.job != nil {
		add("Ctrl-C ends it")
	}
	add(s.Model)
	add(s.Mode)
	add(s.Intent)
	add(s.Session)
	if s.Turn > 0 {
		add(fmt.Sprintf("turn %d", s.Turn))
	}
	if s.Window > 0 {
		add(fmt.Sprintf("%d %% of %s", s.Used*100/s.Window, count(s.Window)))
	}
	if s.Usage.Input+s.Usage.Output > 0 {
		add(fmt.Sprintf("%s in (%s read, %s written), %s out", count(s.Usage.Input), count(s.Usage.CachedRead), count(s.Usage.CachedWrite), count(s.Usage.Output)))
	}
	if s.Cost > 0 {
		add(dollars(s.Cost))
	}
	return strings.Join(parts, " · ")
}
