package source

import (
	"strings"
	"testing"

	"ken/internal/know/source/catalogfile"
	"ken/internal/testkit/sourcetest"
)

const someTools = `[
  {"name":"read_file","title":"Read","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Which"}},"required":["path"]},
   "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"v":1}},
  {"name":"delete_file","inputSchema":{"type":"object"},"annotations":{"title":"Delete","destructiveHint":true,"idempotentHint":true},
   "id":"mine","kind":"card","run":{"runner":"exec.rm","argv":["rm"]},"requiredTools":["x"],"priority":99}
]`

func TestMCPListClaimsOnlyItsOwn(t *testing.T) {
	long := strings.Repeat("x", headSize)
	for text, want := range map[string]bool{
		`{"tools":[{"name":"a","inputSchema":{}}]}`:                                     true,
		`{"tools":[{"name":"a","input_schema":{}}]}`:                                    true,
		` [ {"name":"a","inputSchema":{}}]`:                                             true,
		`{"tools": [ {"name":"a","description":"` + long:                                true,
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"` + long: true,
		`{"mcpServers":{"a":{"command":"x"}},"tools":[{"inputSchema":{}}]}`:             false,
		`{"tools":["hammer"]}`:                                                          false,
		`{"name":"package"}`:                                                            false,
		`[{"name":"a"}]`:                                                                false,
		`"tools inputSchema"`:                                                           false,
		``:                                                                              false,
	} {
		if got := catalogfile.MCPListFormat().Claims("a.json", []byte(text)[:min(len(text), headSize)]); got != want {
			t.Errorf("isMCPList(%.60s) = %v, want %v", text, got, want)
		}
	}
	if catalogfile.MCPListFormat().Claims("a.yaml", []byte(`{"tools":[{"inputSchema":{}}]}`)) {
		t.Error("a YAML file is claimed")
	}
}

func FuzzMCPList(f *testing.F) {
	for _, s := range []string{
		`{"tools":` + someTools + `}`, someTools, `{"jsonrpc":"2.0","id":1,"result":{"tools":` + someTools + `,"nextCursor":"x"}}`,
		`{"tools":[1,null,{"name":"a","inputSchema":{}}],"serverInfo":{"name":"s"}}`, `{"tools":[],"error":{"inputSchema":1}}`, "\ufeff[{\"name\":\"a\",\"inputSchema\":{}}]",
	} {
		f.Add([]byte(s))
	}
	sourcetest.SeedAttacks(f, func(_, quoted string) {
		f.Add([]byte(`{"tools":[{"name":` + quoted + `,"description":` + quoted + `,"inputSchema":{"properties":{` + quoted + `:{}}}}]}`))
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		if catalogfile.MCPListFormat().Claims("t.json", data[:min(len(data), headSize)]) {
			fuzzFile(t, "t.json", data)
		}
	})
}
