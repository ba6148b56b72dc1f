package egress

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"ken/internal/address"
)

// A target is a host and a port, the host in its one plain spelling.
type target struct {
	host string
	port uint16
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// parseTarget reads host:port. Hosts are names in ASCII or plain addresses: a
// spelling that some resolver might read as a number is refused.
func parseTarget(text, defaultPort string) (target, error) {
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		host, portText = text, defaultPort
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	host, err = plainHost(host)
	if err != nil {
		return target{}, err
	}
	n, err := port(portText)
	return target{host, n}, err
}

func plainHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", fmt.Errorf("host %q has a zone", host)
		}
		return addr.Unmap().String(), nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > 253 {
		return "", fmt.Errorf("host %q is not a name", host)
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", fmt.Errorf("host %q is not a name in ASCII", host)
		}
		last = label
	}
	if last[0] >= '0' && last[0] <= '9' {
		return "", fmt.Errorf("host %q looks like a number but is not a plain IP address", host)
	}
	return host, nil
}

// A rule allows hosts. An empty host means none.
type rule struct {
	host  string
	below bool   // names one level below host, not host itself
	port  uint16 // 0: every port
	web   bool   // 80 and 443 instead
}

func parseRules(allow []string) ([]rule, error) {
	var rules []rule
	for _, text := range allow {
		r, err := parseRule(text)
		if err != nil {
			return nil, fmt.Errorf("egress: allow %q: %w; write host, host:port, *.host:port or host:*", text, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(text string) (r rule, err error) {
	host, portText, splitErr := net.SplitHostPort(text)
	switch {
	case splitErr != nil:
		host, r.web = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), true
	case portText != "*":
		if r.port, err = port(portText); err != nil {
			return r, err
		}
	}
	host, r.below = strings.CutPrefix(host, "*.")
	r.host, err = plainHost(host)
	if _, isAddr := netip.ParseAddr(r.host); err == nil && r.below && isAddr == nil {
		return r, fmt.Errorf("an IP address cannot have subdomains")
	}
	return r, err
}

func allowed(rules []rule, t target) bool {
	for _, r := range rules {
		host := t.host == r.host
		if r.below {
			host = address.Below(t.host, r.host)
		}
		port := r.port == 0 || r.port == t.port
		if r.web {
			port = t.port == 80 || t.port == 443
		}
		if host && port {
			return true
		}
	}
	return false
}

// Covers reports whether an allow list permits a host and port; port is 443 if it is
// empty. A host "*.example.com" is permitted only by the same words in the list.
func Covers(allow []string, host, portText string) bool {
	rules, err := parseRules(allow)
	if err != nil {
		return false
	}
	bare, wild := strings.CutPrefix(host, "*.")
	t, err := parseTarget(net.JoinHostPort(bare, cmp.Or(portText, "443")), "")
	if err != nil {
		return false
	}
	for _, r := range rules {
		if wild && !r.below {
			continue
		}
		r.below = r.below && !wild
		if allowed([]rule{r}, t) {
			return true
		}
	}
	return false
}

// reachable reports whether an address may be dialled.
func reachable(addr netip.Addr, networks []netip.Prefix) bool {
	addr = addr.Unmap().WithZone("")
	for _, n := range networks {
		if n.Contains(addr) {
			return true
		}
	}
	return address.Public(addr)
}

// checkAddress sees every address on its way into connect.
func (p *Proxy) checkAddress(_, dialled string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(dialled)
	if err != nil {
		return fmt.Errorf("dialled address %q: %w", dialled, err)
	}
	if p.cfg.NoMetadata && address.Metadata(ap.Addr().Unmap().WithZone("").String()) {
		return fmt.Errorf("address %s is link-local or serves metadata, and none is ever reached", ap.Addr())
	}
	if !reachable(ap.Addr(), p.cfg.Networks) {
		return fmt.Errorf("address %s is private, local or reserved, and not in an allowed network (sandbox.networks)", ap.Addr())
	}
	return nil
}
