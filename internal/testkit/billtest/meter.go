// Package billtest works out what a provider bills for a conversation. A [Meter]
// is given the requests of one conversation in order and applies to them what
// the table (see [model.Row]) says of the provider's prompt cache: which tokens
// of each request are read from it, written to it, or plain input.
//
// It also replays conversations over the measured catalog against these rules,
// which is what BenchmarkBill tells of, and holds the replay to what the engine
// sends.
//
// It is a model of published rules, not a measurement: real tokens are the
// provider's own, caches may lose what they promise to keep, and the
// conversation is taken to go on without a pause longer than the cache lives.
package billtest

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strconv"

	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/tokenizer"
	"ken/llm"
)

// A Meter plays one conversation against one provider's rules. It must not be
// copied, and not be used by two goroutines at once. What requests hold must
// not be changed after they were given to it.
type Meter struct {
	row   model.Row
	price model.Price
	count tokenizer.Counter
	seed  maphash.Seed
	memo  map[string]int         // tokens of texts
	seen  map[*llm.Block]weighed // blocks of messages

	tools []llm.Tool // of the request before, with their cells
	cells []cell

	kept map[uint64]bool // the prefixes in the cache, by their hashes

	total llm.Usage
	cost  float64
	most  int // tokens of the largest request
}

// A cell is a part of a request that a match takes whole or not at all. print
// identifies everything up to its end, tokens is the price of that.
type cell struct {
	print  uint64
	tokens int
	blocks int // blocks of messages up to here
}

// A weighed block has its tokens and what it is told from others by.
type weighed struct {
	tokens int
	print  uint64
}

// New makes a Meter for a model. A nil count means [tokenizer.Count]. Where the
// model has no price, requests are weighed as if it had that of [Weights].
func New(row model.Row, count tokenizer.Counter) *Meter {
	m := &Meter{row: row, price: row.Price, count: count, seed: maphash.MakeSeed(), memo: map[string]int{}, seen: map[*llm.Block]weighed{}, kept: map[uint64]bool{}}
	if m.count == nil {
		m.count = tokenizer.Count
	}
	if !row.Price.Known() {
		m.price = deliver.Weights()
	}
	return m
}

// Add counts one more request and the answer that it got, and gives what they
// are billed.
func (m *Meter) Add(req llm.Request, answer []llm.Block) llm.Usage {
	line, marks := m.line(req)
	all := 0
	if len(line) > 0 {
		all = line[len(line)-1].tokens
	}
	u := llm.Usage{Input: all}
	for _, b := range answer {
		u.Output += m.block(b)
	}
	if m.row.Cache.Marked {
		u.CachedRead, u.CachedWrite = m.marked(line, marks)
	} else if m.row.Cache.Life > 0 {
		u.CachedRead = m.implicit(line)
	}
	m.total.Add(u)
	m.cost += m.price.Cost(u)
	m.most = max(m.most, all)
	return u
}

// Total is what was billed so far: tokens, and dollars (or weights, where there
// is no price).
func (m *Meter) Total() (llm.Usage, float64) { return m.total, m.cost }

// Largest is the most input that a request had.
func (m *Meter) Largest() int { return m.most }

// implicit matches the longest prefix that an earlier request had.
func (m *Meter) implicit(line []cell) int {
	read := 0
	for _, c := range line {
		if m.kept[c.print] {
			read = max(read, c.tokens)
		}
		m.kept[c.print] = true
	}
	if step := m.row.Cache.Step; step > 1 {
		read -= read % step
	}
	if read < m.row.Cache.Least {
		return 0
	}
	return read
}

// marked looks up what ends at a mark or, within the lookback, before one, and
// keeps what ends at one.
func (m *Meter) marked(line []cell, marks []int) (read, write int) {
	rule := m.row.Cache
	for _, at := range marks {
		for i := at; i >= 0; i-- {
			if rule.Lookback > 0 && line[at].blocks-line[i].blocks >= rule.Lookback {
				break
			}
			if m.kept[line[i].print] {
				read = max(read, line[i].tokens)
				break
			}
		}
	}
	for _, at := range marks {
		if line[at].tokens >= rule.Least {
			m.kept[line[at].print] = true
			write = max(write, line[at].tokens-read)
		}
	}
	return read, max(write, 0)
}

// line lays a request out in the order in which providers match it, and says
// where the marks stand that the wires set.
func (m *Meter) line(req llm.Request) (line []cell, marks []int) {
	if len(req.Tools) == 0 || len(m.tools) != len(req.Tools) || &m.tools[0] != &req.Tools[0] {
		m.tools, m.cells = req.Tools, m.toolCells(req.Tools)
	}
	line = slices.Clone(m.cells)
	mark := func() { marks = append(marks, len(line)-1) }
	ends := m.row.Cache.Implicit // the provider marks the end itself, the wire the system text
	if len(line) > 0 && !ends {
		mark()
	}
	if req.System != "" {
		line = m.append(line, m.print("system", req.System), m.text(req.System)+turnTokens, 0)
		mark()
	}
	roles := map[llm.Role]uint64{llm.Assistant: 1}
	users := []int{}
	for _, msg := range req.Messages {
		for i := range msg.Blocks {
			b := m.known(&msg.Blocks[i])
			if i == 0 {
				b.tokens += turnTokens
			}
			line = m.append(line, b.print^roles[msg.Role], b.tokens, 1)
		}
		if msg.Role == llm.User {
			users = append(users, len(line)-1)
		}
	}
	switch n := len(users); {
	case ends && n > 0:
		mark()
	case n > 0:
		marks = append(marks, users[max(0, n-2):]...)
	}
	if most := m.row.Cache.Marks; most > 0 && len(marks) > most {
		marks = marks[len(marks)-most:]
	}
	return line, marks
}

// turnTokens is what a wire puts around a message.
const turnTokens = 4

func (m *Meter) toolCells(tools []llm.Tool) (line []cell) {
	for i, t := range tools {
		tokens := m.tool(t)
		if i == 0 && m.row.Wire == model.Messages {
			tokens += preamble
		}
		line = m.append(line, m.print("tool", t.Name, t.Description, string(t.Schema)), tokens, 0)
	}
	return line
}

// preamble is what Anthropic's models are told about tools where there are any.
const preamble = 346

// append adds a part whose own print is given.
func (m *Meter) append(line []cell, print uint64, tokens, blocks int) []cell {
	var last cell
	if len(line) > 0 {
		last = line[len(line)-1]
	}
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:8], last.print)
	binary.LittleEndian.PutUint64(both[8:], print)
	return append(line, cell{maphash.Bytes(m.seed, both[:]), last.tokens + tokens, last.blocks + blocks})
}

// print identifies a list of texts.
func (m *Meter) print(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	for _, p := range parts {
		h.WriteString(strconv.Itoa(len(p)) + ":")
		h.WriteString(p)
	}
	return h.Sum64()
}

func (m *Meter) known(b *llm.Block) weighed {
	w, ok := m.seen[b]
	if !ok {
		w = weighed{m.block(*b), m.print(parts(*b)...)}
		m.seen[b] = w
	}
	return w
}

func (m *Meter) text(s string) int {
	n, ok := m.memo[s]
	if !ok {
		n = m.count(s)
		m.memo[s] = n
	}
	return n
}

func (m *Meter) tool(t llm.Tool) int { return deliver.ToolTokens(t, m.text) }

// block returns the tokens of a block. Tools in the middle of a conversation are
// priced where they stand.
func (m *Meter) block(b llm.Block) int {
	switch {
	case b.Call != nil:
		return m.text(b.Call.Name) + m.text(string(b.Call.Arguments)) + callTokens
	case b.Result != nil:
		n := callTokens
		for _, part := range b.Result.Blocks {
			n += m.block(part)
		}
		return n
	case b.Reasoning != nil:
		return m.text(b.Reasoning.Text)
	case b.Image != nil:
		return imageTokens
	case len(b.Tools) > 0:
		n := turnTokens
		for _, t := range b.Tools {
			n += m.tool(t)
		}
		return n
	}
	return m.text(b.Text)
}

const (
	callTokens  = 12   // what a wire puts around a call or a result: keys and ids
	imageTokens = 1500 // a picture of usual size
)

// parts is all of a block that reaches a wire.
func parts(b llm.Block) []string {
	all := []string{b.Text}
	for _, t := range b.Tools {
		all = append(all, "tool", t.Name, t.Description, string(t.Schema))
	}
	if c := b.Call; c != nil {
		all = append(all, "call", c.ID, c.Name, string(c.Arguments), string(c.Opaque))
	}
	if r := b.Result; r != nil {
		all = append(all, "result", r.ID, r.Name, strconv.FormatBool(r.Failed))
		for _, part := range r.Blocks {
			all = append(all, parts(part)...)
		}
	}
	if r := b.Reasoning; r != nil {
		all = append(all, "reasoning", r.Text, r.Wire, string(r.Opaque))
	}
	if p := b.Image; p != nil {
		all = append(all, "image", p.MIME, string(p.Data))
	}
	return all
}
