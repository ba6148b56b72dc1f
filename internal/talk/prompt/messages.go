package prompt

import (
	"strings"

	"ken/internal/talk/session"
	"ken/llm"
)

// Messages makes messages of what is live ([session.Live]). Each block stands
// where its entry stands and is passed on as it is; so the messages of a longer
// history begin with the blocks of a shorter one, and with its very messages
// wherever an answer came between. Entries of one turn that are not the model's
// and follow each other make one message; summaries and markers make their own.
//
// The messages are ones that every wire takes, also after a turn that was
// aborted or broke off: a call that has no result when something else follows
// gets one that says so; a result without a call, a second result, and an
// answer that holds neither text nor a call are left out. The last answer keeps
// its open calls: their results are still to come.
func Messages(live []session.Entry) []llm.Message {
	var m messages
	for i := range live {
		e := &live[i]
		switch e.Kind {
		case session.Assistant:
			m.settle(e.Turn)
			m.answer(e)
		case session.Results:
			m.results(e)
		case session.User, session.Added:
			m.settle(e.Turn)
			m.add(e.Turn, whole(e.Blocks)...)
		case session.Summary, session.Marker:
			m.settle(e.Turn)
			m.shut()
			m.add(e.Turn, whole(e.Blocks)...)
			m.shut()
		}
	}
	return m.list
}

// messages are being made.
type messages struct {
	list []llm.Message
	turn int  // of the last message, while more may be added to it
	open bool // more may be added to it
	due  []*llm.ToolCall
}

// add adds blocks to the user's side.
func (m *messages) add(turn int, blocks ...llm.Block) {
	if len(blocks) == 0 {
		return
	}
	if !m.open || m.turn != turn {
		m.list = append(m.list, llm.Message{Role: llm.User})
		m.open, m.turn = true, turn
	}
	last := &m.list[len(m.list)-1]
	last.Blocks = append(last.Blocks, blocks...)
}

func (m *messages) shut() { m.open = false }

func (m *messages) answer(e *session.Entry) {
	blocks := whole(e.Blocks)
	says := false
	for i := range blocks {
		if c := blocks[i].Call; c != nil {
			m.due = append(m.due, c)
			says = true
		}
		says = says || blocks[i].Text != "" || blocks[i].Image != nil
	}
	if says {
		m.shut()
		m.list = append(m.list, llm.Message{Role: llm.Assistant, Blocks: blocks})
	}
}

// results passes on the results of calls that wait for one.
func (m *messages) results(e *session.Entry) {
	var blocks []llm.Block
	for i := range e.Blocks {
		b := &e.Blocks[i]
		if b.Result == nil {
			if !blank(b) {
				blocks = append(blocks, *b)
			}
			continue
		}
		for j, c := range m.due {
			if c.ID == b.Result.ID {
				m.due = append(m.due[:j:j], m.due[j+1:]...)
				blocks = append(blocks, *b)
				break
			}
		}
	}
	m.add(e.Turn, blocks...)
}

// noResult is what a call is answered with that never got an answer.
const noResult = "No result: the turn ended before the call was made or before its result was known. Do not assume that it had its effect, nor that it had none."

// settle answers the calls that nothing has answered.
func (m *messages) settle(turn int) {
	for _, c := range m.due {
		if m.open {
			turn = m.turn
		}
		m.add(turn, llm.Block{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Failed: true, Blocks: []llm.Block{{Text: noResult}}}})
	}
	m.due = nil
}

// whole leaves out blocks that hold nothing, which some wires refuse.
func whole(blocks []llm.Block) []llm.Block {
	for i := range blocks {
		if !blank(&blocks[i]) {
			continue
		}
		out := append([]llm.Block(nil), blocks[:i]...)
		for j := i + 1; j < len(blocks); j++ {
			if !blank(&blocks[j]) {
				out = append(out, blocks[j])
			}
		}
		return out
	}
	return blocks
}

func blank(b *llm.Block) bool {
	return strings.TrimSpace(b.Text) == "" && b.Image == nil && b.Call == nil && b.Result == nil && b.Reasoning == nil && len(b.Tools) == 0
}
