package connect

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"ken/internal/secret/detect"
	"ken/internal/untrusted"
)

var bearer = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(Bearer )[^"]+`) })

const (
	around  = 3   // lines shown before and after a change
	longest = 400 // characters of a line that stays as it is

	// longestChange is that of a line that goes or comes: a command is shown in full.
	// A file without line breaks is one line.
	longestChange = 16_000
	mask          = "••••"
)

// Diff shows what happens to the files, for people: a unified diff in which
// every value that may be a secret is hidden, those of lines that do not
// change too. It is not for programs that apply diffs.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, f := range p.Files {
		old := f.Path
		if !f.Exists {
			old = "/dev/null"
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", old, f.Path)
		d := newDiffer(f)
		for _, h := range d.hunks() {
			b.WriteString(h)
		}
	}
	return untrusted.Terminal(b.String())
}

// A differ shows the edits of one file. It works from the edits, so the time
// it takes does not grow with how much two files differ.
type differ struct {
	data   []byte
	starts []int // of each line, and the end
	edits  []edit
	masks  []edit
}

func newDiffer(f Change) *differ {
	d := &differ{data: f.Before, edits: ordered(f.edits), starts: []int{0}}
	for i, c := range f.Before {
		if c == '\n' {
			d.starts = append(d.starts, i+1)
		}
	}
	if last := d.starts[len(d.starts)-1]; last < len(f.Before) {
		d.starts = append(d.starts, len(f.Before))
	}
	for _, m := range f.client.format.hide(f.Before, detect.Hides) {
		m.text = `"` + mask + strings.Repeat("\n", bytes.Count(f.Before[m.start:m.end], []byte{'\n'})) + `"`
		d.masks = append(d.masks, m)
	}
	for i, e := range d.edits {
		d.edits[i].text = bearer().ReplaceAllString(e.text, "${1}"+mask) // Ken's own token
	}
	return d
}

// line returns the line that a byte is on.
func (d *differ) line(at int) int {
	lo, hi := 0, len(d.starts)-1
	for lo < hi {
		if mid := (lo + hi + 1) / 2; d.starts[mid] <= at {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

func (d *differ) lines() int { return len(d.starts) - 1 }

// A block is lines that change: from a up to b.
type block struct {
	a, b     int
	old, new []string
}

func (d *differ) blocks() []block {
	var out []block
	for i := 0; i < len(d.edits); {
		a := d.line(d.edits[i].start)
		b := d.last(d.edits[i])
		j := i + 1
		for j < len(d.edits) && d.line(d.edits[j].start) < b {
			b = max(b, d.last(d.edits[j]))
			j++
		}
		a, b = min(a, d.lines()), min(b, d.lines())
		from, to := d.starts[a], d.starts[b]
		bl := block{a: a, b: b, old: split(d.render(from, to, nil)), new: split(d.render(from, to, d.edits[i:j]))}
		out = append(out, bl.trimmed())
		i = j
	}
	return out
}

// last returns the line behind an edit.
func (d *differ) last(e edit) int {
	if e.end > e.start {
		return d.line(e.end-1) + 1
	}
	return d.line(e.start) + 1
}

func (b block) trimmed() block {
	for len(b.old) > 0 && len(b.new) > 0 && b.old[0] == b.new[0] {
		b.old, b.new = b.old[1:], b.new[1:]
		b.a++
	}
	for len(b.old) > 0 && len(b.new) > 0 && b.old[len(b.old)-1] == b.new[len(b.new)-1] {
		b.old, b.new = b.old[:len(b.old)-1], b.new[:len(b.new)-1]
		b.b--
	}
	return b
}

// render returns a part of the file with secrets hidden and edits done. What is
// edited away is not looked at for secrets.
func (d *differ) render(from, to int, edits []edit) string {
	var b strings.Builder
	at := from
	write := func(until int) {
		for _, m := range d.masks {
			if m.start >= at && m.end <= until {
				b.Write(d.data[at:m.start])
				b.WriteString(m.text)
				at = m.end
			}
		}
		b.Write(d.data[at:until])
		at = until
	}
	for _, e := range edits {
		write(e.start)
		b.WriteString(e.text)
		at = e.end
	}
	if at < to {
		write(to)
	}
	return b.String()
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// hunks joins blocks that are close and puts lines around them.
func (d *differ) hunks() []string {
	blocks := d.blocks()
	var out []string
	grown := 0 // how many lines the file has more, before a hunk
	for i := 0; i < len(blocks); {
		j := i + 1
		for j < len(blocks) && blocks[j].a-blocks[j-1].b <= 2*around {
			j++
		}
		first, last := max(0, blocks[i].a-around), min(d.lines(), blocks[j-1].b+around)
		var b strings.Builder
		removed, added, at := 0, 0, first
		for _, bl := range blocks[i:j] {
			d.context(&b, at, bl.a)
			marked(&b, "-", bl.old)
			marked(&b, "+", bl.new)
			removed, added, at = removed+len(bl.old), added+len(bl.new), bl.b
		}
		d.context(&b, at, last)
		size := last - first
		out = append(out, fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", first+1, size, first+1+grown, size-removed+added)+b.String())
		grown += added - removed
		i = j
	}
	return out
}

func (d *differ) context(b *strings.Builder, from, to int) {
	if from < to {
		marked(b, " ", split(d.render(d.starts[from], d.starts[to], nil)))
	}
}

func marked(b *strings.Builder, mark string, lines []string) {
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		most := longestChange
		if mark == " " {
			most = longest
		}
		if r := []rune(line); len(r) > most {
			line = fmt.Sprintf("%s…⟨+%d⟩", string(r[:most]), len(r)-most)
		}
		b.WriteString(mark + line + "\n")
	}
}
