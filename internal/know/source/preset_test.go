package source

import (
	"testing"

	"ken/internal/know/source/lists"
	"ken/internal/testkit/sourcetest"
)

func FuzzPresets(f *testing.F) {
	for _, s := range []string{"presets:\n- {name: a, members: [x]}\n", "a: [x, y]\n", "presets: {a: b, c: {members: d}}", "- 1", `{"presets":null}`} {
		f.Add([]byte(s))
	}
	sourcetest.SeedAttacks(f, func(_, quoted string) {
		f.Add([]byte("presets: [{name: " + quoted + ", members: [" + quoted + "]}]\n"))
	})
	fuzzList(f, lists.PresetFormat())
}
