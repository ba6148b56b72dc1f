package show

import (
	"strings"

	"ken/capability"
	"ken/internal/untrusted"
)

// Text is what goes into a prompt: the document, the map, the briefs, the full texts and the
// cards, with blank lines between them. Tokens.Total is its price.
func (s Shown) Text() string {
	var b strings.Builder
	size := len(s.Document) + len(s.Map) + len(s.briefs) + len(cardsHead) + len(injectedHead) + 16
	for _, list := range [][]Piece{s.Fulls, s.Cards} {
		for i := range list {
			size += len(list[i].Text) + len(list[i].ID) + 4
		}
	}
	b.Grow(size)
	paragraph(&b, s.Document)
	paragraph(&b, s.Map)
	if len(s.Briefs) > 0 {
		paragraph(&b, s.briefs)
	}
	for i := range s.Fulls {
		paragraph(&b, s.Fulls[i].Text)
	}
	if len(s.Cards) > 0 {
		s.writeCards(&b)
	}
	return b.String()
}

// CardsText is the part of Text that holds the cards, for those who put it
// somewhere else.
func (s Shown) CardsText() string {
	var b strings.Builder
	if len(s.Cards) > 0 {
		s.writeCards(&b)
	}
	return b.String()
}

func (s Shown) writeCards(b *strings.Builder) {
	paragraph(b, cardsHead)
	b.WriteString("\n" + injectedHead)
	for i := range s.Cards {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" ")
		b.WriteString(lineOfID(s.Cards[i].ID))
	}
	for i := range s.Cards {
		paragraph(b, s.Cards[i].Text)
	}
}

func paragraph(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString(text)
}

// lineOfID renders an id, which is a foreign word like any other.
func lineOfID(id capability.ID) string { return untrusted.Line(string(id), 120) }
