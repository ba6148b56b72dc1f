package remote

import (
	"strings"
	"testing"
)

// TestPlainHTTP: texts and the key leave this machine over https only.
func TestPlainHTTP(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:11434/v1": true, "http://localhost/v1": true, "http://[::1]/v1": true, "https://embed.example.org/v1": true,
		"http://embed.example.org/v1": false, "http://10.0.0.1/v1": false, "http://192.168.1.5:11434/v1": false, "http://127.0.0.1.example.org/v1": false,
	} {
		e, err := New(Config{URL: address, Model: "m"})
		if (err == nil) != want {
			t.Errorf("New(%s) = %v, want that it is taken: %v", address, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "discovery.embeddingUrl") {
			t.Errorf("New(%s) = %v, want the setting named", address, err)
		}
		if e != nil {
			e.Close()
		}
	}
}
