package billtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
)

// What is compared besides the delivery modes: a conversation without any tools, and
// one with everything in the prompt and nothing of Ken's.
const (
	none       model.DeliveryMode = "none"
	everything model.DeliveryMode = "everything"
)

// A player plays one conversation on one delivery mode.
type player struct {
	tb       testing.TB
	world    *world
	delivery model.DeliveryMode
	meter    *Meter

	tools    []llm.Tool
	entries  []session.Entry
	messages []llm.Message
	read     map[capability.ID]bool // described: its parameters are known
	live     deliver.Live           // of the first known entries
	known    int

	searches, calls int

	asked func(llm.Request, []llm.Block) // is told of every request and its answer; may be nil
	made  func(result string)            // of every call that is no search; may be nil
}

// ask is one request and its answer.
func (p *player) ask(system string, answer []llm.Block) {
	req := llm.Request{Tools: p.tools, System: system, Messages: p.messages}
	p.meter.Add(req, answer)
	if p.asked != nil {
		req.Messages = slices.Clone(req.Messages)
		p.asked(req, answer)
	}
}

// played is what came of it.
type played struct {
	delivery model.DeliveryMode // that was taken
	why      string
	cost     float64
	usage    llm.Usage
	searches int // requests that only looked for something
	largest  int
}

// own are Ken's tools of every session.
func own() []llm.Tool {
	return append(discover.Tools(), llm.Tool{Name: "invoke_capability", Description: "Call a capability by its id", Schema: json.RawMessage(invokeSchema)})
}

const invokeSchema = `{"type":"object","properties":{"capability":{"type":"string"},"action":{"type":"string"},"arguments":{"type":"object"}},"required":["capability"]}`

// system is what stands before every conversation, with or without tools.
var system = strings.TrimSpace(strings.Repeat("You are an assistant that helps people with their work and says what it did. ", 25))

func (w *world) play(tb testing.TB, row model.Row, delivery model.DeliveryMode, talk []turn, calls int) played {
	p := &player{tb: tb, world: w, delivery: delivery, meter: New(row, w.count), read: map[capability.ID]bool{}}
	text, why := p.begin(row, talk[0].found)
	for i, t := range talk {
		p.turn(text, i, t, calls)
	}
	usage, cost := p.meter.Total()
	return played{p.delivery, why, cost, usage, p.searches, p.meter.Largest()}
}

// begin makes the prefix and gives the system text, and why the delivery mode was chosen.
func (p *player) begin(row model.Row, found door.Found) (text, why string) {
	switch w := p.world; p.delivery {
	case none:
		return system, ""
	case everything:
		p.tools = w.raw
		return system, ""
	default:
		plan := deliver.Begin(deliver.PlanInput{Want: p.delivery, Row: row, All: w.all, Last: own(), Count: w.count})
		p.delivery, p.tools, text = plan.Delivery, plan.Tools, system
		if plan.Map {
			text += "\n\n" + found.Map
		}
		p.entries = []session.Entry{{Kind: session.Prefix, System: text, Tools: plan.Tools, Offers: plan.Offers}}
		return text, plan.Why
	}
}

// literally is the system text of per_turn: what was found stands in it, before
// the map.
func literally(found door.Found) string {
	text := system
	if files, in := prompt.Inject(nil, found); len(in.Injected) > 0 {
		text += "\n\n" + files[0].Text
	}
	return text + "\n\n" + found.Map
}

func (p *player) turn(system string, number int, t turn, calls int) {
	msg := llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: t.message}}}
	if p.delivery != none && p.delivery != everything {
		msg.Blocks = append(msg.Blocks, p.add(t)...)
	}
	if p.delivery == model.PerTurn {
		system = literally(t.found)
	}
	p.messages = append(p.messages, msg)
	for i := range calls {
		need := t.needs[i%len(t.needs)]
		call := p.callable(system, need)
		result := fmt.Sprintf("Result %d of turn %d. ", i, number) + strings.Repeat("It says what was asked for, in a line or two. ", 25)
		p.step(system, call, []llm.Block{{Text: result}})
		if p.made != nil {
			p.made(result)
		}
	}
	answer := []llm.Block{{Text: fmt.Sprintf("That is done, turn %d. ", number) + strings.Repeat("This is what came of it, and what to look at next. ", 8)}}
	p.ask(system, answer)
	p.messages = append(p.messages, llm.Message{Role: llm.Assistant, Blocks: answer})
}

// add delivers what the turn found.
func (p *player) add(t turn) (blocks []llm.Block) {
	in := deliver.AddInput{Delivery: p.delivery, Found: t.found, Live: p.now(), Last: own(), Count: p.world.count}
	for _, b := range t.found.Briefs {
		in.Offers = append(in.Offers, p.world.offers[b.ID])
	}
	if e, ok := deliver.Prefix(in); ok {
		p.entries, p.tools = append(p.entries, e), e.Tools
		in.Live = p.now()
	}
	in.Found.Rollout.Inject = in.Found.Rollout.Inject && p.delivery != model.PerTurn // there it is in the system text
	if e, ok := deliver.Add(in); ok {
		p.entries = append(p.entries, e)
		blocks = e.Blocks
	}
	return blocks
}

// now is what is live.
func (p *player) now() deliver.Live {
	if p.known != len(p.entries) {
		p.live, p.known = deliver.LiveOf(p.entries), len(p.entries)
	}
	return p.live
}

// step is one request with the call that it is answered by, and its result.
func (p *player) step(system string, call llm.ToolCall, result []llm.Block, beside ...llm.Block) {
	p.calls++
	call.ID = fmt.Sprint("call_", p.calls)
	answer := []llm.Block{{Call: &call}}
	p.ask(system, answer)
	blocks := append([]llm.Block{{Result: &llm.ToolResult{ID: call.ID, Name: call.Name, Blocks: result}}}, beside...)
	p.messages = append(p.messages, llm.Message{Role: llm.Assistant, Blocks: answer}, llm.Message{Role: llm.User, Blocks: blocks})
}

// callable returns the call of a tool, after looking for it where the model does
// not have it before its eyes: a line of it is read by its id, what is not there
// at all is searched for first.
func (p *player) callable(system string, need tool) llm.ToolCall {
	id := capability.ID(need.ID)
	o := p.world.offers[id]
	if p.delivery == none || p.delivery == everything {
		return llm.ToolCall{Name: o.Tool.Name, Arguments: need.args}
	}
	for try := 0; ; try++ {
		live := p.now()
		if _, ok := live.Tools[o.Tool.Name]; ok {
			return llm.ToolCall{Name: o.Tool.Name, Arguments: need.args}
		}
		shown := live.Shown[id]
		if p.read[id] || strings.HasPrefix(shown, "full:") {
			name := need.ID
			if _, ok := live.Names[o.Tool.Name]; ok {
				name = o.Tool.Name
			}
			envelope, _ := json.Marshal(map[string]any{"capability": name, "arguments": json.RawMessage(need.args)}) // it was read as JSON
			return llm.ToolCall{Name: "invoke_capability", Arguments: envelope}
		}
		name, args := discover.ToolDescribe, map[string]string{"id": need.ID}
		if shown == "" && !p.read[id] && try < 4 && !p.seen(id) {
			name, args = discover.ToolDiscover, map[string]string{"query": query(need, try)}
		}
		p.look(system, name, args, live)
	}
}

// query is what a model asks for: first what the tool is for, then by the words
// of its name.
func query(t tool, try int) string {
	words := strings.Fields(t.Description)
	if try == 0 && len(words) > 0 {
		return strings.Join(words[:min(len(words), 12)], " ")
	}
	return strings.Join(strings.FieldsFunc(t.Name+" "+t.Category, func(r rune) bool { return r == '_' || r == '-' }), " ")
}

// seen reports whether an earlier search showed a line of it.
func (p *player) seen(id capability.ID) bool {
	for _, e := range p.entries {
		if e.Kind == session.Results && e.Shown[id] != "" {
			return true
		}
	}
	return false
}

// look runs one of the tools by which a model looks further.
func (p *player) look(system, name string, args map[string]string, live deliver.Live) {
	p.searches++
	raw, _ := json.Marshal(args) // strings always can be
	said, err := p.world.door.Call(p.tb.Context(), p.world.view, capability.Scope{}, name, raw)
	if err != nil {
		p.tb.Fatal(err)
	}
	e := session.Entry{Kind: session.Results, Shown: map[capability.ID]string{}}
	var offers []deliver.Offer
	switch data := said.Data.(type) {
	case discover.Capabilities:
		for _, c := range data.Capabilities {
			offers = append(offers, p.world.offers[c.ID])
			e.Shown[c.ID] = "brief:searched"
		}
	case discover.Reading:
		p.read[data.ID] = true
		offers = append(offers, p.world.offers[data.ID])
	}
	result := []llm.Block{{Text: said.Text}}
	blocks, given := deliver.Searched(p.delivery, offers, live)
	if data, ok := said.Data.(discover.Reading); ok {
		if text, ok := deliver.Instead(data.ID, given); ok {
			result[0].Text = text
		}
	}
	e.Offers, e.Blocks = given, blocks
	p.entries = append(p.entries, e)
	call := llm.ToolCall{Name: name, Arguments: raw}
	switch {
	case len(blocks) > 0 && p.delivery == model.Search:
		p.step(system, call, slices.Concat(result, blocks))
	default:
		p.step(system, call, result, blocks...)
	}
}
