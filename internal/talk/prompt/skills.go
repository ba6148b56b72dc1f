package prompt

import (
	"cmp"
	"slices"
	"strings"

	"ken/internal/coldsort"
	"ken/internal/untrusted"
)

// A Skill is what a skill has to say in the prompt.
type Skill struct {
	ID      string
	Block   string // its promptBlock
	Enabled bool

	// Own says that the person who runs Ken put it there to be followed. The
	// block of any other skill is fenced as data.
	Own bool
}

// Skills returns the layer of the enabled skills, in the order of their ids:
//
//	# Skills
//
//	## Skill: ID
//
//	BLOCK
//
// Where none is enabled, or none says anything, the layer has no text.
func Skills(list []Skill) Layer {
	list = slices.Clone(list)
	coldsort.Stable(list, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Block, b.Block), compareBool(a.Own, b.Own))
	})
	var b strings.Builder
	for _, s := range list {
		text := strings.TrimSpace(untrusted.Terminal(s.Block))
		if !s.Enabled || text == "" {
			continue
		}
		if !s.Own {
			text = untrusted.Block(s.Block, untrusted.BlockConfig{Origin: "skill " + s.ID, Max: len(s.Block) + 24})
		}
		if b.Len() == 0 {
			b.WriteString("# Skills")
		}
		b.WriteString("\n\n## Skill: " + untrusted.Line(s.ID, 120) + "\n\n" + text)
	}
	return Layer{Name: SkillSet, Text: b.String()}
}
