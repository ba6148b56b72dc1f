//go:build unix

package mcpgateway

import (
	"net/netip"
	"testing"
)

// TestReplaceNetworks: a server whose networks changed is restarted, because the
// proxy of a running server has the networks of its start. A server whose
// networks are the same is not restarted.
func TestReplaceNetworks(t *testing.T) {
	def := stdio(t, "a", "plain")
	def.Networks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	g := gateway(t, Config{}, def)
	was := g.servers["a"]
	def.Networks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	g.Replace([]Server{def})
	if g.servers["a"] != was {
		t.Error("with the same networks there is another server")
	}
	def.Networks = nil
	g.Replace([]Server{def})
	if g.servers["a"] == was {
		t.Error("without the networks there is the same server")
	}
}
