package recipe

import (
	"strings"
	"testing"
)

// TestCodeInPlaces: no choice of switches and values that may be left out makes
// a value code.
func TestCodeInPlaces(t *testing.T) {
	places := map[string]argvPlace{
		"v": {}, "o": {optional: true}, "x": {flag: "-x", boolean: true}, "c": {flag: "-c", boolean: true}, "e": {flag: "--eval", boolean: true},
		"m": {flag: "-m", boolean: true}, "f": {flag: "-f", boolean: true},
	}
	for argv, want := range map[string]int{
		"bash s.sh {v}": -1, "bash {x} s.sh {v}": -1, "bash {v}": -1, "bash {o} {v}": -1,
		"bash -c {v}": 2, "bash -c {x} {v}": 3, "bash -c {x} code {v}": -1, "bash {o} -c {v}": 3, "bash {c} {v}": 2, "bash {x} {c} code": 2,
		"node {e} {v}": 2, "python3 {m} -c {v}": 3, "awk {f} {v}": 2, "awk {x} code {v}": -1, "env {x} bash -c {v}": 4, "git -c {v}": -1, "git {c} {v}": -1,
	} {
		if got := codeInPlaces(strings.Fields(argv), places); got != want {
			t.Errorf("codeInPlaces(%s) = %d, want %d", argv, got, want)
		}
	}
}
