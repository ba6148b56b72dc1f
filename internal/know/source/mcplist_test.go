package source

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/source/catalogfile"
	"ken/internal/know/source/rows"
	"ken/internal/testkit/sourcetest"
)

const someTools = `[
  {"name":"read_file","title":"Read","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Which"}},"required":["path"]},
   "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"v":1}},
  {"name":"delete_file","inputSchema":{"type":"object"},"annotations":{"title":"Delete","destructiveHint":true,"idempotentHint":true},
   "id":"mine","kind":"card","run":{"runner":"exec.rm","argv":["rm"]},"requiredTools":["x"],"priority":99}
]`

func TestMCPListInEveryWrapping(t *testing.T) {
	for name, tt := range map[string]struct{ text, category, pointer string }{
		"result":       {`{"tools":` + someTools + `}`, "files", "/tools/1"},
		"envelope":     {`{"jsonrpc":"2.0","id":1,"result":{"tools":` + someTools + `}}`, "files", "/result/tools/1"},
		"bare":         {someTools, "files", "/1"},
		"with server":  {`{"serverInfo":{"name":"disk","version":"1"},"tools":` + someTools + `}`, "disk", "/tools/1"},
		"BOM and CRLF": {"\ufeff" + strings.ReplaceAll(`{"tools":`+someTools+`}`, "\n", "\r\n"), "files", "/tools/1"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, b, p := loadText(t, "files.json", tt.text)
			if len(b.Capabilities) != 2 || len(b.Problems) != 0 {
				t.Fatalf("%d capabilities, problems %v", len(b.Capabilities), b.Problems)
			}
			read, remove := b.Capabilities[0], b.Capabilities[1]
			if read.ID != "tool:read_file" || read.DisplayName != "Read" || read.Category != tt.category || read.Trust != capability.TrustUser ||
				read.Effects != (capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}) ||
				fmt.Sprint(read.Parameters) != "[{path string Which true}]" || read.Meta["_meta"] != `{"v":1}` || read.Meta["outputSchema"] == "" {
				t.Errorf("read_file = %+v", read)
			}
			if remove.ID != "tool:delete_file" || remove.Kind != capability.KindTool || remove.DisplayName != "Delete" || remove.Run != nil ||
				remove.RequiredTools != nil || remove.Priority != 0 || remove.Effects.Destructive != capability.Yes || remove.Meta["id"] != "mine" {
				t.Errorf("delete_file = %+v, want only what MCP defines to count", remove)
			}
			if at := remove.Origin; at.Path != p || at.Line != 4 || at.Pointer != tt.pointer {
				t.Errorf("origin = %+v, want line 4 and %s", at, tt.pointer)
			}
			d, err := tree.Detail(context.Background(), read)
			if err != nil || !strings.HasPrefix(string(d.Schema), `{"type":"object","properties":{"path"`) {
				t.Errorf("Detail = %s, %v", d.Schema, err)
			}
		})
	}
}

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

func TestMCPListBadInput(t *testing.T) {
	large := strings.Repeat("x", rows.MaxKept)
	for _, tt := range []struct {
		name, text, problem string
		line, left          int
	}{
		{"a bad tool", `{"tools":[{"name":"a","inputSchema":{}},` + "\n" + `{"description":"nameless","inputSchema":{}},` + "\n" + `7]}`, "no-name tool 2 of the list: the row has no name", 2, 1},
		{"half a file", `{"tools":[{"name":"a","inputSchema":{}},` + "\n" + `{"name":"b"`, "bad-json the JSON text ends too early", 2, 0},
		{"key twice", `{"tools":[{"name":"a","inputSchema":{}}],` + "\n" + `"tools":[]}`, `bad-json key "tools" appears twice`, 2, 0},
		{"not UTF-8", `{"tools":[` + "\n" + `{"name":"` + "\xff" + `","inputSchema":{}}]}`, "not-utf8 the file is not valid UTF-8", 2, 0},
		{"an error", `{"jsonrpc":"2.0","error":{"message":"no \"tools\" or \"inputSchema\""}, "x":{"tools":[{"inputSchema":1}]}}`, "no-tools the file holds an error", 0, 0},
		{"tools are no list", `{"tools":{"name":"a","inputSchema":{}}}`, `no-tools missing list under "tools"`, 0, 0},
		{"more pages", `{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"abc"}`, "more-pages the server had more tools", 0, 1},
		{"large values", `{"tools":[{"name":"a","inputSchema":{},"blob":"` + large + `"}]}`, "dropped-values 1 values", 0, 1},
		{"schema of the wrong type", `{"tools":[{"name":"a","inputSchema":"none"}]}`, `bad-value inputSchema is text, want a map such as {"type": "object", "properties": {…}}`, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, b, _ := loadText(t, "t.json", tt.text)
			if len(b.Capabilities) != tt.left || len(b.Problems) == 0 {
				t.Fatalf("%d capabilities, want %d; problems %v", len(b.Capabilities), tt.left, b.Problems)
			}
			if p := b.Problems[0]; !strings.HasPrefix(p.Code+" "+p.Message, tt.problem) || p.Origin.Line != tt.line {
				t.Errorf("problem = %s %s at line %d, want %s at line %d", p.Code, p.Message, p.Origin.Line, tt.problem, tt.line)
			}
		})
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
