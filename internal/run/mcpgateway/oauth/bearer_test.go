package oauth_test

import (
	"net/http"
	"strings"
	"testing"

	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/testkit/oauthtest"
)

// TestBearer: a client that knows nothing of OAuth gets through after a login,
// also when its token is refused and must be renewed, with its body sent again.
func TestBearer(t *testing.T) {
	a, s := newWorld(t)
	keep := &oauthtest.Memory{}
	post := func(h *oauth.Handler) (int, error) {
		const body = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := h.Bearer(nil).Do(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		return res.StatusCode, nil
	}
	h := s.handler(t, oauth.Config{Keep: keep, Ask: never(t)})
	_, err := post(h)
	wantLogin(t, err)
	login(t, s.handler(t, oauth.Config{Keep: keep, Ask: oauthtest.Agree}))
	for round := range 3 {
		if status, err := post(h); err != nil || status != http.StatusOK {
			t.Fatalf("round %d: POST = %d, %v, want 200", round, status, err)
		}
		a.Revoke(false) // the next is refused, and renewed
	}
	if a.Asked != 2 {
		t.Errorf("the token was renewed %d times, want 2", a.Asked)
	}
}
