package ranking

import (
	"math"

	"ken/internal/know/embed"
	"ken/internal/know/index"
)

// A Part is a segment and the slots of it that may be seen; nil means all.
type Part struct {
	Segment *index.Segment
	Visible index.Bits
}

// A View is what one viewer may see of some segments. Rarity, and with it the
// order of what is found, is counted over what is visible alone, and over all
// parts together: a hidden capability is as one that does not exist, and how
// capabilities are spread over segments does not matter. Making a view of all
// of one segment costs nothing; one that is narrowed, or of several, looks at
// each posting or term once, so views are kept for as long as their segments
// stand. It is immutable and safe for any number of
// goroutines.
type View struct {
	parts []part
	n     int // visible capabilities
	terms int // of all of them together

	model     *embed.Model // of the vectors of its parts, if it is the program's own
	languages uint32       // that at least one in fifty of them is described in, a bit for each

	rarities [256]float32 // of terms that few have, by how many
}

type part struct {
	*index.Segment
	visible index.Bits
	has     []uint32 // by term: how many visible capabilities of the view have it; nil: all of the part that have it
}

// NewView makes a view of parts. Hits name a part by its place in them.
func NewView(parts ...Part) *View {
	v := &View{}
	var spoken [32]int32 // by language
	for _, p := range parts {
		narrowed := part{Segment: p.Segment, visible: p.Segment.Live}
		if p.Visible != nil {
			narrowed.visible = index.NewBits(len(p.Segment.Docs))
			for i := range narrowed.visible {
				if i < len(p.Visible) {
					narrowed.visible[i] = p.Segment.Live[i] & p.Visible[i]
				}
			}
			narrowed.has = make([]uint32, p.Segment.Postings.Count)
			for slot := range p.Segment.Docs {
				if narrowed.visible.Has(slot) {
					spoken[p.Segment.Docs[slot].Lang]++
					v.terms += len(p.Segment.Docs[slot].Terms)
					for _, t := range p.Segment.Docs[slot].Terms {
						narrowed.has[t]++
					}
				}
			}
		} else {
			v.terms += p.Segment.Terms
			for lang, n := range p.Segment.Spoken {
				spoken[lang] += n
			}
		}
		if p.Segment.Model != nil {
			v.model = p.Segment.Model
		}
		v.n += narrowed.visible.Count()
		v.parts = append(v.parts, narrowed)
	}
	for lang, n := range spoken {
		if n > 0 && int(n)*commonLanguage >= v.n {
			v.languages |= 1 << lang
		}
	}
	if len(v.parts) > 1 {
		v.pool()
	}
	for i := range v.rarities {
		v.rarities[i] = rarity(v.n, i)
	}
	return v
}

// commonLanguage: one in so many makes a language one of the catalog. Fewer are
// mostly mistaken for it.
const commonLanguage = 50

// pool counts who has a term over all parts.
func (v *View) pool() {
	all := map[string]uint32{}
	for i := range v.parts {
		p := &v.parts[i]
		for stem, id := range p.Stems.All() {
			all[stem] += uint32(p.holders(id))
		}
	}
	for i := range v.parts {
		p := &v.parts[i]
		p.has = make([]uint32, p.Postings.Count)
		for stem, id := range p.Stems.All() {
			p.has[id] = all[stem]
		}
	}
}

// rarity is how much a term says that so many have.
func (v *View) rarity(holders int) float32 {
	if holders < len(v.rarities) {
		return v.rarities[holders]
	}
	return rarity(v.n, holders)
}

// Len returns the number of visible capabilities.
func (v *View) Len() int { return v.n }

// holders returns the number of visible capabilities, in whatever part, that have
// a term of this one.
func (p *part) holders(term uint32) int {
	if p.has != nil {
		return int(p.has[term])
	}
	return len(p.Postings.Of(term))
}

// rarity is how much a term says, by how many of n have it.
func rarity(n, holders int) float32 {
	return float32(math.Log1p((float64(n) - float64(holders) + 0.5) / (float64(holders) + 0.5)))
}
