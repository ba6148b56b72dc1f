package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

// TestManifestPlaces: a manifest's recipe is held to the same as a package's.
func TestManifestPlaces(t *testing.T) {
	const begin = "kind: tool\nname: t\ndescription: T.\npermissions: [exec]\n"
	tests := []struct {
		name, schema, run string
		code              string
		lost              bool
	}{
		{"switch", "r: {type: boolean, x-ken-flag: --reverse}", `{runner: exec.sort, argv: [sort, "{r}"]}`, "", false},
		{"boolean without a flag", "r: {type: boolean}", `{runner: exec.sort, argv: [sort, "{r}"]}`, "no-flag", false},
		{"switch without a dash", "r: {type: boolean, x-ken-flag: r}", `{runner: exec.sort, argv: [sort, "{r}"]}`, "bad-recipe", true},
		{"switch to code", "c: {type: boolean, x-ken-flag: -lc}, s: {type: string}", `{runner: exec.bash, argv: [bash, "{c}", "{s}"]}`, "placeholder-in-code", true},
		{"loose option", "d: {type: string}", `{runner: exec.git, argv: [git, -C, "{d}", status]}`, "loose-option", false},
		{"default", "d: {type: string, default: .}", `{runner: exec.git, argv: [git, -C, "{d}", status]}`, "", false},
		{"values", "d: {type: string}", `{runner: exec.git, argv: [git, "{d}"], envValues: {TZ: UTC}}`, "", false},
		{"bad values", "d: {type: string}", `{runner: exec.git, argv: [git, "{d}"], envValues: [TZ]}`, "bad-recipe", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Write(t, dir, "t/CAPABILITY.yaml", begin+"inputSchema: {type: object, properties: {"+tt.schema+"}}\nrun: "+tt.run+"\n")
			_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
			code := ""
			if len(b.Problems) > 0 {
				code = b.Problems[0].Code
			}
			if code != tt.code || (len(b.Capabilities) == 0) != tt.lost {
				t.Fatalf("problems %v and %d capabilities, want %q and lost %v", b.Problems, len(b.Capabilities), tt.code, tt.lost)
			}
			if tt.name == "values" {
				if diff := cmp.Diff([]string{"TZ=UTC"}, b.Capabilities[0].Run.EnvValues); diff != "" {
					t.Errorf("EnvValues (-want +got):\n%s", diff)
				}
			}
		})
	}
}
