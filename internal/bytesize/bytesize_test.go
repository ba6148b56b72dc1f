package bytesize

import (
	"math"
	"testing"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]int64{
		"64KiB": 64 << 10, "1 GiB": 1 << 30, "512MB": 512e6, "3kB": 3000, "0B": 0, "9000000TiB": math.MaxInt64,
		"": -1, "64": -1, "KiB": -1, "064KiB": -1, "1.5GiB": -1, "-1MB": -1, "64 KiB ": -1, "64Kib": -1,
	} {
		if got, ok := Parse(s); ok != (want >= 0) || ok && got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", s, got, ok, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for n, want := range map[int64]string{64 << 10: "64KiB", 1 << 30: "1GiB", 512e6: "512MB", 1536 << 20: "1536MiB", 20_000: "", 0: "", 7: ""} {
		if got, ok := Format(n); got != want || ok != (want != "") {
			t.Errorf("Format(%d) = %q, %v, want %q", n, got, ok, want)
		}
	}
}
