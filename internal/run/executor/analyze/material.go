package analyze

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/result"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

// material is a text to analyse.
type material struct {
	head string // all of it, or the first [result.Whole] characters
	tail string // the end of what is longer

	entry *result.Entry // nil: the call brought the text itself
	size  result.Extent // of all that can be read
}

func isLast(word string) bool { return word == "last" || word == "last_response" }

// isHandle reports whether a word has the form of a handle of package result.
// Such a word is never taken for the text itself, so that a result which is
// gone is reported.
func isHandle(word string) bool {
	const length = 40
	if len(word) != length || word[0] != 'r' {
		return false
	}
	return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// material finds what the call means, among what its principal and session
// may read.
func (e *Executor) material(ctx context.Context, call capability.Call, in wanted) (material, error) {
	if !isLast(in.response) && !isHandle(in.response) {
		if err := ctx.Err(); err != nil {
			return material{}, err
		}
		return given(in.response), nil
	}
	scope := result.ScopeOf(call)
	x, err := e.cfg.Results.Read(ctx, scope, result.Query{Handle: in.response, Succeeded: in.succeeded, Op: result.OpChars, From: 1, Limit: result.Whole})
	if err != nil {
		return material{}, err
	}
	m := material{head: x.Text, entry: &x.Entry, size: x.Entry.Kept}
	if rest := m.size.Chars - x.Chars.To; rest > 0 {
		end, err := e.cfg.Results.Read(ctx, scope, result.Query{Handle: x.Entry.Handle, Op: result.OpTail, Count: m.size.Lines + 1, Limit: min(rest, result.Whole/10)})
		if err != nil {
			return material{}, err
		}
		m.tail = end.Text
	}
	return m, nil
}

func given(text string) material {
	lines := int64(strings.Count(text, "\n"))
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines++
	}
	return material{head: text, size: result.Extent{Bytes: int64(len(text)), Chars: int64(utf8.RuneCountInString(text)), Lines: lines}}
}

// whole reports whether the head is all that there is.
func (m material) whole() bool { return m.tail == "" && (m.entry == nil || m.entry.Lost == 0) }

// origin says in words where the text is from.
func (m material) origin() string {
	if m.entry == nil {
		return "the call itself"
	}
	return "the result of " + string(m.entry.Target)
}

// fence is how many tokens a fence takes at least.
const fence = 60

// fenced renders as much of the beginning of a text as fits into so many
// tokens, and gives what of the text that was.
func (e *Executor) fenced(text, origin string, tokens int) (block, kept string) {
	return e.render(origin, tokens, func(n int) string { return tokenizer.Cut(text, n) })
}

// fencedEnd does the same for the end of a text.
func (e *Executor) fencedEnd(text, origin string, tokens int) (block, kept string) {
	return e.render(origin, tokens, func(n int) string { return lastTokens(text, n) })
}

// render cuts and fences until the whole fits: rendering reveals what cannot be
// seen, and makes a text longer.
func (e *Executor) render(origin string, tokens int, cut func(int) string) (block, kept string) {
	for n := tokens - fence; ; {
		kept = cut(n)
		block = untrusted.Block(kept, untrusted.BlockConfig{Origin: origin, Key: e.cfg.Key, Max: 16*len(kept) + 64})
		got := tokenizer.Count(block)
		if got <= tokens || kept == "" {
			return block, kept
		}
		n = min(n-1, n*tokens/got*15/16)
	}
}

// lastTokens returns an end of the text that has at most n tokens.
func lastTokens(text string, n int) string {
	for size := min(len(text), max(n, 0)*6); size > 0; {
		end := text[len(text)-size:]
		for end != "" && !utf8.RuneStart(end[0]) {
			end = end[1:]
		}
		got := tokenizer.Count(end)
		if got <= n {
			return end
		}
		size = min(size-1, size*n/got*15/16)
	}
	return ""
}

// blocks returns the text as a prompt shows it, and what was left out of it.
func (e *Executor) blocks(m material) (text, left string) {
	most := e.cfg.InputTokens
	block, kept := e.fenced(m.head, m.origin(), most)
	if len(kept) == len(m.head) && m.tail == "" {
		return block, ""
	}
	block, kept = e.fenced(m.head, m.origin()+", its beginning", most*3/4)
	rest := m.tail
	if rest == "" {
		rest = m.head[len(kept):]
	}
	end, last := e.fencedEnd(rest, m.origin()+", its end", most-most*3/4)
	first, final := int64(utf8.RuneCountInString(kept)), int64(utf8.RuneCountInString(last))
	gap := m.size.Chars - first - final
	if gap <= 0 {
		return block + "\n\n" + end, ""
	}
	left = fmt.Sprintf("the first %d and the last %d of %d characters", first, final, m.size.Chars)
	return fmt.Sprintf("%s\n\n(%d characters are left out here.)\n\n%s", block, gap, end), left
}
