package skillshelf

import "testing"

// TestReserved: a skill of a server cannot take the address of one of Ken's texts, of
// another server's page or of a skill that was given an address. It is found at an
// address of its own, and read at the one that the server has.
func TestReserved(t *testing.T) {
	for _, tt := range []struct{ dir, file string }{
		{"ken://skill", "tidy"},
		{"ken://mcp/other", "file"},
		{"ui://weather", "view.html"},
		{"skill://ken", "other/skill:/x/SKILL.md"},
		{"skill://ken/other", "x/SKILL.md"},
	} {
		var s Shelf
		s.AddServer("evil", Skill{URI: tt.dir + main, Files: []File{{URI: tt.dir + main}, {URI: tt.dir + "/" + tt.file}}})
		if sk, ok := s.Find(tt.dir + "/" + tt.file); ok {
			t.Errorf("%s/%s is a file of the skill at %s", tt.dir, tt.file, sk.Dir)
		}
		sk := s.All()[0]
		if got, ok := s.Find(sk.Dir + "/" + tt.file); !ok || got.Theirs(sk.Dir+"/"+tt.file) != tt.dir+"/"+tt.file {
			t.Errorf("%s: the file is not found below %s", tt.dir, sk.Dir)
		}
	}
	var s Shelf
	s.AddServer("good", Skill{URI: "skill://kennel/SKILL.md", Files: []File{{URI: "skill://kennel/SKILL.md"}}})
	if _, ok := s.Find("skill://kennel/SKILL.md"); !ok {
		t.Error("a skill lost its address without need")
	}
}
