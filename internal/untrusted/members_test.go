package untrusted

import (
	"fmt"
	"strings"
	"testing"
)

func TestTwiceNamed(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"k%d":{"k%d":[]}`, i, i))
	}
	for in, want := range map[string]string{
		`{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}]}`: "",
		`{"a":"b","b":"a"}`:                         "",
		`["a","a"]`:                                 "",
		`{"a":1,"a":2}`:                             "a",
		`{"x":[{"id":1,"\\u0069d":2}]}`:             "id",
		`{"a":{"b":1},"c":{"d":{},"d":{}}}`:         "d",
		`"x"`:                                       "",
		`{"a\\"":1,"a":2}`:                          "",
		"{" + strings.Join(many, ",") + "}":         "",
		"{" + strings.Join(many, ",") + `,"k7":1}`:  "k7",
	} {
		in = strings.ReplaceAll(in, `\\`, `\`)
		got, twice := TwiceNamed([]byte(in), 0)
		if got != want || twice != (want != "") {
			t.Errorf("TwiceNamed(%.60s) = %q, %v; want %q", in, got, twice, want)
		}
	}
	for in, want := range map[string]string{`{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}]}`: "", `{"a":{"b":1},"a":2}`: "a"} {
		if got, _ := TwiceNamed([]byte(in), 1); got != want {
			t.Errorf("TwiceNamed(%s, 1) = %q, want %q", in, got, want)
		}
	}
}
