package engine

import (
	"context"
	"encoding/base64"
	"fmt"

	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// room is what the blocks of one entry may take of a session: what is left of
// one step is for names, ids and notes.
const room = session.MaxAppend - 256<<10

// fitPictures leaves out of a result the pictures with which it could not be
// written down, and says of each where it is. The turn goes on without them.
func (e *Engine) fitPictures(ctx context.Context, t turn, blocks []llm.Block) []llm.Block {
	left := room
	for i := range blocks {
		if blocks[i].Image == nil {
			left -= written(blocks[i : i+1])
		}
	}
	for i := range blocks {
		if blocks[i].Image == nil {
			continue
		}
		if n := written(blocks[i : i+1]); n <= left {
			left -= n
			continue
		}
		blocks[i] = llm.Block{Text: e.leftOut(ctx, t, blocks[i].Image)}
	}
	return blocks
}

// leftOut keeps a picture that is too large for a session, and gives what stands
// for it.
func (e *Engine) leftOut(ctx context.Context, t turn, p *llm.Image) string {
	what := fmt.Sprintf("%s of %d bytes", untrusted.Line(p.MIME, 60), len(p.Data))
	where := "nothing here keeps it"
	if e.cfg.Keep != nil {
		kept, err := e.cfg.Keep(ctx, Kept{Principal: t.in.Principal, Session: t.in.Session, Name: "picture", Text: p.Data, MIME: p.MIME})
		if err != nil {
			kept = "it could not be kept: " + err.Error()
		}
		where = kept
	}
	t.out.notice("limit", fmt.Sprintf("a picture of a result, %s, is too large for a session and is not shown to the model: %s", what, where))
	return fmt.Sprintf("[%s that you cannot see: a session takes %d bytes of pictures with one result; %s. Ask for a smaller one.]", what, room/4*3, where)
}

// written is the most that blocks take in a session, in bytes.
func written(blocks []llm.Block) (n int) {
	const around = 200 // names, braces, ids
	for i := range blocks {
		b := &blocks[i]
		n += around + inJSON(b.Text)
		if b.Image != nil {
			n += base64.StdEncoding.EncodedLen(len(b.Image.Data)) + inJSON(b.Image.MIME)
		}
		for _, tool := range b.Tools {
			n += around + inJSON(tool.Name) + inJSON(tool.Description) + len(tool.Schema)
		}
	}
	return n
}

// inJSON is the most that a text takes in JSON.
func inJSON(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			n += 5
		case c == '"' || c == '\\':
			n++
		case c == 0xe2: // perhaps a separator of lines, which is written as six
			n += 3
		}
	}
	return n
}
