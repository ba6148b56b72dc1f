package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/internal/jsonappend"
	"ken/llm"
)

// rawKey holds the arguments of a call that are no JSON object, since the wire
// takes only objects there.
const rawKey = "_raw"

// onlyTools is said for a user whose message gives tools and says nothing: the
// wire takes tools only after words of the user's.
const onlyTools = "More tools can be called from here on."

// Encode returns the body of a request: the same bytes for the same request. The
// encoding of a conversation begins with the encoding of its beginning, up to
// the end of the last message there, with three exceptions: marks of the cache
// move to the newest messages; tools that a search found stand behind the
// others in the list of tools, where the vendor does not count them to the
// prefix; and tools that a message gave come after the next one too where that
// is again the user's, as after a turn that was broken off.
//
// What the wire cannot carry is left out: blank text, reasoning of other
// vendors, and messages that are empty without them. The results of tools come
// first in their message, as the wire demands.
func (m *Model) Encode(req llm.Request) ([]byte, error) {
	body, _, err := m.encode(req)
	return body, err
}

func (m *Model) encode(req llm.Request) ([]byte, features, error) {
	e := encoder{dst: make([]byte, 0, size(req)), cache: req.Cache != ""}
	name, most := req.Model, req.MaxTokens
	if name == "" {
		name = m.cfg.Model
	}
	if most <= 0 {
		most = m.cfg.MaxTokens
	}
	e.raw(`{"model":`).str(name).raw(`,"max_tokens":`)
	e.dst = strconv.AppendInt(e.dst, int64(most), 10)
	e.raw(`,"stream":true`)
	if req.Effort != "" {
		e.uses.effort = true
		e.raw(`,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":`).str(req.Effort).raw(`}`)
	}
	e.tools(req)
	if !blank(req.System) {
		e.raw(`,"system":[{"type":"text","text":`).str(req.System).close(e.cache).raw(`]`)
	}
	e.messages(req.Messages)
	e.raw(`}`)
	if e.err != nil {
		e.err.Provider, e.err.Model = m.cfg.Name, name
		return nil, e.uses, e.err
	}
	return e.dst, e.uses, nil
}

// size guesses the length of an encoding, so that it is allocated once.
func size(req llm.Request) int {
	n := 512 + len(req.System) + len(req.System)/8
	for _, t := range req.Tools {
		n += 96 + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		n += 64 + sizeOf(m.Blocks)
	}
	return n + n/8
}

func sizeOf(blocks []llm.Block) int {
	n := 0
	for _, b := range blocks {
		n += 96 + len(b.Text)
		switch {
		case b.Image != nil:
			n += base64.StdEncoding.EncodedLen(len(b.Image.Data))
		case b.Call != nil:
			n += len(b.Call.ID) + len(b.Call.Name) + len(b.Call.Arguments)
		case b.Result != nil:
			n += len(b.Result.ID) + sizeOf(b.Result.Blocks)
		case b.Reasoning != nil:
			n += len(b.Reasoning.Opaque)
		}
		for _, t := range b.Tools {
			n += 128 + len(t.Name) + len(t.Description) + len(t.Schema)
		}
	}
	return n
}

// An encoder appends a request. Its first error stays.
type encoder struct {
	dst   []byte
	cache bool // marks are wanted
	uses  features
	err   *llm.Error

	deferred map[string]bool // tools that a result may refer to
}

func (e *encoder) raw(s string) *encoder { e.dst = append(e.dst, s...); return e }
func (e *encoder) str(s string) *encoder { e.dst = jsonappend.String(e.dst, s); return e }

// close ends an object, with a mark of the cache where one is wanted.
func (e *encoder) close(mark bool) *encoder {
	if mark {
		e.raw(`,"cache_control":{"type":"ephemeral"}`)
	}
	return e.raw(`}`)
}

// json appends a value that is already JSON. Anything else would let its author
// write the rest of the request.
func (e *encoder) json(value []byte, what, name string) *encoder {
	if !json.Valid(value) {
		if e.err == nil {
			e.err = &llm.Error{Kind: llm.Invalid, Message: "the " + what + " of " + name + " is not JSON"}
		}
		return e.raw(`null`)
	}
	if !utf8.Valid(value) {
		value = bytes.ToValidUTF8(value, []byte("\ufffd"))
	}
	e.dst = append(e.dst, value...)
	return e
}

// messages appends the conversation. The last block of the newest message of
// the user's is marked, and that of the one before, where the last request
// ended.
func (e *encoder) messages(list []llm.Message) {
	e.raw(`,"messages":[`)
	marked := e.marked(list)
	start := len(e.dst)
	var given []llm.Tool
	heard := false // the user has spoken since the model did
	for i, m := range list {
		if !carries(m) {
			continue
		}
		mark := marked[0] == i || marked[1] == i
		if m.Role == llm.User {
			for _, b := range m.Blocks {
				given = append(given, b.Tools...)
			}
		}
		// A system message is allowed only after a user message, and only if
		// no user message follows it.
		flush := len(given) > 0 && !userNext(list[i+1:])
		if said := e.message(m, mark && !flush, start); said || m.Role != llm.User {
			heard = m.Role == llm.User
		}
		if !flush {
			continue
		}
		if !heard {
			e.message(llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: onlyTools}}}, false, start)
			heard = true
		}
		e.additions(given, mark, start)
		given = nil
	}
	e.raw(`]`)
}

// marked returns the places of the messages that are marked; -1: none.
func (e *encoder) marked(list []llm.Message) [2]int {
	places, n := [2]int{-1, -1}, 0
	for i := len(list) - 1; e.cache && i >= 0 && n < len(places); i-- {
		if list[i].Role == llm.User && carries(list[i]) {
			places[n] = i
			n++
		}
	}
	return places
}

// userNext reports whether the next message that is sent is the user's.
func userNext(list []llm.Message) bool {
	for _, m := range list {
		if carries(m) {
			return m.Role == llm.User
		}
	}
	return false
}

// message appends what is said in a message, results first and the last block
// marked, and says whether there was anything.
func (e *encoder) message(m llm.Message, mark bool, start int) bool {
	left := 0
	for _, b := range m.Blocks {
		if len(b.Tools) == 0 && sent(b) {
			left++
		}
	}
	if left == 0 {
		return false
	}
	e.comma(start).raw(`{"role":`).str(string(m.Role)).raw(`,"content":[`)
	from := len(e.dst)
	for _, results := range []bool{true, false} {
		for _, b := range m.Blocks {
			if len(b.Tools) > 0 || !sent(b) || results != (b.Result != nil) {
				continue
			}
			left--
			e.comma(from).block(b).close(mark && left == 0)
		}
	}
	e.raw(`]}`)
	return true
}

// comma appends one unless the list that began at from is empty.
func (e *encoder) comma(from int) *encoder {
	if len(e.dst) > from {
		e.raw(`,`)
	}
	return e
}

// block appends a block without its closing brace.
func (e *encoder) block(b llm.Block) *encoder {
	switch {
	case b.Image != nil:
		return e.image(b.Image)
	case b.Call != nil:
		e.raw(`{"type":"tool_use","id":`).str(id(b.Call.ID)).raw(`,"name":`).str(b.Call.Name).raw(`,"input":`)
		return e.arguments(b.Call.Arguments)
	case b.Result != nil:
		return e.result(b.Result)
	case b.Reasoning != nil:
		// The vendor's own object; without its brace it is ours to close.
		opaque := bytes.TrimSpace(b.Reasoning.Opaque)
		e.json(opaque, "reasoning", "an answer")
		e.dst = bytes.TrimSuffix(e.dst, []byte(`}`))
		return e
	}
	return e.raw(`{"type":"text","text":`).str(b.Text)
}

func (e *encoder) image(i *llm.Image) *encoder {
	e.raw(`{"type":"image","source":{"type":"base64","media_type":`).str(i.MIME).raw(`,"data":"`)
	e.dst = base64.StdEncoding.AppendEncode(e.dst, i.Data)
	return e.raw(`"}`)
}

// result appends a result without its closing brace. Tools in it are what a
// search found.
func (e *encoder) result(r *llm.ToolResult) *encoder {
	e.raw(`{"type":"tool_result","tool_use_id":`).str(id(r.ID))
	if r.Failed {
		e.raw(`,"is_error":true`)
	}
	begin := len(e.dst)
	e.raw(`,"content":[`)
	from := len(e.dst)
	for _, b := range r.Blocks {
		switch {
		case len(b.Tools) > 0:
			for _, t := range b.Tools {
				if e.deferred[t.Name] { // the others can be called already
					e.comma(from).raw(`{"type":"tool_reference","tool_name":`).str(t.Name).raw(`}`)
				}
			}
		case b.Image != nil:
			e.comma(from).image(b.Image).raw(`}`)
		case !blank(b.Text):
			e.comma(from).raw(`{"type":"text","text":`).str(b.Text).raw(`}`)
		}
	}
	if len(e.dst) == from {
		e.dst = e.dst[:begin]
		return e
	}
	return e.raw(`]`)
}

// arguments appends an object, whatever the model wrote.
func (e *encoder) arguments(args []byte) *encoder {
	args = bytes.TrimSpace(args)
	switch {
	case len(args) == 0:
		return e.raw(`{}`)
	case args[0] == '{' && json.Valid(args) && utf8.Valid(args):
		e.dst = append(e.dst, args...)
		return e
	}
	return e.raw(`{"` + rawKey + `":`).str(string(args)).raw(`}`)
}

// carries reports whether anything of a message is sent.
func carries(m llm.Message) bool {
	for _, b := range m.Blocks {
		if sent(b) {
			return true
		}
	}
	return false
}

// sent reports whether the wire takes a block: it takes no blank text, and
// reasoning only as it came from it.
func sent(b llm.Block) bool {
	switch {
	case b.Image != nil, b.Call != nil, b.Result != nil, len(b.Tools) > 0:
		return true
	case b.Reasoning != nil:
		r := b.Reasoning
		return r.Wire == wire && bytes.HasPrefix(bytes.TrimSpace(r.Opaque), []byte(`{"`))
	}
	return !blank(b.Text)
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// id is an id that the wire takes. Those of other wires may hold signs that it
// does not; they are replaced by a hash, the same for a call and its result.
func id(s string) string {
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return hashed(s)
		}
	}
	if s == "" || len(s) > 128 {
		return hashed(s)
	}
	return s
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "call_" + hex.EncodeToString(sum[:12])
}
