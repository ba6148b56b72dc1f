package recipe

import (
	"strings"
	"testing"
)

func TestPlaceholderInCode(t *testing.T) {
	tests := []struct {
		argv string // parted by |
		want int
	}{
		{"sh|-c|echo {a}", 2},
		{"/bin/bash|-lc|{a}", 2},
		{"bash|-e|-c|echo {a}", 3},
		{"sh|-c|-e|echo {a}", 3},
		{"zsh|-c{a}", 1},
		{"env|X=1|dash|-c|ls {a}", 4},
		{"find|.|-exec|sh|-c|cat {a}|;", 5},
		{"python3|-c|print('{a}')", 2},
		{"python3.11|-W|ignore|-c|{a}", 4},
		{"node|-e|f('{a}')", 2},
		{"node|--eval=f({a})", 1},
		{"node|--eval|f({a})", 2},
		{"deno|eval|f({a})", 2},
		{"perl|-ne|print {a}", 2},
		{"ruby|-e|puts {a}", 2},
		{"php|-r|echo {a};", 2},
		{"awk|-F|,|{ print {a} }", 3},
		{"powershell.exe|-Command|Get-Item|{a}", 3},
		{"cmd|/c|dir|{a}", 3},

		{"sh|-c|echo \"$1\"|sh|{a}", -1},
		{"sh|-c|ls|{a}", -1},
		{"python3|-c|import sys|{a}", -1},
		{"python3|script.py|-c|{a}", -1},
		{"python3|-m|json.tool|{a}", -1},
		{"bash|run.sh|{a}", -1},
		{"awk|-v|x={a}|{ print x }", -1},
		{"awk|-f|prog.awk|{a}", -1},
		{"git|log|--out={a}", -1},
		{"git|-c|user.name={a}|commit", -1},
		{"gcc|-c|{a}", -1},
		{"", -1},
	}
	for _, tt := range tests {
		if got := placeholderInCode(strings.Split(tt.argv, "|")); got != tt.want {
			t.Errorf("placeholderInCode(%q) = %d, want %d", tt.argv, got, tt.want)
		}
	}
}
