package mcpgateway

import (
	"encoding/json"
	"strings"
	"testing"

	"ken/capability"
)

// TestPagesAreBounded: the page of a confined server names only hosts that the
// server may reach, in a policy of bounded size. Other servers say what they want.
func TestPagesAreBounded(t *testing.T) {
	confined := Server{Command: "x", Profile: ProfileConfined, Hosts: []string{"api.example.com", "*.cdn.example:8443"}}
	many := `["` + strings.Repeat(`https://x.example","`, 100) + `https://x.example"]`
	for _, c := range []struct {
		name string
		def  Server
		csp  string
		want string // the policy that is passed on, or the word for unchanged
	}{
		{"allowed", confined, `{"connectDomains":["https://api.example.com","wss://api.example.com:443","https://a.cdn.example:8443","https://*.cdn.example:8443"]}`, "same"},
		{"others", confined, `{"connectDomains":["https://evil.example","https://api.example.com.evil.example","https://api.example.com"],"frameDomains":["https://evil.example"]}`,
			`{"connectDomains":["https://api.example.com"],"frameDomains":[]}`},
		{"wide", confined, `{"connectDomains":["*","https:","https://*","https://*.example.com","https://*.cdn.example","https://api.example.com:22","data:","https://user@api.example.com/path"]}`, `{"connectDomains":[]}`},
		{"no list", confined, `{"connectDomains":"https://evil.example"}`, `{}`},
		{"no policy", confined, `"none"`, "gone"},
		{"imported", Server{Command: "x", Profile: ProfileImported}, `{"connectDomains":["https://evil.example"]}`, "same"},
		{"remote", Server{URL: "https://mcp.example"}, `{"connectDomains":["https://evil.example"]}`, "same"},
	} {
		s := &server{def: c.def}
		extra := `{"_meta":{"ui":{"csp":` + c.csp + `,"prefersBorder":true},"other":1}}`
		res := capability.Result{Parts: []capability.Part{{Text: "<p>", Link: "ui://a/b", MIME: "text/html;profile=mcp-app", Extra: json.RawMessage(extra)}}}
		s.boundPages(&res)
		got := string(res.Parts[0].Extra)
		if c.want == "same" {
			if got != extra {
				t.Errorf("%s: %s, want it unchanged", c.name, got)
			}
			continue
		}
		var back struct {
			Meta struct {
				UI *struct {
					CSP    json.RawMessage `json:"csp"`
					Border bool            `json:"prefersBorder"`
				} `json:"ui"`
				Removed []string `json:"ken/removedDomains"`
				Other   int      `json:"other"`
			} `json:"_meta"`
		}
		if err := json.Unmarshal([]byte(got), &back); err != nil || len(back.Meta.Removed) == 0 || back.Meta.Other != 1 {
			t.Errorf("%s: %s, %v, want what was removed in it", c.name, got, err)
			continue
		}
		if c.want == "gone" != (back.Meta.UI == nil) || back.Meta.UI != nil && (string(back.Meta.UI.CSP) != c.want || !back.Meta.UI.Border) {
			t.Errorf("%s: %s, want the policy %s", c.name, got, c.want)
		}
	}
	long := capability.Result{Parts: []capability.Part{{Link: "ui://a/b", Extra: json.RawMessage(`{"_meta":{"ui":{"csp":{"connectDomains":` + many + `}}}}`)}}}
	(&server{def: Server{Command: "x"}}).boundPages(&long)
	if n := strings.Count(string(long.Parts[0].Extra), "x.example"); n != mostDomains+1 {
		t.Errorf("a policy of 101 addresses leaves %d, want %d and the word for what was removed", n, mostDomains)
	}
}
