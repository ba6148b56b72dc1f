package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ken/internal/serve/auth"
	"ken/internal/wholefile"
)

// listenFault says why an address cannot be listened on. If a Ken serves there,
// it names its page.
func listenFault(ctx context.Context, addr string, err error) error {
	other := "choose another with --addr, as in --addr 127.0.0.1:0"
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: %w; %s", addr, err, other)
	}
	host, port, _ := net.SplitHostPort(addr) // it was split before
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, port)
	if version, ok := kenAt(ctx, url); ok {
		return fmt.Errorf("listen on %s: Ken %s already serves there: %s/; use that page, or %s", addr, version, url, other)
	}
	return fmt.Errorf("listen on %s: another program uses this port; %s", addr, other)
}

// kenAt reports whether a Ken answers at an address, and its version.
func kenAt(ctx context.Context, url string) (version string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return "", false
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return "", false
	}
	defer response.Body.Close()
	var about struct {
		Version string `json:"version"`
	}
	err = json.NewDecoder(http.MaxBytesReader(nil, response.Body, 64<<10)).Decode(&about)
	return about.Version, err == nil && about.Version != ""
}

// openPage opens the page in the browser, signed in. The browser gets the link in
// a file in dir that only the user can read: other users see the arguments of
// programs. remove removes the file.
func (c *serveCommand) openPage(dir, url string, tokens *auth.Tokens) (remove func()) {
	page, remove := url+"/", func() {}
	if tokens != nil {
		file := filepath.Join(dir, "open.html")
		text := `<!doctype html><meta http-equiv="refresh" content="0;url=` + html.EscapeString(tokens.Link(page)) + `">`
		if err := wholefile.Write(file, []byte(text), 0o600); err != nil {
			fmt.Fprintf(c.err, "ken: the browser cannot be opened: %v; open the link above\n", err)
			return remove
		}
		page, remove = "file://"+file, func() { _ = os.Remove(file) } // its token ends with this process
	}
	if !openInBrowser(page) {
		remove()
		fmt.Fprintln(c.err, "ken: there is no browser to open here; open the link above")
	}
	return remove
}
