package clearmessage

import (
	"strings"
	"testing"
)

func TestUnclear(t *testing.T) {
	for in, clear := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                           true,
		`{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}`:                            true,
		`{"jsonrpc":"2.0","id":"9007199254740993","method":"ping"}`:                          true,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:                             true,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:                            false,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                         false,
		`{"jsonrpc":"2.0","id":1e2,"method":"ping"}`:                                         false,
		`{"jsonrpc":"2.0","id":-0,"method":"ping"}`:                                          false,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                                        false,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                          false,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:                                    false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`:    false,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1.5,"method":"x"}]`: false,
		`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`:                                    false,
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}":                          false,
		`{"jsonrpc":"2.0","id":9,"METHOD":"ping"}`:                                           false,
		`{"jsonrpc":"2.0","Id":9,"method":"ping"}`:                                           false,
		`{"jsonrpc":"2.0","id":9}`:                                                           false,
		`{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}`:                               false,
		`{"jsonrpc":"2.0","id":5,"result":{}}`:                                               true,
		`{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}}`:                          true,
		`not JSON "`: true, // reported elsewhere
		`{"jsonrpc":"2.0","method":"x","params":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}`:   true,
		`{"jsonrpc":"2.0","method":"x","params":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`: false,
	} {
		if why := Unclear([]byte(in)); (why == "") != clear {
			t.Errorf("Unclear(%s) = %q, want clear %v", in, why, clear)
		}
	}
}
