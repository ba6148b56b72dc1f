package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/jsonappend"
	"ken/internal/untrusted"
)

// maxRounds is how often one call may ask.
const maxRounds = 10

// consentName is the name of Ken's own question among those of a back end.
const consentName = "ken_consent"

// An exchange is one call with all that is asked on the way.
type exchange struct {
	ep      *endpoint
	sess    *session
	view    door.View
	ss      *mcp.ServerSession
	modern  bool
	subject string
	caps    func() *mcp.ClientCapabilities
	call    capability.Call

	given   map[string]json.RawMessage // what people have agreed to
	shut    bool                       // the question was closed without a person's answer
	alone   string                     // says that the client answered by itself
	waiting string                     // what to say where a client could not answer
	open    *Question                  // that waits for an answer given elsewhere
}

// prepare sets the call that a request stands for.
func (x *exchange) prepare(ctx context.Context, target capability.ID, args json.RawMessage, p mcp.RequestParams) {
	x.call = capability.Call{
		Target: target, Arguments: args, Session: x.sess.id, Intent: x.sess.active(time.Now()),
		Live: x.ep.reporter(ctx, x.sess, x.ss, p), Meta: x.ep.passedMeta(p.GetMeta()),
	}
}

// passedMeta returns the metadata of a request that is meant for the server of a
// tool: all but what the protocol itself puts there. It is nil if there is none.
func (ep *endpoint) passedMeta(meta mcp.Meta) json.RawMessage {
	var out map[string]any
	for key, value := range meta {
		if key == "progressToken" || strings.HasPrefix(key, "io.modelcontextprotocol/") || strings.HasPrefix(key, "ken/") {
			continue
		}
		if out == nil {
			out = map[string]any{}
		}
		out[key] = value
	}
	if out == nil {
		return nil
	}
	raw, err := json.Marshal(out)
	if err != nil || len(raw) > mostMeta {
		ep.s.log.Warn("metadata of a request is not passed on", "bytes", len(raw), "limit", mostMeta, "error", err)
		return nil
	}
	return raw
}

// run makes the call. A pause is an answer that asks the client; it comes back
// with responses and state.
func (x *exchange) run(ctx context.Context, responses mcp.InputResponseMap, state string) (capability.Result, *answer, error) {
	if len(responses) > 0 || state != "" {
		pause, err := x.resume(ctx, responses, state)
		if err != nil || pause != nil {
			return capability.Result{}, pause, err
		}
	}
	for range maxRounds {
		res, err := x.ep.s.cfg.Door.Invoke(ctx, x.view, x.call)
		if err == nil {
			return res, nil, nil
		}
		x.call.Arrived = time.Time{} // what is asked takes time, in which rules may change
		again, pause, failed := x.ask(ctx, err)
		if !again {
			return capability.Result{}, pause, failed
		}
	}
	return capability.Result{}, nil, &capability.Error{
		Kind: capability.InputNeeded, Op: "call", Target: string(x.call.Target), Err: fmt.Errorf("asked %d times, the limit", maxRounds), Fix: "make the call again",
	}
}

// resume takes the answers that a client sends with a call made again.
func (x *exchange) resume(ctx context.Context, responses mcp.InputResponseMap, state string) (*answer, error) {
	var c claim
	if state != "" {
		var err error
		if c, err = unseal(x.ep.s.sealer(), state, x.claim(), x.ep.s.now()); err != nil {
			return nil, fault(jsonrpc.CodeInvalidParams, err.Error(), nil)
		}
	}
	x.call.State, x.given = c.State, c.Given
	answers := map[string]json.RawMessage{}
	maps.Copy(answers, c.Kept)
	for name, r := range responses {
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, fault(jsonrpc.CodeInvalidParams, "the response "+untrusted.Line(name, 40)+" cannot be read", nil)
		}
		answers[name] = raw
	}
	// What only people can give is taken from the claim, which Ken sealed.
	for _, name := range [...]string{consentName, "consent", "run_again"} {
		delete(answers, name)
	}
	for _, name := range c.Declined {
		answers[name] = json.RawMessage(`{"action":"cancel"}`)
	}
	x.call.Answers = answers
	maps.Copy(x.call.Answers, x.given)
	if c.Asked == "" {
		return nil, nil
	}
	q := &Question{Name: c.Asked, Ticket: c.Ticket, Answer: c.Answer, Wide: c.Wide, Prefix: c.Prefix}
	reply, _ := responses[consentName].(*mcp.ElicitResult)
	if reply == nil {
		return nil, nil // the call asks again
	}
	_, err := x.take(ctx, q, reply, x.ep.s.now().Sub(c.Expires.Add(-stateLife)))
	return nil, err
}

// claim is what each round of this exchange must be of.
func (x *exchange) claim() claim {
	return claim{Who: x.ep.key, Session: x.sess.id, Subject: x.subject + " " + x.about()}
}

// about is a digest of what the call runs, and with which arguments: an answer for
// one call is not one for another.
func (x *exchange) about() string {
	d, err := capability.Call{Target: x.call.Target, Arguments: x.call.Arguments}.Digest()
	if err != nil { // such arguments are never run
		return "unreadable"
	}
	return d
}

// ask looks what a call that failed waits for, and asks. It reports whether to
// make the call again now.
func (x *exchange) ask(ctx context.Context, err error) (again bool, pause *answer, failed error) {
	if q, ok := errors.AsType[*capability.Inquiry](err); ok {
		return x.inquire(ctx, q, err)
	}
	if x.ep.s.cfg.Ask == nil {
		return false, nil, err
	}
	q, qerr := x.ep.s.cfg.Ask(ctx, err)
	if qerr != nil {
		x.ep.s.log.Error("what a call waits for cannot be read", "error", qerr)
		return false, nil, err
	}
	if q == nil {
		return false, nil, err
	}
	if x.given[q.Name] != nil && q.Ticket == "" {
		return false, nil, err // it was answered, and that was not enough
	}
	if x.shut || x.ep.s.cfg.Settle == nil || !x.canElicit() {
		return false, nil, x.waits(q, err)
	}
	form, ok := consentForm(q, x.call)
	if !ok { // what cannot be shown in full cannot be approved
		return false, nil, x.waits(q, err)
	}
	if x.modern {
		pause, failed = x.pauseFor(q, form)
		return false, pause, failed
	}
	asked := x.ep.s.now()
	reply, rerr := x.ss.Elicit(ctx, form)
	if rerr != nil {
		if ctx.Err() != nil {
			return false, nil, ctx.Err()
		}
		return false, nil, x.waits(q, err)
	}
	answered, terr := x.take(ctx, q, reply, x.ep.s.now().Sub(asked))
	if terr != nil {
		return false, nil, terr
	}
	if !answered {
		return false, nil, x.waits(q, err)
	}
	return true, nil, nil
}

// waits makes of an error what a model must know that reads it: that a person
// has to answer, where, and that this is not for the model to do.
func (x *exchange) waits(q *Question, err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok {
		return err
	}
	if q.Ticket == "" || x.ep.s.cfg.ApproveHint == nil {
		if x.alone == "" {
			return err
		}
		out := *e
		out.Fix = strings.TrimSpace(x.alone + " " + out.Fix)
		return &out
	}
	reach := "this call"
	if q.Wide {
		reach += "; --for session for all of this session"
	}
	x.open = q
	out := *e
	ask := "ask"
	if x.alone != "" {
		ask = x.alone + " Ask"
	}
	out.Fix = fmt.Sprintf("%s the user to run: %s (%s). Do not run it yourself. Then make the same call again.", ask, x.ep.s.cfg.ApproveHint(q.Ticket), reach)
	return &out
}

// hasty is how soon an answer is no person's: a person cannot read a question and
// answer it in that time, and clients without a person answer at once.
const hasty = time.Second

// take acts on what a person said, took after the question. Without a person's
// answer it reports false, and the question stays open.
func (x *exchange) take(ctx context.Context, q *Question, reply *mcp.ElicitResult, took time.Duration) (bool, error) {
	word, _ := reply.Content["decision"].(string)
	var d Decision
	switch {
	case (reply.Action == "decline" || reply.Action == "accept") && took < x.ep.s.cfg.hasty():
		x.shut = true
		x.alone = fmt.Sprintf("The client %s by itself, %d ms after the question, so no person has decided.",
			map[string]string{"decline": "declined", "accept": "agreed"}[reply.Action], max(took, 0).Milliseconds())
		d = Unasked
	case reply.Action == "decline":
		d = Deny
	case reply.Action != "accept":
		x.shut = true
		return false, nil
	default:
		for _, c := range choices(q) {
			if c.word == word {
				d = c.decision
			}
		}
		if d == "" {
			return false, nil
		}
	}
	if q.Ticket != "" && x.ep.s.cfg.Settle != nil {
		if err := x.ep.s.cfg.Settle(ctx, x.ep.who, Reply{Ticket: q.Ticket, Decision: d, Client: x.sess.clientName(), Took: took}); err != nil {
			return false, err
		}
	}
	if d == Unasked {
		return false, nil
	}
	if d == Deny && (q.Ticket == "" || x.ep.s.cfg.Settle == nil) {
		return false, &capability.Error{Kind: capability.Denied, Op: "call", Target: string(x.call.Target), Err: errors.New("a person said no")}
	}
	// The call that names its ticket is answered by it, also with a no.
	x.give(q)
	return true, nil
}

// give puts the answer to a question into the call.
func (x *exchange) give(q *Question) {
	if x.given == nil {
		x.given = map[string]json.RawMessage{}
	}
	if x.call.Answers == nil {
		x.call.Answers = map[string]json.RawMessage{}
	}
	x.given[q.Name], x.call.Answers[q.Name] = q.Answer, q.Answer
}

type choice struct {
	word     string
	decision Decision
}

// choices are the answers that count.
func choices(q *Question) []choice {
	switch {
	case q.Ticket == "":
		return []choice{{"run it again", AllowOnce}, {"leave it", Deny}}
	case q.Wide:
		list := []choice{{"allow once", AllowOnce}, {"always allow", AllowAlways}}
		if q.Prefix != "" {
			list = append(list, choice{"always allow commands like this", AllowPrefix})
		}
		return append(list, choice{"allow for this session", AllowSession}, choice{"deny", Deny})
	}
	return []choice{{"allow once", AllowOnce}, {"deny", Deny}}
}

// maxForm is how many characters a client is given to show.
const maxForm = 16_000

// consentForm shows a person what will run, and all of it: where that is too
// long it reports false.
func consentForm(q *Question, call capability.Call) (*mcp.ElicitParams, bool) {
	var b strings.Builder
	b.WriteString(untrusted.Line(q.Text, 400))
	for _, l := range q.Lines {
		if utf8.RuneCountInString(l.Text) > maxForm/2 {
			return nil, false
		}
		fmt.Fprintf(&b, "\n%s: %s", untrusted.Line(l.Name, 40), untrusted.Line(l.Text, maxForm))
	}
	if b.Len() > maxForm {
		return nil, false
	}
	if q.Wide {
		if q.Always != "" {
			fmt.Fprintf(&b, "\nAlways allow: %s.", untrusted.Line(q.Always, 400))
		}
		if q.Prefix != "" {
			fmt.Fprintf(&b, "\nAlways allow commands like this: %s.", untrusted.Line(q.Prefix, 400))
		}
		fmt.Fprintf(&b, "\nFor this session: every call of %s, with any arguments.", untrusted.Line(string(realTarget(call)), 120))
	}
	words := []any{}
	for _, c := range choices(q) {
		words = append(words, c.word)
	}
	return &mcp.ElicitParams{
		Mode: "form", Message: b.String(),
		RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"decision": map[string]any{"type": "string", "title": "Decision", "enum": words}},
			"required":   []any{"decision"},
		},
	}, true
}

// realTarget returns what a call is about, also within invoke_capability.
func realTarget(call capability.Call) capability.ID {
	if call.Target != toolInvoke {
		return call.Target
	}
	return capability.ID(invoked(&mcp.CallToolParamsRaw{Name: toolInvoke, Arguments: call.Arguments}))
}

func (x *exchange) canElicit() bool {
	caps := x.caps()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// pauseFor asks a client that answers with the next request.
func (x *exchange) pauseFor(q *Question, form *mcp.ElicitParams) (*answer, error) {
	c := x.claim()
	c.Asked, c.Ticket, c.Answer, c.Wide, c.Prefix, c.Given = q.Name, q.Ticket, q.Answer, q.Wide, q.Prefix, x.given
	c.State, c.Kept = x.call.State, maps.Clone(x.call.Answers)
	for name := range x.given {
		delete(c.Kept, name)
	}
	params, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	return x.pause(c, map[string]json.RawMessage{
		consentName: json.RawMessage(`{"method":"elicitation/create","params":` + string(params) + `}`),
	})
}

// pause writes what is asked.
func (x *exchange) pause(c claim, requests map[string]json.RawMessage) (*answer, error) {
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, name := range slices.Sorted(maps.Keys(requests)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonappend.String(b, name), ':')
		b = append(b, requests[name]...)
	}
	b = append(b, '}')
	if c.Asked != "" || c.State != "" || len(c.Given) > 0 || len(c.Kept) > 0 || len(c.Declined) > 0 {
		c.Expires = x.ep.s.now().Add(stateLife)
		state, err := seal(x.ep.s.sealer(), c)
		if err != nil {
			return nil, err
		}
		b = append(b, `,"requestState":`...)
		b = jsonappend.String(b, state)
	}
	return &answer{body: append(b, '}')}, nil
}
