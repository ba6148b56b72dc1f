package mcptools

import (
	"strings"
	"testing"

	"ken/capability"
)

// TestServerHints: hints that would make Ken less careful count only where the
// user trusts the server's, and the tool does not contradict them. Those that
// make it more careful always count, and the hash covers all of them.
func TestServerHints(t *testing.T) {
	tool := func(name, annotations string) Tool {
		return Tool{Runner: "mcp.call", JSON: []byte(`{"name":"` + name + `","annotations":` + annotations + `}`)}
	}
	harmless := `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`
	tools := []Tool{
		tool("look", harmless),
		tool("delete_all_files", harmless),
		tool("careful", `{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`),
		{Runner: "mcp.resource", Own: true, JSON: []byte(`{"name":"read_resource","annotations":{"readOnlyHint":true}}`)},
	}
	all := capability.Effects{ReadOnly: capability.Yes, Destructive: capability.No, Idempotent: capability.Yes, OpenWorld: capability.No}
	wary := capability.Effects{ReadOnly: capability.No, Destructive: capability.Yes, Idempotent: capability.No, OpenWorld: capability.Yes}
	var hashes [2][4]string
	for i, trust := range []bool{false, true} {
		s := mcpServer()
		s.TrustHints = trust
		got, problems := Read(nil, s, tools)
		if len(got) != 4 || len(problems) != 0 {
			t.Fatalf("Read = %d capabilities, %v", len(got), problems)
		}
		for n, c := range got {
			hashes[i][n] = c.Hash
		}
		want := []struct {
			counts capability.Effects
			doubt  string
		}{{capability.Effects{}, "its hints are not trusted"}, {capability.Effects{}, "its hints are not trusted"}, {wary, ""}, {capability.Effects{ReadOnly: capability.Yes}, ""}}
		if trust {
			want[0].counts, want[0].doubt, want[1].doubt = all, "", `its name says "delete"`
		}
		for n, w := range want {
			c := got[n]
			if c.Effects != w.counts || (c.Claims != nil) != (w.doubt != "") || c.Claims != nil && (!strings.Contains(c.Claims.Doubt, w.doubt) || c.Said() != all) {
				t.Errorf("trusted %v: %s has the effects %+v and the claims %+v, want %+v and %q", trust, c.Name, c.Effects, c.Claims, w.counts, w.doubt)
			}
			if _, err := Detail(c, tools[n].JSON); err != nil {
				t.Errorf("trusted %v: Detail(%s) = %v", trust, c.Name, err)
			}
		}
	}
	if hashes[0] != hashes[1] {
		t.Errorf("the user's trust changes hashes: %v and %v", hashes[0], hashes[1])
	}
}
