package catalog

import (
	"encoding/json"
	"testing"
)

// TestReason: each kind has its sentence, and JSON has the sentence.
func TestReason(t *testing.T) {
	tests := []struct {
		reason Reason
		want   string
		cause  string // if it is shorter
	}{
		{Reason{Kind: Declared, Text: "its account is closed; ask support"}, "its account is closed; ask support", "its account is closed"},
		{Reason{Kind: NoRunner, Text: "no runner x; install a plugin"}, "no runner x; install a plugin", "no runner x"},
		{Reason{Kind: NoSender}, "the channel has no command that sends; add a CAPABILITY.yaml of kind channel that has one under run", "the channel has no command that sends"},
		{Reason{Kind: WrongPlatform, Name: "linux, darwin"}, "works only on linux, darwin", ""},
		{Reason{Kind: MissingProgram, Name: "gh"}, "the program gh is not on PATH; install it", "the program gh is not on PATH"},
		{Reason{Kind: MissingSecret, Name: "KEY"}, "the secret KEY is not set; run ken secret set KEY, or put it into the environment", "the secret KEY is not set"},
		{Reason{Kind: NeedsUnknown, Name: "x"}, "it needs x, and no capability or program here has this name", ""},
		{Reason{Kind: NeedsUnavailable, Name: "tool:x"}, "it needs tool:x, which cannot be used here; see ken catalog why tool:x", "it needs tool:x, which cannot be used here"},
		{Reason{Kind: HiddenByPolicy, Text: "not in the mode; edit"}, "hidden from models: not in the mode; edit", ""},
		{Reason{Kind: ScanFinding, Text: "body line 3 rule: text"}, "body line 3 rule: text", ""},
		{Reason{Kind: ImitatesBuiltin, Name: "finlsh", Text: "finish"}, "finlsh looks like finish, which is Ken's own", ""},
		{Reason{Kind: TakesBuiltinName, Name: "tool:shell", Text: "workspace"}, "tool:shell is a tool of Ken's own, and a workspace source cannot take its place", ""},
		{Reason{Kind: ReleasedByPin}, "released by catalog.pins", ""},
		{Reason{Kind: ChangedSincePin, Name: "a", Text: "b"}, "changed since it was pinned: catalog.pins has a, it is now b", ""},
		{Reason{Kind: NotAccepted, Name: "ken config set x", Text: "remote"}, "a remote capability does not replace another of its id; to accept this one after a look at it: ken config set x", "a remote capability does not replace another of its id"},
	}
	for _, tt := range tests {
		cause := tt.cause
		if cause == "" {
			cause = tt.want
		}
		text, err := json.Marshal(Reasons{tt.reason})
		want, _ := json.Marshal([]string{tt.want})
		if got := tt.reason.String(); got != tt.want || tt.reason.Cause() != cause || err != nil || string(text) != string(want) {
			t.Errorf("%s: %q, cause %q, JSON %s; want %q, cause %q", tt.reason.Kind, got, tt.reason.Cause(), text, tt.want, cause)
		}
		var read Reasons
		if err := json.Unmarshal(text, &read); err != nil || read.String() != tt.want {
			t.Errorf("%s: %s is read as %q, %v", tt.reason.Kind, text, read, err)
		}
	}
}
