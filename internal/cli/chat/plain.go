package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"ken/internal/talk/event"
)

// A plainChat is a conversation line by line, for dumb terminals and for
// scripts that write to it. Nothing moves a cursor, nothing is coloured.
type plainChat struct {
	cfg    Config
	view   view
	lines  *lineReader
	person bool // there is one: at both ends is a terminal
}

// runPlain holds a conversation without a screen.
func runPlain(ctx context.Context, cfg Config) error {
	input, stop, err := readInput(cfg.In)
	if err != nil {
		return err
	}
	defer stop()
	width := 80
	if w, _, err := term.GetSize(int(cfg.Out.Fd())); err == nil && w > 10 {
		width = w - 1
	}
	p := &plainChat{cfg: cfg, view: view{now: cfg.Now}, lines: &lineReader{in: input}, person: terminalOf(cfg.In) && terminalOf(cfg.Out)}
	p.view.resize(width)
	for _, line := range cfg.Greeting {
		if err := p.print(wrap(safeLine(line), width)); err != nil {
			return err
		}
	}
	if cfg.GoOn || cfg.First != "" {
		if quit, err := p.say(ctx, cfg.First); quit || err != nil {
			return err
		}
	}
	for {
		text, ok, err := p.ask(ctx, "> ")
		if err != nil || !ok && strings.TrimSpace(text) == "" {
			return err
		}
		if text = message(text); text != "" {
			if quit, err := p.say(ctx, text); quit || err != nil {
				return err
			}
		}
		if !ok {
			return nil
		}
	}
}

func (p *plainChat) print(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := p.cfg.Out.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		return fmt.Errorf("write the conversation: %w", err)
	}
	return nil
}

// ask reads a line, and those after it while they end in a backslash.
func (p *plainChat) ask(ctx context.Context, prompt string) (text string, ok bool, err error) {
	for {
		if p.person {
			if _, err := p.cfg.Out.WriteString(prompt); err != nil {
				return "", false, fmt.Errorf("write the conversation: %w", err)
			}
		}
		line, ok, err := p.lines.next(ctx)
		more := strings.HasSuffix(line, `\`)
		text += strings.TrimSuffix(line, `\`)
		if err != nil || !ok || !more {
			return text, ok, err
		}
		text += "\n"
		prompt = "  "
	}
}

// say sends a message and shows the turn, with the turns that go on with it.
func (p *plainChat) say(ctx context.Context, text string) (quit bool, err error) {
	switch ownWord(text) {
	case "/quit":
		return true, nil
	case "/why":
		return false, p.print(p.view.why())
	case "/output":
		return false, p.print(p.view.unfold())
	}
	for {
		again, quit, err := p.turn(ctx, text)
		if err != nil || !again {
			return quit, err
		}
		text = ""
	}
}

// turn shows one. Where the turn does not wait for its answers itself, they
// are given afterwards, and again says that it goes on.
func (p *plainChat) turn(ctx context.Context, text string) (again, quit bool, err error) {
	p.view.begin(text)
	answered := false
	work(ctx, p.cfg.Talker, text, func(n news) bool {
		var lines []string
		if n.event != nil {
			lines = p.view.event(n.event)
		}
		if n.output != nil {
			md := markdown{width: p.view.width}
			lines = append(append(lines, md.write(n.output.Text)...), md.end()...)
			quit, again = quit || n.output.Quit, n.output.GoOn
		}
		if n.err != nil {
			lines = p.view.aside(append(lines, p.view.settle()...), red, safeLine("✗ "+n.err.Error()))
		}
		if err = p.print(lines); err != nil {
			return false
		}
		switch ev := n.event.(type) {
		case event.Asked:
			answered = true
			err = p.answer(ctx, ev)
		case event.Done:
			again = ev.Reason == event.EndWaiting && answered && p.person
		}
		return err == nil
	})
	return again, quit, err
}

// answer asks the person; where there is none the answer is no.
func (p *plainChat) answer(ctx context.Context, a event.Asked) error {
	given := Answer{Scope: Once}
	var err error
	switch {
	case a.What == event.Inquiry:
		given, err = p.fill(ctx, formOf(a), len(choices(a)) > 0, a)
	case p.person:
		given, err = p.choose(ctx, a)
	}
	if err != nil {
		return err
	}
	if err := p.cfg.Talker.Reply(ctx, a, given); err != nil {
		return p.print([]string{safeLine("✗ " + err.Error())})
	}
	return nil
}

// choose asks until there is an answer that counts; none is a no.
func (p *plainChat) choose(ctx context.Context, a event.Asked) (Answer, error) {
	list := choices(a)
	if err := p.forget(ctx); err != nil {
		return Answer{Scope: Once}, err
	}
	for range 3 {
		line, ok, err := p.ask(ctx, menuOf(a)+" ")
		line = strings.TrimSpace(line)
		if err != nil || !ok || line == "" {
			return Answer{Scope: Once}, err
		}
		if list == nil {
			if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(a.Choice) {
				line = a.Choice[n-1]
			}
			return Answer{Yes: true, Text: line}, nil
		}
		for _, ch := range list {
			if ch.key == line {
				return ch.answer, nil
			}
		}
		if err := p.print([]string{strconv.Quote(safeLine(line)) + " is none of them"}); err != nil {
			return Answer{}, err
		}
	}
	return Answer{Scope: Once}, nil
}

// forget discards what was typed before a question, until no more input comes:
// it cannot be the answer to a question that was not seen yet.
func (p *plainChat) forget(ctx context.Context) error {
	if !p.person {
		return nil
	}
	Flush(p.cfg.In)
	p.lines.buf = nil
	quiet := time.NewTimer(calm)
	defer quiet.Stop()
	for {
		select {
		case _, ok := <-p.lines.in:
			if !ok {
				return nil
			}
			quiet.Reset(calm)
		case <-quiet.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fill asks for the fields of a form, one a line; at the end of the input it
// declines.
func (p *plainChat) fill(ctx context.Context, f *form, bare bool, a event.Asked) (Answer, error) {
	if !p.person {
		return f.answer(false), nil
	}
	if bare {
		given, err := p.choose(ctx, a)
		return f.answer(given.Yes), err
	}
	for !f.over() {
		line, ok, err := p.ask(ctx, f.prompt()+" ")
		if err != nil || !ok {
			return f.answer(false), err
		}
		if problem := f.take(strings.TrimSpace(line)); problem != "" {
			if err := p.print([]string{problem}); err != nil {
				return Answer{}, err
			}
		}
	}
	return f.answer(true), nil
}

// A lineReader makes lines of what is read.
type lineReader struct {
	in  <-chan []byte
	buf []byte
}

// next returns a line without its end; ok is false for what stood after the last
// line end.
func (r *lineReader) next(ctx context.Context) (line string, ok bool, err error) {
	for {
		if text, rest, found := strings.Cut(string(r.buf), "\n"); found {
			r.buf = []byte(rest)
			return strings.TrimSuffix(text, "\r"), true, nil
		}
		select {
		case <-ctx.Done():
			return "", false, context.Cause(ctx)
		case b, open := <-r.in:
			if !open {
				text := string(r.buf)
				r.buf = nil
				return text, false, nil
			}
			r.buf = append(r.buf, b...)
		}
	}
}
