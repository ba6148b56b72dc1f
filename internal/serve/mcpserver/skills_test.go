package mcpserver

import (
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/skillshelf"
)

type oneSkill struct{}

func (oneSkill) Skill(*door.Entry) (skillshelf.Skill, error) {
	return skillshelf.Skill{Files: []skillshelf.File{{URI: "SKILL.md"}}}, nil
}
func (oneSkill) File(*door.Entry, string) ([]byte, error) { return []byte("text"), nil }

// TestWithheldSkill: a skill whose text is withheld, as that of a package that no one
// has reviewed, is not offered with its files either.
func TestWithheldSkill(t *testing.T) {
	s := &Server{cfg: Config{Skills: oneSkill{}}}
	entry := func(name, withheld string) *door.Entry {
		return &door.Entry{Capability: &capability.Capability{ID: capability.ID("skill:" + name), Name: name, Kind: capability.KindSkill, Trust: capability.TrustUser}, Withheld: withheld}
	}
	o := &offerings{servers: map[string]origin{}}
	o.addSkills(s, []*door.Entry{entry("open", ""), entry("off", "not enabled")}, nil)
	if all := o.skills.All(); len(all) != 1 || all[0].Text != "skill:open" {
		t.Errorf("%d skills are offered, want skill:open alone", len(all))
	}
}
