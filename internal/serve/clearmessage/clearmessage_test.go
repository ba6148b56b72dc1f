package clearmessage

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"ken/internal/jsonvalid"
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

func TestIsRequest(t *testing.T) {
	for in, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                      true,
		` { "jsonrpc" : "2.0", "method" : "a/b", "params" : { } } `:     true,
		`{"jsonrpc":"2.0","id":"x","method":"ping","params":[1]}`:       true,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                      false,
		`{"jsonrpc":2.0,"id":1,"method":"ping"}`:                        false,
		`{"id":1,"method":"ping"}`:                                      false,
		`{"jsonrpc":"2.0","id":1}`:                                      false,
		`{"jsonrpc":"2.0","id":1,"method":null}`:                        false,
		`{"jsonrpc":"2.0","id":1,"method":1}`:                           false,
		`{"jsonrpc":"2.0","id":1,"method":"p\u0069ng"}`:                 false,
		`{"jsonrpc":"2.0","id":1,"method":"é"}`:                         false,
		`{"jsonrpc":"2.0","id":1,"method":"ping","more":1}`:             false,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                          false,
		`{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":"x"}}`: false,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                    false,
		`1`: false,
	} {
		if got := IsRequest([]byte(in)); got != want {
			t.Errorf("IsRequest(%s) = %v, want %v", in, got, want)
		}
	}
}

// FuzzIsRequest: the SDK can decode every message that IsRequest accepts.
func FuzzIsRequest(f *testing.F) {
	for _, in := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"\u00e9","method":"a","params":{"b":[1.5e3,null,"\ud83d\ude00"]}}`,
		`{"jsonrpc":"2.0","id":null,"method":"a","params":"\\"}`, `{"jsonrp\u0063":"2.0","method":"a","params":-0}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if !jsonvalid.Valid(in) || Unclear(in) != "" || !IsRequest(in) {
			return
		}
		if _, err := jsonrpc.DecodeMessage(in); err != nil {
			t.Errorf("IsRequest(%s), but: %v", in, err)
		}
	})
}
