package cli

import (
	"net"
	"testing"
)

// TestReached: the printed address is one that the server answers to.
func TestReached(t *testing.T) {
	for _, tt := range []struct {
		listens string
		hosts   []string
		want    string
	}{
		{"127.0.0.1:7777", nil, "http://127.0.0.1:7777"},
		{"[::1]:7777", []string{"ken.example"}, "http://[::1]:7777"},
		{"0.0.0.0:7777", []string{"ken.example"}, "http://127.0.0.1:7777"},
		{"[::]:7777", []string{"ken.example"}, "http://127.0.0.1:7777"},
		{"192.0.2.1:7777", []string{"ken.example", "192.0.2.1"}, "http://192.0.2.1:7777"},
		{"192.0.2.1:7777", []string{"ken.example"}, "http://ken.example:7777"},
		{"[2001:db8::1]:7777", []string{"2001:db8::1"}, "http://[2001:db8::1]:7777"},
	} {
		at, err := net.ResolveTCPAddr("tcp", tt.listens)
		if err != nil {
			t.Fatal(err)
		}
		if got := reached(at, tt.hosts); got != tt.want {
			t.Errorf("reached(%s, %v) = %s, want %s", tt.listens, tt.hosts, got, tt.want)
		}
	}
}
