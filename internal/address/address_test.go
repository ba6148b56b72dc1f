package address

import (
	"net/netip"
	"net/url"
	"testing"
)

func TestMetadata(t *testing.T) {
	for host, want := range map[string]bool{
		"169.254.169.254": true, "[::ffff:169.254.169.254]": true, "::ffff:a9fe:a9fe": true, "::169.254.169.254": true,
		"64:ff9b::a9fe:a9fe": true, "64:ff9b:1::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "2001:0:1:2:3:4:5601:5601": true,
		"fe80::5efe:169.254.169.254": true, "2001:db8::5efe:169.254.169.254": true,
		"169.254.170.2": true, "169.254.0.23": true, "169.254.169.254.": true, "2852039166": true, "0xa9fea9fe": true, "0xA9.0xFE.0xA9.0xFE": true,
		"0251.0376.0251.0376": true, "169.254.43518": true, "169.16689662": true,
		"192.0.0.192": true, "::ffff:192.0.0.192": true, "100.100.100.200": true, "168.63.129.16": true,
		"fd00:ec2::254": true, "FD00:EC2::254": true, "fd20:ce::254": true, "fe80::a9fe:a9fe": true, "fe80::1%eth0": true,
		"metadata.google.internal": true, "Metadata.Google.Internal.": true, "metadata.google.internal..": true, "metadata": true,
		"example.org": false, "127.0.0.1": false, "10.0.0.1": false, "192.0.0.193": false, "8.8.8.8": false, "::1": false, "::": false,
		"2606:4700::1111": false, "metadata.example.org": false, "": false, "1.2.3.4.5": false, "256.1.1.1": false,
	} {
		if got := Metadata(host); got != want {
			t.Errorf("Metadata(%s) = %v, want %v", host, got, want)
		}
	}
}

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "127.0.0.1": false, "::1": false, "10.1.2.3": false, "169.254.169.254": false, "192.0.0.192": false,
		"168.63.129.16": false, "100.100.100.200": false, "::ffff:10.0.0.1": false, "64:ff9b::808:808": false, "2002:808:808::1": false,
		"2606:4700::5efe:10.0.0.1": false, "fd00:ec2::254": false, "fe80::1": false, "ff02::1": false, "0.0.0.0": false, "::": false,
	} {
		if got := Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("Public(%s) = %v, want %v", text, got, want)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"example.org": false, "10.0.0.1": false, "localhost.example.org": false, "": false, "2130706433": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("Loopback(%s) = %v, want %v", host, got, want)
		}
	}
}

func TestUnprotected(t *testing.T) {
	for text, want := range map[string]bool{
		"http://collector.example.org:4318": true, "http://10.0.0.1/x": true, "http://0x7f.1/": true, "http://localhost.example.org": true, "http:///x": true,
		"https://collector.example.org": false, "http://localhost:4318": false, "http://[::1]:4318/v1": false, "http://127.0.0.1": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Unprotected(u); got != want {
			t.Errorf("Unprotected(%s) = %v, want %v", text, got, want)
		}
	}
}

func TestNear(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost.": true, "a.localhost": true, "vault.internal": true, "printer.local": true, "127.0.0.1": true, "[::1]": true,
		"10.1.2.3": true, "192.168.0.1": true, "169.254.169.254": true, "0.0.0.0": true, "2130706433": true, "0x7f.1": true, "::ffff:10.0.0.1": true,
		"0177.0.0.01.": true, "1.2.3.4.5": true, "fd00:ec2::254": true,
		"example.org": false, "internal.example.org": false, "8.8.8.8": false, "2606:4700::1111": false, "3com.example": false, "": false,
	} {
		if got := Near(host); got != want {
			t.Errorf("Near(%s) = %v, want %v", host, got, want)
		}
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		host         string
		below, under bool
	}{
		{"a.wild.test", true, true}, {"A.Wild.Test.", true, true}, {"b.a.wild.test", false, true}, {"wild.test", false, false},
		{".wild.test", false, false}, {"awild.test", false, false}, {"a.wild.test.evil", false, false}, {"", false, false},
	} {
		if below, under := Below(c.host, "wild.test"), Under(c.host, "wild.test"); below != c.below || under != c.under {
			t.Errorf("%s: below %v, under %v; want %v and %v", c.host, below, under, c.below, c.under)
		}
	}
}
