package chatapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/slash"
	"ken/internal/untrusted"
)

// elsewhere returns what does here what a word of the terminal does there.
func elsewhere(word string) string {
	const one = "/api/v1/sessions/{id}"
	switch word {
	case "/compact":
		return "POST " + one + "/compact"
	case "/cost":
		return "GET " + one + ", whose head has usage and cost"
	case "/help":
		return "GET /api/v1/complete?line=/"
	case "/intent", "/why":
		return "GET " + one + "/turns/{turn}"
	case "/mode":
		return "mode in POST " + one + "/turns"
	case "/model":
		return "GET /api/v1/me"
	case "/new":
		return "POST /api/v1/sessions"
	case "/resume", "/sessions":
		return "GET /api/v1/sessions"
	case "/rewind":
		return "POST " + one + "/rewind"
	case "/tools":
		return "GET /api/v1/discover"
	case "/output":
		return "GET /api/v1/results/{handle}"
	case "/quit", "/exit":
		return "nothing: a session needs no end"
	}
	return ""
}

// words returns a text as the engine takes it. What is a word of the terminal, or
// looks like a command and is none, is refused rather than said to the model; a
// second slash, or a blank, says that it is for the model. A command is a call
// that a person makes themselves, without an intent: it is refused to those who
// do not decide, and whatever else of theirs begins with a slash is for the
// model, though it should become a command before the turn begins.
func words(index *slash.Index, typed string, decides bool) (string, error) {
	text := strings.TrimSpace(typed)
	if !strings.HasPrefix(text, "/") {
		return text, nil
	}
	if !strings.HasPrefix(typed, "/") {
		return " " + text, nil
	}
	if rest := text[1:]; index.LooksLike(rest) {
		return " " + rest, nil
	}
	word := strings.Fields(text)[0]
	if route := elsewhere(word); route != "" {
		return "", &wire.Problem{
			Status: http.StatusBadRequest, Code: "not-here",
			Detail: fmt.Sprintf("%s is a word of the terminal; here it is %s; %s", word, route, slash.ForModel),
			More:   map[string]any{"route": route},
		}
	}
	if index.LooksLike(text) && !index.Is(text) {
		return "", unknown(index, text)
	}
	switch {
	case decides:
		return text, nil
	case index.Is(text):
		return "", notTyped("a line that begins with a slash is a person's own call")
	}
	return " " + text, nil
}

// notTyped refuses a command to those who do not decide.
func notTyped(why string) error {
	return wire.ForPerson(why, "make the call with POST /api/v1/invoke, its line and an intent; "+slash.ForModel)
}

// text returns a message as the engine takes it: see [words].
func (a *api) text(who auth.Identity, typed string) (string, error) {
	text, err := words(a.commands(who), typed, who.Decides)
	if p, ok := errors.AsType[*wire.Problem](err); ok && p.Code == unknownCommand && a.cfg.NoCommands != nil {
		err = cmp.Or(a.cfg.NoCommands(who.Principal), err)
	}
	return text, err
}

// commands returns what a person can type.
func (a *api) commands(who auth.Identity) *slash.Index {
	if a.cfg.Commands != nil {
		if index := a.cfg.Commands(who); index != nil {
			return index
		}
	}
	return slash.New(nil)
}

const unknownCommand = "unknown-command"

// unknown says what may have been meant by a line that is no command.
func unknown(index *slash.Index, line string) error {
	fix := "GET /api/v1/complete lists what there is;"
	if near := index.Suggest(line); len(near) > 0 {
		fix = "did you mean " + strings.Join(near[:min(len(near), 3)], " or ") + "?"
	}
	return &wire.Problem{
		Status: http.StatusBadRequest, Code: unknownCommand,
		Detail: fmt.Sprintf("no command has the name %s; %s %s", untrusted.Line(strings.Fields(line)[0], 60), fix, slash.ForModel),
	}
}
