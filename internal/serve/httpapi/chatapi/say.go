package chatapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/stream"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm"
)

// say begins a turn and answers as the client wants: at once, at the end, or with
// the events.
func (a *api) say(w http.ResponseWriter, r *wire.Request) error {
	var in Said
	if err := r.Decode(&in); err != nil {
		return err
	}
	if _, _, err := a.head(r); err != nil { // whose it is comes before what is said
		return err
	}
	input, said, err := a.input(r.Who, &in)
	if err != nil {
		return err
	}
	wait := r.Yes("wait")
	input.Alone = wait
	if in.Alone != nil {
		input.Alone = *in.Alone
	}
	sessions, hold, err := a.hold(r)
	if err != nil {
		return err
	}
	head, entries, err := sessions.Read(r.Context(), r.Who.Principal, r.PathValue("id"))
	if err != nil {
		hold.Release(false)
		return missing(err, r)
	}
	if input.Continue && !r.Who.Decides && typedLast(entries) {
		hold.Release(false)
		return notTyped("the turn that waits is a person's own call")
	}
	if !input.Continue && !r.Who.Decides && typedWaits(session.Readable(entries)) { // it would be given up
		hold.Release(false)
		return wire.ForPerson("a person's own call waits in this session, and another turn would end it", "have it answered on the page or by ken approve, or begin another session")
	}
	begin := stream.Begin{Input: input, Said: said, Turn: head.Turns + 1, Base: head.Last}
	if input.Continue {
		begin.Turn = head.Turns
	}
	begin.Input.Scope = capability.Scope{SessionType: typeOf(entries)}
	turn := hold.Start(begin)
	switch {
	case wait:
		return ended(w, r, turn)
	case r.WantsEvents():
		return a.follow(w, r, turn.After, true)
	}
	wire.JSON(w, http.StatusAccepted, accepted(head.ID, turn))
	return nil
}

func accepted(id string, t *stream.Turn) Accepted {
	return Accepted{Session: id, Events: "/api/v1/sessions/" + id + "/events?after=" + url.QueryEscape(t.After)}
}

// ended answers when a turn is over.
func ended(w http.ResponseWriter, r *wire.Request, t *stream.Turn) error {
	done, asked, err := t.Wait(r.Context())
	if err != nil {
		return missing(err, r)
	}
	wire.JSON(w, http.StatusOK, Ended{Done: done, Asked: told(r.Who, asked)})
	return nil
}

// input is a message, as the engine takes it, and as people see it.
func (a *api) input(who auth.Identity, in *Said) (event.Input, string, error) {
	text, err := a.text(who, in.Text)
	if err != nil {
		return event.Input{}, "", err
	}
	out := event.Input{
		Text: text, Mode: in.Mode, NoMode: in.NoMode, Continue: in.Continue, Override: in.Override,
		Delivery: model.DeliveryMode(in.Delivery), Surface: a.cfg.Surface,
	}
	switch {
	case in.Continue && (text != "" || len(in.Images) > 0):
		return out, "", wire.Bad("continue goes on with the last turn and has no text or images of its own")
	case !in.Continue && strings.TrimSpace(text) == "" && len(in.Images) == 0:
		return out, "", wire.Bad("text is empty; say something, or go on with continue: true")
	case in.NoMode && in.Mode != "":
		return out, "", wire.Bad("mode and noMode contradict each other")
	case !utf8.ValidString(text):
		return out, "", wire.Bad("text is not UTF-8")
	}
	if err := in.Override.Check(); err != nil {
		return out, "", wire.Bad("override." + err.Error())
	}
	if err := a.mode(in.Mode); err != nil {
		return out, "", err
	}
	modes := []model.DeliveryMode{"", model.Auto, model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn}
	if !slices.Contains(modes, out.Delivery) {
		return out, "", wire.Bad(fmt.Sprintf("delivery is %.40q; it is one of %v", in.Delivery, modes[1:]))
	}
	out.Images, err = images(in.Images)
	return out, strings.TrimSpace(text), err
}

const mostImages = 20

// images checks that pictures are what they say.
func images(list []Image) ([]llm.Image, error) {
	if len(list) > mostImages {
		return nil, wire.Bad(fmt.Sprintf("there are %d images; a message may have %d", len(list), mostImages))
	}
	var out []llm.Image
	for n, i := range list {
		switch i.MIME {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
		default:
			return nil, wire.Bad(fmt.Sprintf("image %d is %.60q; images are image/png, image/jpeg, image/gif or image/webp", n+1, i.MIME))
		}
		if is := http.DetectContentType(i.Data); is != i.MIME {
			return nil, wire.Bad(fmt.Sprintf("image %d says that it is %s and is %s", n+1, i.MIME, is))
		}
		out = append(out, llm.Image{MIME: i.MIME, Data: i.Data})
	}
	return out, nil
}

// retry takes back the last turn and says the same again.
func (a *api) retry(r *wire.Request) (any, error) {
	var want Retry
	if err := r.Decode(&want); err != nil {
		return nil, err
	}
	sessions, hold, err := a.hold(r)
	if err != nil {
		return nil, err
	}
	begun := false
	defer func() {
		if !begun {
			hold.Release(false)
		}
	}()
	e, err := a.cfg.Engine()
	if err != nil {
		return nil, err
	}
	who, id := r.Who.Principal, r.PathValue("id")
	_, entries, err := sessions.Read(r.Context(), who, id)
	if err != nil {
		return nil, missing(err, r)
	}
	number, in := lastSaid(session.Readable(entries))
	if number == 0 {
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "conflict", Detail: "nothing was said yet that could be said again"}
	}
	if want.Turn != 0 && want.Turn != number {
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "conflict", Detail: fmt.Sprintf("turn %d is not the last one: that is %d; read the session again", want.Turn, number)}
	}
	if !r.Who.Decides && strings.HasPrefix(strings.TrimSpace(in.Text), "/") {
		return nil, notTyped("what was said last begins with a slash, as a person's own call does")
	}
	if _, err := e.Rewind(r.Context(), who, id, number); err != nil {
		return nil, missing(err, r)
	}
	head, err := sessions.Head(r.Context(), who, id)
	if err != nil {
		begun = true // the session is not what it was
		hold.Release(true)
		return nil, missing(err, r)
	}
	in.Surface, in.Scope = a.cfg.Surface, capability.Scope{SessionType: typeOf(entries)}
	turn := hold.Start(stream.Begin{Input: in, Said: strings.TrimSpace(in.Text), Turn: head.Turns + 1, Base: head.Last, Changed: true})
	begun = true
	return accepted(id, turn), nil
}

// typedLast reports whether a turn that goes on is a command that a person
// typed: the engine makes the call of the turn with the highest number.
func typedLast(entries []session.Entry) bool {
	typed, last := false, 0
	for i := range entries {
		e := &entries[i]
		if e.Turn > last {
			typed, last = false, e.Turn
		}
		if _, command := session.ReadNote(e).(session.Command); command && e.Turn == last {
			typed = true
		}
	}
	return typed
}

// typedWaits reports whether the last turn is a command that a person typed and
// that waits for them.
func typedWaits(entries []session.Entry) bool {
	waits := false
	for i := range entries {
		if entries[i].Kind == session.User {
			waits = false
		}
		if n, ok := session.ReadNote(&entries[i]).(session.Ended); ok {
			waits = n.Reason == string(event.EndWaiting)
		}
	}
	return waits && typedLast(entries)
}

// lastSaid is what was said last, as it was said.
func lastSaid(entries []session.Entry) (turn int, in event.Input) {
	for i := range entries {
		e := &entries[i]
		if n, ok := session.ReadNote(e).(session.Command); ok && e.Turn == turn {
			in.Text = n.Line
		}
		if e.Kind == session.User {
			turn, in = e.Turn, event.Input{}
			for j := range e.Blocks {
				if b := &e.Blocks[j]; b.Image != nil {
					in.Images = append(in.Images, *b.Image)
				} else {
					in.Text += b.Text
				}
			}
		}
	}
	return turn, in
}

// events follows a session.
func (a *api) events(w http.ResponseWriter, r *wire.Request) error {
	_, head, err := a.head(r)
	if err != nil {
		return err
	}
	a.cfg.Hub.Saw(r.Who.Principal, head.ID, head.Turns)
	// A client that comes back says by the header where it was, with the same
	// address as before.
	return a.follow(w, r, cmp.Or(r.Header.Get("Last-Event-ID"), r.Text("after")), false)
}

// toldFrame returns the data of an event as the caller may know it.
func toldFrame(who auth.Identity, f stream.Frame) []byte {
	if who.Decides || f.Name != "asked" {
		return f.Data
	}
	var asked event.Asked
	if json.Unmarshal(f.Data, &asked) != nil { // it was too long for a frame
		asked = event.Asked{}
	}
	data, _ := json.Marshal(asked.Told()) // which came from JSON
	return data
}

// follow writes the events of a session, or once those of one turn. The turn may
// be over where a follower that fell behind is told to read it again: reset ends
// it too.
func (a *api) follow(w http.ResponseWriter, r *wire.Request, after string, once bool) error {
	out, err := wire.NewEvents(w)
	if err != nil {
		return nil // the client is gone
	}
	for frame := range a.cfg.Hub.Follow(r.Context(), r.Who.Principal, r.PathValue("id"), after) {
		switch {
		case err != nil:
			return nil
		case frame.Name == "":
			err = out.Comment("")
		case frame.Name == wire.Leaving:
			err = out.Leave()
		default:
			err = out.Event(frame.ID, frame.Name, toldFrame(r.Who, frame))
		}
		if once && (frame.Name == "done" || frame.Name == "failed" || frame.Name == "reset") {
			return nil
		}
	}
	return nil
}
