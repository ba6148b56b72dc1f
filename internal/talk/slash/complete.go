package slash

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ken/internal/coldsort"
)

// A Completion is one way to go on at the cursor: Text replaces the bytes of
// the line from Start to End.
type Completion struct {
	Text        string `json:"text"`
	Start       int    `json:"start"`
	End         int    `json:"end"`
	Kind        string `json:"kind"` // command, action, flag or value
	Description string `json:"description,omitempty"`
}

const maxCompletions = 100

// Complete returns what may stand at the cursor, a byte offset into the line,
// in the order of the alphabet. Nothing is offered inside quotes, in plain
// text, or where only the person can know.
func (x *Index) Complete(line string, cursor int) []Completion {
	cursor = max(0, min(cursor, len(line)))
	for cursor > 0 && cursor < len(line) && !utf8.RuneStart(line[cursor]) {
		cursor--
	}
	head := line[:cursor]
	if !strings.HasPrefix(head, "/") || len(head) > maxLine {
		return nil
	}
	c := completer{end: cursor}
	name, _ := nameOf(head)
	if len(name) == len(head)-1 {
		c.start = 0
		x.completeName(&c, name)
		return c.sorted()
	}
	if at := strings.Index(head, " /") + 1; at > 0 && x.IsLater(head) {
		out := x.Complete(head[at:], len(head)-at) // the command that runs later
		for i := range out {
			out[i].Start += at
			out[i].End += at
		}
		return out
	}
	found := x.find(name)
	if len(found) != 1 {
		return nil
	}
	words, f := split(head, 1+len(name))
	if f != nil {
		return nil
	}
	c.start, c.partial = cursor, ""
	if last := head[len(head)-1]; last != ' ' && last != '\t' && len(words) > 0 {
		w := words[len(words)-1]
		if w.bare != len(w.text) {
			return nil
		}
		c.start, c.partial, words = w.at, w.text, words[:len(words)-1]
	}
	c.rest(found[0], words)
	return c.sorted()
}

type completer struct {
	start, end int
	partial    string
	out        []Completion
}

func (c *completer) offer(text, kind, description string) {
	if strings.HasPrefix(text, c.partial) {
		c.out = append(c.out, Completion{Text: text, Start: c.start, End: c.end, Kind: kind, Description: description})
	}
}

func (c *completer) sorted() []Completion {
	coldsort.Stable(c.out, func(a, b Completion) int { return strings.Compare(a.Text, b.Text) })
	c.out = slices.CompactFunc(c.out, func(a, b Completion) bool { return a.Text == b.Text })
	return c.out[:min(len(c.out), maxCompletions)]
}

func (x *Index) completeName(c *completer, name string) {
	c.partial = "/" + name
	if name != "" && len(x.commands) > 0 && x.IsLater("/"+Later) {
		c.offer("/"+Later, "command", "run the command that follows as a job")
	}
	for i := range x.commands {
		cmd := &x.commands[i]
		full := "/" + cmd.Name
		if found := x.find(cmd.Name); len(found) != 1 || found[0] != cmd {
			if cmd.Extension == "" {
				continue // typing it would call something else, or nothing
			}
			full = "/" + cmd.Extension + ":" + cmd.Name
		}
		c.offer(full, "command", cmd.Summary)
		for _, alias := range cmd.Aliases {
			if found := x.find(alias); name != "" && len(found) == 1 && found[0] == cmd {
				c.offer("/"+alias, "command", cmd.Summary)
			}
		}
	}
}

// rest completes what stands after the command's name.
func (c *completer) rest(cmd *Command, words []word) {
	if a := cmd.action(""); a != nil && a.Text {
		return
	}
	if len(words) == 0 {
		for _, a := range cmd.Actions {
			if a.Name != "" {
				c.offer(a.Name, "action", a.Description)
			}
		}
	}
	a, rest, f := cmd.choose("", words)
	if f != nil || a.Signature == nil || a.Signature.Words {
		return
	}
	c.argument(a.Signature, rest)
}

// argument completes one argument after the words that are there.
func (c *completer) argument(sig *Signature, words []word) {
	used := map[*Parameter]bool{}
	places := 0
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w.is("--") {
			return
		}
		name, _, given := strings.Cut(w.text, "=")
		if !isFlag(w) {
			if p := sig.key(name); given && p != nil {
				used[p] = true
			} else {
				places++
			}
			continue
		}
		p := sig.named(name)
		if p == nil {
			continue
		}
		used[p] = true
		if given || p.bare() {
			continue
		}
		if i++; i == len(words) { // its value is what is being typed
			c.values(p)
			return
		}
	}
	for i := range sig.Parameters {
		p := &sig.Parameters[i]
		if !used[p] || p.is("array") {
			c.flag(p)
		}
		if p.Positional && !used[p] {
			if places == 0 {
				c.values(p)
			}
			places--
		}
	}
}

// flag offers a flag, or the values behind its equals sign.
func (c *completer) flag(p *Parameter) {
	if before, _, ok := strings.Cut(c.partial, "="); ok && before == p.flag() {
		for _, choice := range p.Choices {
			c.offer(before+"="+Quote(choice), "value", "")
		}
		return
	}
	if strings.HasPrefix(c.partial, "-") || !p.Positional {
		c.offer(p.flag(), "flag", p.Description)
	}
}

func (c *completer) values(p *Parameter) {
	for _, choice := range p.Choices {
		c.offer(Quote(choice), "value", "")
	}
}
