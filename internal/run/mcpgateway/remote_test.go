//go:build unix

package mcpgateway

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/testkit/mcptest/sample"
)

// remote serves a server over HTTP for a test, and counts the sessions.
func remote(t testing.TB, sse bool) (def Server, web *httptest.Server, sessions *atomic.Int64) {
	t.Helper()
	sessions = &atomic.Int64{}
	server := lasting(t)
	make := func(r *http.Request) *mcp.Server {
		if r.Header.Get("Authorization") != "Bearer tok-1234567" {
			return nil
		}
		sessions.Add(1)
		return server
	}
	var h http.Handler = mcp.NewStreamableHTTPHandler(make, nil)
	if sse {
		h = mcp.NewSSEHandler(make, nil)
	}
	web = httptest.NewServer(h)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return Server{
		Name: "r", URL: web.URL + "/${PLACE}", SSE: sse, Headers: map[string]string{"Authorization": "Bearer ${secret:token}"},
		Trust: capability.TrustUser, Timeout: 20 * time.Second, StartTimeout: 20 * time.Second,
	}, web, sessions
}

// lasting is a server whose sessions end with the test, even if no client ends
// them.
func lasting(t testing.TB) *mcp.Server {
	t.Helper()
	s := sample.New("plain")
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
	})
	return s
}

func secrets(name string) (string, bool) {
	v, ok := map[string]string{"secret:token": "tok-1234567", "PLACE": "mcp"}[name]
	return v, ok
}

func TestRemote(t *testing.T) {
	for _, sse := range []bool{false, true} {
		t.Run("sse "+strconv.FormatBool(sse), func(t *testing.T) {
			def, _, _ := remote(t, sse)
			g := listed(t, Config{Getenv: secrets}, def)
			gives(t, g, callAs("ada", "", "r/echo", `{"text":"x"}`), "x")
			batches := watch(t, g.Sources()[0])
			invoke(t, g, callAs("ada", "", "r/grow", `{"text":"sprout"}`))
			for byID(<-batches)["mcp:r/sprout"] == nil {
			}
			c := byID(load(t, g))["mcp:r/echo"]
			f, err := g.Facts(t.Context(), callAs("ada", "", "r/echo", ""), c)
			if err != nil || len(f.Hosts) != 1 || f.Hosts[0] != "127.0.0.1" || len(f.Required) != 1 || f.Required[0] != "network" {
				t.Errorf("Facts() = %+v, %v", f, err)
			}
			st := g.Status()[0]
			if st.State != Ready || st.Kind != map[bool]string{false: "http", true: "sse"}[sse] || st.Isolation != nil {
				t.Errorf("Status() = %+v", st)
			}
		})
	}
}

// TestRemoteRestart: the sessions of a server that forgot them are opened again,
// and a call that it never saw is made again.
func TestRemoteRestart(t *testing.T) {
	def, web, sessions := remote(t, false)
	g := listed(t, Config{Getenv: secrets}, def)
	invoke(t, g, callAs("ada", "", "r/echo", ""))
	before := sessions.Load()
	fresh := lasting(t)
	web.Config.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { sessions.Add(1); return fresh }, nil)
	web.CloseClientConnections()
	testkit.Wait(t, "a call works again", func() bool {
		res, err := g.Invoke(t.Context(), callAs("ada", "", "r/echo", `{"text":"y"}`))
		return err == nil && textOf(res) == "y"
	})
	if sessions.Load() == before {
		t.Error("no new session was made")
	}
}

func TestPromptsAndResources(t *testing.T) {
	g := listed(t, Config{CacheDir: t.TempDir()}, stdio(t, "a", "plain"), stdio(t, "b", "plain"))
	offers := g.Offers()
	if len(offers) != 2 || offers[0].Server != "a" || offers[1].Prompt != "mcp:b/get_prompt" || offers[1].Read != "mcp:b/read_resource" {
		t.Fatalf("Offers() = %+v", offers)
	}
	for _, o := range offers {
		if len(o.Prompts) != 1 || o.Prompts[0].Name != "greet" || len(o.Resources) != 1 || len(o.Templates) != 1 {
			t.Fatalf("%s offers %+v, want one of each", o.Server, o)
		}
	}
	for uri, want := range map[string]string{"note://a": "a", "file:///y/x": "a", "file:///y/z": "", "other://q": "", "note://unlisted": ""} {
		if got, _, ok := g.ServerOf(uri); got != want || ok != (want != "") {
			t.Errorf("ServerOf(%s) = %q, %v, want %q", uri, got, ok, want)
		}
	}
	gives(t, g, callAs("ada", "", "a/read_resource", `{"uri":"note://a"}`), "text of note://a")
	res, err := g.Invoke(t.Context(), callAs("ada", "", "a/get_prompt", `{"name":"greet","arguments":{"who":"Ada"}}`))
	if err != nil || len(res.Parts) != 1 || !strings.Contains(string(res.Parts[0].JSON), "Hello Ada") {
		t.Errorf("get_prompt = %+v, %v", res, err)
	}
	refused(t, g, callAs("ada", "", "a/get_prompt", `{"nme":"greet"}`), capability.Invalid)
	done, err := g.Complete(t.Context(), capability.Principal{ID: "ada"}, "", "a", &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "o"},
	})
	if err != nil || len(done.Completion.Values) != 2 {
		t.Errorf("Complete() = %+v, %v", done, err)
	}
}

func TestSubscribe(t *testing.T) {
	g := listed(t, Config{Idle: time.Hour}, stdio(t, "s", "plain"))
	ada := capability.Principal{ID: "ada"}
	told := make(chan struct{}, 100)
	cancel, err := g.Subscribe(t.Context(), ada, "", "note://a", func() { told <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, g, "ada", "", "s")
	// The newest protocol subscribes in a stream of its own, which may come to
	// the server after the next call.
	hear := func(what string) {
		t.Helper()
		testkit.Wait(t, "heard "+what, func() bool {
			invoke(t, g, callAs("ada", "", "s/touch", ""))
			return len(told) > 0
		})
		for len(told) > 0 {
			<-told
		}
	}
	hear("of a change")
	// The subscription outlives the process.
	_, _ = g.Invoke(t.Context(), callAs("ada", "", "s/crash", ""))
	<-told
	if again := pidOf(t, g, "ada", "", "s"); again == pid {
		t.Errorf("pid %d again", again)
	}
	hear("of a change on the new process")
	cancel()
	cancel()
	if _, err := g.Subscribe(t.Context(), ada, "", "nobody://x", func() {}); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Subscribe(nobody) = %v, want not found", err)
	}
}
