package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

type picture struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

type asking struct {
	Text     string             `json:"text"`
	Value    *string            `json:"value"`
	Count    int                `json:"count"`
	Small    uint8              `json:"small"`
	Share    *float64           `json:"share"`
	Yes      bool               `json:"yes"`
	At       time.Time          `json:"at"`
	Pictures []picture          `json:"pictures"`
	Weights  map[string]float64 `json:"weights"`
	Within   *picture           `json:"within"`
	Free     json.RawMessage    `json:"free"`
	Any      any                `json:"any"`
}

// TestBodies: a body says one thing, by the names that the description has, and a
// refusal says which value is wrong and what it may be, in no words of Go.
func TestBodies(t *testing.T) {
	tests := []struct {
		body string
		want string // the refusal; empty: it is taken
	}{
		{``, ""},
		{" \n", ""},
		{`{}`, ""},
		{`{"text":"a","value":"4","count":-4,"small":4,"share":0.5,"yes":true,"at":"2026-01-31T12:00:00Z"}`, ""},
		{`{"pictures":[{"name":"a","data":"a2Vu"},{}],"weights":{"A":1,"a":2},"within":{"name":"\"}"},"free":{"X":[{}]},"any":[1,{"Y":2}]}`, ""},
		{`{"text":null,"count":null,"pictures":[null],"within":null,"free":null}`, ""},
		{`{"t\u0065xt":"a"}`, ""},

		{`null`, "it is an object, as in { … }"},
		{`[]`, "it is an object, as in { … }"},
		{`"x"`, "it is an object, as in { … }"},
		{`{"TEXT":"a"}`, `unknown field "TEXT"; there are text, value, count, small, share, yes, at, pictures, weights, within, free, any`},
		{`{"ſhare":1}`, `unknown field "ſhare"`},
		{`{"within":{"Name":"a"}}`, `unknown field "within.Name"; there are name, data`},
		{`{"pictures":[{},{"nam":1}]}`, `unknown field "pictures[1].nam"`},
		{`{"text":"a","text":"b"}`, `key "text" appears twice; name it once`},
		{`{"text":"a","t\u0065xt":"b"}`, `key "text" appears twice`},
		{`{"free":{"a":{"b":1,"b":2}}}`, `key "b" appears twice`},
		{`{"value":-4}`, `value is a text, as in "4"`},
		{`{"text":{}}`, `text is a text`},
		{`{"count":"4"}`, "count is a whole number, as in 4"},
		{`{"count":4.5}`, "count is a whole number"},
		{`{"count":99999999999999999999}`, "count is a whole number"},
		{`{"small":-1}`, "small is a whole number of 0 or more"},
		{`{"small":256}`, "small is a whole number of 0 or more"},
		{`{"share":"much"}`, "share is a number, as in 0.5"},
		{`{"share":1e999}`, "share is a number"},
		{`{"yes":"true"}`, "yes is true or false"},
		{`{"at":"yesterday"}`, `at is a time, as in "2026-01-31T12:00:00Z"`},
		{`{"at":4}`, "at is a time"},
		{`{"pictures":{}}`, "pictures is a list, as in [ … ]"},
		{`{"pictures":[{"data":"?"}]}`, "invalid body"},
		{`{"weights":[1]}`, "weights is an object"},
		{`{"weights":{"a":"b"}}`, "weights.a is a number"},
		{`{"within":[]}`, "within is an object"},
		{`{"text":`, "it ends before its JSON does"},
		{`{} {}`, "more than one JSON value"},
		{`{"text":}`, "invalid body"},
		{`{"text":"a",}`, "invalid body"},
		{`null x`, "the body"},
		{strings.Repeat(`{"any":`, 500) + "1" + strings.Repeat("}", 500), "nested deeper"},
	}
	for _, tt := range tests {
		var got asking
		err := decode([]byte(tt.body), &got)
		if tt.want == "" {
			if err != nil {
				t.Errorf("decode(%s) = %v, want it taken", tt.body, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("decode(%s) = %v, want %s", tt.body, err, tt.want)
		}
		for _, inside := range []string{"Go ", "wire.", "unmarshal", "struct", "json:"} {
			if err != nil && strings.Contains(err.Error(), inside) {
				t.Errorf("decode(%s) = %v, which speaks of %q", tt.body, err, inside)
			}
		}
	}
	long := `{"` + strings.Repeat("x", 5000) + `":1}`
	if err := decode([]byte(long), &asking{}); err == nil || len(err.Error()) > 600 {
		t.Errorf("a name of 5,000 bytes is refused with %d", len(fmt.Sprint(err)))
	}
}

// FuzzBody: what is taken is what encoding/json takes, less what readers could
// take differently.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{}`, `{"text":"a","free":[{"a":"\\\""}]}`, `{"pictures":[{"name":"]"}]}`, `{"weights":{"a,}":1}}`, `{"any":{"":[[],{}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, plain asking
		if decode(body, &got) != nil || len(bytes.TrimSpace(body)) == 0 {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&plain); err != nil {
			t.Errorf("decode(%q) takes what is refused: %v", body, err)
		}
	})
}
