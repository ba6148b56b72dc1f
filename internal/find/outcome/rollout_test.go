package outcome

import (
	"strings"
	"testing"

	"ken/capability"
)

func TestGate(t *testing.T) {
	main, isolated := capability.Scope{}, capability.Scope{SessionType: "isolated"}
	tests := []struct {
		name  string
		gate  Gate
		scope capability.Scope
		want  bool
		knobs string // named in the reason
	}{
		{"zero value", Gate{}, main, false, KnobRollout + " monitor"},
		{"monitor", Gate{Mode: Monitor, SessionTypes: []string{"main"}}, main, false, KnobRollout + " monitor"},
		{"soft, none chosen", Gate{Mode: Soft}, main, false, KnobRollout + " soft " + KnobSessionTypes + " nothing"},
		{"soft, chosen", Gate{Mode: Soft, SessionTypes: []string{"isolated"}}, isolated, true, KnobRollout + " soft " + KnobSessionTypes + " isolated"},
		{"soft, another chosen", Gate{Mode: Soft, SessionTypes: []string{"isolated"}}, main, false, KnobSessionTypes + " isolated main"},
		{"soft, no type is main", Gate{Mode: Soft, SessionTypes: []string{"main"}}, main, true, KnobSessionTypes + " main"},
		{"full", Gate{Mode: Full}, isolated, true, KnobRollout + " full"},
		{"unknown word", Gate{Mode: "Full"}, main, false, KnobRollout + " Full"},
	}
	for _, tt := range tests {
		for name, allow := range map[string]func(capability.Scope) (bool, string){"Allow": tt.gate.Allow, "AllowCards": tt.gate.AllowCards} {
			got, reason := allow(tt.scope)
			if got != tt.want {
				t.Errorf("%s: %s = %v, want %v", tt.name, name, got, tt.want)
			}
			for word := range strings.FieldsSeq(tt.knobs) {
				if !strings.Contains(reason, word) {
					t.Errorf("%s: %s says %q, want %q in it", tt.name, name, reason, word)
				}
			}
		}
	}
}
