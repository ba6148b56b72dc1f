package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
)

// Options say how [Print] shows a turn. The zero value writes the answer as it
// came, and nothing else.
type Options struct {
	JSON  bool // one event a line, each an object with its type
	Quiet bool // nothing to Err

	// Verbose prints to Err also what was found for the message, and what a turn
	// that went well took.
	Verbose bool

	// Err takes what is not the answer: what was found, calls, notices. Nil
	// discards it.
	Err io.Writer

	// Width is that of the terminal behind the output, whose Markdown is
	// rendered then; 0: it is none, and the answer is written as it came.
	Width  int
	Colour bool

	// Result writes what a person's own command gave, all of it: to w and
	// beside it. Nil: its text is written to w.
	Result func(capability.Result)

	Now func() time.Time // nil: time.Now
}

// unbroken is the width of what is no terminal: lines are left whole.
const unbroken = 1 << 20

// Print writes a turn to w until it ends, and returns how it ended.
// The error is that of the turn or of w; with JSON the turn's is also the last
// line.
func Print(w io.Writer, events iter.Seq2[event.Event, error], o Options) (event.Done, error) {
	p := printing{w: w, o: o}
	if p.o.Now == nil {
		p.o.Now = time.Now
	}
	if p.o.Quiet || p.o.Err == nil {
		p.o.Err = io.Discard
	}
	p.view = view{now: p.o.Now, colour: o.Colour && o.Width > 0, brief: true}
	p.view.resize(unbroken)
	if o.Width > 0 {
		p.view.resize(max(o.Width-1, 10))
	}
	p.view.begin("")
	var done event.Done
	for ev, err := range events {
		if err == nil {
			err = p.event(ev)
		} else if o.JSON {
			_ = p.line(map[string]string{"type": "error", "error": err.Error(), "kind": capability.KindOf(err).String()}) // the turn's error is given anyway
		}
		if err != nil {
			return done, err
		}
		if d, ok := ev.(event.Done); ok {
			done = d
		}
	}
	if o.JSON {
		return done, nil
	}
	return done, p.end()
}

// printing is one run of Print.
type printing struct {
	w       io.Writer
	o       Options
	view    view
	written bool               // something of the answer
	newline bool               // the last byte was one
	broken  bool               // something else came since
	result  *capability.Result // of the last call
}

func (p *printing) event(ev event.Event) error {
	if p.o.JSON {
		return p.line(ev)
	}
	switch ev := ev.(type) {
	case event.Delta:
		return p.delta(ev)
	case event.Selected:
		if !p.o.Verbose {
			return nil
		}
	case event.Finished:
		p.result = &ev.Result
		if ev.Error != "" { // it was not made, and that is told beside
			p.result = &capability.Result{}
		}
	case event.Done:
		if err := p.rest(ev); err != nil {
			return err
		}
		if well := ev.Reason == event.EndAnswer || ev.Reason == event.EndCommand; well && !p.o.Verbose {
			return nil
		}
		ev.Text = "" // it was written
		return p.aside(ev)
	}
	p.broken = true
	return p.aside(ev)
}

// delta writes a fragment of the answer.
func (p *printing) delta(d event.Delta) error {
	if d.Text == "" {
		return nil
	}
	if p.o.Width > 0 {
		return p.write(joined(p.view.md.write(d.Text)))
	}
	text := d.Text
	if p.broken && p.written { // the answer goes on after calls
		text = "\n" + text
		if !p.newline {
			text = "\n" + text
		}
	}
	p.broken = false
	return p.write(text)
}

// rest writes the answer where none came in fragments, and what a person's own
// command gave.
func (p *printing) rest(d event.Done) error {
	if err := p.settle(); err != nil || p.written {
		return err
	}
	text := d.Text
	if d.Reason == event.EndCommand && p.result != nil {
		if p.o.Result != nil {
			p.o.Result(*p.result)
			return nil
		}
		text = resultText(*p.result)
	}
	if p.o.Width > 0 && d.Reason != event.EndCommand {
		return p.write(joined(append(p.view.md.write(text), p.view.md.end()...)))
	}
	if p.o.Width > 0 {
		text = safe(text)
	}
	return p.write(text)
}

// settle writes what is left of rendered text.
func (p *printing) settle() error {
	if p.o.Width == 0 {
		return nil
	}
	lines := p.view.md.end()
	return p.write(joined(lines))
}

// aside writes what is not the answer to Err.
func (p *printing) aside(ev event.Event) error {
	if err := p.settle(); err != nil {
		return err
	}
	colour := p.view.colour
	p.view.colour = false
	_, asked := ev.(event.Asked)
	for _, line := range p.view.event(ev) {
		if line = strings.TrimRight(line, " "); !asked { // columns, and the blanks of a change, count in a question
			line = strings.TrimSpace(line)
		}
		if line == "" {
			continue
		}
		if err := p.endLine(); err != nil {
			return err
		}
		if _, err := io.WriteString(p.o.Err, line+"\n"); err != nil {
			return fmt.Errorf("write a notice: %w", err)
		}
	}
	p.view.colour = colour
	return nil
}

// end ends the answer.
func (p *printing) end() error {
	if err := p.settle(); err != nil {
		return err
	}
	return p.endLine()
}

// endLine ends the line of the answer that is open, for what is told beside may
// come to the same place.
func (p *printing) endLine() error {
	if !p.written || p.newline {
		return nil
	}
	return p.write("\n")
}

func (p *printing) write(text string) error {
	if text == "" {
		return nil
	}
	if _, err := io.WriteString(p.w, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	p.written, p.newline = true, strings.HasSuffix(text, "\n")
	return nil
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// line writes one object on a line of its own.
func (p *printing) line(v any) error {
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}
