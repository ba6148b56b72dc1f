// Package deliver makes found capabilities callable without breaking what a
// provider has cached of a conversation. What was sent stays as it was sent;
// only what is new is added, and how that is done is a delivery mode of a ladder (see
// [model.DeliveryMode]).
//
// [Begin] chooses the delivery mode and the prefix of a session, [Add] says what a turn
// adds to it, [Searched] what the model's own search adds, and [Prefix] is the
// new prefix on the delivery modes that change it. All functions are pure: the same
// input returns the same bytes.
package deliver

import (
	"maps"

	"ken/capability"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/llm"
)

// An Offer is a capability as a tool that a model could be given. Tool has the
// name that [Names] gave it; its schema is sent as [Slim] has it. Tokens is its
// price; zero means that it is not known and is counted.
type Offer struct {
	Tool   llm.Tool
	ID     capability.ID
	Action string
	Tokens int
}

// tool is the tool as it is sent.
func (o *Offer) tool() llm.Tool {
	t := o.Tool
	t.Schema = Slim(t.Schema)
	return t
}

func (o *Offer) entry() session.Offer {
	return session.Offer{Tool: o.Tool.Name, ID: o.ID, Action: o.Action}
}

// tokens returns the price of an offer.
func (o *Offer) tokens(count tokenizer.Counter) int {
	if o.Tokens > 0 {
		return o.Tokens
	}
	return ToolTokens(o.tool(), count)
}

// ToolTokens is what a tool takes of a prompt: its name, its description and
// its schema, and a little for what a wire puts around them. A nil count means
// [tokenizer.Count].
func ToolTokens(t llm.Tool, count tokenizer.Counter) int {
	count = counter(count)
	return count(t.Name) + count(t.Description) + count(string(t.Schema)) + around
}

// around is what wires put around a tool: braces and the three keys.
const around = 12

func counter(c tokenizer.Counter) tokenizer.Counter {
	if c == nil {
		return tokenizer.Count
	}
	return c
}

// Live is what the model has before it already. Its maps must not be changed.
// The zero value is the start of a session.
type Live struct {
	// Shown has the capabilities whose texts are in the history, each with the
	// mark that [session.Entry.Shown] has for it.
	Shown map[capability.ID]string

	// Tools are what can be called as tools of the wire, by name. Names are
	// what invoke_capability and describe_capability can be given: the short
	// names under which texts show capabilities.
	Tools map[string]session.Offer
	Names map[string]session.Offer

	// System and Prefix are what stands before all messages.
	System string
	Prefix []llm.Tool
}

// Resolve returns the capability that a model means by a name it was given,
// whether as a tool or in a text.
func (l Live) Resolve(name string) (session.Offer, bool) {
	if o, ok := l.Tools[name]; ok {
		return o, true
	}
	o, ok := l.Names[name]
	return o, ok
}

// Taken are the names that are in use, for [Names].
func (l Live) Taken() map[string]session.Offer {
	all := maps.Clone(l.Names)
	if all == nil {
		return l.Tools
	}
	maps.Copy(all, l.Tools)
	return all
}

// LiveOf reads what is live from the entries that are (see [session.Live]). An
// offer is a tool where its entry gives one of that name, and a name else. A
// tool of an older prefix than the newest is not live: it is not sent.
func LiveOf(live []session.Entry) Live { return LiveFor(live, true, true) }

// LiveFor is LiveOf for a model that takes tools in messages or not, and in
// results or not: those that it does not take are not sent, and are names.
func LiveFor(live []session.Entry, inline, search bool) Live {
	l := Live{Shown: map[capability.ID]string{}, Tools: map[string]session.Offer{}, Names: map[string]session.Offer{}}
	var prefix *session.Entry
	for i := range live {
		e := &live[i]
		maps.Copy(l.Shown, e.Shown)
		if e.Kind == session.Prefix {
			prefix = e
			continue
		}
		given := map[string]bool{}
		if len(e.Offers) > 0 {
			toolNames(given, e.Blocks, inline, search)
		}
		for _, o := range e.Offers {
			if given[o.Tool] {
				l.Tools[o.Tool] = o
			} else {
				l.Names[o.Tool] = o
			}
		}
	}
	if prefix != nil {
		l.System, l.Prefix = prefix.System, prefix.Tools
		for _, o := range prefix.Offers {
			l.Tools[o.Tool] = o
		}
	}
	if !inline || !search {
		l.forget()
	}
	return l
}

// forget takes back that a capability was shown as a tool where the tool is not
// sent.
func (l *Live) forget() {
	callable := map[capability.ID]bool{}
	for _, o := range l.Tools {
		callable[o.ID] = true
	}
	maps.DeleteFunc(l.Shown, func(id capability.ID, mark string) bool { return mark == markTool && !callable[id] })
}

// toolNames collects the tools that blocks give, and those in results.
func toolNames(into map[string]bool, blocks []llm.Block, inline, search bool) {
	for i := range blocks {
		b := &blocks[i]
		if inline {
			for _, t := range b.Tools {
				into[t.Name] = true
			}
		}
		if b.Result != nil && search {
			toolNames(into, b.Result.Blocks, true, false)
		}
	}
}
