package link

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestEncodeOwn: a request that Ken sends past the SDK is written as the SDK would
// write it. What may be written in another way, or is no JSON, is left to the SDK.
func TestEncodeOwn(t *testing.T) {
	for _, tt := range []struct {
		id     any
		params string
		own    bool
	}{
		{"ken-1z", `{"_meta":{},"name":"a","arguments":{"text":"<é\n>"}}`, true},
		{"ken-2", `{}`, true},
		{"ken-3", "{\n}", false},
		{"ken-4", `{}},"x":{`, false},
		{"ken-5", ``, false},
		{"other", `{}`, false},
		{float64(7), `{}`, false},
	} {
		id, err := jsonrpc.MakeID(tt.id)
		if err != nil {
			t.Fatal(err)
		}
		req := &jsonrpc.Request{ID: id, Method: "tools/call", Params: []byte(tt.params)}
		got, own := encodeOwn(req)
		if own != tt.own {
			t.Errorf("%v %s: written past the SDK: %v", tt.id, tt.params, own)
		}
		if want, err := jsonrpc.EncodeMessage(req); own && (err != nil || string(got) != string(want)) {
			t.Errorf("%v: wrote %s, the SDK writes %s (%v)", tt.id, got, want, err)
		}
	}
	if _, own := encodeOwn(&jsonrpc.Response{}); own {
		t.Error("an answer is written past the SDK")
	}
}
