package spelling

import "testing"

func TestNearestID(t *testing.T) {
	known := []string{"mcp:attic/wipe", "wipe", "x", "tool:read_file", "read_file", "tool:web-browser"}
	for _, tt := range []struct{ asked, want string }{
		{"mcp:attic/nope", ""},
		{"mcp:attic/", ""},
		{"mcp:attic/wip", "mcp:attic/wipe"},
		{"mcp:attic/Wipe", "mcp:attic/wipe"},
		{"tool:reed_file", "tool:read_file"},
		{"tool:raed_fiel", "tool:read_file"},
		{"read-fil", "read_file"},
		{"web-browsr", ""}, // of the id, and no name is like it
		{"tool:web-browsr", "tool:web-browser"},
		{"mpc:attic/wipe", "mcp:attic/wipe"},
		{"tool:write_mail", ""},
		{"\x00", ""},
		{"y", ""},
		{"", ""},
	} {
		if got := NearestID(tt.asked, known); got != tt.want {
			t.Errorf("NearestID(%q) = %q, want %q", tt.asked, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"capabilities", "catalog", "serve", "open"}
	for in, want := range map[string]string{
		"capabilites": "capabilities", "catlaog": "catalog", "srve": "serve", "opn": "open", "per": "", "zzz": "", "": "",
	} {
		if got := Nearest(in, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
}
