package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func at(t *testing.T, address string) *Handler {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{url: u}
	h.fetch = h.fetcher(nil)
	return h
}

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		server, address string
		ok              bool
	}{
		{"https://mcp.example.com", "https://login.example.org/x", true},
		{"https://mcp.example.com", "https://8.8.8.8/", true},
		{"https://mcp.example.com", "http://login.example.org", false},
		{"https://mcp.example.com", "ftp://login.example.org", false},
		{"https://mcp.example.com", "//login.example.org", false},
		{"https://mcp.example.com", "https://u:p@login.example.org", false},
		{"https://mcp.example.com", "https://localhost", false},
		{"https://mcp.example.com", "http://127.0.0.1:9", false},
		{"https://mcp.example.com", "https://[::1]", false},
		{"https://mcp.example.com", "https://[::ffff:127.0.0.1]", false},
		{"https://mcp.example.com", "https://10.1.2.3", false},
		{"https://mcp.example.com", "https://[fd00::1]", false},
		{"https://mcp.example.com", "https://100.64.0.1", false},
		{"https://mcp.example.com", "https://169.254.169.254", false},
		{"https://mcp.example.com", "https://0.0.0.0", false},
		{"https://mcp.example.com", "https://224.0.0.1", false},
		{"http://localhost:1", "http://127.0.0.1:2", true},
		{"http://127.0.0.1:1", "http://localhost:2", true},
		{"http://127.0.0.1:1", "https://login.example.org", true},
		{"http://127.0.0.1:1", "http://login.example.org", false},
		{"http://127.0.0.1:1", "https://10.1.2.3", false},
		{"https://10.1.2.4", "https://10.1.2.3", true},
		{"https://10.1.2.4", "http://10.1.2.3", false},
		{"https://10.1.2.4", "https://127.0.0.1", false},
		{"https://10.1.2.4", "https://169.254.169.254", false},
	} {
		err := at(t, test.server).checkURL(test.address)
		if (err == nil) != test.ok {
			t.Errorf("checkURL(%s) for %s = %v, want ok %v", test.address, test.server, err, test.ok)
		}
	}
	// A name that the server shares with others decides by its addresses.
	h := at(t, "https://mcp.corp.example")
	own := []netip.Addr{netip.MustParseAddr("10.0.0.9")}
	if err := h.checkIP(netip.MustParseAddr("10.0.0.1"), own); err != nil {
		t.Errorf("checkIP beside the server = %v", err)
	}
	if h.checkIP(netip.MustParseAddr("10.0.0.1"), nil) == nil || h.checkIP(netip.MustParseAddr("127.0.0.1"), own) == nil {
		t.Error("checkIP lets a private address pass that is not beside the server")
	}
}

// TestLookedUp: what a name means is checked when it is connected to, also
// behind a redirect.
func TestLookedUp(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the inside was reached") }))
	defer inside.Close()
	h := at(t, "https://mcp.example.com")
	direct := h.fetch.Transport.(*guard).direct
	req, err := http.NewRequest(http.MethodGet, inside.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "not a public address") {
		t.Errorf("a connection to this machine = %v, want a refusal", err)
	}
	here := httptest.NewServer(http.RedirectHandler("https://10.0.0.1/x", http.StatusFound))
	defer here.Close()
	var v any
	if _, err := at(t, here.URL).getJSON(t.Context(), here.URL, &v); err == nil || !strings.Contains(err.Error(), "not a public address") {
		t.Errorf("a redirect inside = %v, want a refusal", err)
	}
}

func TestCovers(t *testing.T) {
	server, err := url.Parse("https://mcp.example.com/v1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]bool{
		"https://mcp.example.com/v1/mcp": true, "https://mcp.example.com/v1/mcp/": true, "https://mcp.example.com:443/v1/mcp": true,
		"https://mcp.example.com/v1": true, "https://mcp.example.com": true, "https://mcp.example.com/": true,
		"https://mcp.example.com/v1/mc": false, "https://mcp.example.com/v1/mcp/x": false, "https://mcp.example.com/v2": false,
		"http://mcp.example.com/v1/mcp": false, "https://example.com/v1/mcp": false, "https://mcp.example.com:444/v1/mcp": false,
		"https://u@mcp.example.com/v1/mcp": false, "https://mcp.example.com/v1/mcp?x=1": false, "": false, "/v1/mcp": false,
	} {
		if got := covers(resource, server); got != want {
			t.Errorf("covers(%q) = %v, want %v", resource, got, want)
		}
	}
}
