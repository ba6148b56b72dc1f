// Package address judges hosts and IP addresses. It is the only place that
// knows which addresses belong to this machine, which are public, and which
// serve the credentials of a cloud. It resolves no names, so code that dials
// must check the resolved address too.
package address

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Parse reads an IP address in any spelling that a resolver takes for one: as
// netip does, with brackets, a zone or a trailing dot, and IPv4 as inet_aton reads
// it (2852039166, 0xA9.0xFE.0xA9.0xFE, 0251.254.43518).
func Parse(host string) (netip.Addr, bool) {
	host = Bare(host)
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.WithZone(""), true
	}
	return oldStyle(host)
}

// Bare returns a host without brackets and a trailing dot.
func Bare(host string) string { return strings.TrimRight(strings.Trim(host, "[]"), ".") }

// oldStyle parses one to four numbers; the last one fills the remaining bytes.
func oldStyle(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 || host == "" {
		return netip.Addr{}, false
	}
	var all uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 64)
		if err != nil || strings.Contains(part, "_") || strings.HasPrefix(part, "0b") || strings.HasPrefix(part, "0o") {
			return netip.Addr{}, false
		}
		room := uint(8)
		if i == len(parts)-1 {
			room = 8 * uint(5-len(parts))
		}
		if n >= 1<<room {
			return netip.Addr{}, false
		}
		all = all<<room | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

// Inner returns the IPv4 address that an IPv6 address stands for or leads to:
// IPv4-mapped and -compatible, NAT64, 6to4, Teredo and ISATAP. Any other address
// is returned as it is.
func Inner(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	last := [4]byte(b[12:])
	switch {
	case nat64.Contains(addr), nat64Local.Contains(addr):
		return netip.AddrFrom4(last)
	case compatible.Contains(addr) && addr != netip.IPv6Loopback() && !addr.IsUnspecified():
		return netip.AddrFrom4(last)
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case teredo.Contains(addr):
		for i := range last {
			last[i] = ^last[i]
		}
		return netip.AddrFrom4(last)
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:
		return netip.AddrFrom4(last)
	}
	return addr
}

var (
	compatible = netip.MustParsePrefix("::/96")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)

// Loopback reports whether a host is a spelling of this machine's loopback
// address.
func Loopback(host string) bool {
	host = Bare(host)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Unprotected reports whether what is sent to an address can be read on its way:
// it is plain http to another machine.
func Unprotected(u *url.URL) bool { return u.Scheme == "http" && !Loopback(u.Hostname()) }

// Near reports whether a host is spelled as this machine or one near it. What a
// name resolves to is for the one who dials.
func Near(host string) bool {
	h := Bare(host)
	if Loopback(h) || Under(h, "localhost") || Under(h, "internal") || Under(h, "local") {
		return true
	}
	if h == "" || h[0] != ':' && (h[0] < '0' || h[0] > '9') && !strings.Contains(h, ":") {
		return false
	}
	ip, ok := Parse(h)
	if !ok {
		// Digits that are no address are how 127.0.0.1 is spelled to get past.
		return !strings.ContainsAny(h, "ghijklmnopqrstuvwyzGHIJKLMNOPQRSTUVWYZ-_")
	}
	ip = Inner(ip)
	return Metadata(h) || ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast()
}

// Metadata reports whether a host is, in any spelling, a link-local address or
// the address or name at which a cloud serves a machine's credentials.
func Metadata(host string) bool {
	addr, ok := Parse(host)
	if !ok {
		return metadataNames[strings.ToLower(Bare(host))]
	}
	inner := Inner(addr)
	return inner.IsLinkLocalUnicast() || metadataAddresses[inner] || metadataAddresses[addr]
}

var metadataAddresses = map[netip.Addr]bool{ // besides link-local ones, such as 169.254.169.254 and fe80::a9fe:a9fe
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle Cloud
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"):   true, // Azure
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
	netip.MustParseAddr("fd00:ec2::23"):    true, // AWS, pods
	netip.MustParseAddr("fd20:ce::254"):    true, // Google Cloud
	netip.MustParseAddr("fd00:42::42"):     true, // Scaleway
}

var metadataNames = map[string]bool{
	"metadata": true, "metadata.google.internal": true, "metadata.goog": true, "metadata.tencentyun.com": true,
	"instance-data": true, "instance-data.ec2.internal": true, "rancher-metadata": true, "metadata.oraclecloud.com": true,
}

// closed are networks that are not the public internet: this machine, its
// neighbours, its cloud's metadata, and wrappers around other addresses.
var closed = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "::1/128", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
	"2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Public reports whether an address belongs to the open internet.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, n := range closed {
		if n.Contains(addr) {
			return false
		}
	}
	inner := Inner(addr)
	return addr.IsValid() && (inner == addr || Public(inner))
}

// Below reports whether a host is exactly one label below a domain, as *.domain
// means it in a rule that allows: a.example.org is one below example.org, and
// b.a.example.org is not.
func Below(host, domain string) bool {
	label, rest, ok := strings.Cut(Bare(host), ".")
	return ok && label != "" && strings.EqualFold(rest, domain)
}

// Under reports whether a host is any number of labels below a domain, as
// *.domain means it in a rule that denies.
func Under(host, domain string) bool {
	host = Bare(host)
	n := len(host) - len(domain) - 1
	return n > 0 && host[n] == '.' && strings.EqualFold(host[n+1:], domain)
}
