package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/testkit/executortest"
)

// TestBrowserChecklist is S5.54 for pages.
func TestBrowserChecklist(t *testing.T) {
	needChromium(t)
	t.Setenv("KEN_SECRET", "leaked")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	r, s := newRig(t, nil), newSite(t)
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			for verb, list := range map[string][]string{
				"open":     {`{}`, `{"url":""}`, `{"url":1}`, `{"url":"https://a/","URL":"https://b/"}`, `{"url":"https://a/","url":"https://b/"}`, `{"url":"https://a/","as":"xml"}`, `{"url":"https://a/","flags":"--x"}`, `{"url":"https://*.a/"}`, `[]`, `nul`},
				"click":    {`{}`, `{"element":""}`, `{"element":"e1","text":"x"}`, fmt.Sprintf(`{"element":%q}`, strings.Repeat("x", 2000))},
				"fill":     {`{"element":"e1"}`, `{"text":"x"}`},
				"wait":     {`{}`, `{"seconds":-1}`, `{"seconds":1e9}`},
				"select":   {`{"element":"e1"}`},
				"upload":   {`{"element":"e1"}`, `{"element":"e1","file":"/etc/passwd"}`, `{"element":"e1","file":"../x"}`, `{"element":"e1","file":""}`},
				"download": {`{}`},
				"close":    {`{"url":"https://a/"}`},
			} {
				for _, args := range list {
					executortest.Refused(t, r, executortest.Call("tool:"+verb, args), capability.Invalid, "read the arguments")
				}
			}
			executortest.Refused(t, r, executortest.Call("tool:print", object{}), capability.Unavailable, "browser.open")
		},
		WorkDirBounds: func(t *testing.T) {
			// A link in the place of the folder of downloads leads nowhere.
			r.do(t, "s", "open", object{"url": s.URL + "/two"})
			away := t.TempDir()
			work := filepath.Join(r.dir, "extensions", "tools.browse", "work")
			executortest.Must(t, os.Symlink(away, filepath.Join(work, "downloads")))
			for _, verb := range []string{"download", "pdf"} {
				if res, err := r.Invoke(t.Context(), call("s", verb, object{"url": s.URL + "/file.csv"})); err == nil && !res.Failed {
					t.Errorf("%s followed a link: %s", verb, executortest.Text(res, ""))
				}
			}
			if list, _ := os.ReadDir(away); len(list) > 0 {
				t.Errorf("files were saved elsewhere: %v", list)
			}
			executortest.Must(t, os.Remove(filepath.Join(work, "downloads")))
		},
		EnvFilter: func(t *testing.T) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, i := range r.browsers {
				for pid := range beneath(t, i.process.Pid()) {
					env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
					if text := string(env); strings.Contains(text, "leaked") || strings.Contains(text, "127.0.0.1:9\x00") {
						t.Errorf("process %d has Ken's environment", pid)
					}
				}
			}
		},
		Timeout: testLimits,
		OutputLimit: func(t *testing.T) {
			small := newRig(t, func(c *Config) {
				c.Lookup = func(ctx context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
					got, d, err := lookup(ctx, id)
					got.Run.MaxOutputSize = 2000
					return got, d, err
				}
			})
			res, err := small.Invoke(t.Context(), call("s", "open", object{"url": s.URL + "/big"}))
			if text := executortest.Text(res, ""); err != nil || len(text) > 4000 || res.Meta["truncated"] != "true" || !strings.Contains(text, "Only the first 2000 characters") {
				t.Errorf("open = %d characters, %v, %v", len(text), res.Meta, err)
			}
			small.Close()
		},
		Log: func(t *testing.T) {
			facts, err := r.Facts(t.Context(), call("s", "fill", object{"element": "e1", "text": "geheim", "url": s.URL + "/form"}), nil)
			if err != nil || facts.Line != "browser.fill e1 "+s.URL+"/form" || !reflect.DeepEqual(facts.Hosts, []string{"127.0.0.1"}) || len(facts.Isolation) == 0 {
				t.Errorf("Facts = %+v, %v", facts, err)
			}
			res, err := r.Invoke(t.Context(), call("s", "open", object{"url": s.URL + "/two"}))
			for _, key := range []string{"tool", "url", "http_status", "truncated", "duration_ms", "isolation", "connections", "connections_refused", "network_bytes", "end"} {
				if err != nil || res.Meta[key] == "" {
					t.Errorf("Meta has no %s: %v, %v", key, res.Meta, err)
				}
			}
		},
		SecureErrors: func(t *testing.T) {
			executortest.Must(t, os.WriteFile(filepath.Join(r.workspace, "closed"), nil, 0))
			r.do(t, "s", "open", object{"url": s.URL + "/upload"})
			for _, file := range []string{"gone", "deep/gone", "."} {
				if text := r.fails(t, "s", "upload", object{"element": "input", "file": file}, ""); strings.Contains(text, r.workspace) || strings.Contains(text, r.dir) {
					t.Errorf("upload of %s shows a folder: %s", file, text)
				}
			}
		},
		MaliciousInputs: func(t *testing.T) {
			r.do(t, "s", "open", object{"url": s.URL + "/form"})
			for _, selector := range []string{"'); fetch('/private'); ('", "*{", "e1`${1}`", `"]);ken.x([`, "a\u2028b{", "</script>"} {
				r.fails(t, "s", "click", object{"element": selector}, "selector")
			}
			r.do(t, "s", "fill", object{"element": "input[name=n]", "text": "'); alert(1); (' \u0000 </script>"})
			if n := s.hits.Load(); n != 0 {
				t.Errorf("%d requests were made by an argument", n)
			}
		},
		PermissionReview: func(t *testing.T) {
			for verb, want := range map[string][]string{
				"open": {"browser", "network"}, "click": {"browser", "network"},
				"upload": {"browser", "network", executor.PermRead}, "download": {"browser", "network", executor.PermWrite}, "pdf": {"browser", "network", executor.PermWrite},
			} {
				args := object{"url": s.URL + "/two"}
				if verb == "click" || verb == "upload" {
					args["element"] = "e1"
				}
				if verb == "upload" {
					args["file"] = "a/note.txt"
				}
				facts, err := r.Facts(t.Context(), call("new", verb, args), nil)
				if err != nil || !reflect.DeepEqual(facts.Required, want) || (verb == "upload") != (len(facts.Paths) == 1) {
					t.Errorf("%s requires %v with the files %v, %v; want %v", verb, facts.Required, facts.Paths, err, want)
				}
			}
			// The rules are told of every host that the page can reach, also by a call
			// that names none.
			facts, err := r.Facts(t.Context(), call("s", "read", nil), nil)
			if err != nil || !reflect.DeepEqual(facts.Hosts, []string{"127.0.0.1"}) {
				t.Errorf("Facts of read = %+v, %v", facts, err)
			}
		},
	}.Run(t)
}
