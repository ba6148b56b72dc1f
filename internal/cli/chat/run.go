package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"ken/internal/talk/event"
)

const (
	paintEvery = 25 * time.Millisecond  // at most, while an answer comes
	escapeWait = 50 * time.Millisecond  // for the rest of a sequence
	calm       = 400 * time.Millisecond // without a key before an answer counts
)

// Run holds a conversation until the person leaves, the input ends or ctx is
// done; of these, only the last is an error. A turn that runs then is ended first
// and waited for, unless the person does not want to wait.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg = cfg.filled()
	if cfg.Talker == nil || cfg.In == nil || cfg.Out == nil {
		return errors.New("chat: missing Talker, In or Out")
	}
	past, err := openHistory(cfg.History)
	if err != nil { // awareness only
		cfg.Greeting = append(slices.Clone(cfg.Greeting), safeLine(err.Error()))
	}
	in, out := int(cfg.In.Fd()), int(cfg.Out.Fd())
	if !term.IsTerminal(in) || !term.IsTerminal(out) || cfg.Getenv("TERM") == "dumb" {
		return runPlain(ctx, cfg)
	}
	width, height, err := term.GetSize(out)
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	c := &chat{
		cfg: cfg, talk: cfg.Talker, past: past,
		view:    view{colour: cfg.Getenv("NO_COLOR") == "", now: cfg.Now},
		screen:  screen{w: cfg.Out},
		replies: make(chan replied),
		gone:    make(chan struct{}),
	}
	c.questions.mine = map[string]bool{}
	c.resize(width, height)
	raw, err := term.MakeRaw(in)
	if err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	c.raw = raw
	c.screen.write(pasteOn)
	defer func() {
		c.screen.write(pasteOff)
		err = errors.Join(err, term.Restore(in, raw))
	}()
	return c.run(ctx)
}

// A chat is a conversation on a terminal. One goroutine owns it.
type chat struct {
	cfg    Config
	talk   Talker
	view   view
	screen screen
	past   *history
	raw    *term.State

	editor editor
	menu   *menu
	list   []string // completions, as they are shown
	find   *finding // in the history

	job       *job
	questions questions

	final   []string // lines to print
	hint    string
	lastKey time.Time
	exit    exit

	replies chan replied
	gone    chan struct{} // closed when replies and news are no longer received
	workers sync.WaitGroup
}

// exit says how far the person is in leaving the conversation.
type exit struct {
	armed   bool // the next Ctrl-C leaves
	quit    bool
	leaving bool
	left    bool // without waiting for what runs
}

// questions are what the turn asks the person.
type questions struct {
	asks     []event.Asked
	asked    time.Time       // when the first of them was shown
	mine     map[string]bool // those that were answered here
	form     *form           // of the first, where it is an inquiry
	reply    editor          // of one that wants words
	replying int
	waiting  bool // the turn ended until a person answers
}

// A job is a turn or a command that runs.
type job struct {
	cancel context.CancelFunc
	news   chan news
	ctrlC  int
	began  time.Time
}

// news is what a job tells.
type news struct {
	event  event.Event
	output *Output
	err    error
}

// replied is how an answer was taken.
type replied struct {
	asked event.Asked
	err   error
}

// run is the conversation between taking the terminal and giving it back.
func (c *chat) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	input, stop, err := readInput(c.cfg.In)
	if err != nil {
		cancel()
		return err
	}
	for _, line := range c.cfg.Greeting {
		for _, part := range wrap(safeLine(line), c.view.width) {
			c.final = append(c.final, styled(c.view.colour, dim, part))
		}
	}
	if c.cfg.GoOn {
		c.start(ctx, "")
	} else if c.cfg.First != "" {
		c.say(ctx, c.cfg.First)
	}
	err = c.loop(ctx, input)
	cancel()
	stop()
	c.finish()
	c.screen.leave(c.final)
	return errors.Join(err, c.screen.err)
}

// finish waits for what runs, unless the person would not.
func (c *chat) finish() {
	c.exit.leaving = true
	if c.exit.left {
		close(c.gone)
		return
	}
	for c.job != nil {
		n, ok := <-c.job.news
		c.told(context.Background(), n, ok)
	}
	close(c.gone)
	c.workers.Wait()
}

// loop handles keys, news and replies until the person leaves.
func (c *chat) loop(ctx context.Context, input <-chan []byte) error {
	sizes, stopSizes := resized()
	defer stopSizes()
	tick := time.NewTicker(spin)
	defer tick.Stop()
	late, escape := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer late.Stop()
	defer escape.Stop()
	var keys decoder
	var painted time.Time
	for c.paint(); !c.exit.quit && c.screen.err == nil; {
		var told chan news
		if c.job != nil {
			told = c.job.news
		}
		soon := false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case b, ok := <-input:
			if !ok {
				return nil
			}
			c.keys(ctx, keys.feed(b))
			if keys.waiting() {
				escape.Reset(escapeWait)
			}
		case <-escape.C:
			c.keys(ctx, keys.flush())
		case n, ok := <-told:
			c.told(ctx, n, ok)
			soon = true
		case r := <-c.replies:
			c.replied(ctx, r)
		case <-sizes:
			if width, height, err := term.GetSize(int(c.cfg.Out.Fd())); err == nil && width > 0 && height > 0 {
				c.resize(width, height)
			}
		case <-tick.C:
			if c.job == nil && len(c.questions.asks) == 0 {
				continue
			}
		case <-late.C:
		}
		if wait := paintEvery - time.Since(painted); soon && wait > 0 {
			late.Reset(wait)
			continue
		}
		c.paint()
		painted = time.Now()
	}
	return nil
}

func (c *chat) resize(width, height int) {
	c.screen.resize(width, height)
	// The last column stays free: a character that a terminal draws wider
	// than we think does not break the line.
	c.view.resize(max(width-1, 10))
}

// say sends what a person typed.
func (c *chat) say(ctx context.Context, text string) {
	c.final = append(c.final, c.view.said(text)...)
	switch ownWord(text) {
	case "/quit":
		c.exit.quit = true
	case "/why":
		c.final = append(c.final, c.view.why()...)
	case "/output":
		c.unfold()
	default:
		c.start(ctx, text)
	}
}

// start begins a job: a command, or a turn.
func (c *chat) start(ctx context.Context, text string) {
	ctx, cancel := context.WithCancel(ctx)
	j := &job{cancel: cancel, news: make(chan news), began: time.Now()}
	c.job, c.questions.waiting = j, false
	c.view.begin(text)
	tell := func(n news) bool {
		select {
		case j.news <- n:
			return true
		case <-c.gone:
			return false
		}
	}
	c.workers.Go(func() {
		defer close(j.news)
		work(ctx, c.talk, text, tell)
	})
}

// work runs a job and tells its news, as long as tell takes them.
func work(ctx context.Context, talk Talker, text string, tell func(news) bool) {
	if strings.HasPrefix(text, "/") {
		out, handled, err := talk.Command(ctx, text)
		if handled || err != nil {
			tell(news{output: &out, err: err})
			return
		}
	}
	for ev, err := range talk.Turn(ctx, text) {
		if !tell(news{event: ev, err: err}) {
			return
		}
	}
}

// told takes what a job tells; ok is false when it is over.
func (c *chat) told(ctx context.Context, n news, ok bool) {
	if !ok {
		c.ended(ctx)
		return
	}
	switch ev := n.event.(type) {
	case event.Asked:
		if c.job.ctrlC > 0 { // the turn is being ended, so there will be no answer
			return
		}
		if c.questions.asks = append(c.questions.asks, ev); len(c.questions.asks) == 1 {
			c.firstAsk()
		}
		return
	case event.Answered:
		c.forget(ev.ID)
		if c.questions.mine[ev.ID] {
			return
		}
	case event.Done:
		c.questions.waiting = ev.Reason == event.EndWaiting
	}
	if n.event != nil {
		c.final = append(c.final, c.view.event(n.event)...)
	}
	if n.output != nil {
		c.outcome(*n.output)
	}
	if n.err != nil {
		c.final = append(c.final, c.view.settle()...)
		line, style := "✗ "+n.err.Error(), red
		if c.job.ctrlC > 0 && errors.Is(n.err, context.Canceled) {
			line, style = "aborted", yellow
		}
		c.final = c.view.aside(c.final, style, safeLine(line))
	}
}

// ended puts things in order after a job.
func (c *chat) ended(ctx context.Context) {
	c.job.cancel()
	c.final = append(c.final, c.view.settle()...)
	c.job, c.view.calls, c.hint = nil, nil, ""
	if !c.questions.waiting {
		c.questions.asks = nil
	}
	c.goOn(ctx)
}

// goOn continues a turn that waited, when all is answered.
func (c *chat) goOn(ctx context.Context) {
	if !c.exit.leaving && c.questions.waiting && c.job == nil && len(c.questions.asks) == 0 && c.questions.replying == 0 {
		c.start(ctx, "")
	}
}

// outcome shows what a command said.
func (c *chat) outcome(out Output) {
	if out.Text != "" {
		md := markdown{width: c.view.width, colour: c.view.colour}
		c.final = append(c.final, md.write(out.Text)...)
		c.final = append(c.final, md.end()...)
	}
	if out.Fill != "" && c.editor.text == "" {
		c.editor.set(pasted(out.Fill))
	}
	c.exit.quit, c.questions.waiting = c.exit.quit || out.Quit, c.questions.waiting || out.GoOn
}

// unfold shows what was folded.
func (c *chat) unfold() {
	lines := c.view.unfold()
	if lines == nil {
		c.hint = "nothing more is folded"
		return
	}
	c.final = append(c.final, lines...)
}

// suspend returns the terminal to the shell until the program is continued.
func (c *chat) suspend() {
	c.screen.leave(c.final)
	c.final = nil
	c.screen.write(pasteOff)
	in := int(c.cfg.In.Fd())
	err := errors.Join(term.Restore(in, c.raw), suspend())
	if _, rerr := term.MakeRaw(in); rerr != nil {
		err = errors.Join(err, rerr)
	}
	c.screen.write(pasteOn)
	if err != nil {
		c.hint = safeLine(err.Error())
	}
}

// terminalOf reports whether a file is one.
func terminalOf(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
