package prompt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/tokenizer"
)

// The names of Ken's own layers, in the order in which they stand.
const (
	Base     = "base"     // how Ken works
	Agents   = "agents"   // AGENTS.md
	Caps     = "caps"     // CAPABILITIES.md, where it is part of the system prompt
	Map      = "map"      // of the capabilities
	Soul     = "soul"     // who the assistant is
	Profile  = "profile"  // who the person is
	Previous = "previous" // what was said before this session
	SkillSet = "skills"   // the blocks of the enabled skills
)

func order() []string {
	return []string{Base, Agents, Caps, Map, Soul, Profile, Previous, SkillSet}
}

// A Layer is a part of the system prompt. One without text is none.
type Layer struct {
	Name string
	Text string
	Must bool // it is never left out
}

// A System is a system prompt.
type System struct {
	Text    string
	Hash    string // SHA-256 of Text, in hex
	Tokens  int    // of Text
	Layers  []string
	Dropped []Dropped // in order
}

// A Dropped is a layer that was left out.
type Dropped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"` // names the setting that decides
	Tokens int    `json:"tokens"` // that it would have taken
}

// Assemble makes a system prompt of layers, whatever order they come in: Ken's
// own in their order, then the others by name. It never has more tokens than
// the budget, by count. The layers that must be there are served first, then
// the others in order; one that no longer fits is left out whole, since half an
// instruction may say the opposite, and is reported.
//
// It fails only where the layers that must be there do not fit.
func Assemble(budget int, count tokenizer.Counter, layers []Layer) (System, error) {
	layers = sorted(layers)
	in := make([]bool, len(layers))
	for i, l := range layers {
		in[i] = l.Must
	}
	text := join(layers, in)
	tokens := count(text)
	if tokens > budget {
		return System{}, &capability.Error{
			Kind: capability.Invalid, Op: "assemble", Target: "the system prompt", Rule: "chat.promptTokens",
			Err: fmt.Errorf("%s must be in it and take %d tokens, the budget is %d", names(layers, in), tokens, budget),
			Fix: "raise chat.promptTokens, or shorten them",
		}
	}
	var out System
	for i, l := range layers {
		if in[i] {
			continue
		}
		in[i] = true
		// The whole is counted each time: the sum of the parts can be less.
		with := join(layers, in)
		n := count(with)
		if n <= budget {
			text, tokens = with, n
			continue
		}
		in[i] = false
		out.Dropped = append(out.Dropped, Dropped{
			Name: l.Name, Tokens: count(l.Text),
			Reason: fmt.Sprintf("with it the system prompt would take %d tokens, chat.promptTokens allows %d", n, budget),
		})
	}
	sum := sha256.Sum256([]byte(text))
	out.Text, out.Tokens, out.Hash = text, tokens, hex.EncodeToString(sum[:])
	for i, l := range layers {
		if in[i] {
			out.Layers = append(out.Layers, l.Name)
		}
	}
	return out, nil
}

// sorted returns the layers that have a text, in order.
func sorted(layers []Layer) []Layer {
	out := make([]Layer, 0, len(layers))
	for _, l := range layers {
		if l.Text = strings.Trim(l.Text, " \t\r\n"); l.Text != "" {
			out = append(out, l)
		}
	}
	known := order()
	rank := func(name string) int {
		if i := slices.Index(known, name); i >= 0 {
			return i
		}
		return len(known)
	}
	coldsort.Stable(out, func(a, b Layer) int {
		return cmp.Or(rank(a.Name)-rank(b.Name), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Text, b.Text), compareBool(b.Must, a.Must))
	})
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func join(layers []Layer, in []bool) string {
	var b strings.Builder
	for i, l := range layers {
		if !in[i] {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(l.Text)
	}
	return b.String()
}

func names(layers []Layer, in []bool) string {
	var list []string
	for i, l := range layers {
		if in[i] {
			list = append(list, l.Name)
		}
	}
	return strings.Join(list, ", ")
}

// WithDocument puts the catalog's AGENTS.md before the workspace's
// instructions. Both are one layer, so text that is placed after AGENTS.md
// comes after both.
func WithDocument(layers []Layer, text string) []Layer {
	if text == "" {
		return layers
	}
	for i := range layers {
		if layers[i].Name == Agents {
			layers[i].Text = text + "\n\n" + layers[i].Text
			return layers
		}
	}
	return append(layers, Layer{Name: Agents, Text: text})
}
