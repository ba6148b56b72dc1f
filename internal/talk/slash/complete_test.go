package slash

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
)

func TestComplete(t *testing.T) {
	sig, err := ReadSignature(json.RawMessage(`{"properties":{
		"method":{"enum":["GET","POST","a b"],"x-ken-position":1},
		"out":{"enum":["json","text"],"x-ken-flag":"--out"},
		"bail":{"type":"boolean","x-ken-flag":"--bail"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	x := New([]Command{
		{Name: "send", Aliases: []string{"sx"}, Actions: []Action{{Name: "now", Signature: &sig}, {Name: "never"}}},
		{Name: "set", Extension: "a", Actions: []Action{{Signature: &sig}}},
		{Name: "twice", Extension: "a"}, {Name: "twice", Extension: "b"},
		{Name: "prompt", Actions: []Action{{Text: true}}},
	})
	tests := []struct{ line, want string }{ // | is the cursor
		{"|", ""},
		{"hello /s|", ""},
		{"/|", "0-1 /a:twice /b:twice /prompt /send /set"},
		{"/se| now", "0-3 /send /set"},
		{"/sx|", "0-3 /sx"},
		{"//se|", ""},
		{"/zz|", ""},
		{"/send |", "6-6 never now"},
		{"/send n| x", "6-7 never now"},
		{"/send now |", "10-10 'a b' --bail --out GET POST"},
		{"/send now G|", "10-11 GET"},
		{"/send now GET --|", "14-16 --bail --method --out"},
		{"/send now GET --bail --|", "21-23 --method --out"},
		{"/send now --out |", "16-16 json text"},
		{"/send now --out=|", "10-16 --out=json --out=text"},
		{"/send now -- |", ""},
		{"/send now 'G|", ""},
		{"/send now 'G'|", ""},
		{"/send never |", ""},
		{"/set |", "5-5 'a b' --bail --out GET POST"},
		{"/prompt x|", ""},
		{"/twice |", ""},
	}
	for _, tt := range tests {
		cursor := strings.Index(tt.line, "|")
		line := strings.Replace(tt.line, "|", "", 1)
		var got []string
		for i, c := range x.Complete(line, cursor) {
			if i == 0 {
				got = append(got, fmt.Sprintf("%d-%d", c.Start, c.End))
			}
			got = append(got, c.Text)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("Complete(%q) (-want +got):\n%s", tt.line, diff)
		}
	}
	for _, cursor := range []int{-5, 500} {
		x.Complete("/send é", cursor) // must not panic
	}
}

func TestCompletionIsBounded(t *testing.T) {
	x := New(hundreds(500))
	if got := len(x.Complete("/", 1)); got != maxCompletions {
		t.Errorf("Complete(/) gives %d, want %d", got, maxCompletions)
	}
}

// hundreds makes commands of three actions each.
func hundreds(n int) []Command {
	sig, err := ReadSignature(json.RawMessage(benchSchema))
	if err != nil {
		panic(err)
	}
	var out []Command
	for i := range n {
		cmd := Command{Name: fmt.Sprintf("command%03d", i), Extension: fmt.Sprintf("tools.x%03d", i), Aliases: []string{fmt.Sprintf("c%03d", i)}}
		for _, action := range []string{"get", "put", "list"} {
			cmd.Actions = append(cmd.Actions, Action{Name: action, Target: capability.MakeID(capability.KindCommand, cmd.Name+"/"+action), Signature: &sig})
		}
		out = append(out, cmd)
	}
	return out
}
