package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/chat"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/talk/engine"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/talk/slash"
	"ken/internal/untrusted"
)

// A talk is one person's conversation at a terminal.
type talk struct {
	app      *app.App
	engine   *engine.Engine
	sessions *session.Store
	alone    bool

	mu     sync.Mutex
	head   session.Head
	mode   string
	call   chatCall
	status chat.Status
}

var _ chat.Talker = (*talk)(nil)

// openTalk begins a conversation, or goes on with one.
func openTalk(ctx context.Context, a *app.App, k chatCall) (*talk, error) {
	if k.mode != "" && !slices.Contains(modeNames(a), k.mode) {
		return nil, usageError{fmt.Errorf("there is no mode %q; there are %s", k.mode, strings.Join(modeNames(a), ", "))}
	}
	e, err := a.Engine()
	if err != nil {
		return nil, err
	}
	sessions, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	t := &talk{app: a, engine: e, sessions: sessions, mode: k.mode, call: k}
	if k.resume != "" {
		return t, t.resume(ctx, k.resume)
	}
	t.take(session.Head{Mode: k.mode})
	return t, nil
}

// begin starts a new session, when something is said that has none.
func (t *talk) begin(ctx context.Context) error {
	if t.session() != "" {
		return nil
	}
	head, err := t.sessions.Begin(ctx, session.Head{
		Tenant: t.app.Principal.Tenant, Principal: t.app.Principal.ID, Folder: t.app.Places.Workspace, Agent: t.call.agent, Mode: t.mode,
	})
	if err != nil {
		return err
	}
	t.take(head)
	return nil
}

// resume goes on with a session by its id, or with the last one of this folder.
func (t *talk) resume(ctx context.Context, id string) error {
	if id == "last" {
		list, err := t.sessions.List(ctx, t.app.Principal, 100)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(h session.Head) bool { return h.Turns > 0 && h.Folder == t.app.Places.Workspace })
		if i < 0 {
			return &capability.Error{Kind: capability.NotFound, Op: "resume", Target: "the last session", Err: errors.New("there is none of this folder"), Fix: "see ken chat --list"}
		}
		id = list[i].ID
	}
	head, err := t.sessions.Head(ctx, t.app.Principal, id)
	if err != nil {
		return err
	}
	t.take(head)
	return nil
}

func (t *talk) take(head session.Head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head = head
	if t.mode == "" {
		t.mode = head.Mode
	}
	row := t.app.ModelRow()
	t.status = chat.Status{Model: t.app.Settings.Model, Mode: t.mode, Session: head.ID, Usage: head.Usage, Cost: head.Cost, Window: row.Window}
}

func modeNames(a *app.App) []string {
	rules := a.Rules()
	if rules == nil {
		return nil
	}
	var out []string
	for name := range rules.Settings().Modes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// greeting says what a person should know at the beginning.
func (t *talk) greeting() []string {
	lines := []string{"Ken. /help lists commands, Ctrl-C stops an answer, Ctrl-D leaves."}
	if t.app.Settings.Model == "" {
		lines = append(lines, "No model is configured, so only commands work: run `ken config set model PROVIDER/NAME`, as in anthropic/… or ollama/….")
	}
	if t.head.Turns > 0 {
		lines = append(lines, fmt.Sprintf("Going on with %s: %s", t.head.ID, t.head.Title))
	}
	return lines
}

// Turn says something, or goes on where the last turn did not end.
func (t *talk) Turn(ctx context.Context, text string) iter.Seq2[engine.Event, error] {
	if err := t.begin(ctx); err != nil {
		return func(yield func(engine.Event, error) bool) { yield(nil, err) }
	}
	t.mu.Lock()
	in := engine.Input{
		Principal: t.app.Principal, Session: t.head.ID, Text: text, Mode: t.mode, Agent: t.call.agent, Surface: string(policy.SurfaceChat),
		Continue: strings.TrimSpace(text) == "", Alone: t.alone, Delivery: model.Rung(t.call.delivery),
	}
	t.mu.Unlock()
	events := t.engine.Turn(ctx, in)
	return func(yield func(engine.Event, error) bool) {
		for ev, err := range events {
			t.note(ev)
			if !yield(ev, err) {
				return
			}
		}
	}
}

// note keeps what the line under the prompt shows.
func (t *talk) note(ev engine.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case engine.Selected:
		t.status.Intent = ""
	case engine.Intended:
		t.status.Intent = ev.Intent
	case engine.Step:
		t.status.Usage.Add(ev.Usage)
		t.status.Cost += ev.Cost
		t.status.Used = ev.Usage.Input + ev.Usage.Output
	case engine.Done:
		t.head.Turns, t.head.Open = max(t.head.Turns, ev.Turn), ev.Reason == engine.EndWaiting
		t.status.Intent = ""
	}
}

// Reply answers what a turn asked.
func (t *talk) Reply(ctx context.Context, asked engine.Asked, a chat.Answer) error {
	return t.app.Reply(ctx, t.app.Principal, t.session(), asked, app.Answer{Yes: a.Yes, Scope: approval.Scope(a.Scope), Text: a.Text, Answers: a.Answers})
}

func (t *talk) session() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.ID
}

// Status is what the line under the prompt shows.
func (t *talk) Status() chat.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// A word is a command of the conversation itself.
type word struct {
	name, about string
	run         func(t *talk, ctx context.Context, args []string) (chat.Output, error)
}

func words() []word {
	return []word{
		{"/compact", "sum up the conversation so far, to make room", (*talk).compact},
		{"/cost", "tokens and dollars of this session", (*talk).cost},
		{"/help", "what can be typed here", (*talk).help},
		{"/intent", "what the model said it was doing", (*talk).intent},
		{"/mode", "the modes, or /mode NAME to change", (*talk).changeMode},
		{"/model", "the model that answers", (*talk).showModel},
		{"/new", "begin a new session", (*talk).fresh},
		{"/resume", "/resume ID goes on with another session", (*talk).goOn},
		{"/rewind", "take back the last turn, or /rewind N that one and all after it", (*talk).rewind},
		{"/sessions", "the sessions that can be resumed", (*talk).list},
		{"/tools", "/tools WORDS finds capabilities, as the model would", (*talk).tools},
	}
}

// Complete gives what may stand at the cursor.
func (t *talk) Complete(line string, cursor int) []slash.Completion {
	out := t.app.Completions(line, cursor)
	head := line[:min(max(cursor, 0), len(line))]
	if !strings.HasPrefix(head, "/") || strings.ContainsAny(head, " \t\n") {
		return append(out, t.completeArgument(head, cursor)...)
	}
	for _, w := range words() {
		if strings.HasPrefix(w.name, head) {
			out = append(out, slash.Completion{Text: w.name, End: cursor, Kind: "command", Description: w.about})
		}
	}
	for _, w := range chat.Words() {
		if strings.HasPrefix(w.Text, head) {
			w.End = cursor
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b slash.Completion) int { return strings.Compare(a.Text, b.Text) })
	return slices.CompactFunc(out, func(a, b slash.Completion) bool { return a.Text == b.Text })
}

// completeArgument completes modes.
func (t *talk) completeArgument(head string, cursor int) []slash.Completion {
	rest, ok := strings.CutPrefix(head, "/mode ")
	if !ok {
		return nil
	}
	var out []slash.Completion
	for _, name := range modeNames(t.app) {
		if strings.HasPrefix(name, rest) {
			out = append(out, slash.Completion{Text: name, Start: cursor - len(rest), End: cursor, Kind: "value"})
		}
	}
	return out
}

// errNothingSaid is what commands about the session say before there is one.
var errNothingSaid = errors.New("nothing was said yet")

// Command runs a command of the conversation itself.
func (t *talk) Command(ctx context.Context, line string) (chat.Output, bool, error) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return chat.Output{}, false, nil
	}
	for _, w := range words() {
		if w.name == fields[0] {
			if slices.Contains([]string{"/compact", "/intent", "/rewind"}, w.name) && t.session() == "" {
				return chat.Output{}, true, errNothingSaid
			}
			out, err := w.run(t, ctx, fields[1:])
			return out, true, err
		}
	}
	return chat.Output{}, false, nil
}

// own runs a command of the conversation itself for a script, which hears of it
// as of a turn. It is false where the text is none.
func (t *talk) own(ctx context.Context, text string) (iter.Seq2[engine.Event, error], bool) {
	word, args, _ := strings.Cut(strings.TrimSpace(text), " ")
	flag, lasts := map[string]string{"/mode": "--mode", "/new": "no --resume", "/resume": "--resume"}[word]
	var out chat.Output
	is, err := lasts, error(usageError{fmt.Errorf("%s is for a conversation that goes on; with -p use %s", word, flag)})
	if !lasts || word == "/mode" && args == "" {
		out, is, err = t.Command(ctx, text)
	}
	return func(yield func(engine.Event, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		yield(engine.Done{Session: t.session(), Reason: engine.EndCommand, Text: out.Text}, nil)
	}, is
}

func (t *talk) help(context.Context, []string) (chat.Output, error) {
	var b strings.Builder
	for _, w := range words() {
		fmt.Fprintf(&b, "- `%s` %s\n", w.name, w.about)
	}
	for _, w := range chat.Words() {
		fmt.Fprintf(&b, "- `%s` %s\n", w.Text, w.Description)
	}
	b.WriteString("\nEvery other `/command` is one of your capabilities; Tab completes. What is not a command goes to the model.")
	return chat.Output{Text: b.String()}, nil
}

func (t *talk) compact(ctx context.Context, _ []string) (chat.Output, error) {
	c, err := t.engine.Compact(ctx, t.app.Principal, t.session())
	if err != nil {
		return chat.Output{}, err
	}
	if c.How == "" {
		return chat.Output{Text: fmt.Sprintf("There is nothing to sum up: the conversation takes %d tokens.", c.Before)}, nil
	}
	t.mu.Lock()
	t.status.Used = c.After
	t.mu.Unlock()
	return chat.Output{Text: fmt.Sprintf("The conversation was %s: from %d to at most %d tokens. Nothing is lost; /rewind still goes back.", c.How, c.Before, c.After)}, nil
}

func (t *talk) cost(context.Context, []string) (chat.Output, error) {
	s := t.Status()
	u := s.Usage
	text := fmt.Sprintf("Input %d tokens: %d read from the cache, %d written to it, %d plain. Output %d tokens, %d of them thoughts.",
		u.Input, u.CachedRead, u.CachedWrite, u.Input-u.CachedRead-u.CachedWrite, u.Output, u.Thought)
	if s.Cost > 0 {
		text += fmt.Sprintf(" About $%.4f.", s.Cost)
	} else {
		text += " The price of this model is not known (chat.modelTable)."
	}
	return chat.Output{Text: text}, nil
}

func (t *talk) intent(ctx context.Context, _ []string) (chat.Output, error) {
	_, entries, err := t.sessions.Read(ctx, t.app.Principal, t.session())
	if err != nil {
		return chat.Output{}, err
	}
	var lines []string
	for _, e := range entries {
		if e.Kind == session.Note && e.Name == "intent" {
			lines = append(lines, fmt.Sprintf("- turn %d: %s", e.Turn, untrusted.Line(e.Text, 200)))
		}
	}
	if len(lines) == 0 {
		return chat.Output{Text: "The model has declared no intent yet. Intents: " + strings.Join(policy.Intents(), ", ") + " (policy.intents)."}, nil
	}
	return chat.Output{Text: strings.Join(lines[max(len(lines)-20, 0):], "\n")}, nil
}

func (t *talk) changeMode(_ context.Context, args []string) (chat.Output, error) {
	names := modeNames(t.app)
	if len(args) == 0 {
		return chat.Output{Text: fmt.Sprintf("The mode is %s. There are %s, and none (`/mode none`).", orNone(t.Status().Mode), strings.Join(names, ", "))}, nil
	}
	name := args[0]
	switch {
	case name == "none":
		name = ""
	case !slices.Contains(names, name):
		return chat.Output{}, fmt.Errorf("there is no mode %q; there are %s (policy.modes)", untrusted.Line(name, 40), strings.Join(names, ", "))
	}
	t.mu.Lock()
	t.mode, t.status.Mode = name, name
	t.mu.Unlock()
	return chat.Output{Text: "The mode is " + orNone(name) + " from the next message on."}, nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (t *talk) showModel(context.Context, []string) (chat.Output, error) {
	if t.app.Settings.Model == "" {
		return chat.Output{Text: "No model is configured: `ken config set model PROVIDER/NAME`."}, nil
	}
	row := t.app.ModelRow()
	return chat.Output{Text: fmt.Sprintf("%s, a window of %d tokens. Another one: `ken chat --model PROVIDER/NAME --resume %s`.", t.app.Settings.Model, row.Window, t.session())}, nil
}

func (t *talk) fresh(context.Context, []string) (chat.Output, error) {
	old := t.session()
	t.take(session.Head{Mode: t.Status().Mode})
	if old == "" {
		return chat.Output{Text: "A new session."}, nil
	}
	return chat.Output{Text: "A new session. The one before is " + old + "."}, nil
}

func (t *talk) goOn(ctx context.Context, args []string) (chat.Output, error) {
	if len(args) != 1 {
		return chat.Output{}, errors.New("name one session, or last; /sessions lists them")
	}
	if err := t.resume(ctx, args[0]); err != nil {
		return chat.Output{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return chat.Output{Text: fmt.Sprintf("Going on with %s: %s", t.head.ID, untrusted.Line(t.head.Title, 100))}, nil
}

func (t *talk) rewind(ctx context.Context, args []string) (chat.Output, error) {
	head, err := t.sessions.Head(ctx, t.app.Principal, t.session())
	if err != nil {
		return chat.Output{}, err
	}
	turn := head.Turns
	if len(args) > 0 {
		if turn, err = strconv.Atoi(args[0]); err != nil {
			return chat.Output{}, fmt.Errorf("%q is not the number of a turn", untrusted.Line(args[0], 20))
		}
	}
	said, err := t.engine.Rewind(ctx, t.app.Principal, head.ID, turn)
	if err != nil {
		return chat.Output{}, err
	}
	return chat.Output{Text: fmt.Sprintf("Turn %d and all after it are taken back. What calls have done is not undone.", turn), Fill: said}, nil
}

func (t *talk) list(ctx context.Context, _ []string) (chat.Output, error) {
	list, err := t.sessions.List(ctx, t.app.Principal, 20)
	if err != nil {
		return chat.Output{}, err
	}
	var b strings.Builder
	for _, h := range list {
		if h.Turns > 0 {
			fmt.Fprintf(&b, "- `%s` %s %s\n", h.ID, h.Updated.Local().Format("2006-01-02 15:04"), untrusted.Line(h.Title, 80))
		}
	}
	if b.Len() == 0 {
		b.WriteString("There are no other sessions yet.")
	}
	return chat.Output{Text: b.String()}, nil
}

func (t *talk) tools(ctx context.Context, args []string) (chat.Output, error) {
	if len(args) == 0 {
		st := t.app.View().Stats()
		return chat.Output{Text: fmt.Sprintf("%d capabilities, %d of them usable here. `/tools WORDS` finds some; `ken catalog list` lists all.", st.Capabilities, st.Available)}, nil
	}
	found, err := t.app.FindFor(ctx, strings.Join(args, " "))
	if err != nil {
		return chat.Output{}, err
	}
	var b strings.Builder
	for _, p := range found.Briefs {
		fmt.Fprintf(&b, "- `%s` %.2f %s\n", p.ID, p.Score, untrusted.Line(strings.Join(p.Why, "; "), 120))
	}
	if b.Len() == 0 {
		b.WriteString("Nothing fits (discovery.tier1MinRelevance).")
	}
	return chat.Output{Text: b.String()}, nil
}
