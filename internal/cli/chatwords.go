package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/cli/chat"
	"ken/internal/cli/output"
	"ken/internal/coldsort"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/spelling"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/talk/slash"
	"ken/internal/untrusted"
)

// A word is a command of the conversation itself.
type word struct {
	name, about string
	run         func(t *conversation, ctx context.Context, args []string) (chat.Output, error)
}

func words() []word {
	return []word{
		{"/compact", "sum up the conversation so far, to make room", (*conversation).compact},
		{"/cost", "tokens and dollars of this session", (*conversation).cost},
		{"/help", "what can be typed here", (*conversation).help},
		{"/intent", "what the model said it was doing", (*conversation).intent},
		{"/mode", "the modes, or /mode NAME to change", (*conversation).changeMode},
		{"/model", "the model that answers", (*conversation).showModel},
		{"/new", "begin a new session", (*conversation).fresh},
		{"/resume", "/resume ID goes on with another session", (*conversation).goOn},
		{"/rewind", "take back the last turn, or /rewind N that one and all after it", (*conversation).rewind},
		{"/sessions", "the sessions that can be resumed", (*conversation).list},
		{"/tools", "/tools WORDS finds capabilities, as the model would", (*conversation).tools},
	}
}

// Complete returns what may stand at the cursor.
func (t *conversation) Complete(line string, cursor int) []slash.Completion {
	out := t.app.Commands.All().Complete(line, cursor)
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
	coldsort.Stable(out, func(a, b slash.Completion) int { return strings.Compare(a.Text, b.Text) })
	return slices.CompactFunc(out, func(a, b slash.Completion) bool { return a.Text == b.Text })
}

// completeArgument completes modes, sessions and turns.
func (t *conversation) completeArgument(head string, cursor int) []slash.Completion {
	word, rest, ok := strings.Cut(head, " ")
	if !ok || strings.Contains(rest, " ") {
		return nil
	}
	var out []slash.Completion
	offer := func(text, about string) {
		if strings.HasPrefix(text, rest) {
			out = append(out, slash.Completion{Text: text, Start: cursor - len(rest), End: cursor, Kind: "value", Description: about})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // a person waits while typing
	defer cancel()
	switch word {
	case "/mode":
		for _, name := range append(t.app.Rules().ModeNames(), noMode) {
			offer(name, "")
		}
	case "/resume":
		list, err := listed(ctx, t.app, mostSessions)
		if err != nil {
			return nil // the command itself will say it
		}
		for _, s := range list {
			offer(s.ID, s.about())
		}
	case "/rewind":
		turns, err := t.turns(ctx)
		if err != nil {
			return nil
		}
		for _, turn := range turns {
			offer(strconv.Itoa(turn.number), firstWords(turn.said, 60))
		}
	}
	return out
}

// errNothingSaid is what commands about the session say before there is one.
var errNothingSaid = errors.New("nothing was said yet")

// Command runs a command of the conversation itself. What looks like a command
// and is none is refused, rather than said to the model.
func (t *conversation) Command(ctx context.Context, line string) (chat.Output, bool, error) {
	fields := strings.Fields(line)
	if len(fields) == 0 || !strings.HasPrefix(line, "/") {
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
	switch {
	case isViewWord(fields[0]):
		return chat.Output{}, true, fmt.Errorf("%s stands alone; %s", fields[0], slash.ForModel)
	case t.app.Commands.All().LooksLike(line) && !t.app.Commands.All().Is(line):
		return chat.Output{}, true, t.unknownWord(line)
	}
	return chat.Output{}, false, nil
}

// isViewWord reports whether the view of a conversation has a word.
func isViewWord(name string) bool {
	return name == "/exit" || slices.ContainsFunc(chat.Words(), func(w slash.Completion) bool { return w.Text == name })
}

// unknownWord says what may have been meant by a line that is no command.
func (t *conversation) unknownWord(line string) error {
	word := strings.Fields(line)[0]
	var names []string
	for _, w := range words() {
		names = append(names, w.name)
	}
	for _, w := range chat.Words() {
		names = append(names, w.Text)
	}
	near := t.app.Commands.All().Suggest(line)
	if own := spelling.Nearest(word, names); own != "" {
		near = append([]string{own}, near...)
	}
	fix := "/help and Tab list what there is;"
	if len(near) > 0 {
		fix = "did you mean " + strings.Join(near[:min(len(near), 3)], " or ") + "?"
	}
	return &capability.Error{
		Kind: capability.NotFound, Op: "run", Target: untrusted.Line(word, 60), Err: errors.New("no command has this name"), Fix: fix + " " + slash.ForModel,
	}
}

// own runs a command of the conversation itself for a script, which hears of it
// as of a turn. It is false where the text is none.
func (t *conversation) own(ctx context.Context, text string) (iter.Seq2[event.Event, error], bool) {
	word, args, _ := strings.Cut(strings.TrimRight(text, " \n"), " ")
	flag, lasts := map[string]string{"/mode": "--mode", "/new": "no --resume", "/resume": "--resume"}[word]
	var out chat.Output
	is, err := lasts, error(usageError{fmt.Errorf("%s works only in a conversation; with -p use %s", word, flag)})
	switch {
	case isViewWord(word):
		is, err = true, usageError{fmt.Errorf("%s works only in a conversation (ken chat without -p); %s", word, slash.ForModel)}
	case !lasts || word == "/mode" && args == "":
		out, is, err = t.Command(ctx, text)
	}
	return func(yield func(event.Event, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		yield(event.Done{Session: t.session(), Reason: event.EndCommand, Text: out.Text}, nil)
	}, is
}

func (t *conversation) help(context.Context, []string) (chat.Output, error) {
	var b strings.Builder
	for _, w := range words() {
		fmt.Fprintf(&b, "- `%s` %s\n", w.name, w.about)
	}
	for _, w := range chat.Words() {
		fmt.Fprintf(&b, "- `%s` %s\n", w.Text, w.Description)
	}
	fmt.Fprintf(&b, "\nBesides, %s of your capabilities can be typed, as in `/NAME arguments`; Tab completes them.\n", output.Plural(len(t.app.Commands.All().Commands()), "command"))
	b.WriteString("\nWhat is not a command goes to the model; so does what has a blank or a second slash before its slash.\n")
	b.WriteString("\nIf a call needs approval: `y` this once, `a` this exact call for longer, `p` commands that begin alike, `s` with any arguments for this session, `n` no, `N` no and do not ask again in this session. `a`, `p` and `s` are there where the rules let you.")
	return chat.Output{Text: b.String()}, nil
}

func (t *conversation) compact(ctx context.Context, _ []string) (chat.Output, error) {
	c, err := t.engine.Compact(ctx, t.app.Principal, t.session())
	if err != nil {
		return chat.Output{}, err
	}
	if c.How == "" {
		return chat.Output{Text: fmt.Sprintf("There is nothing to sum up: the conversation takes %d tokens.", c.Before)}, nil
	}
	t.refresh(ctx)
	t.mu.Lock()
	t.status.Used = c.After
	t.mu.Unlock()
	return chat.Output{Text: fmt.Sprintf("The conversation was %s: from %d to at most %d tokens. Nothing is lost; /rewind still goes back.", c.How, c.Before, c.After)}, nil
}

func (t *conversation) cost(ctx context.Context, _ []string) (chat.Output, error) {
	t.refresh(ctx)
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

func (t *conversation) intent(ctx context.Context, _ []string) (chat.Output, error) {
	_, entries, err := t.sessions.Read(ctx, t.app.Principal, t.session())
	if err != nil {
		return chat.Output{}, err
	}
	var lines []string
	for _, e := range entries {
		if n, ok := session.ReadNote(&e).(session.Intended); ok {
			lines = append(lines, fmt.Sprintf("- turn %d: %s", e.Turn, untrusted.Line(n.String(), 200)))
		}
	}
	if len(lines) == 0 {
		return chat.Output{Text: "The model has declared no intent yet. Intents: " + strings.Join(policy.Intents(), ", ") + " (policy.intents)."}, nil
	}
	return chat.Output{Text: strings.Join(lines[max(len(lines)-20, 0):], "\n")}, nil
}

func (t *conversation) changeMode(_ context.Context, args []string) (chat.Output, error) {
	names := t.app.Rules().ModeNames()
	if len(args) == 0 {
		return chat.Output{Text: fmt.Sprintf("The mode is %s. There are %s, and none (`/mode none`).", orNone(t.Status().Mode), strings.Join(names, ", "))}, nil
	}
	name := args[0]
	if name != noMode && !slices.Contains(names, name) {
		return chat.Output{}, fmt.Errorf("unknown mode %q; the modes are %s, and none (policy.modes)", untrusted.Line(name, 40), strings.Join(names, ", "))
	}
	t.choose(name)
	return chat.Output{Text: "The mode is " + orNone(name) + " from the next message on."}, nil
}

func orNone(s string) string {
	if s == "" {
		return noMode
	}
	return s
}

func (t *conversation) showModel(context.Context, []string) (chat.Output, error) {
	if t.app.Models.Name() == "" {
		return chat.Output{Text: "No model is chosen. Run ken model to choose one."}, nil
	}
	row := t.app.Models.Row()
	return chat.Output{Text: fmt.Sprintf("%s, a window of %d tokens. Another one: `ken chat --model PROVIDER/NAME --resume %s`.", t.app.Models.Name(), row.Window, t.session())}, nil
}

func (t *conversation) fresh(context.Context, []string) (chat.Output, error) {
	old, mode := t.session(), t.Status().Mode
	t.take(session.Head{Mode: mode})
	if old == "" {
		return chat.Output{Text: "A new session."}, nil
	}
	return chat.Output{Text: "A new session. The one before is " + old + "."}, nil
}

func (t *conversation) goOn(ctx context.Context, args []string) (chat.Output, error) {
	if len(args) != 1 {
		return chat.Output{}, errors.New("name one session, or last; /sessions lists them")
	}
	if err := t.resume(ctx, args[0]); err != nil {
		return chat.Output{}, err
	}
	lines := t.where(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	return chat.Output{Text: strings.Join(lines, "\n\n"), GoOn: t.head.Open}, nil
}

func (t *conversation) rewind(ctx context.Context, args []string) (chat.Output, error) {
	turns, err := t.turns(ctx)
	if err != nil {
		return chat.Output{}, err
	}
	if len(turns) == 0 {
		return chat.Output{}, errors.New("rewind: the session has no turn to rewind")
	}
	turn := turns[len(turns)-1].number
	if len(args) > 0 {
		turn, err = strconv.Atoi(args[0])
		if err != nil || !slices.ContainsFunc(turns, func(s saidTurn) bool { return s.number == turn }) {
			return chat.Output{}, fmt.Errorf("%s: turn not found; the turns are %s", untrusted.Line(args[0], 24), numbers(turns))
		}
	}
	said, err := t.engine.Rewind(ctx, t.app.Principal, t.session(), turn)
	if err != nil {
		return chat.Output{}, err
	}
	return chat.Output{Text: fmt.Sprintf("Turn %d and all after it are taken back. What calls have done is not undone.", turn), Fill: said}, nil
}

func (t *conversation) list(ctx context.Context, _ []string) (chat.Output, error) {
	list, err := listed(ctx, t.app, mostSessions)
	if err != nil {
		return chat.Output{}, err
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "- `%s` %s\n", s.ID, s.about())
	}
	if b.Len() == 0 {
		b.WriteString("There are no other sessions yet.")
	}
	return chat.Output{Text: b.String()}, nil
}

func (t *conversation) tools(ctx context.Context, args []string) (chat.Output, error) {
	if len(args) == 0 {
		st := t.app.OperatorView().Stats()
		return chat.Output{Text: fmt.Sprintf("%d capabilities, %d of them usable here. `/tools WORDS` finds some; `ken catalog list` lists all.", st.Capabilities, st.Available)}, nil
	}
	found, err := t.app.Door.Find(ctx, t.app.View(), door.Query{Text: strings.Join(args, " ")})
	if err != nil {
		return chat.Output{}, err
	}
	var b strings.Builder
	for _, p := range found.Briefs {
		fmt.Fprintf(&b, "- `%s` %.2f %s\n", p.ID, p.Score, output.Line(strings.Join(p.Why, "; ")))
	}
	if b.Len() == 0 {
		b.WriteString("Nothing fits (discovery.tier1MinRelevance).")
	}
	return chat.Output{Text: b.String()}, nil
}
