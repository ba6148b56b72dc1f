package shim

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

// TestHelloIsJSON: what we write by hand, the daemon's decoder reads.
func TestHelloIsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Hello{
			V: rapid.Int().Draw(t, "v"), Do: rapid.String().Draw(t, "do"), Build: rapid.String().Draw(t, "build"),
			Made: rapid.Int64().Draw(t, "made"), PID: rapid.Int().Draw(t, "pid"), Dir: rapid.String().Draw(t, "dir"),
			Args: rapid.SliceOf(rapid.String()).Draw(t, "args"), Env: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "env"),
		}
		line := h.line()
		var got Hello
		if err := json.Unmarshal(line, &got); err != nil || !reflect.DeepEqual(got, h) {
			t.Fatalf("%s is %+v, %v; want %+v", line, got, err, h)
		}
		if at := strings.IndexByte(string(line), '\n'); at != len(line)-1 {
			t.Fatalf("%q is not one line", line)
		}
	})
}

// TestDaemonsJSON: what the daemon's encoder writes, we read by hand.
func TestDaemonsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Greeting{
			V: rapid.Int().Draw(t, "v"), Build: rapid.String().Draw(t, "build"), Made: rapid.Int64().Draw(t, "made"), Version: rapid.String().Draw(t, "version"),
			PID: rapid.Int().Draw(t, "pid"), Clients: rapid.Int().Draw(t, "clients"), Error: rapid.String().Draw(t, "error"),
		}
		line := testkit.Must(json.Marshal(g))(t)
		if got, err := parseGreeting(line); err != nil || got != g {
			t.Fatalf("parseGreeting(%s) = %+v, %v; want %+v", line, got, err, g)
		}
		r := Reply{OK: rapid.Bool().Draw(t, "ok"), Error: rapid.String().Draw(t, "error")}
		line = testkit.Must(json.MarshalIndent(r, " ", "  "))(t)
		if got, err := parseReply(line); err != nil || got != r {
			t.Fatalf("parseReply(%s) = %+v, %v; want %+v", line, got, err, r)
		}
	})
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Greeting
		ok   bool
	}{
		{`{}`, Greeting{}, true},
		{` { "v" : 1 , "new":true, "newer":null,"pid":7 } `, Greeting{V: 1, PID: 7}, true},
		{``, Greeting{}, false}, {`{`, Greeting{}, false}, {`[]`, Greeting{}, false}, {`"v"`, Greeting{}, false}, {`{"v"}`, Greeting{}, false}, {`{"v":}`, Greeting{}, false},
		{`{"v":1`, Greeting{}, false}, {`{"v":"x"}`, Greeting{}, false}, {`{v:1}`, Greeting{}, false}, {`{"v":1}}`, Greeting{}, false}, {`{"v":1} {"v":2}`, Greeting{}, false},
		{`{"a":{"v":1}}`, Greeting{}, false}, {`{"a":[1]}`, Greeting{}, false}, {`{"v":1 "pid":2}`, Greeting{}, false}, {"{`v`:1}", Greeting{}, false}, {`{"v":'1'}`, Greeting{}, false},
		{`HTTP/1.1 400 Bad Request`, Greeting{}, false},
	} {
		got, err := parseGreeting([]byte(tt.line))
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("parseGreeting(%s) = %+v, %v; want %+v, %v", tt.line, got, err, tt.want, tt.ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"build":"a\u003cb","pid":7}`))
	f.Add([]byte(`{"error":"\ud800"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		_, _ = parseReply(line)
		got, err := parseGreeting(line)
		var want Greeting
		// Of what both can read, both read the same, but for names: the
		// decoder takes v for V, and a name twice.
		if err == nil && json.Unmarshal(line, &want) == nil && got != want && strings.Count(strings.ToLower(string(line)), `":`) == 1 && strings.ToLower(string(line)) == string(line) && !strings.Contains(string(line), "null") {
			t.Errorf("parseGreeting(%q) = %+v, and the decoder has %+v", line, got, want)
		}
	})
}
