package policy

import (
	"strings"
	"testing"
)

// TestCedarFaults: an error in a Cedar file names the file, the line, the column
// and what is wrong, in words of people who write policies.
func TestCedarFaults(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"permit(principal, action, resource)\n", "org.cedar:2:1: ; is missing at the end of the file"},
		{`permit(principal, action, resource) when { resource.kind == "tool };`, "org.cedar:1:61: a string is not closed: a quotation mark is missing"},
		{"permitt(principal, action, resource);", "org.cedar:1:8: a policy begins with permit or forbid, not with permitt"},
		{"permit(principal action, resource);", "org.cedar:1:24: , is missing before action"},
		{"permit(principal, action, resource) when { resource. };", `a name is missing near ";"`},
		{"permit(principal, action, resource) when { == 5 };", `a value is missing near "5"`},
		{`permit(principal, action, resource) when { resource.knd == "tool" };`, "org.cedar:1:1: attribute `knd` on entity type `Capability` not found; see the schema"},
		{`permit(principal, action == Action::"cal", resource);`, "org.cedar:1:1: unrecognized action `Action::\"cal\"`; see the schema"},
	} {
		_, err := Compile(Settings{Cedar: []CedarFile{{Name: "org.cedar", Text: []byte(test.text)}}})
		if err == nil {
			t.Errorf("Compile(%s) = nil", test.text)
			continue
		}
		if got := err.Error(); !strings.Contains(got, test.want) || strings.Contains(got, "parse error") || strings.Contains(got, "<input>") || strings.Contains(got, "for policy") {
			t.Errorf("Compile(%s) =\n%s\nwant\n%s", test.text, got, test.want)
		}
	}
}
