package clearmessage

import "testing"

func TestCancels(t *testing.T) {
	for id, want := range map[string]string{
		`7`: `7`, `7.0`: `7`, `70e-1`: `7`, `-0`: `0`, `7.5`: ``, `9007199254740992`: ``, `1e99`: ``,
		`"7"`: `"7"`, `"\u0037"`: `"7"`, `"a\/b"`: `"a/b"`, `"a/b"`: `"a/b"`, `""`: `""`,
		`null`: ``, `true`: ``, `[7]`: ``, `{"a":7}`: ``,
	} {
		if got := Cancels([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}}`)); got != want {
			t.Errorf("the end of %s is one of %q, want %q", id, got, want)
		}
	}
	for _, message := range []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"RequestId":7}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[7]}`,
		`{"jsonrpc":"2.0","method":["notifications/cancelled"],"params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `[]`, `7`,
	} {
		if got := Cancels([]byte(message)); got != "" {
			t.Errorf("Cancels(%s) = %q, want none", message, got)
		}
	}
}
